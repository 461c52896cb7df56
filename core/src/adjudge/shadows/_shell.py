"""The preview of a shell command; it is read as text, and neither run nor expanded."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import Any

__all__ = ["shell_shadow"]

_DELETING = frozenset({"rm", "rmdir", "unlink", "shred", "truncate", "dd", "mkfs", "del"})
_NETWORK = frozenset({"curl", "wget", "scp", "sftp", "rsync", "ssh", "ftp", "nc", "ncat", "telnet"})
_PUNCTUATION = ";&|()<>"


async def shell_shadow(cmd: str) -> dict[str, Any]:
    """Say which words the command has, and which look like deleting, sending or overwriting.

    A shell can spell the same command in countless other ways, so an empty finding says nothing.
    """
    words = _words(cmd)
    programs = [word.rpartition("/")[2] for word in words]
    return {
        "would_run": cmd,
        "words": words,
        "looks_deleting": sorted(_DELETING.intersection(programs)),
        "looks_network": sorted(_NETWORK.intersection(programs)),
        "redirects_to": [
            target for operator, target in pairwise(words) if operator in (">", ">>", ">|", "&>")
        ],
    }


def _words(cmd: str) -> list[str]:
    """Split as a POSIX shell would, operators apart; at blanks where the quotes do not match up."""
    lexer = shlex.shlex(cmd, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return cmd.split()
