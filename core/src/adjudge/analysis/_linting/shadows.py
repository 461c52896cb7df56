"""Rules that never decide, because others that are asked before them always do.

Proved, never guessed: whatever call a rule matches, one of those before it matches plainly and ends
the search (clause 14; an errored rule does not, clause 15). A transform may bring a rule out of the
shadow again (clause 19), so a rule that restricts counts as shadowed only where no rewrite can
change how it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from adjudge._types import Verdict
from adjudge.analysis._linting.conditions import TRUE, Steps
from adjudge.analysis._linting.findings import Finding
from adjudge.analysis._linting.formulas import Formula, Formulas
from adjudge.analysis._linting.prover import Prover
from adjudge.analysis._linting.regexes import certain_of
from adjudge.analysis._linting.views import LayerView, RuleView
from adjudge.policy._model import Edit, Leaf

__all__ = ["Rewrites", "shadow_findings"]

# With how many of the rules before it one rule is compared: all, unless there are very many.
_MOST_CANDIDATES, _FEWEST_CANDIDATES = 200, 12
_MOST_PAIRS = 120_000
_MOST_TOGETHER = 8
_MOST_TEXTS = 64


class Rewrites:
    """What the transforms and Python rules of a policy, in all its layers, may rewrite."""

    def __init__(self, layers: Iterable[LayerView]) -> None:
        self._writers: list[tuple[RuleView, tuple[Steps, ...]]] = []
        self._anything = False
        for layer in layers:
            self._anything |= layer.has_python_rules
            for view in layer.rules:
                if view.rule.edits:
                    self._writers.append((view, tuple(map(_written, view.rule.edits))))

    def may_bring_out(self, view: RuleView) -> bool:
        """Whether a rewrite can have a rule decide although it is shadowed (clause 19)."""
        if view.rule.verdict is Verdict.ALLOW:
            return False
        if view.rule.verdict is Verdict.TRANSFORM:
            # Met doubtfully, it is newly met by any rewrite.
            return self._anything or any(
                writer is not view and _share_a_tool(writer, view) for writer, _ in self._writers
            )
        read = [path for path in view.paths if path[0] == "args"]
        if not read:
            return False
        return self._anything or any(
            _share_a_tool(writer, view) and any(_overlap(*pair) for pair in product(read, written))
            for writer, written in self._writers
        )


def _share_a_tool(one: RuleView, other: RuleView) -> bool:
    return one.tools is None or other.tools is None or not one.tools.isdisjoint(other.tools)


def _written(edit: Edit) -> Steps:
    path = edit.path
    if edit.kind == "delete" and path and isinstance(path[-1], int):
        # What stands behind it in the list moves up.
        path = path[:-1]
    return ("args", *path)


def _overlap(one: Steps, other: Steps) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def shadow_findings(
    layer: LayerView, rewrites: Rewrites, prover: Prover, dead: frozenset[str]
) -> Iterator[Finding]:
    """Find the rules of one layer that never decide; `dead` ones, which never match, are told."""
    earlier = _Earlier(len(layer.rules))
    for view in layer.rules:
        if view.name in dead:
            continue
        if not rewrites.may_bring_out(view):
            by = _shadowing(view, earlier, layer, prover, at_home=False)
            if by:
                yield _finding(view, by)
            elif view.tools is not None and ("tool.namespace",) not in view.paths:
                # A rule that restricts is about foreign tools of its name as well (clause 13).
                by = _shadowing(view, earlier, layer, prover, at_home=True)
                if by:
                    yield _finding_at_home(view, by)
        earlier.add(view)


def _shadowing(
    view: RuleView, earlier: _Earlier, layer: LayerView, prover: Prover, *, at_home: bool
) -> list[RuleView]:
    """Give the rules that between them decide whatever this one would; none where it can decide.

    With `at_home`, of calls in the tools' own namespaces alone.
    """
    found: dict[str, RuleView] = {}
    for tool in sorted(view.tools) if view.tools is not None else [None]:
        formulas = layer.formulas(tool)
        goal = [formulas.of_tool(), view.can_match(formulas)]
        if at_home:
            goal.append(formulas.in_own_namespace(TRUE))
        by = _shadowing_for(goal, earlier.candidates(view, tool), formulas, prover)
        if not by:
            return []
        found.update((each.name, each) for each in by)
    return list(found.values())


def _shadowing_for(
    goal: Sequence[Formula], candidates: Sequence[RuleView], formulas: Formulas, prover: Prover
) -> list[RuleView]:
    for other in candidates:
        if prover.refutes(*goal, other.does_not_match(formulas)):
            return [other]
    together = list(candidates[-_MOST_TOGETHER:])
    if len(together) < 2 or not _refuted(prover, goal, together, formulas):
        return []
    for other in tuple(together):
        fewer = [each for each in together if each is not other]
        if _refuted(prover, goal, fewer, formulas):
            together = fewer
    return together


def _refuted(
    prover: Prover, goal: Sequence[Formula], others: Sequence[RuleView], formulas: Formulas
) -> bool:
    return prover.refutes(*goal, *(each.does_not_match(formulas) for each in others))


class _Earlier:
    """The rules before one, found by tool and by a path that they read.

    A rule can hide another only if the other says something about every path that it demands
    something of, or of a path below that one.
    """

    def __init__(self, count: int) -> None:
        bound = max(_FEWEST_CANDIDATES, _MOST_PAIRS // max(count, 1))
        self._most = min(_MOST_CANDIDATES, bound)
        self._by: dict[tuple[str | None, Steps | None, object], list[tuple[int, RuleView]]] = {}
        self._count = 0

    def add(self, view: RuleView) -> None:
        """Add the next rule."""
        self._count += 1
        path, values = _index_of(view)
        for tool in [None] if view.tools is None else view.tools:
            for value in values:
                self._by.setdefault((tool, path, value), []).append((self._count, view))

    def candidates(self, view: RuleView, tool: str | None) -> list[RuleView]:
        """Give the rules that may hide a rule, about calls of one tool, in order."""
        below = {path[:length] for path in view.paths for length in range(2, len(path) + 1)}
        pinned = dict(_pinned(view))
        found: dict[int, RuleView] = {}
        for of_tool in {None, tool}:
            for path in (None, *below):
                for value in (None, *(pinned.get(path, ()) if path else ())):
                    rules = self._by.get((of_tool, path, value), [])[-self._most :]
                    found.update(
                        pair for pair in rules if pair[1].demands <= below | _WITHOUT_STEPS
                    )
        return [found[number] for number in sorted(found)][-self._most :]


_WITHOUT_STEPS = frozenset({("tool.namespace",)})


def _index_of(view: RuleView) -> tuple[Steps | None, Sequence[object]]:
    """Choose the path, and the texts at it, by which a rule is found."""
    for path, values in _pinned(view):
        return path, values
    demanded = sorted((path for path in view.demands if len(path) > 1), key=repr)
    return (demanded[0] if demanded else None), (None,)


def _pinned(view: RuleView) -> Iterator[tuple[Steps, Sequence[str]]]:
    """Give the paths at which a rule demands one of a few texts."""
    match = view.readings[0]
    for part in match.parts if match.kind == "all_of" else (match,):
        leaf = part.match
        if not isinstance(leaf, Leaf) or not leaf.path.steps:
            continue
        if leaf.operator == "eq" and isinstance(leaf.operand, str):
            yield (leaf.path.root, *leaf.path.steps), (leaf.operand,)
        elif leaf.operator == "matches":
            texts = certain_of(leaf.operand, part.reading.in_permitting_position).texts
            if texts is not None:
                yield (leaf.path.root, *leaf.path.steps), sorted(texts)
        elif leaf.operator == "in" and _are_few_texts(leaf.operand):
            yield (leaf.path.root, *leaf.path.steps), tuple(leaf.operand)


def _are_few_texts(operand: object) -> bool:
    return (
        isinstance(operand, list)
        and len(operand) <= _MOST_TEXTS
        and all(isinstance(each, str) for each in operand)
    )


def _finding(view: RuleView, by: Sequence[RuleView]) -> Finding:
    same = all(each.rule.verdict is view.rule.verdict for each in by)
    advice = (
        "Remove it, or make the earlier one narrower."
        if same
        else f"Its {view.rule.verdict} is never given: put it first, give it a higher priority, or "
        "remove it."
    )
    floor = _floor_of(view)
    if floor is not None and not (same and view.rule.verdict is floor):
        advice += f" Removed, it is no longer a floor ({floor}) where its condition is in error."
    return Finding(
        code="shadowed" if len(by) == 1 else "unreachable",
        message=f"This rule never decides: {_named(by)} every call that it matches. {advice}",
        rule=view.name,
        place=view.place,
        related=tuple(each.name for each in by),
    )


def _floor_of(view: RuleView) -> Verdict | None:
    """Give what a rule counts as where it errs (clause 15), if it can err by what it reads."""
    rule = view.rule
    if all(path[0] in ("tool", "tool.namespace") for path in view.paths):
        return None
    if rule.verdict is Verdict.ALLOW:
        return Verdict.DENY if rule.obligations else None
    return Verdict.DENY if rule.verdict is Verdict.TRANSFORM else rule.verdict


def _finding_at_home(view: RuleView, by: Sequence[RuleView]) -> Finding:
    assert view.tools is not None
    tools = " or ".join(sorted(view.tools))
    return Finding(
        code="shadowed_in_own_namespace",
        message=f"This rule decides about a foreign {tools} alone, one in a namespace that tools: "
        f"does not declare: {_named(by)} every other call that it matches. Put it first or give it "
        "a higher priority; if foreign tools are meant, write tool.namespace.",
        rule=view.name,
        place=view.place,
        related=tuple(each.name for each in by),
    )


def _named(by: Sequence[RuleView]) -> str:
    if len(by) == 1:
        line = by[0].place.line
        where = "" if line is None else f" (line {line})"
        return f'"{by[0].name}"{where}, which is asked first, matches'
    quoted = ", ".join(f'"{each.name}"' for each in by)
    return f"between them {quoted}, which are asked first, match"
