"""The difference between two policies in what they decide, each change with a call that shows it.

Where the rules that concern a tool are the same in both, nothing can differ, and that is a proof.
Elsewhere calls are made out of both policies' conditions and both are asked about each: what is
found is certain, and what is not found may still be there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from adjudge._types import ActionRequest, Decision
from adjudge._values import FrozenDict, canonical_json
from adjudge.analysis._call_reading import AvailableTool
from adjudge.analysis._comparing.matches import may_concern, mentioned_tools
from adjudge.analysis._comparing.slots import MISSING, Assignment, Slot, build
from adjudge.analysis._comparing.witness import CallMaker
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, evaluate
from adjudge.policy._identity import identity_of_function
from adjudge.policy._model import AllOf, Always, AnyOf, Leaf, Match, Not, Ref, Rule
from adjudge.policy._python_rules import name_of
from adjudge.policy._verdicts import STRICTNESS

__all__ = ["Difference", "PolicyDifference", "diff"]

Policy = PolicyBundle | LayeredPolicyBundle
Direction = Literal["loosened", "tightened", "changed"]

_LEAST_CALLS = 400
_ANOTHER = "another_tool"
_TOOL: Slot = ("tool",)


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the policies differ.

    `call` is the smallest witness found; `old` and `new` are what the policies decide about it.
    `what` names what differs: verdict, arguments, approvers, timeout_seconds, obligations.
    `count` is how many of the calls tried differ in the same way.
    """

    direction: Direction
    what: tuple[str, ...]
    call: ActionRequest
    old: Decision
    new: Decision
    count: int

    @property
    def in_error(self) -> bool:
        """Whether a rule in error has a part in it."""
        names = (*self.old.matched_rules, *self.new.matched_rules)
        return any("<rule_error:" in name for name in names)


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """What comparing two policies found.

    `proved` says that they decide alike about every call, which is known only where the rules are
    the same. `tried` counts the calls that both were asked about, `tools` those about which the
    rules differ (None stands for every tool that no rule names), and `not_tried` how many of them
    the limit left out. `opaque` names Python rules and combiners, which are asked and not read.
    """

    proved: bool
    differences: tuple[Difference, ...]
    tried: int
    tools: tuple[str | None, ...]
    not_tried: int
    opaque: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether no difference was found; only `proved` says that there is none."""
        return not self.differences


def diff(
    a: Policy,
    b: Policy,
    *,
    max_calls: int = 30_000,
    progress: Callable[[int, int], None] | None = None,
    available: Mapping[str, AvailableTool] | None = None,
) -> PolicyDifference:
    """Compare what two compiled policies decide; `b` is the newer one.

    Verdicts, final arguments, approvers, time-outs and obligations count; ids, reasons and
    descriptions do not. At most about `max_calls` calls are tried; `progress` is told how many of
    how many. Where it is said which tools are `available`, only calls of these count.
    """
    opaque = tuple(dict.fromkeys([*_opaque(a), *_opaque(b)]))
    if a.id == b.id:
        return PolicyDifference(True, (), 0, (), 0, opaque)
    search = _Search(a, b, available)
    tools = [tool for tool in _differing(a, b) if search.names_of(tool)]
    each = max(_LEAST_CALLS, max_calls // max(1, len(tools)))
    looked_at = list(tools[: max(1, max_calls // each)])
    for number, tool in enumerate(looked_at):
        search.look(tool, each)
        if progress is not None:
            progress(number + 1, len(looked_at))
    return PolicyDifference(
        proved=not tools,
        differences=search.differences(),
        tried=search.tried,
        tools=tuple(tools),
        not_tried=len(tools) - len(looked_at),
        opaque=opaque,
    )


class _Search:
    def __init__(self, a: Policy, b: Policy, available: Mapping[str, AvailableTool] | None) -> None:
        self._a, self._b = a, b
        self._available = available
        self._found: dict[Any, Difference] = {}
        self.tried = 0

    def names_of(self, tool: str | None) -> list[str]:
        """Give the names of a tool that calls can have; several for None, or none at all."""
        if self._available is None:
            return [tool] if tool is not None else [_ANOTHER, "x"]
        if tool is not None:
            return [tool] if tool in self._available else []
        return sorted(self._available.keys() - _tools(self._a) - _tools(self._b))

    def look(self, tool: str | None, most: int) -> None:
        """Try calls of one tool."""
        sides = [_rules_about(policy, tool) for policy in (self._a, self._b)]
        known = [{_form_of_rule(rule) for rule in rules} for rules in sides]
        focus = [
            rule
            for rules, others in zip(sides, reversed(known), strict=True)
            for rule in rules
            if _form_of_rule(rule) not in others
        ]
        names = self.names_of(tool)
        maker = CallMaker(
            names,
            sides,
            focus or [rule for rules in sides for rule in rules],
            _namespaces((self._a, self._b), names),
        )
        for chosen in itertools.islice(maker.calls(), most):
            self.tried += 1
            difference = self._compare(chosen)
            if difference is None:
                continue
            key = _key(difference)
            before = self._found.get(key)
            if before is None:
                self._found[key] = self._smallest(chosen, key, maker)
            else:
                self._found[key] = replace(before, count=before.count + 1)

    def _compare(self, chosen: Assignment) -> Difference | None:
        call = build(chosen)
        if self._available is not None:
            call = _as_available(call, self._available[call.tool])
        old, new = evaluate(self._a, call), evaluate(self._b, call)
        what = differing(old, new)
        if not what:
            return None
        return Difference(direction_of(old, new), what, call, old, new, 1)

    def _smallest(self, chosen: Assignment, key: Any, maker: CallMaker) -> Difference:
        """Take out of a witness what it can do without, and make what is left simpler."""
        best = {slot: value for slot, value in chosen.items() if value is not MISSING}
        found = self._compare(best)
        assert found is not None
        for slot in list(best):
            without = {other: value for other, value in best.items() if other != slot}
            for smaller in (without, *_simpler(best, slot, maker)):
                difference = self._compare(smaller) if slot != _TOOL else None
                if difference is not None and _key(difference) == key:
                    best, found = smaller, difference
                    break
        return found

    def differences(self) -> tuple[Difference, ...]:
        """Give what was found: loosened first."""
        order = ("loosened", "tightened", "changed")
        return tuple(
            sorted(
                self._found.values(),
                key=lambda each: (
                    order.index(each.direction),
                    STRICTNESS[each.new.verdict],
                    each.in_error,
                    each.call.tool,
                ),
            )
        )


def _as_available(call: ActionRequest, tool: AvailableTool) -> ActionRequest:
    """Give a call as the tool that there is could get it."""
    args = call.args
    if tool.args is not None:
        args = FrozenDict({name: value for name, value in args.items() if name in tool.args})
    given = None if call.given is None else call.given & args.keys()
    return replace(call, namespace=tool.namespace, declared=tool.declared, args=args, given=given)


def _simpler(chosen: dict[Slot, Any], slot: Slot, maker: CallMaker) -> Iterator[dict[Slot, Any]]:
    size = len(repr(chosen[slot]))
    for value in maker.simplest(slot):
        if len(repr(value)) < size:
            yield {**chosen, slot: value}


def _key(difference: Difference) -> Any:
    old, new = difference.old, difference.new
    return (old.verdict, new.verdict, difference.what, _names(old), _names(new))


def _names(decision: Decision) -> tuple[str, ...]:
    """Give what decided, so that like causes are alike: errors of any kind, and either default."""
    return tuple(
        name.rpartition(":")[0] if "<rule_error:" in name else name.partition("<default:")[0]
        for name in decision.matched_rules
    )


def differing(old: Decision, new: Decision) -> tuple[str, ...]:
    """Name what differs in two decisions about one call, as far as enforcement goes by it."""
    if old.verdict is not new.verdict:
        return ("verdict",)
    views: dict[str, Callable[[Decision], Any]] = {
        "arguments": lambda each: canonical_json(each.effective_args),
        "approvers": lambda each: sorted(each.approver_sets),
        "timeout_seconds": lambda each: each.timeout_seconds,
        "obligations": lambda each: sorted(
            canonical_json([one.id, one.phase, one.on, one.params]) for one in each.obligations
        ),
    }
    return tuple(name for name, view in views.items() if view(old) != view(new))


def direction_of(old: Decision, new: Decision) -> Direction:
    """Say which way a decision goes (clause 16)."""
    before, after = STRICTNESS[old.verdict], STRICTNESS[new.verdict]
    return "changed" if before == after else "loosened" if after < before else "tightened"


# Where the policies can differ at all


def _differing(a: Policy, b: Policy) -> list[str | None]:
    """Give the tools about which the rules differ; None stands for those that no rule names."""
    names = sorted(_tools(a) | _tools(b))
    return [tool for tool in (None, *names) if _forms(a, tool) != _forms(b, tool)]


def _layers(policy: Policy) -> tuple[tuple[str, PolicyBundle], ...]:
    return policy.layers if isinstance(policy, LayeredPolicyBundle) else (("", policy),)


def _tools(policy: Policy) -> set[str]:
    return {tool for _, bundle in _layers(policy) for tool in mentioned_tools(bundle.source)}


def _rules_about(policy: Policy, tool: str | None) -> list[Rule]:
    """Give the written rules that may concern a tool, each layer's in the order of choice."""
    return [rule for _, bundle in _layers(policy) for rule in _ordered(bundle, tool)]


