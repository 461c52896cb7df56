"""Check and compile the patterns of one policy, each text once however many rules have it."""

from __future__ import annotations

from adjudge.policy._patterns.pattern import CheckedPattern, Pattern, check_pattern

__all__ = ["Patterns"]


class Patterns:
    """The patterns of one policy; it lives as long as that is being read and compiled."""

    def __init__(self) -> None:
        self._checked: dict[str, CheckedPattern] = {}
        self._compiled: dict[tuple[str, bool], Pattern] = {}

    def checked(self, text: str) -> CheckedPattern:
        """Check a pattern for either position; raises `UnsafePattern`."""
        found = self._checked.get(text)
        if found is None:
            found = self._checked[text] = check_pattern(text)
        return found

    def compiled(self, text: str, *, permitting: bool) -> Pattern:
        """Compile a pattern for permitting or restricting position; raises `UnsafePattern`."""
        # Only what `$` means depends on the position (clause 11).
        key = text, permitting and "$" in text
        found = self._compiled.get(key)
        if found is None:
            found = Pattern(self.checked(text), permitting=permitting)
            self._compiled[key] = found
        return found
