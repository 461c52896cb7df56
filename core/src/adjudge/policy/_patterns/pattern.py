"""Compile regular expressions that cannot hang a decision (clause 11).

Python's engine runs them and Python's meaning holds, but for `$` in permitting position, which is
the end of the text. A pattern that can backtrack exponentially or cubically is refused; the text
that one may be searched in is bounded by what its cost allows, and beyond that searched by RE2
where it is installed. The bound on the cost is conservative: a few harmless patterns are refused
as well.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.policy._patterns.cost import Cost, Exponential, cost_of
from adjudge.policy._patterns.ends import has_locked_end, with_text_ends
from adjudge.policy._patterns.graph import TooLarge
from adjudge.policy._patterns.linear import linear_search
from adjudge.policy._patterns.tree import build_tree, is_rigid, is_tied_and_nearly_rigid, parse

__all__ = [
    "MAX_LINEAR",
    "MAX_PATTERN",
    "MAX_QUADRATIC",
    "CheckedPattern",
    "Pattern",
    "SubjectTooLong",
    "UnsafePattern",
    "check_pattern",
    "compile_pattern",
]

MAX_PATTERN = 2_000
MAX_LINEAR = 1024 * 1024
MAX_QUADRATIC = 4 * 1024

# In how many ways one start may lead to one place, by the degree of the cost, so that the longest
# subject takes seconds at worst.
_MOST_WAYS: Mapping[int, int] = {1: 512, 2: 8}
_MOST_WAYS_IN_LONG_TEXT = 16

# Most patterns of policies leave the engine one choice at most, and are not longer than this: what
# they cost need not be searched for.
_SHORT = 200

_HELP = (
    "Tie it to the start with ^, let neighbouring repeats match different characters ([^,]* for "
    ".*), or write a repeat of a group so that the group can match a text in one way only."
)


class UnsafePattern(ValueError):
    """A pattern that is refused; the text is the sentence for its author."""


class SubjectTooLong(ValueError):
    """A text beyond the length within which the pattern is known to be fast."""


@dataclass(frozen=True, slots=True)
class CheckedPattern:
    """A pattern that is safe to compile for either position.

    `max_subject` is the number of characters that Python's engine may search. `ended` is the text
    with `$` as it stands in permitting position, None where that is not certain. `python` is the
    pattern as Python means it, which is restricting position.
    """

    text: str
    ended: str | None
    max_subject: int
    python: re.Pattern[str]


class Pattern:
    """A compiled pattern; it pickles by its text and position.

    `max_subject` is the number of characters that Python's engine searches.
    """

    __slots__ = ("_beyond", "_compiled", "_permitting", "_text", "max_subject")

    def __init__(self, checked: CheckedPattern, *, permitting: bool) -> None:
        if permitting and checked.ended is None:
            raise UnsafePattern(
                r"It is not certain which $ of the pattern is an anchor; write \Z for the end of "
                "the text."
            )
        self._text = checked.text
        self._permitting = permitting
        self.max_subject = checked.max_subject
        self._compiled = checked.python
        if permitting and checked.ended is not None and checked.ended != checked.text:
            self._compiled = re.compile(checked.ended)
        self._beyond: tuple[Callable[[str], bool | None] | None] | None = None

    @property
    def plain_search(self) -> Callable[[str], object]:
        """Python's own search, for a text of at most `max_subject` characters; None: not found."""
        return self._compiled.search

    def search(self, text: str) -> bool:
        """Tell whether the pattern is found.

        Raises `SubjectTooLong` beyond `max_subject`, where RE2 is not installed or the pattern may
        mean something else in it.
        """
        if len(text) <= self.max_subject:
            return self._compiled.search(text) is not None
        if self._beyond is None:
            # Not before there is such a text: most patterns never meet one.
            self._beyond = (linear_search(self._compiled.pattern),)
        (search,) = self._beyond
        found = None if search is None else search(text)
        if found is None:
            raise SubjectTooLong(
                f"The text has {len(text)} characters, and the pattern may be searched in "
                f"{self.max_subject} at most."
            )
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self._text, self._permitting))

    def __repr__(self) -> str:
        return f"Pattern({self._text!r}, permitting={self._permitting})"


def compile_pattern(pattern: str, *, permitting: bool) -> Pattern:
    """Compile a pattern for permitting or restricting position.

    Raises `UnsafePattern` for what is no pattern, can backtrack cubically or worse, or has a `$`
    where clause 11 refuses it.
    """
    return Pattern(check_pattern(pattern), permitting=permitting)


def check_pattern(pattern: str) -> CheckedPattern:
    """Give what both positions have in common; raises `UnsafePattern` as `compile_pattern` does."""
    try:
        parsed, python = _parsed(pattern)
        cost = _cost(parsed)
        return CheckedPattern(pattern, _rewritten(pattern, parsed), _longest_subject(cost), python)
    except RecursionError:
        raise UnsafePattern("The groups of the pattern are nested too deep to be read.") from None


def _restored(text: str, permitting: bool) -> Pattern:
    return compile_pattern(text, permitting=permitting)


def _parsed(text: str) -> tuple[Any, re.Pattern[str]]:
    if len(text) > MAX_PATTERN:
        raise UnsafePattern(f"The pattern is longer than {MAX_PATTERN} characters.")
    try:
        with warnings.catch_warnings():
            # What may mean something else in a later Python must be written unmistakably.
            warnings.simplefilter("error")
            parsed = parse(text)
            python = re.compile(text)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise UnsafePattern(f"This is no regular expression that Python takes: {error}.") from None
    if has_locked_end(text, parsed):
        raise UnsafePattern(
            r"A $ in a lookaround, an atomic group or a possessive repeat is refused; write \Z for "
            "the end of the text."
        )
    return parsed, python


def _rewritten(text: str, parsed: Any) -> str | None:
    try:
        return with_text_ends(text, parsed) if "$" in text else text
    except ValueError:
        return None


def _cost(parsed: Any) -> Cost:
    _, longest = parsed.getwidth()
    is_plain = longest <= _SHORT and is_rigid(parsed)
    if is_plain or is_tied_and_nearly_rigid(parsed, longest=_SHORT):
        return Cost(degree=1, ways=1)
    try:
        cost = cost_of(build_tree(parsed))
    except Exponential:
        raise UnsafePattern(
            "The pattern can take exponential time: a repeat matches one text in several ways. "
            + _HELP
        ) from None
    except (TooLarge, RecursionError):
        raise UnsafePattern(
            "The pattern is too large to be shown safe; split it into several, in any_of or all_of."
        ) from None
    if cost.degree > 2:
        raise UnsafePattern(
            f"The pattern can take time with the power {cost.degree} of the text's length: several "
            f"repeats, or a repeat and the search itself, match the same text. {_HELP}"
        )
    if cost.ways > _MOST_WAYS[cost.degree]:
        raise UnsafePattern(
            f"The pattern can match one text in too many ways: its optional parts overlap. {_HELP}"
        )
    return cost


def _longest_subject(cost: Cost) -> int:
    if cost.degree == 1 and cost.ways <= _MOST_WAYS_IN_LONG_TEXT:
        return MAX_LINEAR
    return MAX_QUADRATIC
