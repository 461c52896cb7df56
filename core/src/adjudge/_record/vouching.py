"""Signs a checkpoint of a record, once the record was found sound."""

from __future__ import annotations

import os
from pathlib import Path

from adjudge._record.checkpoints import LONGEST, Checkpoint, Written, is_cut_short, read_all
from adjudge._record.filelock import locked_for_append
from adjudge._record.keptfile import write_all
from adjudge._record.lines import closing
from adjudge._record.results import VerifyResult
from adjudge._record.signing import Key, Signer
from adjudge._record.verification import Paths, checked
from adjudge.errors import RecordError

__all__ = ["UnsoundRecord", "sign_checkpoint"]


class UnsoundRecord(RecordError):
    """A record that is not vouched for, because it is not as it was written; `result` says why."""

    def __init__(self, result: VerifyResult) -> None:
        self.result = result
        place = "the record"
        if result.broken_in is not None:
            line = "" if result.broken_at is None else f":{result.broken_at}"
            place = f"{result.broken_in}{line}"
        super().__init__(f"Nothing is signed, for {place} is not good: {result.reason}.")

    def __reduce__(self) -> tuple[type[UnsoundRecord], tuple[VerifyResult]]:
        return type(self), (self.result,)


def sign_checkpoint(
    path: Paths,
    key: Key,
    *,
    output: str | os.PathLike[str] | None = None,
    after: str | None = None,
) -> Checkpoint:
    """Check the record at `path`, sign a checkpoint of it, and append that to `output` if given.

    `path` and `after` are as `verify_chain` takes them; `key` is a private key in PEM, as a path or
    bytes. The key's checkpoints in `output` must be on the chain: a record that was cut since it
    was last signed is not signed again. Raises `RecordError` for a record that is not sound, a key
    that cannot be used, and a file that cannot be read or written.
    """
    signer = Signer(key)
    earlier = _earlier(output, signer) if output is not None else []
    paths = path if isinstance(path, str | os.PathLike) else list(path)
    result = checked(
        paths, after=after, written=earlier or None, keys=signer.keys if earlier else None
    )
    if not result.intact and result.code != "no_checkpoint":
        raise UnsoundRecord(result)
    checkpoint = signer.sign(str(result.head), result.lines)
    if output is not None:
        _append(Path(output), checkpoint.line.encode("ascii"))
    return checkpoint


def _earlier(output: str | os.PathLike[str], signer: Signer) -> list[Written]:
    """Read what this key has signed before, and what is no checkpoint of anybody's."""
    try:
        written = read_all(output) if Path(output).exists() else []
    except OSError as error:
        raise RecordError(f"{output} cannot be read: {error.strerror or error}.") from error
    return [
        each
        for each in written
        if each.checkpoint is None or each.checkpoint.key == signer.fingerprint
    ]


def _append(output: Path, line: bytes) -> None:
    with locked_for_append(output) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - LONGEST))
        last = file.read().rpartition(b"\n")[2]
        if last:
            line = (closing(last) if is_cut_short(last) else b"\n") + line
        try:
            write_all(file.fileno(), line)
        except OSError as error:
            # Half a line would be a false alarm for whoever verifies.
            file.truncate(end)
            raise RecordError(f"{output} cannot be written: {error.strerror or error}.") from error
