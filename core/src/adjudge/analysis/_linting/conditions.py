"""A leaf as a test of the value at one path, and what it can answer of values of each kind.

`Condition.ask` is the engine's own test; the masks say only which answers are possible at all, and
leave in whatever is not certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge._values import canonical_json, kind_of
from adjudge.analysis._linting.regexes import Certain, certain_of
from adjudge.analysis._parts import Part, inner_part, value_matcher
from adjudge.errors import ArgumentsRefused
from adjudge.policy._faults import Fault
from adjudge.policy._model import AllOf, Always, AnyOf, Leaf, Match, Not, Ref
from adjudge.policy._operators import TESTS

__all__ = ["ANY", "ERROR", "FALSE", "TRUE", "Condition", "Steps"]

TRUE, FALSE, ERROR = 1, 2, 4
ANY = TRUE | FALSE | ERROR
_SURE = TRUE | FALSE

Steps = tuple[str | int, ...]

_OF_TEXT = ("starts_with", "ends_with", "glob", "matches", "under", "host_in", "normalized")
_CONTAINING = ("contains", "contains_any", "contains_all")
_ORDER = ("gt", "ge", "lt", "le", "between")
_NO_REQUEST: Any = None


class Condition:
    """One leaf in its reading.

    `path` begins with the root; inside a quantifier, `size` and `normalized` the root is `.`,
    `.size` or `.normal`. `key` is equal for conditions that always answer the same.
    """

    __slots__ = (
        "_certain",
        "_test",
        "absent",
        "evaluable",
        "inner",
        "key",
        "operand",
        "operator",
        "part",
        "path",
        "said_inside",
    )

    def __init__(self, part: Part, path: Steps) -> None:
        leaf = part.match
        assert isinstance(leaf, Leaf)
        self.part = part
        self.path = path
        self.operator = leaf.operator
        self.operand = leaf.operand
        self.absent = part.reading.absent
        self.inner = inner_part(part)
        self.evaluable = not _needs_request(leaf)
        self.key = (path, self.operator, _form(leaf.operand), self.absent, _position(part))
        self.said_inside: dict[object, Any] = {}
        """Formulas about the element, kept by whoever makes them."""
        self._test: Any = None
        self._certain: Certain | None = None

    @property
    def answers_absence(self) -> bool:
        """Whether absence is what it asks about (clause 8)."""
        return self.operator == "exists" or (self.operator == "eq" and self.operand is None)

    @property
    def permitting(self) -> bool:
        """Whether it stands in permitting position."""
        return self.part.reading.in_permitting_position

    @property
    def certain(self) -> Certain:
        """What is certain about the texts that a pattern is found in."""
        if self._certain is None:
            self._certain = certain_of(self.operand, self.permitting)
        return self._certain

    def ask(self, value: Any) -> int:
        """Give the answer about a value that is there; any answer where it needs the request."""
        of_text = self.operator in _OF_TEXT and not isinstance(self.operand, Ref)
        if of_text and not isinstance(value, str):
            return ERROR
        if not self.evaluable:
            return ANY
        if self._test is None:
            self._test = value_matcher(self.part)
        try:
            answer = self._test(_NO_REQUEST, value)
        except Exception:
            return ANY
        if isinstance(answer, Fault):
            return ERROR
        return TRUE if answer else FALSE

    def of_absent(self) -> int:
        """Give the answer about an absent value."""
        if self.operator == "exists":
            return FALSE if self.operand else TRUE
        if self.operator == "eq" and self.operand is None:
            return TRUE
        answer = TRUE if self.absent else FALSE
        return answer | ERROR if isinstance(self.operand, Ref) else answer

    def of_secret(self) -> int:
        """Give the answer about a secret: it is there, and nothing else is known of it."""
        if self.operator == "exists":
            return TRUE if self.operand else FALSE
        return ERROR

    def of_kind(self, kind: str) -> int:
        """Give the possible answers about values of a kind: string, list or object."""
        if self.answers_absence:
            if self.operator == "eq":
                return FALSE
            return TRUE if self.operand else FALSE
        if isinstance(self.operand, Ref):
            return ANY
        return self._of_text() if kind == "string" else self._of_container(kind)

    def _of_text(self) -> int:
        operator, operand = self.operator, self.operand
        if operator in ("matches", "host_in", "under", "normalized", "size"):
            return ANY
        if operator in ("each", "some"):
            return ERROR
        if operator == "in":
            return _SURE if any(isinstance(each, str) for each in operand) else ERROR
        if operator in ("contains_any", "contains_all"):
            texts = [isinstance(each, str) for each in operand]
            return _SURE if all(texts) else ANY if any(texts) else ERROR
        if operator in ("starts_with", "ends_with", "glob"):
            return _SURE
        first = operand[0] if operator == "between" else operand
        return _SURE if isinstance(first, str) else ERROR

    def _of_container(self, kind: str) -> int:
        operator, operand = self.operator, self.operand
        if operator in _OF_TEXT or operator in _ORDER:
            return ERROR
        if operator in ("each", "some"):
            return ANY if kind == "list" else ERROR
        if operator == "eq":
            return ANY if kind_of(operand) == kind else ERROR
        if operator == "in":
            return ANY if any(kind_of(each) == kind for each in operand) else ERROR
        return ANY


def _needs_request(leaf: Leaf) -> bool:
    return isinstance(leaf.operand, Ref) or _reads_files(leaf)


def _reads_files(match: Match) -> bool:
    match match:
        case Leaf(operator="under"):
            return True
        case Leaf(operand=Leaf() | AllOf() | AnyOf() | Not() as inner):
            return _reads_files(inner)
        case AllOf(parts) | AnyOf(parts):
            return any(map(_reads_files, parts))
        case Not(part):
            return _reads_files(part)
    return False


def _position(part: Part) -> tuple[bool, bool] | None:
    """Say what of the reading can change the answer about a value."""
    leaf = part.match
    assert isinstance(leaf, Leaf)
    reading = part.reading
    if leaf.operator == "matches":
        # Without a $ the text means the same in either position.
        return (reading.in_permitting_position and "$" in leaf.operand, reading.normalized)
    if leaf.operator in TESTS and not isinstance(leaf.operand, Ref):
        return (False, reading.normalized) if reading.normalized else None
    if isinstance(leaf.operand, Leaf | AllOf | AnyOf | Not):
        return (reading.permitting, reading.odd)
    return None


def _form(operand: Any) -> Any:
    """Write an operand so that equal forms are equal operands."""
    match operand:
        case str():
            return operand
        case Ref(path):
            return ("ref", path.root, path.steps)
        case Leaf(path, operator, inner):
            return ("leaf", path.root, path.steps, operator, _form(inner))
        case AllOf(parts):
            return ("all_of", *map(_form, parts))
        case AnyOf(parts):
            return ("any_of", *map(_form, parts))
        case Not(part):
            return ("not", _form(part))
        case Always():
            return ("always",)
        case list() if all(type(each) is str for each in operand):
            return ("texts", *operand)
        case Mapping() | list():
            try:
                return ("json", canonical_json(operand))
            except ArgumentsRefused:
                return ("object", id(operand))
    return (type(operand).__name__, str(operand))
