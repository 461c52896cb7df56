"""Writing to the terminal: a reader that has gone, or a character it cannot show, is no error.

The exit code says what was found, whoever reads the rest.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

__all__ = ["UnwritableOutput", "complain", "say", "say_json"]


class UnwritableOutput(Exception):
    """Standard output took nothing (a full disk): whoever reads it would read half an answer."""


def say(text: str) -> None:
    """Write a line of what was asked for to standard output."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """Write a line to standard error."""
    _write(sys.stderr, text)


def say_json(value: Any) -> None:
    """Write a value to standard output as JSON."""
    say(json.dumps(value, indent=2))


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # It was closed before we were started.
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(shown + "\n")
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
    except OSError as error:
        _silence(stream)
        if stream is sys.stdout:
            raise UnwritableOutput(error.strerror or str(error)) from error


def _silence(stream: TextIO) -> None:
    # The interpreter flushes once more at its end, and must not fail then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
