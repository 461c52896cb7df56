"""Compile the patterns of one policy, each text once however many rules have it."""

from __future__ import annotations

from adjudge.policy._patterns.pattern import Pattern, compile_pattern

__all__ = ["Patterns"]


class Patterns:
    """The patterns of one policy; it lives as long as that is being read and compiled."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, bool], Pattern] = {}

    def compiled(self, text: str, *, permitting: bool) -> Pattern:
        """Compile a pattern for permitting or restricting position; raises `UnsafePattern`."""
        # Only what `$` means depends on the position (clause 11).
        key = text, permitting and "$" in text
        found = self._compiled.get(key)
        if found is None:
            other = self._compiled.get((text, not key[1]))
            known = None if other is None else other.max_subject
            found = compile_pattern(text, permitting=permitting, max_subject=known)
            self._compiled[key] = found
        return found
