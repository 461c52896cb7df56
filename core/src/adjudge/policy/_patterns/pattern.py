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
from typing import Any

from adjudge.policy._patterns.cost import Cost, Exponential, cost_of
from adjudge.policy._patterns.ends import has_locked_end, with_text_ends
from adjudge.policy._patterns.graph import TooLarge
from adjudge.policy._patterns.linear import linear_search
from adjudge.policy._patterns.tree import build_tree, is_rigid, parse

__all__ = [
    "MAX_LINEAR",
    "MAX_PATTERN",
    "MAX_QUADRATIC",
    "Pattern",
    "SubjectTooLong",
    "UnsafePattern",
    "compile_pattern",
]

MAX_PATTERN = 2_000
MAX_LINEAR = 1024 * 1024
MAX_QUADRATIC = 4 * 1024

# In how many ways one start may lead to one place, by the degree of the cost, so that the longest
# subject takes seconds at worst.
_MOST_WAYS: Mapping[int, int] = {1: 512, 2: 8}
_MOST_WAYS_IN_LONG_TEXT = 16

# Most patterns of policies are of this kind, and what they cost need not be searched for.
_RIGID_AND_SHORT = 200

_HELP = (
    "Tie it to the start with ^, let neighbouring repeats match different characters ([^,]* for "
    ".*), or write a repeat of a group so that the group can match a text in one way only."
)


class UnsafePattern(ValueError):
    """A pattern that is refused; the text is the sentence for its author."""


class SubjectTooLong(ValueError):
    """A text beyond the length within which the pattern is known to be fast."""


class Pattern:
    """A compiled pattern; it pickles by its text and position.

    `max_subject` is the number of characters that Python's engine searches.
    """

    __slots__ = ("_beyond", "_compiled", "_permitting", "_text", "max_subject")

    def __init__(self, text: str, *, permitting: bool, max_subject: int | None = None) -> None:
        parsed = _parsed(text)
        self._text = text
        self._permitting = permitting
        self.max_subject = _longest_subject(_cost(parsed)) if max_subject is None else max_subject
        self._compiled = re.compile(_rewritten(text, parsed) if permitting else text)
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


def compile_pattern(pattern: str, *, permitting: bool, max_subject: int | None = None) -> Pattern:
    """Compile a pattern for permitting or restricting position.

    `max_subject` is that of the same pattern in the other position, where that is known already.
    Raises `UnsafePattern` for what is no pattern, can backtrack cubically or worse, or has a `$`
    where clause 11 refuses it.
    """
    try:
        return Pattern(pattern, permitting=permitting, max_subject=max_subject)
    except RecursionError:
        raise UnsafePattern("The groups of the pattern are nested too deep to be read.") from None


def _restored(text: str, permitting: bool) -> Pattern:
    return Pattern(text, permitting=permitting)


def _parsed(text: str) -> Any:
    if len(text) > MAX_PATTERN:
        raise UnsafePattern(f"The pattern is longer than {MAX_PATTERN} characters.")
    try:
        with warnings.catch_warnings():
            # What may mean something else in a later Python must be written unmistakably.
            warnings.simplefilter("error")
            parsed = parse(text)
            re.compile(text)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise UnsafePattern(f"This is no regular expression that Python takes: {error}.") from None
    if "$" in text and has_locked_end(parsed, parsed.state.flags):
        raise UnsafePattern(
            r"A $ in a lookaround, an atomic group or a possessive repeat is refused; write \Z for "
            "the end of the text."
        )
    return parsed


def _rewritten(text: str, parsed: Any) -> str:
    try:
        return with_text_ends(text, parsed)
    except ValueError:
        raise UnsafePattern(
            r"It is not certain which $ of the pattern is an anchor; write \Z for the text's end."
        ) from None


def _cost(parsed: Any) -> Cost:
    _, longest = parsed.getwidth()
    if longest <= _RIGID_AND_SHORT and is_rigid(parsed):
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
