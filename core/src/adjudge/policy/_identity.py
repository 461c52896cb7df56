"""The id of a bundle: a digest of whatever can change a decision (clause 30).

Of a policy file that is its meaning, not its layout: places, comments and descriptions do not
count. Of a function it is the qualified name, the code, the defaults, what it closes over and the
constants and functions of its own module that it names. What cannot be digested needs a version
(`versioned`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from adjudge._types import Obligation
from adjudge._values import canonical_json
from adjudge.errors import PolicyCompileError
from adjudge.policy._code import Undigestable, code_form, qualified_name
from adjudge.policy._model import (
    AllOf,
    Always,
    AnyOf,
    Edit,
    Leaf,
    Match,
    Not,
    Path,
    PolicySource,
    Ref,
    Rule,
)
from adjudge.policy._python_rules import VersionedFunction, name_of
from adjudge.policy._work import Work

__all__ = ["identity_of_function", "identity_of_layers", "identity_of_policy"]

_LENGTH = 32


def _sealed(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_LENGTH]


def identity_of_policy(
    source: PolicySource,
    python_rules: Mapping[str, Callable[..., Any]],
    priorities: Mapping[str, int],
    work: Work | None = None,
) -> str:
    """Give the id of one policy with its Python rules."""
    rules = (work or Work()).over(source.rules, Work.DIGESTING)
    return _sealed(
        {
            "version": source.version,
            "defaults": [source.defaults.on_missing_shadow, source.defaults.on_no_match],
            "rules": [_rule(rule) for rule in rules],
            "tools": {
                name: [entry.namespace, canonical_json(entry.fields)]
                for name, entry in source.tools.items()
            },
            "predicates": {name: _match(match) for name, match in source.predicates.items()},
            "python_rules": [
                [name, priorities.get(name, 0), identity_of_function(rule)]
                for name, rule in python_rules.items()
            ],
        }
    )


def identity_of_layers(layers: Mapping[str, str], merge: Callable[..., Any]) -> str:
    """Give the id of a layered policy from its layers' names and ids, in order."""
    return _sealed({"layers": list(layers.items()), "merge": identity_of_function(merge)})


def _rule(rule: Rule) -> list[Any]:
    return [
        rule.id,
        rule.priority,
        rule.order,
        _match(rule.match),
        rule.verdict,
        rule.reason,
        list(rule.approvers),
        rule.timeout_seconds,
        [_edit(edit) for edit in rule.edits],
        [_obligation(obligation) for obligation in rule.obligations],
    ]


def _edit(edit: Edit) -> list[Any]:
    return [edit.kind, list(edit.path), canonical_json(edit.value)]


def _obligation(obligation: Obligation) -> list[Any]:
    return [obligation.id, obligation.phase, obligation.on, canonical_json(obligation.params)]


def _match(match: Match) -> list[Any]:
    match match:
        case Always():
            return ["always"]
        case AllOf(parts):
            return ["all_of", *_in_one_order(parts)]
        case AnyOf(parts):
            return ["any_of", *_in_one_order(parts)]
        case Not(part):
            return ["not", _match(part)]
        case Leaf(path, operator, operand):
            return [operator, _path(path), _operand(operand)]


def _in_one_order(parts: Iterable[Match]) -> list[list[Any]]:
    # The order of operands changes no decision (clause 6), so it is layout.
    return sorted(map(_match, parts), key=repr)


def _path(path: Path) -> list[Any]:
    return [path.root, *path.steps]


def _operand(operand: Any) -> Any:
    if isinstance(operand, Ref):
        return ["ref", _path(operand.path)]
    if isinstance(operand, Always | AllOf | AnyOf | Not | Leaf):
        return _match(operand)
    if type(operand) is str or type(operand) is int:
        # What canonical_json writes, without its search for what needs a tag.
        return json.dumps(operand)
    return canonical_json(operand)


def identity_of_function(function: Callable[..., Any]) -> Any:
    """Say what a Python rule or combiner is. Raises `PolicyCompileError` if it needs a version."""
    plain = function.function if isinstance(function, VersionedFunction) else function
    version = function.version if isinstance(function, VersionedFunction) else None
    try:
        code = code_form(plain)
    except Undigestable as error:
        if version is None:
            raise _needs_version(function, str(error)) from None
        code = None
    return [qualified_name(plain), code, version]


def _needs_version(function: Callable[..., Any], why: str) -> PolicyCompileError:
    name = name_of(function)
    return PolicyCompileError(
        f"The bundle's id cannot tell one {name!r} from another: {why}. "
        f'Pass versioned({name}, "1") and change the version with the behaviour.'
    )
