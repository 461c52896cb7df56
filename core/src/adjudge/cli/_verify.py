"""`adjudge verify`: whether a record is as it was written, and what that leaves open."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge._record.verification import VerifyResult, verify_chain
from adjudge.cli._output import complain, say, say_json
from adjudge.errors import RecordError

__all__ = ["add"]

_SHOWN = 20


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("verify", help="check a hash-chained record")
    parser.add_argument("file", metavar="FILE", help="what hash_chained_sink wrote")
    parser.add_argument(
        "--expect-head",
        metavar="HEAD[:COUNT]",
        help="a head that was printed before and kept elsewhere; it must be in the record",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_verify)


def _verify(options: argparse.Namespace) -> int:
    try:
        result = verify_chain(options.file, expect_head=options.expect_head)
    except RecordError as error:
        if options.json:
            say_json({"intact": False, "code": "unreadable", "reason": str(error)})
        complain(f"adjudge: {error}")
        return 2
    if options.json:
        say_json(asdict(result))
    elif result.intact:
        say(_told(result))
    if not result.intact:
        complain(_fault(options.file, result))
    return _exit_code(result)


def _exit_code(result: VerifyResult) -> int:
    if result.intact:
        return 0
    return 2 if result.code == "nothing_checked" else 1


def _fault(file: str, result: VerifyResult) -> str:
    place = f" at line {result.broken_at}" if result.broken_at is not None else ""
    return (
        f"{file}: not good{place}: {result.reason} ({result.code}). "
        f"{result.lines} records before it link."
    )


def _told(result: VerifyResult) -> str:
    lines = [f"intact: {result.lines} records", f"head: {result.head}:{result.lines}"]
    if result.anchored is not None:
        lines.append(f"expected head: found, it vouches for {result.anchored} records")
    for residue in result.residue:
        state = "vouched for by the next writer" if residue.vouched else "at the end"
        lines.append(f"crash residue: line {residue.line}, {residue.size} bytes, {state}")
    for item in result.open_proposals[:_SHOWN]:
        where = escaped(f"{item.tool}, call {item.seq} of {item.correlation_id}")
        lines.append(f"still open: line {item.line}, {where}")
    if len(result.open_proposals) > _SHOWN:
        lines.append(f"still open: {len(result.open_proposals) - _SHOWN} more; --json lists all")
    lines.append("not ruled out:")
    lines += [f"  - {doubt}" for doubt in result.not_ruled_out]
    return "\n".join(lines)
