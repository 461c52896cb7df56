"""What a policy says of a recorded call, where the record is enough to tell.

A value that the record does not have counts for nothing that it could change: a rule is settled
only if its other conditions settle it (Kleene), and where one stays open the policy is asked with
that rule met, not met and in error. Only if all of that comes to the same is it an answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from adjudge._types import ActionRequest, Decision, ToolMetadata, Verdict
from adjudge._values import canonical_json
from adjudge.analysis._comparing.matches import leaves_of, may_concern, paths_of, with_leaves
from adjudge.analysis._comparing.slots import ByText
from adjudge.analysis._recorded.recorded import UNSAID, RecordedCall, Steps
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, PolicyLayer, compile_policy, evaluate
from adjudge.policy._faults import spell
from adjudge.policy._judge import on_final
from adjudge.policy._model import (
    Always,
    AnyOf,
    Defaults,
    Leaf,
    Match,
    Path,
    Place,
    PolicySource,
    Rule,
)
from adjudge.policy._python_rules import name_of
from adjudge.policy._verdicts import tagged

__all__ = ["Policy", "Teller", "Untold", "is_error"]

Policy = PolicyBundle | LayeredPolicyBundle

_MOST_OPEN = 3
_MOST_KEPT = 1024
_NOWHERE = Place("analysis")
# Nobody supplies this session value, so reading it is always an error (clause 9).
_IN_ERROR = Leaf(Path("context", ("trusted", "\0"), ""), "exists", True, _NOWHERE)
_NEVER = AnyOf(())
_FORCED: tuple[Match, ...] = (Always(), _NEVER, _IN_ERROR)
_DECLARED = (None, ToolMetadata(), ToolMetadata(reversible=False))


class Untold(NamedTuple):
    """Why it cannot be told what a policy says of a call: a rule reads what is not known."""

    rule: str
    path: str

    def __str__(self) -> str:
        return f"{self.rule} reads {self.path}, which the record does not have"


@dataclass(frozen=True, slots=True)
class _Open:
    """A rule that stays open: where it stands, and what it reads that is unknown."""

    layer: int
    rule: Rule
    name: str
    path: Steps


class Teller:
    """Asks one policy about recorded calls.

    With `workspace`, paths that the record does not resolve are worked out in it by their text.
    With `assume_plain`, what the record does not say of a call is taken to be empty: a plain tool,
    no injected values, no extra and no session. Redacted values stay unknown.
    """

    def __init__(
        self, policy: Policy, *, workspace: str | None = None, assume_plain: bool = False
    ) -> None:
        self._policy = policy
        self._workspace = workspace
        self._assume_plain = assume_plain
        self._layers = policy.layers if isinstance(policy, LayeredPolicyBundle) else (("", policy),)
        self._concerned: dict[str, list[list[tuple[Rule, tuple[Steps, ...]]]]] = {}
        self._transforms = {
            tagged(layer, rule.id)
            for layer, bundle in self._layers
            for rule in bundle.source.rules
            if rule.verdict is Verdict.TRANSFORM
        }
        self._suspected: dict[tuple[str, tuple[Steps, ...]], list[_Open]] = {}
        self._variants: dict[Any, Policy] = {}

    def tell(self, call: RecordedCall) -> Decision | Untold:
        """Give the decision, or why there is none."""
        request, unknown = self._completed(call)
        coded = [bundle.python_rules[0] for _, bundle in self._layers if bundle.python_rules]
        if unknown and coded:
            return Untold(f"Python rule {name_of(coded[0])}", spell(*_split(unknown[0])))
        suspects = self._suspects(request.tool, unknown)
        open_rules = [each for each in suspects if self._stays_open(each, request, unknown)]
        if len(open_rules) > _MOST_OPEN:
            return _untold(open_rules[0])
        decisions = list(self._decisions(request, open_rules, ("declared",) in unknown))
        if suspects:
            # What is settled of the arguments as proposed may be open of the rewritten ones.
            rewritten = [each for each in decisions if self._rewrites(each)]
            doubtful = open_rules or self._open_after(rewritten, suspects, request, unknown)
            if rewritten and doubtful:
                return _untold(doubtful[0])
        if all(_same(decisions[0], other) for other in decisions):
            return decisions[0]
        return _untold(open_rules[0]) if open_rules else Untold("the default", "declared")

    def _rewrites(self, decision: Decision) -> bool:
        """Whether a transform has a part in a decision, one whose result is denied included."""
        return decision.effective_args is not None or any(
            name in self._transforms for name in decision.matched_rules
        )

    def _open_after(
        self,
        rewritten: Sequence[Decision],
        suspects: list[_Open],
        request: ActionRequest,
        unknown: tuple[Steps, ...],
    ) -> list[_Open]:
        """Give the rules that rewritten arguments leave open; all, where those are not said."""
        finals = [each.effective_args for each in rewritten]
        return [
            each
            for each in suspects
            for final in finals
            if final is None or self._stays_open(each, on_final(request, final), unknown)
        ]

    def _completed(self, call: RecordedCall) -> tuple[ActionRequest, tuple[Steps, ...]]:
        """Give the request with what was assumed, and what stays unknown of it."""
        request, unknown = call.request, call.unknown
        if self._workspace is not None:
            resolved = ByText(self._workspace, request.resolved)
            request = replace(request, resolved=resolved)
            unknown = tuple(path for path in unknown if path != ("resolved",))
        if self._assume_plain:
            if ("declared",) in unknown:
                request = replace(request, declared=ToolMetadata())
            unknown = tuple(path for path in unknown if path not in UNSAID)
        if self._workspace is None:
            wanted = self._policy.paths_to_resolve(request)
            unknown = tuple(path for path in unknown if path != ("resolved",))
            if any(path not in request.resolved for path in wanted):
                unknown = (*unknown, ("resolved",))
        return request, unknown

    def _suspects(self, tool: str, unknown: tuple[Steps, ...]) -> list[_Open]:
        """Give the rules about a tool that read something unknown."""
        if not unknown:
            return []
        key = (tool, unknown)
        suspects = self._suspected.get(key)
        if suspects is None:
            if len(self._suspected) >= _MOST_KEPT:
                self._suspected.clear()
            suspects = self._suspected[key] = [
                _Open(place, rule, tagged(self._layers[place][0], rule.id), path)
                for place, rules in enumerate(self._rules_about(tool))
                for rule, paths in rules
                if (path := _unknown_among(paths, unknown)) is not None
            ]
        return suspects

    def _rules_about(self, tool: str) -> list[list[tuple[Rule, tuple[Steps, ...]]]]:
        known = self._concerned.get(tool)
        if known is None:
            if len(self._concerned) >= _MOST_KEPT:
                self._concerned.clear()
            known = self._concerned[tool] = [
                [(rule, _reads(rule)) for rule in bundle.source.rules if may_concern(rule, tool)]
                for _, bundle in self._layers
            ]
        return known

    def _stays_open(
        self, suspect: _Open, request: ActionRequest, unknown: tuple[Steps, ...]
    ) -> bool:
        """Whether the rule's other conditions leave open what the unknown values decide."""
        key = (suspect.layer, suspect.rule.order, unknown)
        probe = self._variants.get(key)
        if probe is None:
            source = self._layers[suspect.layer][1].source
            match = with_leaves(suspect.rule.match, lambda leaf: _in_doubt(leaf, unknown))
            probe = compile_policy(
                replace(
                    source,
                    defaults=Defaults(Verdict.ALLOW, Verdict.ALLOW),
                    rules=(replace(suspect.rule, match=match),),
                )
            )
            self._keep(key, probe)
        return any(map(is_error, evaluate(probe, request).matched_rules))

    def _decisions(
        self, request: ActionRequest, open_rules: Sequence[_Open], declared_unknown: bool
    ) -> Iterator[Decision]:
        for forced in itertools.product(range(len(_FORCED)), repeat=len(open_rules)):
            policy = self._forced(request.tool, open_rules, forced) if open_rules else self._policy
            decision = evaluate(policy, request)
            yield decision
            if declared_unknown and any("<default:" in name for name in decision.matched_rules):
                for declared in _DECLARED:
                    yield evaluate(policy, replace(request, declared=declared))

    def _forced(self, tool: str, open_rules: Sequence[_Open], forced: tuple[int, ...]) -> Policy:
        """Give the policy about a tool, with open rules as if they were settled."""
        key = (tool, tuple((each.layer, each.rule.order) for each in open_rules), forced)
        policy = self._variants.get(key)
        if policy is None:
            settled = {
                (each.layer, each.rule.order): _FORCED[answer]
                for each, answer in zip(open_rules, forced, strict=True)
            }
            sources = [
                replace(
                    bundle.source,
                    rules=tuple(
                        replace(rule, match=settled.get((place, rule.order), rule.match))
                        for rule, _ in self._rules_about(tool)[place]
                    ),
                )
                for place, (_, bundle) in enumerate(self._layers)
            ]
            policy = self._compiled(sources)
            self._keep(key, policy)
        return policy

    def _compiled(self, sources: Sequence[PolicySource]) -> Policy:
        if isinstance(self._policy, PolicyBundle):
            return compile_policy(sources[0])
        layers = [
            PolicyLayer(name, source)
            for (name, _), source in zip(self._layers, sources, strict=True)
        ]
        return compile_policy(layers, merge=self._policy.merge)

    def _keep(self, key: Any, policy: Policy) -> None:
        if len(self._variants) >= _MOST_KEPT:
            self._variants.clear()
        self._variants[key] = policy


