"""Whether a match holds of a request, in one of its two readings (clauses 6 to 13).

A rule is read as permitting or as restricting; a leaf's polarity is odd below an odd number of
`not`s.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from adjudge.policy._model import AllOf, Always, AnyOf, Leaf, Match, Not, PolicySource, Ref
from reference import operators
from reference.equality import kind
from reference.logic import Truth, every, negation, some, truth
from reference.reading import ABSENT, Unreadable, World, read


@dataclass(frozen=True)
class Reading:
    """How a match is being read: as which kind of rule, and where within it we stand."""

    source: PolicySource
    permitting_rule: bool
    odd: bool = False
    namespace_said: bool = False
    folded: bool = False

    @property
    def permitting_position(self) -> bool:
        """True can only help a permitting rule: even in one, odd in a restricting rule."""
        return self.permitting_rule is not self.odd


def holds(match: Match, world: World, reading: Reading) -> Truth:
    """Judge a match: true, false or error, whatever the order of its operands (clause 6)."""
    if isinstance(match, Always):
        return Truth.TRUE
    if isinstance(match, AllOf):
        # Clause 13: a conjunction includes its nested `all_of`.
        said = reading.namespace_said or _says_namespace(match)
        inner = replace(reading, namespace_said=said)
        return every(holds(part, world, inner) for part in match.parts)
    # Clause 13: below `any_of` or `not` another conjunction begins.
    apart = replace(reading, namespace_said=False)
    if isinstance(match, AnyOf):
        return some(holds(part, world, apart) for part in match.parts)
    if isinstance(match, Not):
        return negation(holds(match.part, world, replace(apart, odd=not reading.odd)))
    return _leaf(match, world, reading)


def _says_namespace(match: AllOf) -> bool:
    return any(
        _says_namespace(part)
        if isinstance(part, AllOf)
        else isinstance(part, Leaf) and part.path.root == "tool.namespace"
        for part in match.parts
    )


def _leaf(leaf: Leaf, world: World, reading: Reading) -> Truth:
    try:
        # Clause 9: the operand is resolved first.
        operand = _operand(leaf, world)
        value = read(leaf.path, world)
    except Unreadable:
        return Truth.ERROR
    answer = _test(leaf, value, operand, world, reading)
    if leaf.path.root == "tool" and reading.permitting_position and not reading.namespace_said:
        # Clause 13: no namespace, or the one that `tools:` declares for it.
        declared = reading.source.tools.get(world.request.tool)
        expected = (None,) if declared is None else (None, declared.namespace)
        return every([answer, truth(world.request.namespace in expected)])
    return answer


def _operand(leaf: Leaf, world: World) -> Any:
    if not isinstance(leaf.operand, Ref):
        return leaf.operand
    value = read(leaf.operand.path, world)
    if value is ABSENT:
        raise Unreadable(leaf.operand.path.text)
    return value


def _test(leaf: Leaf, value: Any, operand: Any, world: World, reading: Reading) -> Truth:
    if leaf.operator == "exists":
        return truth((value is not ABSENT) is operand)
    if value is ABSENT:
        if leaf.operator == "eq" and operand is None:
            return Truth.TRUE
        # Clause 8: false at even polarity; below a negation absence never permits.
        return truth(reading.odd and reading.permitting_rule)
    if leaf.operator == "size":
        if kind(value) not in ("string", "list", "object"):
            return Truth.ERROR
        return holds(operand, replace(world, element=len(value)), reading)
    if leaf.operator in ("each", "some"):
        # Clause 10: on anything but a list an error.
        if kind(value) != "list":
            return Truth.ERROR
        combine = every if leaf.operator == "each" else some
        return combine(
            holds(operand, replace(world, element=ABSENT if one is None else one), reading)
            for one in value
        )
    if leaf.operator == "normalized":
        if kind(value) != "string":
            return Truth.ERROR
        return holds(operand, replace(world, element=fold(value)), replace(reading, folded=True))
    if leaf.operator == "matches":
        return operators.holds_matches(value, operand, permitting=reading.permitting_position)
    if leaf.operator == "under":
        return operators.holds_under(value, operand, world)
    if reading.folded:
        operand = fold(operand)
    return operators.PLAIN[leaf.operator](value, operand)


def fold(value: Any) -> Any:
    """Give text, or each text of a list, in NFKC and case-folded, as `normalized` compares."""
    if isinstance(value, str):
        return unicodedata.normalize("NFKC", value).casefold()
    return [fold(one) for one in value] if isinstance(value, list | tuple) else value
