r"""Give `$` its meaning in permitting position: the end of the text, and nothing before.

The pattern's text is rewritten, `$` to `\Z`, and the result is parsed again and compared, so
that nothing else can have changed.
"""

from __future__ import annotations

import re
from typing import Any

from adjudge.policy._patterns.tree import parse, shape_of

__all__ = ["has_locked_end", "with_text_ends"]

# Without one of these a pattern has nothing that locks an end, and need not be looked through.
_SIGNS_OF_LOCKING = ("(?", "++", "*+", "?+", "}+")
_LOCKING = ("ASSERT", "ASSERT_NOT", "ATOMIC_GROUP", "POSSESSIVE_REPEAT")
_FLAGGED_GROUP = re.compile(r"\(\?([aiLmsux]*)(?:-([imsx]+))?([:)])")


def has_locked_end(pattern: str, parsed: Any) -> bool:
    """Tell whether a `$` that is not under (?m) stands where it is refused."""
    if "$" not in pattern or not any(sign in pattern for sign in _SIGNS_OF_LOCKING):
        return False
    return _has_locked_end(parsed, parsed.state.flags, locked=False)


def _has_locked_end(parsed: Any, flags: int, *, locked: bool) -> bool:
    if not hasattr(parsed, "getwidth") and not isinstance(parsed, tuple | list):
        return False
    if isinstance(parsed, tuple) and len(parsed) == 2:
        name = str(parsed[0])
        if name == "AT":
            return locked and str(parsed[1]) == "AT_END" and not flags & re.MULTILINE
        if name == "SUBPATTERN":
            _, added, removed, _ = parsed[1]
            flags = (flags | added) & ~removed
        locked = locked or name in _LOCKING
    return any(_has_locked_end(part, flags, locked=locked) for part in parsed)


def with_text_ends(pattern: str, parsed: Any) -> str:
    r"""Write each `$` that is not under (?m) as `\Z`.

    Raises ValueError where the pattern cannot be followed for certain.
    """
    flags = parsed.state.flags
    if _has_one_end_and_last(pattern, parsed):
        return pattern[:-1] + r"\Z"
    places = _ends(pattern, flags)
    if not places:
        return pattern
    pieces = []
    before = 0
    for place in places:
        pieces += [pattern[before:place], r"\Z"]
        before = place + 1
    rewritten = "".join((*pieces, pattern[before:]))
    if shape_of(parsed, flags, text_end=True) != shape_of(parse(rewritten), flags, text_end=False):
        raise ValueError(rewritten)
    return rewritten


def _has_one_end_and_last(pattern: str, parsed: Any) -> bool:
    """Tell whether the only `$` is the last character, and an anchor: then nothing can go wrong."""
    return (
        pattern.find("$") == len(pattern) - 1
        and str(parsed[-1][0]) == "AT"
        and str(parsed[-1][1]) == "AT_END"
        and not parsed.state.flags & re.MULTILINE
    )


def _ends(pattern: str, flags: int) -> list[int]:
    """Find each `$` that is an anchor and not under (?m)."""
    found = []
    scopes = [flags]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _end_of_set(pattern, at)
        elif pattern.startswith("(?#", at):
            at = pattern.index(")", at)
        elif char == "(":
            at = _open_group(pattern, at, scopes)
        elif char == ")":
            scopes.pop()
        elif char == "#" and scopes[-1] & re.VERBOSE:
            at = (pattern + "\n").index("\n", at)
        elif char == "$" and not scopes[-1] & re.MULTILINE:
            found.append(at)
        at += 1
    return found


def _end_of_set(pattern: str, at: int) -> int:
    at += 2 if pattern.startswith("[^", at) else 1
    first = at
    while pattern[at] != "]" or at == first:
        at += 2 if pattern[at] == "\\" else 1
    return at


def _open_group(pattern: str, at: int, scopes: list[int]) -> int:
    """Enter a group with the flags that hold in it; flags for the whole pattern open none."""
    flagged = _FLAGGED_GROUP.match(pattern, at)
    if flagged is None:
        scopes.append(scopes[-1])
        return at
    added, removed, end = flagged.groups()
    if end == ":":
        scopes.append((scopes[-1] | _flags(added)) & ~_flags(removed or ""))
    return flagged.end() - 1


def _flags(letters: str) -> int:
    known = {"m": re.MULTILINE, "x": re.VERBOSE}
    return sum(int(known.get(letter, 0)) for letter in set(letters))
