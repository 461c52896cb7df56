"""Calls on which policies may differ, made out of what their rules test.

Each rule is met exactly, past the rules before it; each of its conditions is then turned, alone;
each slot is swept through every value on which some condition turns; and the rest is drawn from the
same values, the same ones in every run. They are suggestions: what a policy says of a call is for
the engine to say.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from adjudge._values import freeze
from adjudge.analysis._comparing.matches import leaves_of
from adjudge.analysis._comparing.slots import MISSING, Assignment, Slot, as_fits, build, slot_of
from adjudge.analysis._comparing.values_near import FOREIGN, embedded, merged, sized, values_for
from adjudge.errors import ArgumentsRefused
from adjudge.policy._match import Matcher, Reading, compile_match
from adjudge.policy._model import AllOf, AnyOf, Leaf, Match, Not, Path, Ref, Rule

__all__ = ["CallMaker"]

_MOST_OF_SLOT = 160
_MOST_WAYS = 12
_MOST_SIMPLE = 8
_MOST_BEFORE = 40
_TOOL: Slot = ("tool",)
_NAMESPACE: Slot = ("tool.namespace",)
_UNKNOWN: Slot = ("declared", "*")
_READING = Reading(True, {})

Wishes = dict[str, tuple[Leaf, bool]]
"""What some leaves are to answer, by what each leaf says."""


class CallMaker:
    """Makes calls of one tool, or of tools that no rule names.

    `rules` are the rules that may concern it, of every policy that is compared, each policy's in
    order. `focus` are those of them in which the policies differ; `namespaces` those that they
    declare for these tools.
    """

    def __init__(
        self,
        tools: Sequence[str],
        rules: Sequence[Sequence[Rule]],
        focus: Sequence[Rule],
        namespaces: Iterable[str] = (),
    ) -> None:
        self._rules = rules
        self._focus = list(focus)
        every = [rule for each in rules for rule in each]
        self._leaves = list(
            {_said(leaf): leaf for rule in every for leaf in leaves_of(rule.match)}.values()
        )
        self._pools = _pools(self._leaves, every, tools)
        self._pools[_NAMESPACE] = list(dict.fromkeys([*self._pools[_NAMESPACE], *namespaces]))
        self._draw = random.Random(0)  # noqa: S311 - the same calls in every run, no secret
        self._meeting: dict[str, tuple[list[int], list[int]]] = {}
        self._whole: dict[int, Matcher] = {}
        self._simplest: dict[Slot, list[Any]] = {}
        self._named = {_TOOL: tools[0]}

    def simplest(self, slot: Slot) -> Sequence[Any]:
        """Give the shortest values of a slot."""
        known = self._simplest.get(slot)
        if known is None:
            values = [value for value in self._pools.get(slot, ()) if value is not MISSING]
            shortest = sorted(values, key=lambda value: len(repr(value)))
            known = self._simplest[slot] = shortest[:_MOST_SIMPLE]
        return known

    def calls(self) -> Iterator[Assignment]:
        """Give calls, the most telling ones first, without end."""
        bases: list[Assignment] = []
        for rule in self._focus:
            for base in self._about(rule):
                bases.append(base)
                yield base
                yield self._filled(base)
        for base in itertools.islice(bases, 0, None, max(1, len(bases) // 24)):
            yield from self._sweep(base)
        for rules in self._rules:
            for rule in rules:
                for base in self._about(rule):
                    yield base
                    yield self._filled(base)
        while True:
            base = self._draw.choice(bases) if bases and self._draw.random() < 0.5 else {}
            yield self._filled(base, keep=0.7)

    def _sweep(self, base: Assignment) -> Iterator[Assignment]:
        for slot, pool in self._pools.items():
            for value in pool:
                yield {**base, slot: value}

    def _filled(self, base: Assignment, keep: float = 1.0) -> Assignment:
        """Choose for every slot; what the base has chosen is kept, mostly."""
        draw = self._draw
        return {
            slot: base[slot] if slot in base and draw.random() < keep else self._chosen(pool)
            for slot, pool in self._pools.items()
        }

    def _chosen(self, pool: Sequence[Any]) -> Any:
        # Half of the choices are among the first, which are the operands themselves.
        draw = self._draw
        return pool[int(len(pool) * draw.random() ** (2 if draw.random() < 0.5 else 1))]

    # Meeting a rule

    def _about(self, rule: Rule) -> Iterator[Assignment]:
        """Give calls that meet a rule, past the rules before it, and some that barely do not."""
        for wishes in _ways(rule.match, True):
            past = self._past(rule, wishes)
            for each in (past, wishes) if past is not wishes else (wishes,):
                yield from self._granting(each)
        for wishes in _ways(rule.match, False):
            yield from self._granting(wishes)

    def _past(self, rule: Rule, wishes: Wishes) -> Wishes:
        """Wish besides that the rules before this one are not met."""
        for rules in self._rules:
            place = next((i for i, other in enumerate(rules) if other is rule), None)
            for other in rules[:place][-_MOST_BEFORE:] if place is not None else ():
                call = next(iter(self._granting(wishes)), None)
                if call is None or self._matches(other, call) is False:
                    continue
                wishes = self._also_missing(other, wishes)
        return wishes

    def _also_missing(self, rule: Rule, wishes: Wishes) -> Wishes:
        for way in _ways(rule.match, False):
            if _agree(wishes, way):
                both = {**wishes, **way}
                if next(iter(self._granting(both)), None) is not None:
                    return both
        return wishes

    def _matches(self, rule: Rule, call: Assignment) -> object:
        matcher = self._whole.get(id(rule))
        if matcher is None:
            matcher = self._whole[id(rule)] = compile_match(rule.match, _READING)
        return matcher(build(call), None)

    def _granting(self, wishes: Wishes) -> Iterator[Assignment]:
        """Give up to three calls of which the leaves answer as wished; none if no value does."""
        allowed: dict[Slot, list[int]] = {}
        for said, (leaf, wanted) in wishes.items():
            slot, _ = slot_of(leaf.path)
            if isinstance(leaf.operand, Ref) or slot not in self._pools:
                continue
            holding = self._values_meeting(said, leaf, slot)[0 if wanted else 1]
            before = allowed.get(slot)
            allowed[slot] = holding if before is None else [i for i in before if i in holding]
            if not allowed[slot]:
                return
        for share in (0.0, 0.5, 1.0):
            yield self._named | {
                slot: self._pools[slot][places[int((len(places) - 1) * share)]]
                for slot, places in allowed.items()
            }

    def _values_meeting(self, said: str, leaf: Leaf, slot: Slot) -> tuple[list[int], list[int]]:
        known = self._meeting.get(said)
        if known is None:
            matcher = compile_match(leaf, _READING)
            answers = [matcher(build({slot: value}), None) for value in self._pools[slot]]
            known = self._meeting[said] = (
                [place for place, answer in enumerate(answers) if answer is True],
                [place for place, answer in enumerate(answers) if answer is False],
            )
        return known


def _ways(match: Match, wanted: bool) -> list[Wishes]:
    """Give ways in which a match is true, or false with as little turned as possible."""
    if isinstance(match, Leaf):
        return [{_said(match): (match, wanted)}]
    if isinstance(match, Not):
        return _ways(match.part, not wanted)
    if isinstance(match, AllOf | AnyOf):
        if isinstance(match, AllOf) is wanted:
            return _together([_ways(part, wanted) for part in match.parts])
        # One part settles it. Each in its turn, the others as they were; of very many only some.
        step = max(1, len(match.parts) // _MOST_WAYS)
        some = match.parts[::step]
        turned = [
            _together([_ways(other, wanted if other is part else not wanted)[:2] for other in some])
            for part in some
        ]
        return _first_of_each([*turned, *(_ways(part, wanted) for part in some)])
    return [{}] if wanted else []


def _together(parts: Sequence[list[Wishes]]) -> list[Wishes]:
    """Join one way of each part; ways that contradict one another are left out."""
    joined: list[Wishes] = [{}]
    most = _MOST_WAYS if len(parts) <= _MOST_WAYS else 1
    for ways in parts:
        joined = [{**one, **way} for one in joined for way in ways if _agree(one, way)][:most]
    return joined


def _agree(one: Wishes, other: Wishes) -> bool:
    """Whether no leaf is to answer both ways."""
    return all(one[said][1] is wish[1] for said, wish in other.items() if said in one)


def _said(leaf: Leaf) -> str:
    return repr((leaf.path.root, leaf.path.steps, leaf.operator, leaf.operand))


def _first_of_each(groups: Iterable[list[Wishes]]) -> list[Wishes]:
    """Give the ways of several groups in turn, so that none is cut off by another."""
    rounds = itertools.zip_longest(*groups)
    return [way for each in rounds for way in each if way is not None][: 4 * _MOST_WAYS]


# What a slot may hold

_PerLeaf = list[Sequence[Any]]
_Several = dict[Slot, dict[tuple[str | int, ...], _PerLeaf]]


def _pools(
    leaves: Sequence[Leaf], rules: Sequence[Rule], tools: Sequence[str]
) -> dict[Slot, list[Any]]:
    pools: dict[Slot, list[Any]] = {}
    several: _Several = {}
    for leaf in leaves:
        _add(several, leaf.path, values_for(leaf))
        if leaf.operator == "size":
            for other in leaves:
                if (other.path.root, other.path.steps) == (leaf.path.root, leaf.path.steps):
                    _add(several, leaf.path, list(sized(leaf, other)))
    for leaf in leaves:
        if isinstance(leaf.operand, Ref):
            _share(several, leaf.path, leaf.operand.path)
    for rule in rules:
        for edit in rule.edits:
            if edit.path:
                value = edit.value if edit.kind == "set" else "x"
                _add(several, Path("args", edit.path, ""), [value, *_near_edit(value)])
    for slot, by_steps in several.items():
        pools[slot] = _pool(slot, by_steps)
    names = [name for name in pools.get(_TOOL, []) if isinstance(name, str)]
    pools[_TOOL] = list(tools) if len(tools) == 1 else [*tools, *names]
    pools.setdefault(_NAMESPACE, [MISSING, "x"])
    pools.setdefault(("declared", "reversible"), [MISSING, False, True])
    pools.setdefault(("declared", "has_shadow"), [MISSING, True])
    pools[_UNKNOWN] = [MISSING, MISSING, MISSING, "unknown"]
    return pools


def _near_edit(value: Any) -> Iterator[Any]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from (value + 1, value - 1)


def _add(several: _Several, path: Path, values: Sequence[Any]) -> None:
    slot, steps = slot_of(path)
    several.setdefault(slot, {}).setdefault(steps, []).append(values)


def _share(several: _Several, one: Path, other: Path) -> None:
    """Give a path and what it is compared with the same values, and some that differ a little."""
    for path, source in ((one, other), (other, one)):
        slot, steps = slot_of(source)
        known = _in_turn(several.get(slot, {}).get(steps, []))
        few = itertools.islice(known, 20)
        _add(several, path, [*few, 0, 1, 2, "a", "b", ["a"], [1]])


def _pool(slot: Slot, by_steps: Mapping[tuple[str | int, ...], _PerLeaf]) -> list[Any]:
    """Give the values of a slot: one for each value of each path below it, and them together."""
    if slot[0] == "given":
        return [MISSING, True, False]
    whole: Any = None
    for steps, values in by_steps.items():
        for first in itertools.islice(_in_turn(values), 1):
            one = embedded(steps, first)
            whole = one if whole is None else merged(whole, one)
    placed = _in_turn(
        [
            (embedded(steps, value) for value in itertools.chain(_in_turn(values), [None]))
            for steps, values in by_steps.items()
        ]
    )
    found = [whole]
    for value in itertools.islice(placed, _MOST_OF_SLOT):
        found += [value] if len(by_steps) == 1 else [merged(whole, value), value]
    usable = [fitted for value in [*found, *FOREIGN] for fitted in as_fits(slot, value)]
    return [*_frozen(usable), MISSING]


def _in_turn(groups: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Give the first of each group, then the second of each, so that none crowds out another."""
    rounds = itertools.zip_longest(*groups, fillvalue=MISSING)
    return (value for each in rounds for value in each if value is not MISSING)


def _frozen(values: Iterable[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for value in values:
        try:
            found.setdefault(repr(value), freeze(value))
        except (ArgumentsRefused, RecursionError):
            continue
    return list(found.values())
