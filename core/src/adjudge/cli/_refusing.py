"""Input that a command cannot use: exit code 2, said alike by every command.

The sentences go to standard error. With `--json` standard output has a JSON value all the same, so
that a program need not guess why there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from adjudge._enforcement.approvals import escaped
from adjudge.cli._output import complain, say_json
from adjudge.errors import AdjudgeError, PolicyCompileError

__all__ = ["Refused", "complain_of", "refuse_usage"]


class Refused(AdjudgeError):
    """What a command was given is of no use; `file` is what it was read from, if from a file."""

    def __init__(self, code: str, problems: Iterable[str], *, file: str | None = None) -> None:
        self.reason = code
        self.problems = tuple(problems)
        self.file = file
        super().__init__("\n".join(self.problems))

    @classmethod
    def of(cls, error: AdjudgeError, *, file: str | None = None) -> Refused:
        """Give an error of ours as what a command says of it."""
        if isinstance(error, Refused):
            return error
        problems = error.problems if isinstance(error, PolicyCompileError) else (str(error),)
        return cls(error.code, problems, file=file)

    def told(self, *, as_json: bool) -> int:
        """Say it, and give the exit code."""
        if self.file is not None:
            complain_of(self.file, self.problems)
        else:
            complain(escaped("adjudge: " + "\n".join(self.problems), lines=True))
        if as_json:
            say_json({"error": {"code": self.reason, "problems": list(self.problems)}})
        return 2


def refuse_usage(sentence: str) -> NoReturn:
    """Refuse options that make no sense."""
    raise Refused("usage", [sentence])


def complain_of(file: str, problems: Iterable[str]) -> None:
    """Report each problem of a file, with the file's name before it once."""
    for problem in problems:
        placed = problem if problem.startswith(f"{file}:") else f"{file}: {problem}"
        complain(escaped(placed))
