"""`adjudge policy schema`: the JSON Schema of policy files, for editors."""

from __future__ import annotations

import argparse
from typing import Any

from adjudge.cli._output import say_json

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    schema = commands.add_parser("schema", help="print the JSON Schema of policy files")
    schema.set_defaults(run=_schema)


def _schema(_options: argparse.Namespace) -> int:
    from adjudge.analysis import policy_schema

    say_json(policy_schema())
    return 0
