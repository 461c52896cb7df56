"""Subcommands of other distributions, found by the entry point group `adjudge.commands`.

An entry point's name is the subcommand. Its object is a function that gets the subcommand's
`argparse.ArgumentParser`, adds its arguments and calls `set_defaults(run=function)`, where the
function takes the parsed options and returns an exit code. It is imported only when the subcommand
is asked for, so one that is broken breaks nothing but itself.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from adjudge.cli._output import complain
from adjudge.policy._faults import describe

__all__ = ["GROUP", "Plugin", "add_plugins"]

GROUP = "adjudge.commands"


def add_plugins(commands: Any) -> dict[str, Plugin]:
    """Give the plug-ins by name, and list them in the help.

    A name that is taken is reported and left out.
    """
    plugins = {}
    found = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    times = Counter(point.name for point in found)
    for point in found:
        if point.name in commands.choices or times[point.name] > 1:
            complain(
                f"adjudge: the command {point.name!r} of {point.value} is left out; "
                "another one has that name."
            )
            continue
        commands.add_parser(point.name, help=f"from {_origin(point)}")
        plugins[point.name] = Plugin(point)
    return plugins


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


class Plugin:
    """One subcommand of another distribution; called with its arguments, it gives its exit code."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point

    def __call__(self, arguments: Sequence[str]) -> int:
        """Import it, let it read its arguments, and run it."""
        try:
            configure = self._point.load()
            parser = argparse.ArgumentParser(prog=f"adjudge {self._point.name}")
            configure(parser)
        except (Exception, SystemExit) as error:
            # Also one that ends the process with 0 has not done what it was asked for.
            complain(
                f"adjudge: the command {self._point.name!r} of {_origin(self._point)} does not "
                f"load: {describe(error)}"
            )
            return 2
        try:
            options = parser.parse_args(arguments)
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 2
        return int(options.run(options))
