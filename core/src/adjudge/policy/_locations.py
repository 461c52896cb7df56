"""Test text as a location: `glob` patterns, directories (`under`) and hosts of URLs (`host_in`).

Pure functions over text (clause 12): nothing here asks the file system or the network. What cannot be read for certain raises
`ValueError`, which is the caller's error and never a "no".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

__all__ = ["glob_matches", "host_matches", "host_pattern_problem", "is_under", "parse_host"]

_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


def host_pattern_problem(pattern: str) -> str | None:
    """Say what is wrong with an entry of a host list, or None."""
    host = pattern.removeprefix("*.")
    if not all(_LABEL.fullmatch(label) for label in host.removesuffix(".").split(".")):
        return f'"{pattern}" is no host; write one as "example.com" or "*.example.com", without scheme or port.'
    return None
