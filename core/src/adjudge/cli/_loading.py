"""Reading the policies that a command names, and saying what is wrong with them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from adjudge._enforcement.approvals import escaped
from adjudge.cli._output import complain
from adjudge.cli._progress import progress_of
from adjudge.policy import PolicyBundle, compile_policy, load_policy_file

__all__ = ["complain_of", "load"]


def load(file: str) -> PolicyBundle:
    """Compile a file, or standard input in any of the formats where `file` is "-"."""
    name = "standard input" if file == "-" else file
    with _collector_at_rest(), progress_of(name) as progress:
        if file == "-":
            return compile_policy(sys.stdin.buffer.read(), progress=progress)
        return load_policy_file(file, progress=progress)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep Python's collector of cycles from looking through what is being made.

    All of it stays, and to be looked through again and again is half the time of a large policy.
    It is the whole process's, so only a command may do this, never the library.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def complain_of(file: str, problems: Iterable[str]) -> None:
    """Report each problem of a file, with the file's name before it once."""
    for problem in problems:
        placed = problem if problem.startswith(f"{file}:") else f"{file}: {problem}"
        complain(escaped(placed))