def _reads(rule: Rule) -> tuple[Steps, ...]:
    paths = (path for leaf in leaves_of(rule.match) for path in paths_of(leaf))
    return tuple(dict.fromkeys(paths))


def _unknown_among(paths: Sequence[Steps], unknown: Sequence[Steps]) -> Steps | None:
    return next((path for path in paths if any(_meet(path, each) for each in unknown)), None)


def _meet(path: Steps, other: Steps) -> bool:
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]


def _in_doubt(leaf: Leaf, unknown: Sequence[Steps]) -> Leaf:
    """Give the leaf, or an error where what it reads is not even there as a redacted value."""
    unsaid = [path for path in unknown if path[0] not in ("args", "resolved") or len(path) == 1]
    gone = [path for path in unsaid if path != ("resolved",)]
    return _IN_ERROR if _unknown_among(tuple(paths_of(leaf)), gone) is not None else leaf


def is_error(name: str) -> bool:
    """Whether a name among the rules that decided is the mark of an errored rule."""
    return "<rule_error:" in name


def _same(one: Decision, other: Decision) -> bool:
    return (
        one.verdict is other.verdict
        and one.approver_sets == other.approver_sets
        and canonical_json(one.effective_args) == canonical_json(other.effective_args)
    )


def _split(path: Steps) -> tuple[str, Steps]:
    return str(path[0]), path[1:]


def _untold(open_rule: _Open) -> Untold:
    return Untold(f"rule {open_rule.name}", spell(*_split(open_rule.path)))
