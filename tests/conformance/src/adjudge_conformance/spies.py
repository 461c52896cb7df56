"""What really ran: bodies, shadows and obligations write a line to a file before anything else.

The file is the suite's only source for "the body ran"; neither a driver nor the guard is asked. It
survives the process, so that a resumed run is seen with the process that did it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["Sighting", "Spies", "append_line", "read_lines"]

Kind = Literal["body", "shadow", "obligation"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """One start of a body, shadow or obligation: where, for the how-manieth time, with what.

    `attempt` counts the starts of the same body with the same arguments, from 1.
    """

    kind: Kind
    tool: str
    args: Mapping[str, Any]
    process: int
    attempt: int


class Spies:
    """The file in which the bodies of one case leave their traces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def saw(self, kind: Kind, tool: str, args: Mapping[str, Any]) -> None:
        """Note that a body, shadow or obligation has started."""
        with self._lock:
            same = [s for s in self.sightings if (s.kind, s.tool, s.args) == (kind, tool, args)]
            append_line(
                self.path,
                {
                    "kind": kind,
                    "tool": tool,
                    "args": dict(args),
                    "process": os.getpid(),
                    "attempt": len(same) + 1,
                },
            )

    @property
    def sightings(self) -> list[Sighting]:
        """Everything that started so far, in order, in whatever process."""
        return [Sighting(**line) for line in read_lines(self.path)]


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Add one JSON line to a file in a single write, so that lines of two processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(value).encode() + b"\n")
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the JSON lines of a file; none if it is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
