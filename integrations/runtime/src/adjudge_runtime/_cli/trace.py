"""`adjudge trace`: show what the journal of a run says has happened.

Reads a SQLite file of a run store, or a file of records as `step_record_to_json` writes them, one
to a line. Exit codes: 0 shown and nothing is uncertain, 1 there is a call of which nobody knows
whether it was carried out, 2 bad usage, or a file that cannot be read or holds no such run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from adjudge import (
    AdjudgeError,
    SQLiteRunStore,
    StepRecord,
    StoreError,
    step_record_from_json,
)
from adjudge.integration import thaw
from adjudge_runtime._replay import RunView, StepView, replay

__all__ = ["configure"]

_SQLITE = b"SQLite format 3\0"


class _Unreadable(Exception):
    """Why nothing can be shown, as a sentence."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `adjudge trace`."""
    parser.description = "Show what the journal of a run says has happened."
    parser.add_argument("file", metavar="FILE", help="a SQLite run store, or records as JSON lines")
    parser.add_argument(
        "run_id",
        metavar="RUN_ID",
        nargs="?",
        help="the run (needed for a SQLite file, and where a file holds several)",
    )
    parser.add_argument("--json", action="store_true", help="print the run as JSON")
    parser.set_defaults(run=_trace)


def _trace(options: argparse.Namespace) -> int:
    try:
        view = replay(_records(Path(options.file), options.run_id))
    except (AdjudgeError, _Unreadable) as error:
        sys.stderr.write(f"adjudge trace: {options.file}: {error}\n")
        return 2
    shown = json.dumps(thaw(asdict(view)), indent=2) if options.json else _text(view)
    sys.stdout.write(f"{shown}\n")
    return 1 if any(step.uncertain for step in view.steps) else 0


def _records(file: Path, run_id: str | None) -> Sequence[StepRecord]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise _Unreadable(f"The file cannot be read: {error.strerror or error}.") from None
    if content.startswith(_SQLITE):
        if run_id is None:
            raise _Unreadable("It is a SQLite file; say which run: adjudge trace FILE RUN_ID")
        return _checked(_of_store(file, run_id), run_id)
    return _of_lines(content, run_id)


def _of_store(file: Path, run_id: str) -> Sequence[StepRecord]:
    store = SQLiteRunStore(file)
    try:
        return asyncio.run(store.load(run_id))
    finally:
        store.close()


def _of_lines(content: bytes, run_id: str | None) -> Sequence[StepRecord]:
    records = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            records.append(step_record_from_json(line.decode()))
        except (UnicodeDecodeError, StoreError) as error:
            raise _Unreadable(f"Line {number} is no record: {error}") from None
    runs = list(dict.fromkeys(record.run_id for record in records))
    if run_id is None:
        if len(runs) > 1:
            raise _Unreadable(f"It holds {len(runs)} runs ({', '.join(runs)}); say which one.")
        return _checked(records, None)
    return _checked([record for record in records if record.run_id == run_id], run_id)


def _checked(records: Sequence[StepRecord], run_id: str | None) -> Sequence[StepRecord]:
    if not records:
        which = "no record" if run_id is None else f"no run {run_id!r}"
        raise _Unreadable(f"It holds {which}.")
    return sorted(records, key=lambda record: record.seq)


def _text(view: RunView) -> str:
    state = "not finished" if view.final_answer is None else "finished"
    attempts = "1 attempt" if view.attempts == 1 else f"{view.attempts} attempts"
    lines = [f"run {_shown(view.run_id)}: {view.records} records, {attempts}, {state}"]
    return "\n".join(lines + [_line(step) for step in view.steps])


def _line(step: StepView) -> str:
    if step.tool is None:
        return f"step {step.step}: answer {_shown(step.message)}"
    if step.uncertain:
        came = "UNCERTAIN: its body began, and nobody knows how it ended"
    elif step.pending:
        came = "waits for a person"
    elif step.ok is None:
        came = "not run yet"
    else:
        retried = ", after it had been uncertain" if step.resolved_uncertain else ""
        came = f"{step.verdict}, {'ok' if step.ok else 'not ok'}{retried}: {_shown(step.message)}"
    return f"step {step.step}: {_shown(step.tool)} {_shown(step.args)}: {came}"


def _shown(value: object) -> str:
    # As ASCII JSON nothing in it can move a terminal's cursor.
    return json.dumps(thaw(value), default=str)
