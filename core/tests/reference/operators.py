"""What each operator answers of a value that is there (the operator table; 7, 10 to 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge.policy._locations import glob_matches, host_matches, is_under, parse_host
from adjudge.policy._patterns.pattern import SubjectTooLong, compile_pattern
from reference.equality import equal, kind
from reference.logic import Truth, every, some, truth
from reference.reading import World


def holds_eq(value: Any, operand: Any) -> Truth:
    """Equal, kinds strict at any depth."""
    return equal(value, operand)


def holds_in(value: Any, operand: Any) -> Truth:
    """A member; the value's kind must be one that a member has; an empty list has none."""
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


def holds_gt(value: Any, operand: Any) -> Truth:
    """Greater."""
    return ordered(value, operand, lambda one, other: one > other)


def holds_ge(value: Any, operand: Any) -> Truth:
    """Greater or equal."""
    return ordered(value, operand, lambda one, other: one >= other)


def holds_lt(value: Any, operand: Any) -> Truth:
    """Less."""
    return ordered(value, operand, lambda one, other: one < other)


def holds_le(value: Any, operand: Any) -> Truth:
    """Less or equal."""
    return ordered(value, operand, lambda one, other: one <= other)


def holds_between(value: Any, operand: Any) -> Truth:
    """Both ends included."""
    if kind(operand) != "list" or len(operand) != 2:
        return Truth.ERROR
    return every([holds_ge(value, operand[0]), holds_le(value, operand[1])])


def affix(value: Any, operand: Any, holds: Callable[[str, str], bool]) -> Truth:
    """Test a string against one string, or any of a list."""
    wanted = operand if kind(operand) == "list" else [operand]
    if kind(value) != "string":
        return Truth.ERROR
    return some(
        truth(holds(value, one)) if kind(one) == "string" else Truth.ERROR for one in wanted
    )


def holds_starts_with(value: Any, operand: Any) -> Truth:
    """Begins with it, or with one of them."""
    return affix(value, operand, str.startswith)


def holds_ends_with(value: Any, operand: Any) -> Truth:
    """Ends with it, or with one of them."""
    return affix(value, operand, str.endswith)


def holds_contains(value: Any, operand: Any) -> Truth:
    """A substring of a string, an element of a list, a key of an object."""
    if kind(value) == "list":
        return some(equal(element, operand) for element in value)
    if kind(value) in ("string", "object"):
        return truth(operand in value) if kind(operand) == "string" else Truth.ERROR
    return Truth.ERROR


def _has_members(operand: Any) -> bool:
    return kind(operand) == "list" and len(operand) > 0


def holds_contains_any(value: Any, operand: Any) -> Truth:
    """At least one of the members (Kleene over them)."""
    if not _has_members(operand) or kind(value) not in ("string", "list", "object"):
        return Truth.ERROR
    return some(holds_contains(value, member) for member in operand)


def holds_contains_all(value: Any, operand: Any) -> Truth:
    """Every one of the members (Kleene over them)."""
    if not _has_members(operand) or kind(value) not in ("string", "list", "object"):
        return Truth.ERROR
    return every(holds_contains(value, member) for member in operand)


def holds_glob(value: Any, operand: Any) -> Truth:
    """Match the whole string; `*` stops at `/`, `**` does not."""
    if kind(value) != "string":
        return Truth.ERROR
    return truth(bool(glob_matches(operand)(value)))


def holds_host_in(value: Any, operand: Any) -> Truth:
    """The host of a URL; what is no plain http or https URL is an error (clause 12)."""
    if kind(value) != "string" or kind(operand) != "list":
        return Truth.ERROR
    try:
        host = parse_host(value)
    except ValueError:
        return Truth.ERROR
    return truth(host_matches(host, tuple(operand)))


def holds_under(value: Any, operand: Any, world: World) -> Truth:
    """Lie in the directory; what the guard has not resolved is an error (clause 12)."""
    if kind(value) != "string" or kind(operand) != "string" or "\0" in value + operand:
        return Truth.ERROR
    resolved = world.request.resolved
    if value not in resolved or operand not in resolved:
        return Truth.ERROR
    return truth(is_under(resolved[value], resolved[operand]))


def holds_matches(value: Any, operand: Any, *, permitting: bool) -> Truth:
    """Searched; `$` depends on the position, a subject past the bound is an error (11)."""
    if kind(value) != "string":
        return Truth.ERROR
    try:
        return truth(compile_pattern(operand, permitting=permitting).search(value))
    except SubjectTooLong:
        return Truth.ERROR


PLAIN: dict[str, Callable[[Any, Any], Truth]] = {
    "eq": holds_eq,
    "in": holds_in,
    "gt": holds_gt,
    "ge": holds_ge,
    "lt": holds_lt,
    "le": holds_le,
    "between": holds_between,
    "starts_with": holds_starts_with,
    "ends_with": holds_ends_with,
    "contains": holds_contains,
    "contains_any": holds_contains_any,
    "contains_all": holds_contains_all,
    "glob": holds_glob,
    "host_in": holds_host_in,
}