def _ordered(bundle: PolicyBundle, tool: str | None) -> list[Rule]:
    rules = sorted(bundle.source.rules, key=lambda rule: (-rule.priority, rule.order))
    return [rule for rule in rules if may_concern(rule, tool)]


def _namespaces(policies: Iterable[Policy], tools: Iterable[str]) -> list[str]:
    """Give the namespaces that policies declare for tools, each of which `tool: x` then means."""
    declared = [
        bundle.source.tools.get(tool)
        for policy in policies
        for _, bundle in _layers(policy)
        for tool in tools
    ]
    return [each.namespace for each in declared if each is not None and each.namespace is not None]


def _forms(policy: Policy, tool: str | None) -> Any:
    """Give what alone decides about a tool, in a form that is equal where that is the same."""
    merge = (
        repr(identity_of_function(policy.merge))
        if isinstance(policy, LayeredPolicyBundle)
        else None
    )
    return merge, tuple(_forms_of_layer(bundle, tool) for _, bundle in _layers(policy))


def _forms_of_layer(bundle: PolicyBundle, tool: str | None) -> Any:
    priorities = dict(bundle.python_rule_priorities)
    steps = [
        ((-rule.priority, 0, place), _form_of_rule(rule))
        for place, rule in enumerate(_ordered(bundle, tool))
    ]
    steps += [
        ((-priorities.get(name_of(rule), 0), 1, place), repr(identity_of_function(rule)))
        for place, rule in enumerate(bundle.python_rules)
    ]
    declared = bundle.source.tools.get(tool) if tool is not None else None
    about = None if declared is None else (declared.namespace, repr(declared.fields))
    return bundle.defaults, about, tuple(form for _, form in sorted(steps))


