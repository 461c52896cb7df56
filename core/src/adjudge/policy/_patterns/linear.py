"""The `re2` extra: search in texts of any length, in time that grows with the length alone.

Within the bounds of a pattern Python's engine answers, with the extra as without it, so that the
extra changes no verdict there (clause 11). Beyond them RE2 does, where the pattern means the same
in both engines.
"""

from __future__ import annotations

from collections.abc import Callable

from adjudge.policy._patterns.translation import translated

__all__ = ["linear_search"]

# For the program and the states that it has been in; what has no room runs slower, not wrong.
_MEMORY_BYTES = 64 * 1024 * 1024


def linear_search(pattern: str) -> Callable[[str], bool | None] | None:
    """Give a search by RE2, which answers None of a text that it cannot be asked about.

    None where RE2 is not installed, has no such pattern or may mean another by it.
    """
    try:
        import re2
    except ImportError:
        return None
    translation = translated(pattern)
    if translation is None:
        return None
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(translation.text, options)
    except re2.error:
        return None
    ascii_only = translation.ascii_only

    def search(text: str) -> bool | None:
        if ascii_only and not text.isascii():
            return None
        try:
            return compiled.search(text) is not None
        except UnicodeEncodeError:
            return None

    return search
