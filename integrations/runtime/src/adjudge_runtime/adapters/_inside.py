"""What the caller says of the tools that a framework runs by itself, where no loop sees them."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["Inside", "checked_inside"]

Inside = Literal["refuse", "governed", "ungoverned"]


def checked_inside(value: object) -> None:
    """Refuse a word that is none of the three."""
    if value not in get_args(Inside):
        raise ValueError(f"tools_inside is {value!r}; give 'refuse', 'governed' or 'ungoverned'.")