def _form_of_rule(rule: Rule) -> str:
    """Give what a rule does, without its name, its reason and its place."""
    edits = [(edit.kind, edit.path, repr(edit.value)) for edit in rule.edits]
    acts = (rule.verdict.value, rule.approvers, rule.timeout_seconds, edits, rule.obligations)
    return f"{_form(rule.match)} {acts!r}"


def _form(match: Match) -> str:
    """Write a match so that the order of its parts, which changes nothing, does not show."""
    if isinstance(match, Leaf):
        path = (match.path.root, match.path.steps)
        return f"({match.operator} {path!r} {_operand(match.operand)})"
    if isinstance(match, Not):
        return f"(not {_form(match.part)})"
    if isinstance(match, AllOf | AnyOf):
        parts = sorted(map(_form, match.parts))
        return f"({type(match).__name__} {' '.join(parts)})"
    return "always"


def _operand(operand: Any) -> str:
    if isinstance(operand, Ref):
        return f"ref {operand.path.root} {operand.path.steps!r}"
    if isinstance(operand, Always | Leaf | Not | AllOf | AnyOf):
        return _form(operand)
    return repr(operand)


def _opaque(policy: Policy) -> list[str]:
    names = [name_of(rule) for _, bundle in _layers(policy) for rule in bundle.python_rules]
    if isinstance(policy, LayeredPolicyBundle):
        ours = ("strict_overrides_loose", "first_layer_wins", "last_layer_wins")
        names += [name for name in (name_of(policy.merge),) if name not in ours]
    return names
