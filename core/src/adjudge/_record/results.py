"""What verifying a record finds: the result that users read, and the parts it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Fault", "OpenProposal", "Residue", "VerifyResult"]


@dataclass(frozen=True, slots=True)
class OpenProposal:
    """A proposal without a terminal event: it runs, waits for a person, or was lost in a crash.

    `file` says which of several files has the line.
    """

    line: int
    correlation_id: str
    seq: int
    tool: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Residue:
    """Bytes of a write that a crash cut short, from the line `line` on.

    `vouched` says that a later writer found them so and recorded it within the chain; `file` says
    which of several files has the line.
    """

    line: int
    size: int
    vouched: bool
    file: str | None = None


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What `verify_chain` found.

    `intact` is True only if there is at least one record, all link, and the expected head and the
    checkpoints, where given, are among them. `lines` counts the records up to the first fault, over
    all files and with the `before` ones that came before them, and `head` is the hash of the last:
    `HEAD:LINES` is what to keep elsewhere. `broken_at` is the number of the first bad line of the
    file `broken_in`, from 1; `code` is a stable word for `reason`. `anchored` is how many records
    the expected head vouches for, and `vouched` how many the newest good checkpoint does, signed at
    `signed_at`. `files` has the files that were read, in the order of the chain.
    """

    intact: bool
    lines: int
    broken_at: int | None = None
    reason: str | None = None
    code: str | None = None
    head: str | None = None
    anchored: int | None = None
    open_proposals: tuple[OpenProposal, ...] = ()
    residue: tuple[Residue, ...] = ()
    not_ruled_out: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    broken_in: str | None = None
    before: int = 0
    vouched: int | None = None
    signed_at: str | None = None


class Fault(NamedTuple):
    """What is wrong, in a stable word and in a sentence, and where."""

    code: str
    reason: str
    file: str | None = None
    line: int | None = None
