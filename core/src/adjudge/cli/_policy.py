"""`adjudge policy ...`: the commands about a policy alone, one file for each."""

from __future__ import annotations

from typing import Any

from adjudge.cli import _bundle_id, _diff, _lint, _schema, _test

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand, and those below it."""
    policy = commands.add_parser("policy", help="check, test, compare and identify policies")
    below = policy.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (_lint, _test, _diff, _schema, _bundle_id):
        command.add(below)
