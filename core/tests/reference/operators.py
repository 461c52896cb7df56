"""What each operator answers of a value that is there (the table of operators, clauses 7 and 10 to 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge.policy._locations import glob_matches, host_matches, is_under, parse_host
from adjudge.policy._patterns import SubjectTooLong, compile_pattern
from reference.equality import equal, kind
from reference.logic import Truth, every, some, truth
from reference.reading import World


def test_eq(value: Any, operand: Any) -> Truth:
    """Equal, kinds strict at any depth."""
    return equal(value, operand)


def test_in(value: Any, operand: Any) -> Truth:
    """A member; the value's kind must be one that a member has, and an empty list has no members."""
    if kind(operand) != "list":
        return Truth.ERROR
    if not operand:
        return Truth.FALSE
    alike = [member for member in operand if kind(member) == kind(value)]
    return some(equal(value, member) for member in alike) if alike else Truth.ERROR


def ordered(value: Any, operand: Any, holds: Callable[[Any, Any], bool]) -> Truth:
    """Compare two numbers, or two strings by code point."""
    if kind(value) != kind(operand) or kind(operand) not in ("number", "string"):
        return Truth.ERROR
    return truth(holds(value, operand))


def test_gt(value: Any, operand: Any) -> Truth:
    """Greater."""
    return ordered(value, operand, lambda one, other: one > other)


def test_ge(value: Any, operand: Any) -> Truth:
    """Greater or equal."""
    return ordered(value, operand, lambda one, other: one >= other)


def test_lt(value: Any, operand: Any) -> Truth:
    """Less."""
    return ordered(value, operand, lambda one, other: one < other)


def test_le(value: Any, operand: Any) -> Truth:
    """Less or equal."""
    return ordered(value, operand, lambda one, other: one <= other)


def test_between(value: Any, operand: Any) -> Truth:
    """Both ends included."""
    if kind(operand) != "list" or len(operand) != 2:
        return Truth.ERROR
    return every([test_ge(value, operand[0]), test_le(value, operand[1])])


def affix(value: Any, operand: Any, holds: Callable[[str, str], bool]) -> Truth:
    """Test a string against one string, or any of a list."""
    wanted = operand if kind(operand) == "list" else [operand]
    if kind(value) != "string":
        return Truth.ERROR
    return some(
        truth(holds(value, one)) if kind(one) == "string" else Truth.ERROR for one in wanted
    )


def test_starts_with(value: Any, operand: Any) -> Truth:
    """Begins with it, or with one of them."""
    return affix(value, operand, str.startswith)


def test_ends_with(value: Any, operand: Any) -> Truth:
    """Ends with it, or with one of them."""
    return affix(value, operand, str.endswith)


def test_contains(value: Any, operand: Any) -> Truth:
    """A substring of a string, an element of a list, a key of an object."""
    if kind(value) == "list":
        return some(equal(element, operand) for element in value)
    if kind(value) in ("string", "object"):
        return truth(operand in value) if kind(operand) == "string" else Truth.ERROR
    return Truth.ERROR


def _has_members(operand: Any) -> bool:
    return kind(operand) == "list" and len(operand) > 0


def test_contains_any(value: Any, operand: Any) -> Truth:
    """At least one of the members (Kleene over them)."""
    if not _has_members(operand) or kind(value) not in ("string", "list", "object"):
        return Truth.ERROR
    return some(test_contains(value, member) for member in operand)


def test_contains_all(value: Any, operand: Any) -> Truth:
    """Every one of the members (Kleene over them)."""
    if not _has_members(operand) or kind(value) not in ("string", "list", "object"):
        return Truth.ERROR
    return every(test_contains(value, member) for member in operand)


def test_glob(value: Any, operand: Any) -> Truth:
    """Match the whole string; `*` stops at `/`, `**` does not."""
    if kind(value) != "string":
        return Truth.ERROR
    return truth(bool(glob_matches(operand)(value)))


def test_host_in(value: Any, operand: Any) -> Truth:
    """The host of a URL; what is no plain http or https URL is an error (clause 12)."""
    if kind(value) != "string" or kind(operand) != "list":
        return Truth.ERROR
    try:
        host = parse_host(value)
    except ValueError:
        return Truth.ERROR
    return truth(host_matches(host, tuple(operand)))


def test_under(value: Any, operand: Any, world: World) -> Truth:
    """Lie in the directory; what the guard has not resolved is an error (clause 12)."""
    if kind(value) != "string" or kind(operand) != "string" or "\0" in value + operand:
        return Truth.ERROR
    resolved = world.request.resolved
    if value not in resolved or operand not in resolved:
        return Truth.ERROR
    return truth(is_under(resolved[value], resolved[operand]))


def test_matches(value: Any, operand: Any, *, permitting: bool) -> Truth:
    """Searched; `$` depends on the position, and a subject past the bound is an error (clause 11)."""
    if kind(value) != "string":
        return Truth.ERROR
    try:
        return truth(compile_pattern(operand, permitting=permitting).search(value))
    except SubjectTooLong:
        return Truth.ERROR


PLAIN: dict[str, Callable[[Any, Any], Truth]] = {
    "eq": test_eq,
    "in": test_in,
    "gt": test_gt,
    "ge": test_ge,
    "lt": test_lt,
    "le": test_le,
    "between": test_between,
    "starts_with": test_starts_with,
    "ends_with": test_ends_with,
    "contains": test_contains,
    "contains_any": test_contains_any,
    "contains_all": test_contains_all,
    "glob": test_glob,
    "host_in": test_host_in,
}
