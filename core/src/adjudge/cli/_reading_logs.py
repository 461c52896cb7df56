"""What the commands share that read recorded logs: their options, and saying what was read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge.analysis import LogFile, RecordedLog
    from adjudge.analysis._recorded.log_files import Progress

__all__ = ["add_log_options", "describe_files", "files_to_json", "open_logs"]


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add the files, and what to do with a broken one."""
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="files of jsonl_sink or hash_chained_sink, in the order in which they were written",
    )
    parser.add_argument(
        "--allow-broken",
        action="store_true",
        help="read a record whose chain is broken, and pass over lines that are no events",
    )


def open_logs(options: argparse.Namespace, progress: Progress | None) -> RecordedLog:
    """Open the files; a broken chain raises `RecordError` unless it is allowed."""
    from adjudge.analysis import read_log

    return read_log(*options.logs, allow_broken=options.allow_broken, progress=progress)


def describe_files(log: RecordedLog) -> list[str]:
    """Say of each file whether it could have been changed."""
    return [f"{file.path}: {_state(file)}{_skipped(file)}{_torn(file)}" for file in log.files]


def _state(file: LogFile) -> str:
    chain = file.chain
    if chain is None:
        return "not chained, so nothing shows whether it is as it was written"
    if not chain.intact:
        return f"CHAIN BROKEN ({chain.reason}), read all the same"
    return f"chain intact, {chain.lines} records"


def _skipped(file: LogFile) -> str:
    return f"; {file.skipped} lines were no events" if file.skipped else ""


def _torn(file: LogFile) -> str:
    if not file.torn:
        return ""
    return f"; TORN END: the last line was cut short after {file.torn} bytes and cannot be told"


def files_to_json(log: RecordedLog) -> list[dict[str, Any]]:
    """Give what was read as plain JSON."""
    return [
        {
            "path": file.path,
            "chained": file.chain is not None,
            "intact": None if file.chain is None else file.chain.intact,
            "reason": None if file.chain is None else file.chain.reason,
            "skipped_lines": file.skipped,
            "torn_bytes": file.torn,
        }
        for file in log.files
    ]
