"""Compressors: what a model is told of a tool's result, made shorter.

A compressor takes a tool and its result as text and gives another text, which goes into the
conversation, the journal and any replay. It never sees a denial, a preview or a failure. The loop
keeps the whole text where a compressor fails: it is the one thing here that fails open, because a
result that is missing is worse than one that is long.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import TypeAlias

from adjudge import ToolDef

__all__ = [
    "Compressor",
    "compose_compressors",
    "dedup_compressor",
    "external_filter_compressor",
    "identity_compressor",
    "route_compressor",
    "truncate_compressor",
]

Compressor: TypeAlias = Callable[[ToolDef, str], str | Awaitable[str]]


def identity_compressor() -> Compressor:
    """Make a compressor that changes nothing."""
    return lambda tool, text: text


def truncate_compressor(*, max_chars: int = 8000, keep_head_ratio: float = 0.6) -> Compressor:
    """Make a compressor that cuts out the middle of what is longer than `max_chars` characters.

    A mark says how many characters are missing, and counts towards the limit unless it is longer
    than that. `keep_head_ratio` of what is kept is the beginning. A text never becomes longer.
    Raises `ValueError` for what is no limit or no ratio.
    """
    _check_whole("max_chars", max_chars, least=1)
    ratio: object = keep_head_ratio
    if not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
        raise ValueError(f"keep_head_ratio is {keep_head_ratio!r}; give a number from 0 to 1.")

    def compress(tool: ToolDef, text: str) -> str:
        if len(text) <= max_chars:
            return text
        # The mark for the whole text is the longest there can be.
        room = max(max_chars - len(_mark(len(text))), 0)
        head = int(room * keep_head_ratio)
        tail = room - head
        cut = text[:head] + _mark(len(text) - room) + (text[-tail:] if tail else "")
        return cut if len(cut) < len(text) else text

    return compress


def _mark(missing: int) -> str:
    return f"\n[... {missing} characters cut ...]\n"


def dedup_compressor(*, min_run: int = 2) -> Compressor:
    """Make a compressor that writes equal lines in succession once, with how often they came.

    Runs shorter than `min_run` lines stay, and so do those that would not become shorter. Raises
    `ValueError` for less than 2.
    """
    _check_whole("min_run", min_run, least=2)

    def compress(tool: ToolDef, text: str) -> str:
        lines: list[str] = []
        for line, same in groupby(text.split("\n")):
            run = list(same)
            once = f"{line} [x{len(run)}]"
            is_shorter = len(once) < len("\n".join(run))
            lines += [once] if len(run) >= min_run and is_shorter else run
        return "\n".join(lines)

    return compress


def compose_compressors(*compressors: Compressor) -> Compressor:
    """Make a compressor that applies several, one after the other."""
    for each in compressors:
        _check_callable(each)

    async def compress(tool: ToolDef, text: str) -> str:
        for each in compressors:
            text = await applied(each, tool, text)
        return text

    return compress


def route_compressor(routes: Mapping[str | None, Compressor]) -> Compressor:
    """Make a compressor that picks one by the tool's name.

    The route None serves tools without one of their own; without it their results stay as they are.
    """
    table = dict(routes)
    for each in table.values():
        _check_callable(each)

    async def compress(tool: ToolDef, text: str) -> str:
        chosen = table.get(tool.name, table.get(None))
        return text if chosen is None else await applied(chosen, tool, text)

    return compress


def external_filter_compressor(argv: Sequence[str], *, timeout_seconds: float = 10.0) -> Compressor:
    """Make a compressor that sends the text through a program, from standard input to output.

    No shell is involved. A program that cannot be started, ends with a code other than 0, says
    nothing or takes longer than `timeout_seconds` fails, and then the text stays as it was.
    Raises `ValueError` for an empty command or what is no time.
    """
    command = tuple(argv)
    if isinstance(argv, str) or not command or not all(isinstance(word, str) for word in command):
        raise ValueError(f'argv is {argv!r}; give the words of a command, such as ("head", "-5").')
    seconds: object = timeout_seconds
    if not isinstance(seconds, int | float) or not isfinite(seconds) or seconds <= 0:
        raise ValueError(
            f"timeout_seconds is {timeout_seconds!r}; give a positive number of seconds."
        )

    async def compress(tool: ToolDef, text: str) -> str:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        try:
            async with asyncio.timeout(timeout_seconds):
                out, _ = await process.communicate(text.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with the code {process.returncode}")
        if not out and text:
            raise RuntimeError(f"{command[0]} gave nothing")
        return out.decode()

    return compress


async def applied(compressor: Compressor, tool: ToolDef, text: str) -> str:
    """Apply a compressor; raises `TypeError` where what it gives is no text."""
    made = compressor(tool, text)
    if inspect.isawaitable(made):
        made = await made
    if not isinstance(made, str):
        raise TypeError(f"the compressor gave a {type(made).__name__}, which is no text")
    return made


def _check_callable(compressor: object) -> None:
    if not callable(compressor):
        raise TypeError(
            f"{compressor!r} is no compressor; give a function of a ToolDef and a text."
        )


def _check_whole(name: str, value: object, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number of {least} or more.")
