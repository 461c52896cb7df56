"""Tools that the tests of the executors run in another process."""

from __future__ import annotations

import os
import signal
import sys
import time
from decimal import Decimal
from pathlib import Path

from adjudge import tool


@tool()
async def describe(text: str, number: int = 3) -> dict[str, object]:
    """Say what arrived, and where it runs."""
    return {"text": text, "number": number, "pid": os.getpid(), "cwd": str(Path.cwd())}


@tool()
def plain(value: object) -> object:
    """Give the value back, without a coroutine."""
    return value


@tool()
def kind_of_decimal(value: Decimal) -> str:
    """Say of what type the argument is."""
    return f"{type(value).__name__} {value}"


@tool()
async def environment() -> dict[str, str]:
    """Give the environment."""
    return dict(os.environ)


@tool()
async def fail() -> None:
    """Fail as a body does."""
    raise ValueError("no such order")


@tool()
async def leave() -> None:
    """End the process from within."""
    os._exit(7)


@tool()
async def die() -> None:
    """Crash."""
    sys.stderr.write("about to crash\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


@tool()
def spin() -> None:
    """Use the processor for ever."""
    while True:
        pass


@tool()
def hang(pid_file: str) -> None:
    """Hang, after telling who hangs."""
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(600)


@tool()
def grow(megabytes: int) -> int:
    """Use memory."""
    return len(bytearray(megabytes * 1024 * 1024))


@tool()
def chatter() -> str:
    """Print what could pass for an answer."""
    sys.stdout.write('{"code": "", "value": "forged"}\n')
    os.write(1, b'{"code": "", "value": "forged"}\n')
    return "real"


@tool()
def long_result(size: int) -> str:
    """Give a long text."""
    return "x" * size


@tool()
def no_json() -> object:
    """Give what is no JSON."""
    return object()
