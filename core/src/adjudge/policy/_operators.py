"""The operators: from an operand, a test of one value that is true, false or a fault.

`TESTS[name](operand, where)` checks the operand once and gives a closure specialised for it; an
operand of the wrong kind raises `BadOperand`. A test never sees an absent value (clause 8 is the
compiler's), never coerces, and never looks at Python's idea of equality between kinds (clauses 1
and 7).
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from adjudge._values import kind_of
from adjudge.policy import _locations
from adjudge.policy._faults import Answer, Fault, found, wrong_kind

__all__ = ["TESTS", "BadOperand", "Test", "equal", "json_kind", "normal_form"]

Test = Callable[[Any], Answer]
_JSON_KINDS = frozenset({"null", "bool", "number", "string", "list", "object"})
_ANY = "a JSON value"


class BadOperand(Exception):
    """An operand that its operator does not take: a compile error, or of a `ref` a fault."""


def equal(value: Any, operand: Any) -> bool | None:
    """Compare two JSON values, kinds strict at any depth; None where a foreign kind decides.

    A null operand accepts any kind (it is only ever reached inside lists and objects).
    """
    if type(value) is str and type(operand) is str:
        return value == operand
    kind = json_kind(value)
    if kind is None:
        return None
    if operand is None:
        return value is None
    if kind != json_kind(operand):
        return None
    if kind == "number":
        return _exactly(operator.eq, value, operand)
    if kind == "list":
        if len(value) != len(operand):
            return False
        return _every(equal(a, b) for a, b in zip(value, operand, strict=True))
    if kind == "object":
        if value.keys() != operand.keys():
            return False
        return _every(equal(item, operand[key]) for key, item in value.items())
    return bool(value == operand)


def normal_form(value: Any) -> Any:
    """Give NFKC and case-folded text, in lists too; anything else is left as it is."""
    if isinstance(value, str):
        return unicodedata.normalize("NFKC", value).casefold()
    if isinstance(value, list | tuple):
        return [normal_form(item) for item in value]
    return value


def json_kind(value: Any) -> str | None:
    """Give the JSON kind; None for what has none: NaN, infinities, secrets, foreign objects."""
    kind = kind_of(value)
    if kind not in _JSON_KINDS or (kind == "number" and not _finite(value)):
        return None
    return kind


def _finite(number: int | float | Decimal) -> bool:
    if isinstance(number, int):
        return True
    return number.is_finite() if isinstance(number, Decimal) else math.isfinite(number)


def _exactly(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """Compare two finite numbers exactly, whatever traps the caller's decimal context has set."""
    if isinstance(left, Decimal) and isinstance(right, float):
        right = Decimal.from_float(right)  # noqa: FURB164  (its constructor obeys the traps)
    elif isinstance(left, float) and isinstance(right, Decimal):
        left = Decimal.from_float(left)  # noqa: FURB164  (as above)
    return compare(left, right)


def _every(answers: Any) -> bool | None:
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            result = None
    return result


def _some(answers: Any) -> bool | None:
    result: bool | None = False
    for answer in answers:
        if answer is True:
            return True
        if answer is None:
            result = None
    return result


def _expected_equal(operand: Any) -> str:
    if kind_of(operand) in ("list", "object"):
        return f"{found(operand)} whose members are of the operand's kinds"
    return found(operand)


def _eq(operand: Any, where: str) -> Test:
    if json_kind(operand) is None:
        raise BadOperand(f"{found(operand)}, expected {_ANY}")
    if isinstance(operand, str):

        def is_text(value: Any) -> Answer:
            if isinstance(value, str):
                return value == operand
            return wrong_kind(where, value, "a string")

        return is_text

    def is_equal(value: Any) -> Answer:
        answer = equal(value, operand)
        return wrong_kind(where, value, _expected_equal(operand)) if answer is None else answer

    return is_equal


def _in(operand: Any, where: str) -> Test:
    if not isinstance(operand, list | tuple):
        raise BadOperand(f"{found(operand)}, expected a list")
    members = tuple(operand)
    # Text may be looked up by hash, for equal text hashes equally; nothing else is (1 and true
    # would meet).
    texts = frozenset(member for member in members if type(member) is str)
    others = tuple(member for member in members if type(member) is not str)
    kinds = frozenset(kind_of(member) for member in members)

    def is_member(value: Any) -> Answer:
        if type(value) is str and texts:
            return value in texts
        if not members:
            return wrong_kind(where, value, _ANY) if json_kind(value) is None else False
        kind = json_kind(value)
        answer: bool | None = None
        if kind in kinds:
            same = (member for member in (*others, *texts) if kind_of(member) == kind)
            answer = _some(equal(value, member) for member in same)
        if answer is None:
            return wrong_kind(where, value, f"a kind of the list's members ({_listed(kinds)})")
        return answer

    return is_member


def _listed(kinds: frozenset[str]) -> str:
    return ", ".join(sorted(kinds))


def _is_number(value: Any) -> bool:
    return kind_of(value) == "number" and _finite(value)


