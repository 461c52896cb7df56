"""Compiling: what is refused, what a bundle says of itself, and pickling (clauses 18 and 30)."""

from __future__ import annotations

import functools
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from asking import call, policy, rule

from adjudge._types import ActionRequest, Decision, ExecutionContext
from adjudge.policy import (
    PolicyBundle,
    PolicyCompileError,
    PolicyLayer,
    allow,
    approve_required,
    compile_policy,
    evaluate,
    first_layer_wins,
    load_policy_file,
    versioned,
)

SOURCE: dict[str, Any] = {
    "version": 1,
    "tools": {"work": {"cost": "high"}},
    "rules": [rule("approve_required", {"args.x.lt": 5}, approvers=["ann"])],
}


def one(_request: ActionRequest, _context: ExecutionContext) -> Decision | None:
    """Allow."""
    return allow()


@pytest.mark.parametrize(
    "bundle",
    [
        compile_policy(SOURCE),
        compile_policy(SOURCE, python_rules=[one], python_rule_priorities=[("one", 5)]),
        compile_policy(
            [PolicyLayer("a", SOURCE), PolicyLayer("b", {"version": 1})], merge=first_layer_wins
        ),
    ],
)
def test_a_bundle_pickles(bundle: PolicyBundle) -> None:
    """Clause 30: a bundle pickles by compiling again, and is the same policy under the same id."""
    copy = pickle.loads(pickle.dumps(bundle))

    assert (bundle.id, evaluate(bundle, call({"x": 1}))) == (
        copy.id,
        evaluate(copy, call({"x": 1})),
    )


REWRITE = rule("transform", match={"tool": "x"}, transform=[{"path": "args.x", "set": 1}])


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [
        (policy(rule("allow"), defaults={"on_missing_shadow": "deny"}), False),
        (policy(rule("allow")), False),
        (policy(rule("allow", match={"tool": "t"})), True),
        (policy(rule("allow"), rule("approve_required", match={"tool": "t"})), False),
        (policy(rule("approve_required", match={"tool": "t"}), rule("allow")), True),
        (policy(rule("allow"), rule("approve_required", match={"tool": "t"}, priority=1)), True),
        (policy(REWRITE, rule("allow"), rule("approve_required", match={"tool": "t"})), True),
        (policy(rule("approve_required"), defaults={"on_missing_shadow": "deny"}), True),
        (policy(defaults={"on_missing_shadow": "deny"}, python_rules=[one]), True),
        (compile_policy([PolicyLayer("a", {"version": 1})]), True),
        (
            compile_policy(
                [PolicyLayer("a", {"version": 1, "defaults": {"on_missing_shadow": "deny"}})]
            ),
            False,
        ),
        (
            compile_policy(
                [PolicyLayer("a", {"version": 1, "defaults": {"on_missing_shadow": "deny"}})],
                merge=lambda _layers: approve_required(),
            ),
            True,
        ),
    ],
)
def test_may_ask(bundle: PolicyBundle, expected: bool) -> None:
    """`may_ask` is False only where no decision can be an ask.

    Below a rule for everything nothing decides, but for what a transform makes of a call.
    """
    assert expected is bundle.may_ask


async def waits(_request: ActionRequest, _context: ExecutionContext) -> Decision | None:
    """Abstain later."""


class Waits:
    """An async rule in a class."""

    async def __call__(self, _request: ActionRequest, _context: ExecutionContext) -> None:
        """Abstain later."""


@pytest.mark.parametrize(
    "arguments",
    [
        {"python_rules": (waits,)},
        {"python_rules": (versioned(Waits(), "1"),)},
        {"python_rules": (functools.partial(waits),)},
        {"python_rules": (5,)},
        {"python_rules": (one, one)},
        {"python_rules": (one,), "python_rule_priorities": {"oen": 1}},
        {"python_rules": (one,), "python_rule_priorities": {"one": "high"}},
        {"merge": first_layer_wins},
    ],
)
def test_refused(arguments: dict[str, Any]) -> None:
    """Clause 18: what cannot be a rule, or be told apart, is refused at compile time."""
    with pytest.raises(PolicyCompileError):
        compile_policy({"version": 1}, **arguments)


def test_a_python_rule_may_not_take_a_rule_s_name() -> None:
    """A decision must name one rule, so written and Python rules share one set of names."""
    with pytest.raises(PolicyCompileError):
        policy(rule("allow", id="one"), python_rules=[one])


@pytest.mark.parametrize(
    "layers",
    [
        [],
        ["policy"],
        [PolicyLayer("", {"version": 1})],
        [PolicyLayer("a", {"version": 1}), PolicyLayer("a", {"version": 1})],
    ],
)
def test_layers_refused(layers: Any) -> None:
    """Layers without a name, under one name, or that are none, are refused."""
    with pytest.raises(PolicyCompileError):
        compile_policy(layers)


def test_a_layer_s_problems_name_the_layer() -> None:
    """A compile error within a layer says in which."""
    with pytest.raises(PolicyCompileError) as error:
        compile_policy([PolicyLayer("team", {"version": 1, "rulse": []})])

    assert "Layer 'team': " in str(error.value)


def test_python_rules_belong_to_a_layer() -> None:
    """Python rules beside layers are refused, for it would be unclear whose they are."""
    layers: Any = [PolicyLayer("a", {"version": 1})]

    with pytest.raises(PolicyCompileError):
        compile_policy(layers, python_rules=(one,))


def test_a_file_is_compiled(tmp_path: Path) -> None:
    """`load_policy_file` reads the format that the suffix names, and remembers the file."""
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(SOURCE), encoding="utf-8")
    bundle = load_policy_file(path, python_rules=(one,), python_rule_priorities={"one": 9})

    assert ("one",) == evaluate(bundle, call()).matched_rules
    assert (str(path),) == bundle.source_files
    assert 1 == bundle.version


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A policy file that cannot be read is a compile error, so that nobody runs without one."""
    with pytest.raises(PolicyCompileError):
        load_policy_file(tmp_path / "none.json")


def test_a_lone_python_rule_is_no_list_of_them() -> None:
    """The usual slip is `python_rules=rule` for `python_rules=(rule,)`."""

    def rule(request: object, context: object) -> None:
        return None

    with pytest.raises(PolicyCompileError, match=r"write \(rule,\)"):
        compile_policy({"version": 1}, python_rules=rule)
