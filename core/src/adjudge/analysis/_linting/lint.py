"""Lint: what in a policy does not mean what its author will have meant.

What is called unreachable, never true or never false is proved; what is called loose or absent
leaves a question, and its sentence says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adjudge.analysis._linting.absence import absence_findings
from adjudge.analysis._linting.findings import FINDING_CODES, Finding, of_layer
from adjudge.analysis._linting.loose import loose_findings
from adjudge.analysis._linting.prover import Prover
from adjudge.analysis._linting.shadows import Rewrites, shadow_findings
from adjudge.analysis._linting.tool_findings import missing_tools, unknown_tools
from adjudge.analysis._linting.tool_lists import Tools, tool_list
from adjudge.analysis._linting.truths import condition_findings, never_matches
from adjudge.analysis._linting.views import LayerView, RuleView, layer_views
from adjudge.analysis._parts import Part
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._model import AllOf, AnyOf, Leaf, Match, Not, Place

__all__ = ["lint"]


def lint(
    bundle: PolicyBundle | LayeredPolicyBundle,
    *,
    tools: Tools | None = None,
    ignore: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Find what is wrong, or doubtful, in a policy; of each layer alone where there are layers.

    With `tools` (a `ToolSet`, names, or schemas as frameworks have them) the tools that rules name
    are compared with it, and rules are read with its optional arguments in mind. Codes in `ignore`
    are left out; one that does not exist raises `ValueError`. Findings come in the policy's order.
    """
    ignored = frozenset((ignore,) if isinstance(ignore, str) else ignore)
    if not ignored <= FINDING_CODES.keys():
        unknown = ", ".join(sorted(ignored - FINDING_CODES.keys()))
        raise ValueError(f"There is no finding {unknown}; there are {', '.join(FINDING_CODES)}.")
    known = tool_list(tools) if tools is not None else ()
    layers = layer_views(bundle)
    prover = Prover()
    rewrites = Rewrites(layers)
    found: list[Finding] = []
    for layer in layers:
        here = list(_of_rules(layer, rewrites, prover))
        here += absence_findings(layer, known, prover)
        here += unknown_tools(layer, known) if tools is not None else ()
        here += _unused_predicates(layer)
        found += sorted(here, key=_order)
    if tools is not None:
        found += missing_tools(bundle, layers, known, prover)
    return tuple(finding for finding in found if finding.code not in ignored)


def _of_rules(layer: LayerView, rewrites: Rewrites, prover: Prover) -> Iterator[Finding]:
    dead = frozenset(view.name for view in layer.rules if never_matches(view, layer, prover))
    for view in layer.rules:
        yield from condition_findings(view, layer, prover, dead=view.name in dead)
        yield from loose_findings(view)
        yield from _timestamps(view)
    yield from shadow_findings(layer, rewrites, prover, dead)


def _order(finding: Finding) -> tuple[int, int]:
    place = finding.place
    if place is None:
        return (0, 0)
    return (place.line or 0, place.column or 0)


def _timestamps(view: RuleView) -> Iterator[Finding]:
    for leaf in _leaves(view.readings[0]):
        if leaf.path.root == "context" and leaf.path.steps[0] == "timestamp":
            yield Finding(
                "timestamp",
                "context.timestamp is whatever the caller supplied, and by default no time at all. "
                "Decide by what the caller cannot choose, or check the time in the guard's "
                "context= and hand over the answer in context.extra.",
                view.name,
                leaf.place,
            )
            return


def _leaves(part: Part) -> Iterator[Leaf]:
    if isinstance(part.match, Leaf):
        yield part.match
    for each in part.parts:
        yield from _leaves(each)


def _unused_predicates(layer: LayerView) -> Iterator[Finding]:
    used: set[int] = set()
    for rule in layer.source.rules:
        _note(rule.match, used)
    for name, match in layer.source.predicates.items():
        if id(match) not in used:
            message = f'No rule uses the predicate "{name}". Remove it, or name it in a match.'
            yield Finding("unused_predicate", of_layer(layer.name, message), None, _place_of(match))


def _note(match: Match, seen: set[int]) -> None:
    """Note each part; a predicate is put in place as the very object that it is."""
    seen.add(id(match))
    if isinstance(match, Not):
        _note(match.part, seen)
    elif isinstance(match, AllOf | AnyOf):
        for part in match.parts:
            _note(part, seen)


def _place_of(match: Match) -> Place | None:
    if isinstance(match, Leaf):
        return match.place
    inside = (match.part,) if isinstance(match, Not) else getattr(match, "parts", ())
    return next((place for part in inside if (place := _place_of(part)) is not None), None)
