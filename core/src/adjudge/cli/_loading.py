"""Reading the policies that a command names, and saying what is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from adjudge._enforcement.approvals import escaped
from adjudge.cli._output import complain
from adjudge.cli._progress import progress_of
from adjudge.policy import PolicyBundle, compile_policy, load_policy_file

__all__ = ["complain_of", "load"]


def load(file: str) -> PolicyBundle:
    """Compile a file, or standard input in any of the formats where `file` is "-"."""
    with progress_of("standard input" if file == "-" else file) as progress:
        if file == "-":
            return compile_policy(sys.stdin.buffer.read(), progress=progress)
        return load_policy_file(file, progress=progress)


def complain_of(file: str, problems: Iterable[str]) -> None:
    """Report each problem of a file, with the file's name before it once."""
    for problem in problems:
        placed = problem if problem.startswith(f"{file}:") else f"{file}: {problem}"
        complain(escaped(placed))
