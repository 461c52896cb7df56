"""Values on which one test of a policy may turn: its operand, what lies just beyond, other kinds.

For every operator a handful of values that meet it and of values that barely do not. They are
suggestions; what a policy says of them is for the engine to say.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from adjudge._values import kind_of
from adjudge.analysis._comparing.matches import inner_match, leaves_of
from adjudge.analysis._comparing.strings import strings_for
from adjudge.policy._model import Leaf, Ref

__all__ = ["FOREIGN", "embedded", "merged", "sized", "values_for"]

FOREIGN: tuple[Any, ...] = ("x", 7, True, False, [], ["x"], [1], {}, {"k": 1})
"""One value and more of each kind, for tests that do not expect it."""

_MOST = 60
_MOST_MEMBERS = 24
_LONGEST = 1 << 16


def values_for(leaf: Leaf) -> list[Any]:
    """Give values for the path of a leaf, those that are likely to meet it first."""
    if isinstance(leaf.operand, Ref):
        return []
    make = _MAKERS.get(leaf.operator)
    if make is None:
        return list(_structural(leaf))[:_MOST]
    return _distinct(make(leaf.operand))[:_MOST]


def sized(size: Leaf, other: Leaf) -> Iterator[Any]:
    """Give values that meet another test of one path, as long as makes a test of its size turn."""
    lengths = [len(value) for value in values_for(size) if isinstance(value, str)]
    values = values_for(other) if other.operator != "size" else []
    for value in [value for value in values if isinstance(value, str | list) and value][:1]:
        for length in lengths:
            if isinstance(value, list):
                yield from ([(value * length)[:length]] if length <= _MOST else ())
            elif len(value) <= length:
                yield from (value.ljust(length, "x"), value.rjust(length, "x"))


def embedded(steps: Sequence[str | int], value: Any) -> Any:
    """Give a value that has another one at the end of a path."""
    for step in reversed(steps):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    return value


def merged(one: Any, other: Any) -> Any:
    """Give one value that has what both have, as far as their kinds allow."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        common = {key: merged(one[key], other[key]) for key in one if key in other}
        return {**one, **other, **common}
    if isinstance(one, list) and isinstance(other, list) and one and other:
        longest = max(len(one), len(other))
        pairs = [(_at(one, place), _at(other, place)) for place in range(longest)]
        return [b if a is None else a if b is None else merged(a, b) for a, b in pairs]
    return other


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _distinct(values: Any) -> list[Any]:
    """Give each value once; 1, 1.0 and true are three."""
    return list({repr(value): value for value in values}.values())


def _near(value: Any) -> Iterator[Any]:
    """Give values that are almost another one."""
    match kind_of(value):
        case "number":
            yield from _near_number(value)
        case "string":
            yield from (f"{value}x", f"x{value}", value[:-1], value.swapcase(), f"{value}\n")
        case "bool":
            yield not value
        case "list":
            yield from ([*value, "x"], value[:-1], [*value, *value])
        case "object":
            yield {**value, "extra": 1}
            yield dict(list(value.items())[1:])


def _near_number(number: Any) -> Iterator[Any]:
    yield from (number + 1, number - 1)
    if isinstance(number, int):
        yield from ((number + 0.5, number - 0.5) if abs(number) < 1 << 52 else ())
    elif isinstance(number, Decimal):
        step = Decimal(1).scaleb(int(number.as_tuple().exponent) - 1)
        yield from (number + step, number - step)
    else:
        yield from (number * (1 + 1e-9) or 1e-9, number * (1 - 1e-9))


def _eq(operand: Any) -> Iterator[Any]:
    yield operand
    yield from _near(operand)
    if isinstance(operand, Mapping):
        yield from ({key: operand[key]} for key in list(operand)[:3])


