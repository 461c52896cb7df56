"""Say which word was probably meant.

Only for the wording of errors: nothing is ever accepted because it resembles something.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

# What other languages call ours, where the letters alone do not tell.
_ELSEWHERE: Mapping[str, str] = {
    "gte": "ge",
    "lte": "le",
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "ge",
    "<": "lt",
    "<=": "le",
    "regex": "matches",
    "like": "glob",
    "len": "size",
    "all": "each",
    "any": "some",
    "effect": "verdict",
    "action": "verdict",
}

__all__ = ["did_you_mean", "is_one_edit_apart", "listed", "nearest"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Give the known word that resembles this one most, or None where none does."""
    by_folded = {name.casefold(): name for name in known}
    elsewhere = _ELSEWHERE.get(word.casefold())
    if elsewhere in by_folded:
        return elsewhere
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Give the sentence that helps with an unknown word: the nearest one, or else all there are."""
    words = tuple(known)
    close = nearest(word, words)
    if close is not None:
        return f'Did you mean "{close}"?'
    return f"Known are: {listed(words)}." if words else "None is defined."


def listed(words: Iterable[str]) -> str:
    """Write words as a list for a sentence."""
    return ", ".join(words)


def is_one_edit_apart(word: str, other: str) -> bool:
    """Tell whether one letter inserted, left out, replaced or swapped makes one the other."""
    if len(word) > len(other):
        word, other = other, word
    if len(other) - len(word) > 1 or word == other:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), len(word)
    )
    if len(word) < len(other):
        return word[start:] == other[start + 1 :]
    if word[start + 1 :] == other[start + 1 :]:
        return True
    swapped = word[start + 1 : start + 2] + word[start]
    return other[start : start + 2] == swapped and word[start + 2 :] == other[start + 2 :]
