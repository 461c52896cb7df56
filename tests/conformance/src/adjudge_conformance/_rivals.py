"""Other processes that use the store of a contract's subclass, a step at a time.

Each opens the store by itself, and then does what each line of its input says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Self

from adjudge_conformance.worker import _found, _place_of

__all__ = ["Rival", "main"]

_TIME_LIMIT = 60.0
_PROGRAM = "from adjudge_conformance._rivals import main; main()"


class Rival:
    """A process that has the store open; a context manager, and gone when it ends."""

    def __init__(self, contract: type, place: str, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(_place_of(contract)), place, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        self._hear()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def tell(self, step: str, id: str) -> None:
        """Have it try a step on what has that id, without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([step, id]) + "\n")
        self._process.stdin.flush()

    def won(self) -> bool:
        """Wait for the step that it was told; whether it won."""
        return self._hear() == "won"

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait(_TIME_LIMIT)

    def _hear(self) -> str:
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if not said:
            raise RuntimeError(f"The process {self.name} has died; see what it wrote.")
        return said


def main() -> None:
    """Do the steps that the input names, until it ends."""
    contract, place, name = sys.argv[1:]
    attempt = _found(json.loads(contract)).open_rival(place, name)
    print("ready", flush=True)  # noqa: T201 - the lines are how the processes talk
    for line in sys.stdin:
        step, key = json.loads(line)
        print("won" if attempt(step, key) else "lost", flush=True)  # noqa: T201
