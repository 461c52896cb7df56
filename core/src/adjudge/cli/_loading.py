"""Reading the policies that a command names."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from adjudge.cli._progress import progress_of
from adjudge.cli._refusing import Refused
from adjudge.errors import PolicyCompileError
from adjudge.policy import PolicyBundle, compile_policy, load_policy_file

__all__ = ["load", "load_or_refuse"]


def load(file: str) -> PolicyBundle:
    """Compile a file, or standard input in any of the formats where `file` is "-"."""
    name = "standard input" if file == "-" else file
    with _collector_at_rest(), progress_of(name) as progress:
        if file == "-":
            return compile_policy(sys.stdin.buffer.read(), progress=progress)
        return load_policy_file(file, progress=progress)


def load_or_refuse(file: str) -> PolicyBundle:
    """Compile as `load` does; what is wrong with the file ends the command."""
    try:
        return load(file)
    except PolicyCompileError as error:
        raise Refused.of(error, file=file) from None


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
