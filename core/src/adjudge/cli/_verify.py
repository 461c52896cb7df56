"""`adjudge verify`: whether a record is as it was written, and what that leaves open."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge._record.results import OpenProposal, Residue, VerifyResult
from adjudge._record.verification import verify_chain
from adjudge.cli._output import complain, say, say_json

__all__ = ["add", "add_files", "exit_code", "fault_of", "files_of"]

_SHOWN = 20


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("verify", help="check a hash-chained record")
    add_files(parser)
    parser.add_argument(
        "--expect-head",
        metavar="HEAD[:COUNT]",
        help="a head that was printed before and kept elsewhere; it must be in the record",
    )
    parser.add_argument(
        "--public-key",
        metavar="KEY.pub",
        action="append",
        help="whose checkpoints must be on the chain, and at least one; may be given again",
    )
    parser.add_argument(
        "--checkpoints", metavar="FILE", help="where they are (FILE.checkpoints by default)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_verify)


def add_files(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the files of a record, and what says which they are."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*" if optional else "+",
        help="what hash_chained_sink wrote; one FILE brings the numbered files beside it, "
        "several are exactly these, in any order",
    )
    parser.add_argument("--exact", action="store_true", help="one FILE is that file alone, too")
    parser.add_argument(
        "--after",
        metavar="HEAD[:COUNT]",
        help="the head of what came before, where the earlier files are not given",
    )


def files_of(options: argparse.Namespace) -> str | list[str]:
    """Give the record as `verify_chain` takes it."""
    files: list[str] = options.files
    return files[0] if len(files) == 1 and not options.exact else files


def _verify(options: argparse.Namespace) -> int:
    result = verify_chain(
        files_of(options),
        expect_head=options.expect_head,
        after=options.after,
        public_key=options.public_key,
        checkpoints=options.checkpoints,
    )
    if options.json:
        say_json(asdict(result))
    elif result.intact:
        say(_told(result))
    if not result.intact:
        complain(fault_of(options.files, result))
    return exit_code(result)


def exit_code(result: VerifyResult) -> int:
    """Give the exit code of what was found."""
    if result.intact:
        return 0
    return 2 if result.code == "nothing_checked" else 1


def fault_of(files: list[str], result: VerifyResult) -> str:
    """Say what is wrong, and where."""
    file = result.broken_in if result.broken_in is not None else files[0]
    place = f" at line {result.broken_at}" if result.broken_at is not None else ""
    vouched = "" if result.vouched is None else f" {result.vouched} are vouched for."
    return escaped(
        f"{file}: not good{place}: {result.reason} ({result.code}). "
        f"{result.lines} records before it link.{vouched}"
    )


def _told(result: VerifyResult) -> str:
    return "\n".join(
        [
            *_what_was_read(result),
            *_who_vouches(result),
            *map(_residue, result.residue),
            *_open(result.open_proposals),
            "not ruled out:",
            *(f"  - {doubt}" for doubt in result.not_ruled_out),
        ]
    )


def _what_was_read(result: VerifyResult) -> list[str]:
    if result.before:
        what = f"intact: records {result.before + 1} to {result.lines}"
    else:
        what = f"intact: {result.lines} records"
    if len(result.files) == 1:
        return [what, f"head: {result.head}:{result.lines}"]
    shown = [f"  {escaped(file)}" for file in result.files[-_SHOWN:]]
    if len(result.files) > _SHOWN:
        shown.insert(0, f"  {len(result.files) - _SHOWN} earlier ones; --json lists all")
    return [
        f"{what} in {len(result.files)} files",
        *shown,
        f"head: {result.head}:{result.lines}",
    ]


def _who_vouches(result: VerifyResult) -> list[str]:
    lines = []
    if result.anchored is not None:
        lines.append(f"expected head: found, it vouches for {result.anchored} records")
    if result.vouched is not None:
        lines.append(f"checkpoint: signed {result.signed_at}, for {result.vouched} records")
    return lines


def _residue(residue: Residue) -> str:
    state = "vouched for by the next writer" if residue.vouched else "at the end"
    return f"crash residue: {_place(residue)}, {residue.size} bytes, {state}"


def _open(proposals: tuple[OpenProposal, ...]) -> list[str]:
    lines = [
        f"still open: {_place(item)}, "
        + escaped(f"{item.tool}, call {item.seq} of {item.correlation_id}")
        for item in proposals[:_SHOWN]
    ]
    if len(proposals) > _SHOWN:
        lines.append(f"still open: {len(proposals) - _SHOWN} more; --json lists all")
    return lines


def _place(item: Residue | OpenProposal) -> str:
    return f"line {item.line}" + (f" of {escaped(item.file)}" if item.file is not None else "")
