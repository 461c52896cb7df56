"""The `re2` extra: search in long texts, in time that grows with the length alone.

Within the bounds of a pattern Python's engine answers, with the extra as without it, so that the
extra changes no verdict there (clause 11). Beyond them RE2 does, where the pattern means the same
in both engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge.policy._patterns.translation import translated

__all__ = ["linear_search"]

# For the program and the states that it has been in; what has no room runs slower, not wrong.
_MEMORY_BYTES = 64 * 1024 * 1024
# A pattern such as `a.{200}b` leads to a new state with nearly each byte, and to make one takes up
# to six nanoseconds for each instruction: so this is three seconds at worst.
_MOST_STEPS = 500_000_000


def linear_search(pattern: str) -> Callable[[str], bool | None] | None:
    """Give a search by RE2; it answers None of a text that RE2 cannot be asked about in time.

    None where RE2 is not installed.
    """
    try:
        import re2
    except ImportError:
        return None

    def compiled(*, ascii_only: bool) -> Any:
        text = translated(pattern, ascii_only=ascii_only)
        if text is None:
            return None
        options = re2.Options()
        options.max_mem = _MEMORY_BYTES
        options.log_errors = False
        options.never_capture = True
        try:
            return re2.compile(text, options)
        except re2.error:
            return None

    programs: dict[bool, Any] = {}

    def search(text: str) -> bool | None:
        ascii_only = text.isascii()
        if ascii_only not in programs:
            programs[ascii_only] = compiled(ascii_only=ascii_only)
        program = programs[ascii_only]
        if program is None:
            return None
        try:
            size = len(text) if ascii_only else len(text.encode())
            if size * program.programsize > _MOST_STEPS:
                return None
            return program.search(text) is not None
        except UnicodeEncodeError:
            return None

    return search
