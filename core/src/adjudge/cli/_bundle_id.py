"""`adjudge policy bundle-id`: which policy it is."""

from __future__ import annotations

import argparse
from typing import Any

from adjudge.cli._loading import load_or_refuse
from adjudge.cli._output import say

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    identify = commands.add_parser("bundle-id", help="print a policy's content address")
    identify.add_argument("file", metavar="FILE", help="a policy; - is standard input")
    identify.set_defaults(run=_bundle_id)


def _bundle_id(options: argparse.Namespace) -> int:
    say(load_or_refuse(options.file).id)
    return 0
