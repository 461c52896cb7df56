"""`adjudge suggest`: a least-privilege policy from a recorded log."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge.cli._output import complain, say, say_json
from adjudge.cli._progress import progress_of
from adjudge.cli._reading_logs import add_log_options, describe_files, files_to_json, open_logs
from adjudge.cli._refusing import Refused, refuse_usage

if TYPE_CHECKING:
    from adjudge.analysis import RecordedLog, Suggestion

__all__ = ["add"]

_LEVELS = ("exact", "values", "shape")
_MOST_SHOWN = 10


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "suggest", help="make a least-privilege policy out of a recorded log"
    )
    add_log_options(parser)
    parser.add_argument(
        "--generalise",
        "--generalize",
        action="append",
        type=_level,
        default=[],
        metavar="[TOOL[:ARGUMENT]=]LEVEL",
        help="exact: the values seen (default); values: ranges, hosts, directories and prefixes "
        "around them; shape: any value",
    )
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="at level values, hold paths to their directories, worked out by their text from here",
    )
    parser.add_argument(
        "--include-failed",
        action="store_true",
        help="let through calls that were allowed and failed, too",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write the policy there: .yaml, .yml or .json"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(run=_suggest)


def _level(text: str) -> tuple[str, str]:
    of, _, level = text.rpartition("=")
    if level not in _LEVELS:
        raise argparse.ArgumentTypeError(f"{level!r} is no level; write {', '.join(_LEVELS)}")
    return of, level


def _suggest(options: argparse.Namespace) -> int:
    from adjudge.analysis import suggest

    if options.output is not None and Path(options.output).suffix not in (".yaml", ".yml", ".json"):
        refuse_usage(f"{options.output} must end in .yaml, .yml or .json.")
    levels = dict(options.generalise)
    general = levels.pop("", "exact")
    with progress_of(options.logs[-1], doing="reading") as progress:
        log = open_logs(options, progress)
        found = suggest(
            log,
            generalise=general,
            levels=levels,
            workspace=options.workspace,
            include_failed=options.include_failed,
        )
    report = [*describe_files(log), *_report(found)]
    if options.output is not None:
        _write(options.output, _text(found, options.output))
    if options.json:
        say_json(_to_json(log, found))
    elif options.output is not None:
        say(escaped("\n".join([*report, f"wrote {options.output}"]), lines=True))
    else:
        say(_text(found, None).rstrip("\n"))
        complain(escaped("\n".join(report), lines=True))
    return 1 if found.otherwise else 0


def _text(found: Suggestion, path: str | None) -> str:
    """Write the policy in the form of the file; without one in YAML, where it can be read here."""
    from adjudge.analysis._recorded.writing import as_json_text, as_yaml_text

    readable = importlib.util.find_spec("yaml") is not None
    if (path is None and not readable) or (path is not None and path.endswith(".json")):
        return as_json_text(found.policy)
    return as_yaml_text(found.policy, ["Suggested by `adjudge suggest`.", *found.notes])


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        sentence = f"{path} cannot be written: {error.strerror or error}."
        raise Refused("unwritable", [sentence]) from None


def _report(found: Suggestion) -> list[str]:
    rules = len(found.policy["rules"])
    lines = [f"{rules} {'rule' if rules == 1 else 'rules'} from {_calls(found.used)}"]
    lines += [f"left out: {_calls(count)}, {why}" for why, count in found.left_out.items()]
    lines += [
        f"not generalised, for that would decide recorded calls otherwise: {tool}"
        for tool in found.narrowed
    ]
    lines += [f"note: {note}" for note in found.notes]
    if not found.otherwise:
        lines.append(
            f"replayed: {_calls(found.reproduced)} come out as recorded, the others as left out"
        )
        return lines
    lines.append(
        f"NOT REPRODUCED: {_calls(len(found.otherwise))}; {found.reproduced} come out as recorded"
    )
    lines += [
        f"  {call.place}  {call.request.tool}: {why}" for call, why in found.otherwise[:_MOST_SHOWN]
    ]
    return lines


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _to_json(log: RecordedLog, found: Suggestion) -> dict[str, Any]:
    return {
        "files": files_to_json(log),
        "policy": found.policy,
        "bundle_id": found.bundle.id,
        "used": found.used,
        "left_out": dict(found.left_out),
        "narrowed": found.narrowed,
        "notes": found.notes,
        "reproduced": found.reproduced,
        "otherwise": [
            {"place": str(call.place), "tool": call.request.tool, "why": why}
            for call, why in found.otherwise
        ],
    }