def _order(compare: Callable[[Any, Any], bool]) -> Callable[[Any, str], Test]:
    def make(operand: Any, where: str) -> Test:
        if isinstance(operand, str):

            def in_text_order(value: Any) -> Answer:
                if isinstance(value, str):
                    return compare(value, operand)
                return wrong_kind(where, value, "a string")

            return in_text_order
        if not _is_number(operand):
            raise BadOperand(f"{found(operand)}, expected a finite number or a string")
        plain = not isinstance(operand, Decimal)

        def in_order(value: Any) -> Answer:
            if plain and type(value) is int:
                return compare(value, operand)
            if _is_number(value):
                return _exactly(compare, value, operand)
            return wrong_kind(where, value, "a number")

        return in_order

    return make


def _between(operand: Any, where: str) -> Test:
    if not isinstance(operand, list | tuple) or len(operand) != 2:
        raise BadOperand(f"{found(operand)}, expected a list of two, [low, high]")
    low, high = operand
    at_least = _order(operator.ge)(low, where)
    at_most = _order(operator.le)(high, where)
    if isinstance(low, str) != isinstance(high, str):
        raise BadOperand("a list of two different kinds, expected [low, high] of one kind")
    if at_least(high) is not True:
        raise BadOperand("a list whose first member is the greater, expected [low, high]")

    def is_between(value: Any) -> Answer:
        above = at_least(value)
        return at_most(value) if above is True else above

    return is_between


def _affix(method: Callable[[str, Any], bool]) -> Callable[[Any, str], Test]:
    def make(operand: Any, where: str) -> Test:
        affixes = tuple(operand) if isinstance(operand, list | tuple) else (operand,)
        if not all(isinstance(affix, str) for affix in affixes):
            raise BadOperand(f"{found(operand)}, expected a string or a list of strings")

        def has_affix(value: Any) -> Answer:
            return method(value, affixes) if isinstance(value, str) else _no_text(where, value)

        return has_affix

    return make


def _no_text(where: str, value: Any) -> Fault:
    return wrong_kind(where, value, "a string")


def _holds(value: Any, wanted: Any) -> bool | None:
    """Answer `contains` for one wanted member; None is an error."""
    if isinstance(value, str):
        return wanted in value if isinstance(wanted, str) else None
    if isinstance(value, list | tuple):
        return _some(equal(item, wanted) for item in value)
    if isinstance(value, Mapping):
        return wanted in value if isinstance(wanted, str) else None
    return None


def _contains(operand: Any, where: str) -> Test:
    if json_kind(operand) is None:
        raise BadOperand(f"{found(operand)}, expected {_ANY}")
    return _holding([operand], where, _every)


def _holding(wanted: Sequence[Any], where: str, together: Callable[[Any], bool | None]) -> Test:
    text_only = all(isinstance(item, str) for item in wanted)
    expected = "a string, a list or an object" if text_only else "a list"

    def holds(value: Any) -> Answer:
        answer = together(_holds(value, item) for item in wanted)
        if answer is not None:
            return answer
        if isinstance(value, list | tuple):
            return wrong_kind(where, value, "a list whose members are of the operand's kind")
        return wrong_kind(where, value, expected)

    return holds


def _several(together: Callable[[Any], bool | None]) -> Callable[[Any, str], Test]:
    def make(operand: Any, where: str) -> Test:
        if not isinstance(operand, list | tuple) or not operand:
            raise BadOperand(f"{found(operand)}, expected a list with at least one member")
        if any(json_kind(item) is None for item in operand):
            raise BadOperand(f"a list with a member that is no JSON value, expected {_ANY}")
        return _holding(tuple(operand), where, together)

    return make


def _glob(operand: Any, where: str) -> Test:
    if not isinstance(operand, str):
        raise BadOperand(f"{found(operand)}, expected a pattern")
    matches = _locations.glob_matches(operand)

    def fits(value: Any) -> Answer:
        return bool(matches(value)) if isinstance(value, str) else _no_text(where, value)

    return fits


def _host_in(operand: Any, where: str) -> Test:
    if not isinstance(operand, list | tuple) or not all(isinstance(o, str) for o in operand):
        raise BadOperand(f"{found(operand)}, expected a list of hosts")
    allowed = tuple(operand)

    def is_among(value: Any) -> Answer:
        if not isinstance(value, str):
            return _no_text(where, value)
        try:
            host = _locations.parse_host(value)
        except ValueError:
            return Fault("BadUrl", f"{where} is a string, expected a plain http or https URL")
        return any(_locations.host_matches(host, pattern) for pattern in allowed)

    return is_among


# `exists`, `matches`, `under`, `size`, `each`, `some` and `normalized` need more than a value; the
# compiler has them.
TESTS: Mapping[str, Callable[[Any, str], Test]] = {
    "eq": _eq,
    "in": _in,
    "gt": _order(operator.gt),
    "ge": _order(operator.ge),
    "lt": _order(operator.lt),
    "le": _order(operator.le),
    "between": _between,
    "starts_with": _affix(str.startswith),
    "ends_with": _affix(str.endswith),
    "contains": _contains,
    "contains_any": _several(_some),
    "contains_all": _several(_every),
    "glob": _glob,
    "host_in": _host_in,
}
