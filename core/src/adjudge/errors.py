"""Every exception that Adjudge raises, each with a stable `code`.

Callers match on the type or on `code`, never on the text. The text says what is wrong, where, and
what to write instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AdjudgeError",
    "AnswerError",
    "ArgumentsRefused",
    "ConcurrentModification",
    "DuplicateRecord",
    "EphemeralLedgerWarning",
    "EphemeralStoreWarning",
    "GovernError",
    "LedgerError",
    "NotAnObject",
    "PolicyCompileError",
    "RecordError",
    "SessionExists",
    "StoreError",
    "ToolDefinitionError",
    "UnknownSession",
]


class AdjudgeError(Exception):
    """The base of every exception of ours; `code` is a stable machine-readable word."""

    code: ClassVar[str] = "adjudge_error"


class PolicyCompileError(AdjudgeError, ValueError):
    """A policy that does not say what it should; nothing of it is used.

    `problems` lists every problem found, one sentence each, with its place.
    """

    code = "policy_compile_error"

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (
            (problems,) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[PolicyCompileError], tuple[tuple[str, ...]]]:
        return (type(self), (self.problems,))


class ArgumentsRefused(AdjudgeError, ValueError):
    """Arguments that a lenient parser would accept and ours does not (clause 2)."""

    code = "refused_arguments"


class NotAnObject(AdjudgeError, ValueError):
    """Argument text that is no JSON, or no JSON object: the framework's to answer (clause 2)."""

    code = "invalid_arguments"


class ToolDefinitionError(AdjudgeError, TypeError):
    """A tool, shadow or tool set that is defined in a way that cannot be governed."""

    code = "tool_definition"


class GovernError(AdjudgeError, TypeError):
    """A target that `govern` cannot hold: no place to stand, or under another guard."""

    code = "cannot_govern"


class AnswerError(AdjudgeError, ValueError):
    """Answers with which a paused run cannot go on: to no call of it, or no answers at all."""

    code = "bad_answer"


class LedgerError(AdjudgeError, RuntimeError):
    """The ledger could not be read or written, or an entry in it is not what it should be."""

    code = "ledger"


class RecordError(AdjudgeError, RuntimeError):
    """The audit record could not be written or read."""

    code = "record"


class EphemeralLedgerWarning(UserWarning):
    """Runs may pause, and what they wait for is kept in memory alone."""


class StoreError(AdjudgeError, RuntimeError):
    """A store could not be read or written, or what is in it is not what it should be."""

    code = "store"


class DuplicateRecord(AdjudgeError, RuntimeError):
    """The run has a step of that number already: another worker wrote it first."""

    code = "duplicate_record"


class SessionExists(AdjudgeError, ValueError):
    """There is a session of that id already."""

    code = "session_exists"


class UnknownSession(AdjudgeError, LookupError):
    """There is no session of that id."""

    code = "unknown_session"


class ConcurrentModification(AdjudgeError, RuntimeError):
    """The session was saved by somebody else since it was loaded; nothing was written."""

    code = "concurrent_modification"


class EphemeralStoreWarning(UserWarning):
    """A store whose server may forget what it was given, or does not say that it will not."""
