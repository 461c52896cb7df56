"""The command `adjudge`: one file for each subcommand, and those that integrations add.

Exit codes: 0 checked and good, 1 violations, 2 bad usage or input; nothing checked is not good.
What was asked for goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from adjudge.cli import _checkpoint, _explain, _init, _policy, _replay, _run, _suggest, _verify
from adjudge.cli._output import UnwritableOutput, complain, say
from adjudge.cli._plugins import add_plugins
from adjudge.cli._refusing import Refused
from adjudge.errors import AdjudgeError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (that of the process by default) and give its exit code."""
    parser = _Parser(prog="adjudge", description="Governs the tool calls of AI agents.")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    for command in (_init, _policy, _explain, _replay, _suggest, _verify, _checkpoint, _run):
        command.add(commands)
    plugins = add_plugins(commands)
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments and arguments[0] in plugins:
            # All that follows is the plug-in's to read.
            return plugins[arguments[0]](arguments[1:])
        return _run_ours(parser, arguments)
    except AdjudgeError as error:
        return Refused.of(error).told(as_json=False)
    except UnwritableOutput as error:
        complain(f"adjudge: the output cannot be written: {error}.")
        return 2
    except KeyboardInterrupt:
        complain("adjudge: interrupted")
        return 130


def _run_ours(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> int:
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except _Misused as error:
        return error.told(as_json="--json" in arguments)
    if options.version:
        return _version()
    if "run" not in options:
        complain(parser.format_help())
        return 2
    try:
        return int(options.run(options))
    except AdjudgeError as error:
        return Refused.of(error).told(as_json=getattr(options, "json", False))


def _version() -> int:
    from adjudge import __version__

    say(f"adjudge {__version__}")
    return 0


class _Misused(Refused):
    """Arguments that the command does not understand."""


class _Parser(argparse.ArgumentParser):
    """A parser whose words go where they belong, also into a pipe that is closed."""

    def error(self, message: str) -> NoReturn:
        """Show how the command is used, and refuse."""
        self.print_usage(sys.stderr)
        raise _Misused("usage", [f"{self.prog}: {message}"])

    def _print_message(self, message: str, file: object = None) -> None:
        if message:
            (say if file is sys.stdout else complain)(message.rstrip("\n"))