def _in(members: Sequence[Any]) -> Iterator[Any]:
    few = [*members[: _MOST_MEMBERS // 2], *members[-_MOST_MEMBERS // 2 :]]
    yield from few
    for member in few[:3]:
        yield from _near(member)


def _ordered(operand: Any) -> Iterator[Any]:
    yield operand
    if isinstance(operand, str):
        yield from (f"{operand}a", operand[:-1], "", "\U0010ffff", f"{operand}\0")
    else:
        yield from _near_number(operand)
        yield 0


def _between(operand: Sequence[Any]) -> Iterator[Any]:
    low, high = operand
    yield from (low, high)
    if not isinstance(low, str):
        yield (low + high) / 2 if type(low) is type(high) else low
    yield from [*_ordered(low)][1:]
    yield from [*_ordered(high)][1:]


def _affixes(operand: Any, *, front: bool) -> Iterator[Any]:
    for affix in operand if isinstance(operand, list | tuple) else [operand]:
        yield f"{affix}x" if front else f"x{affix}"
        yield from (affix, affix[:-1], affix.swapcase())
        yield f"x{affix}" if front else f"{affix}x"
        yield f"{affix}/../x"


def _contains(operand: Any) -> Iterator[Any]:
    if isinstance(operand, str):
        yield from (operand, f"x{operand}x", operand[:-1], operand.swapcase())
        yield {operand: 1}
    yield from ([operand], [operand, operand], ["x", operand], [])
    for near in _near(operand):
        yield [near]


def _contains_several(operand: Sequence[Any]) -> Iterator[Any]:
    few = list(operand)[:_MOST_MEMBERS]
    yield few
    if all(isinstance(each, str) for each in few):
        yield from (" ".join(few), " ".join(few[:-1]), dict.fromkeys(few, 1), *few)
    yield from ([each] for each in few)
    yield from (few[:-1], few[1:], ["x"])


def _exists(_operand: bool) -> Iterator[Any]:
    yield from ("x", 1)


def _glob(pattern: str) -> Iterator[Any]:
    for star in ("x", "", "x/y", ".x"):
        text = pattern.replace("**", "\0").replace("*", star)
        for stars in ("x", "x/y", ""):
            yield text.replace("\0", stars)
    yield from _near(pattern.replace("*", "x"))


def _under(directory: str) -> Iterator[Any]:
    base = directory.rstrip("/")
    yield from (f"{base}/x", directory, f"{base}x", f"{base}/x/y", f"{base}/../x")
    yield from (f"{base.rpartition('/')[0]}/x", "/", "x", "../x", "/etc/passwd")


def _hosts(hosts: Sequence[str]) -> Iterator[Any]:
    for entry in hosts[:_MOST_MEMBERS]:
        host = entry.removeprefix("*.")
        yield from (f"https://{host}/", f"https://x.{host}/", f"https://x{host}/")
        yield from (f"https://{host}.x.io/", f"http://{host}", f"https://x@{host}/", host)
    yield from ("https://other.example/", "ftp://x/")


_MAKERS: Mapping[str, Callable[[Any], Iterator[Any]]] = {
    "eq": _eq,
    "in": _in,
    **dict.fromkeys(("gt", "ge", "lt", "le"), _ordered),
    "between": _between,
    "matches": lambda pattern: iter(strings_for(pattern)),
    "starts_with": lambda operand: _affixes(operand, front=True),
    "ends_with": lambda operand: _affixes(operand, front=False),
    "contains": _contains,
    "contains_any": _contains_several,
    "contains_all": _contains_several,
    "exists": _exists,
    "glob": _glob,
    "under": _under,
    "host_in": _hosts,
}


def _structural(leaf: Leaf) -> Iterator[Any]:
    """Give values for a test of the elements, of the size, or of the normal form."""
    inner = inner_match(leaf)
    tests = [] if inner is None else list(leaves_of(inner))
    if leaf.operator == "size":
        yield from _of_size(tests)
    elif leaf.operator == "normalized":
        for text in (value for test in tests for value in values_for(test)):
            if isinstance(text, str):
                yield from (text, text.upper(), unicodedata.normalize("NFKC", text).casefold())
                yield "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    else:
        yield from _of_elements(tests)


def _of_size(tests: Sequence[Leaf]) -> Iterator[Any]:
    numbers = [value for test in tests for value in values_for(test) if isinstance(value, int)]
    for size in sorted({number for number in numbers if 0 <= number <= _LONGEST} | {0}):
        yield "x" * size
        if size <= _MOST:
            yield ["x"] * size
            yield {f"k{place}": 1 for place in range(size)}


def _of_elements(tests: Sequence[Leaf]) -> Iterator[Any]:
    per_test = [
        [embedded(test.path.steps, value) for value in [*values_for(test), None]] for test in tests
    ]
    whole: Any = None
    for values in per_test:
        whole = values[0] if whole is None else merged(whole, values[0])
    elements = [whole, *(merged(whole, value) for values in per_test for value in values[:12])]
    yield []
    for element in elements:
        yield [element]
    for element in elements[1:]:
        yield [whole, element]
    yield from ([*elements[1:3], whole], [whole, whole], ["x"], [1], [{}])
