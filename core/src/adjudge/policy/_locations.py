"""Test text as a location: `glob` patterns, directories (`under`) and hosts of URLs (`host_in`).

Pure functions over text (clause 12): nothing here asks the file system or the network. What
cannot be read for certain raises `ValueError`, which is an error of the test and never a "no".
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from pathlib import PurePath

__all__ = ["glob_matches", "host_matches", "host_pattern_problem", "is_under", "parse_host"]

_STARS = re.compile(r"(\*+)")

# RFC 3986, the parts that an http URL can have; a host is a name or an IPv6 address in brackets.
_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = r"!$&'()*+,;="
_TAIL = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:@/?]|%[0-9A-Fa-f]{{2}})*"
_URL = re.compile(
    rf"https?://(?P<host>\[[0-9A-Fa-f:.]+\]|[{_UNRESERVED}{_SUB_DELIMS}]+)(?::[0-9]*)?"
    rf"(?:[/?]{_TAIL})?(?:\#{_TAIL})?",
    re.IGNORECASE | re.ASCII,
)
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


def glob_matches(pattern: str) -> Callable[[str], bool]:
    """Compile a glob: `*` is any text without `/`, `**` any text, all else is itself.

    The whole text must match. The time grows with the text's length times the pattern's.
    """
    literals: dict[str, int] = {}
    within = across = 0
    size = 0
    for piece in _STARS.split(pattern):
        if piece.startswith("*"):
            if len(piece) == 1:
                within |= 1 << size
            else:
                across |= 1 << size
            size += 1
            continue
        for char in piece:
            literals[char] = literals.get(char, 0) | 1 << size
            size += 1
    stars = within | across
    accepted = 1 << size

    def matches(text: str) -> bool:
        # Bit i of the state: the first i elements of the pattern have matched what was read.
        # Stars never stand side by side, so that one shift lets each of them be empty.
        state = 1 | (stars & 1) << 1
        for char in text:
            stay = across if char == "/" else stars
            state = (state & literals.get(char, 0)) << 1 | (state & stay)
            state |= (state & stars) << 1
            if not state:
                return False
        return bool(state & accepted)

    return matches


def is_under(path: str, directory: str) -> bool:
    """Tell whether an absolute, normalised path is the directory or below it, by components.

    Raises ValueError for a relative path, one with `..`, and NUL.
    """
    return _components(path).is_relative_to(_components(directory))


def _components(path: str) -> PurePath:
    if "\0" in path:
        raise ValueError("A path with NUL in it names nothing.")
    pure = PurePath(path)
    if not pure.is_absolute() or ".." in pure.parts:
        raise ValueError("A path must be absolute and normalised before it is compared.")
    # POSIX lets two leading slashes be a root of their own; no resolved path has them.
    return PurePath(f"/{path.lstrip('/')}") if path.startswith("//") else pure


def parse_host(url: str) -> str:
    """Give the host of an http or https URL, in lower case and without a trailing dot.

    Raises ValueError for whatever readers of URLs could disagree on: anything but RFC 3986 in
    ASCII, user information, backslashes, spaces and control characters, percent escapes in the
    host, an empty label.
    """
    found = _URL.fullmatch(url)
    if found is None:
        raise ValueError(
            "The text is no http or https URL by RFC 3986 with a host and without user information."
        )
    host = found["host"].lower()
    if host.startswith("["):
        ipaddress.IPv6Address(host[1:-1])
        return host
    host = host.removesuffix(".")
    if not all(host.split(".")):
        raise ValueError("The host of the URL has an empty label.")
    return host


def host_matches(host: str, allowed: str | Iterable[str]) -> bool:
    """Tell whether a host that `parse_host` gave fits an entry, or one of several.

    An entry is a host, in any case, or `*.x` for the subdomains of x, which x itself is not.
    """
    # One string is one entry: read as an iterable it would silently match nothing.
    entries = (allowed,) if isinstance(allowed, str) else allowed
    return any(_host_fits(host, entry.lower().removesuffix(".")) for entry in entries)


def _host_fits(host: str, entry: str) -> bool:
    if entry.startswith("*."):
        return host.endswith(entry[1:])
    return host == entry


def host_pattern_problem(pattern: str) -> str | None:
    """Say what is wrong with an entry of a list of hosts, or None."""
    if pattern.startswith("[") and pattern.endswith("]"):
        try:
            ipaddress.IPv6Address(pattern[1:-1])
        except ValueError:
            return f'"{pattern}" is no IPv6 address in brackets.'
        return None
    host = pattern.removeprefix("*.").removesuffix(".")
    if all(_LABEL.fullmatch(label) for label in host.split(".")):
        return None
    return (
        f'"{pattern}" is no host; write "example.com", or "*.example.com" for its subdomains, in '
        "ASCII and without scheme, port or path."
    )
