"""What a limit can be: a number above zero, of seconds, bytes or whatever it limits."""

from __future__ import annotations

__all__ = ["is_positive"]


def is_positive(limit: object) -> bool:
    """Whether a limit is a number above zero; a bool is no number."""
    return isinstance(limit, int | float) and not isinstance(limit, bool) and limit > 0
