"""What does governing a framework's tool calls cost? Governed and ungoverned calls, side by side.

An integration says how its framework is called, and `main` is the whole command: it sees that each
guard is really asked, times calls in batches that take turns, and prints medians: of what a call
takes, and of what each guard adds to it in the same round. Times are of the processor, over all
threads; waiting is not counted, for a disk or for a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import inspect
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from typing import Any, Literal, TypeAlias

from adjudge import Sink, ToolGuard, compile_policy, hash_chained_sink
from adjudge_conformance.bench import EVERYTHING

__all__ = ["ANSWER", "ARGUMENTS", "REALISTIC", "TOOL", "Way", "Ways", "main", "ways_measured"]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the tool; what `call` answers, or its coroutine, has `ANSWER` in its text."""

    says: str
    call: Callable[[], object]


Ways: TypeAlias = Mapping[Literal["call", "run"], Way]
"""The shortest way that is governed, and a whole run, of two requests to a model and one call."""

TOOL = "refund"
ARGUMENTS: Mapping[str, Any] = {"order": 7, "amount": 25.0, "to": "acct1-42"}
ANSWER = "refunded"
"""The tool, `refund(order: int, amount: float, to: str)`, what it is called with, what it says."""

REALISTIC: Mapping[str, Any] = {
    "version": 1,
    "rules": [
        {"id": "no-shell", "match": {"tool.starts_with": "shell"}, "decision": "deny"},
        {
            "id": "own-files",
            "match": {"tool.in": ["read_file", "write_file"], "args.path.under": "/srv/desk"},
            "decision": "allow",
        },
        {"id": "look-ups", "match": {"tool.glob": "find_*"}, "decision": "allow"},
        {
            "id": "closed-accounts",
            "match": {"tool": TOOL, "args.to.in": ["acct0-1", "acct0-2"]},
            "decision": "deny",
        },
        {
            "id": "large-refunds",
            "match": {"tool": TOOL, "args.amount.gt": 100},
            "decision": "approve_required",
        },
        {
            "id": "small-refunds",
            "match": {"tool": TOOL, "args.amount.gt": 0, "args.to.matches": "^acct[0-9]+-[0-9]+$"},
            "decision": "allow",
        },
        {"id": "mail", "match": {"tool": "send_mail"}, "decision": "approve_required"},
    ],
}
"""A policy of some rules, of which one allows the call."""

_UNGOVERNED = "ungoverned"
_NOTHING: Mapping[str, Any] = {"version": 1, "rules": []}
_BATCH_SECONDS = 0.01


def main(
    framework: str,
    distribution: str,
    ways: Callable[[ToolGuard | None], Ways],
    *,
    arguments: Sequence[str] | None = None,
) -> None:
    """Run the command: `--rounds` batches of each call, and `--json` to add to a report.

    `distribution` is the framework's, for its release; `ways` makes its calls, governed if there is
    a guard; `arguments` are the command's own unless they are given. Raises `AssertionError` where
    a call does not come to its tool, or where a guard that denies does not stop it.
    """
    parser = argparse.ArgumentParser(description=f"What governing costs in {framework}.")
    parser.add_argument("--rounds", type=int, default=400, help="batches of each call")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the figures to this report")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack, asyncio.Runner() as loop:
        made: dict[str, Ways] = {}
        for name, guard in _guards(Path(folder, "record.jsonl")):
            if guard is not None:
                stack.enter_context(closing(guard))
            made[name] = ways(guard)
        denying = stack.enter_context(closing(_guard(_NOTHING)))
        _check(made, ways(denying), loop)
        figures = {
            way: {
                "says": own.says,
                **_timed(
                    {name: each[way].call for name, each in made.items()}, options.rounds, loop
                ),
            }
            for way, own in made[_UNGOVERNED].items()
        }
    sys.stdout.writelines(_lines(framework, figures.values()))
    if options.json is not None:
        release = importlib.metadata.version(distribution)
        _add(options.json, framework, {"release": release, **_circumstances(), "ways": figures})


def _guards(record: Path) -> Iterator[tuple[str, ToolGuard | None]]:
    yield _UNGOVERNED, None
    yield "allow all", _guard(EVERYTHING)
    rules = f"{len(REALISTIC['rules'])} rules"
    yield rules, _guard(REALISTIC)
    yield f"{rules}, chained file", _guard(REALISTIC, hash_chained_sink(record))


def _guard(policy: Mapping[str, Any], *sinks: Sink) -> ToolGuard:
    return ToolGuard(policy=compile_policy(policy), sinks=sinks)


def _check(made: Mapping[str, Ways], denied: Ways, loop: asyncio.Runner) -> None:
    """See that every call does what it is timed for; what is not governed would seem to be free."""
    for name, each in made.items():
        for way in each.values():
            answer = _once(way.call, loop)
            assert ANSWER in str(answer), f"{way.says}, {name}: {answer!r}"
    for way in denied.values():
        answer = _once(way.call, loop)
        assert ANSWER not in str(answer), f"{way.says} is not governed: {answer!r}"


def _timed(
    calls: Mapping[str, Callable[[], object]], rounds: int, loop: asyncio.Runner
) -> dict[str, Any]:
    """Give what a call takes and what each guard adds, in microseconds, and of how many calls."""
    slowest = max(_batch(call, 3, loop) for call in calls.values())
    size = max(1, int(_BATCH_SECONDS / max(slowest, 1e-6)))
    names = list(calls)
    means: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        # Whoever comes first finds the caches as another left them, so they take turns at that.
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            means[name].append(_batch(calls[name], size, loop) * 1e6)
    bare = means.pop(_UNGOVERNED)
    added = {name: _median(map(sub, each, bare)) for name, each in means.items()}
    return {"calls": size * rounds, "us": _median(bare), "added_us": added}


def _median(microseconds: Iterable[float]) -> float:
    return round(statistics.median(microseconds), 2)


def _batch(call: Callable[[], object], times: int, loop: asyncio.Runner) -> float:
    """Give the mean time of a call in seconds."""
    if inspect.iscoroutinefunction(call):
        return loop.run(_abatch(call, times)) / times
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


async def _abatch(call: Callable[[], Coroutine[Any, Any, object]], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        await call()
    return time.process_time() - begin


def _once(call: Callable[[], object], loop: asyncio.Runner) -> object:
    return loop.run(call()) if inspect.iscoroutinefunction(call) else call()


def _circumstances() -> dict[str, str]:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    return {"python": platform.python_version(), "machine": machine}


def _lines(framework: str, ways: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for timed in ways:
        bare = timed["us"]
        yield f"{framework}, {timed['says']}: {bare:,.1f} us, over {timed['calls']:,} calls each\n"
        for name, added in timed["added_us"].items():
            yield f"  {name:22}{added:+12,.1f} us{1 + added / bare:8.2f} times\n"


def _add(path: Path, framework: str, figures: Mapping[str, Any]) -> None:
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    overhead = {**report.get("overhead", {}), framework: figures}
    report["overhead"] = dict(sorted(overhead.items()))
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def ways_measured(script: Path, *, name: str, folder: Path) -> dict[str, int]:
    """Run an integration's script once through, and say how many guards were timed on each way.

    For the test of the script: no time is of interest. A script that fails raises
    `AssertionError` with its words.
    """
    report = folder / "speed.json"
    command = [sys.executable, str(script), "--rounds", "1", "--json", str(report)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    ways = json.loads(report.read_text(encoding="utf-8"))["overhead"][name]["ways"]
    return {way: len(told["added_us"]) for way, told in ways.items()}
