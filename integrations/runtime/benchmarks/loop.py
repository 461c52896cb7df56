"""What a step of `run_agent` costs beside one of lynx-agent's, and whether that grows with the run.

Both loops take the same script and the same policy, in turns, in one process; their tools and
agents do nothing. Times are CPU time per step, in microseconds: the median of the rounds. A ratio
is the median of those of rounds that took turns, which says more than times of one machine. What
the guards take of a step is timed beside, for as many calls of theirs without a loop. Needs
`lynx-agent`. With `--json docs/reference/speed.json` the figures are put there, under `loop`.

    python integrations/runtime/benchmarks/loop.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lynx

import adjudge
import adjudge_runtime as ours

LENGTHS = (10, 100, 1_000, 5_000)
_LEAST_STEPS = 1_000
_POLICY = """
version: 1
rules:
  - id: work
    match: {tool: work, args.number.gt: 0}
    decision: allow
"""

Run = Callable[[int], Awaitable[None]]


class Script:
    """An agent that asks for the same tool a number of times, with other arguments each time."""

    def __init__(self, loop: Any, steps: int) -> None:
        self._loop = loop
        self._steps = steps
        self._asked = 0

    async def step(self, conversation: Sequence[Any]) -> Any:
        """Propose the next call, or answer."""
        self._asked += 1
        if self._asked > self._steps:
            return self._loop.FinalAnswer("done")
        return self._loop.ToolCall("work", {"number": self._asked})


@adjudge.tool()
async def work(number: int) -> int:
    """Do nothing."""
    return number


@lynx.tool(name="work")
async def their_work(number: int) -> int:
    """Do nothing."""
    return number


class TheirStore:
    """A store of lynx-agent's, in memory: a dict for each run."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[int, Any]] = {}

    async def append(self, record: Any) -> None:
        """Keep a record, or say that there is one."""
        kept = self._runs.setdefault(record.run_id, {})
        if record.seq in kept:
            raise lynx.DuplicateRecord(str(record.seq))
        kept[record.seq] = record

    async def load(self, run_id: str) -> Sequence[Any]:
        """Give the records in order."""
        kept = self._runs.get(run_id, {})
        return [kept[seq] for seq in sorted(kept)]


class OurStore(TheirStore):
    """The same store for ours: the cost of `MemoryRunStore`, which checks, is left out."""

    async def append(self, record: Any) -> None:
        """Keep a record, or say that there is one."""
        kept = self._runs.setdefault(record.run_id, {})
        if record.seq in kept:
            raise adjudge.DuplicateRecord(str(record.seq))
        kept[record.seq] = record

    durable = False


def our_run(*, sinks: bool = False, store: bool = False) -> Run:
    """Make a function that runs our loop for a number of steps."""
    policy = adjudge.compile_policy(_POLICY)
    tools = adjudge.ToolSet([work])

    async def run(steps: int) -> None:
        kept: dict[str, Any] = {"store": OurStore(), "run_id": "run"} if store else {}
        result = await ours.run_agent(
            Script(ours, steps),
            "work",
            tools=tools,
            policy=policy,
            budget=ours.Budget(steps=None),
            sinks=(adjudge.noop_sink(),) if sinks else (),
            **kept,
        )
        assert result.steps_taken == steps, result

    return run


def their_run(*, sinks: bool = False, store: bool = False) -> Run:
    """Make a function that runs lynx-agent's loop for a number of steps."""
    policy = lynx.compile_policy(_POLICY)
    tools = lynx.ToolSet.from_functions(their_work)

    async def run(steps: int) -> None:
        kept: dict[str, Any] = {"store": TheirStore(), "run_id": "run"} if store else {}
        result = await lynx.run_agent(
            Script(lynx, steps),
            "work",
            tools=tools,
            policy=policy,
            budget=lynx.Budget(steps=None),
            sinks=(lynx.noop_sink(),) if sinks else (),
            **kept,
        )
        assert result.steps_taken == steps, result

    return run


def our_guard() -> Run:
    """Make a function that has our guard alone govern a number of calls."""
    guard = adjudge.ToolGuard(policy=adjudge.compile_policy(_POLICY), tools=adjudge.ToolSet([work]))

    async def run(steps: int) -> None:
        for number in range(1, steps + 1):
            call = await guard.check("work", {"number": number})
            assert call.allowed, call

    return run


def their_guard() -> Run:
    """Make a function that has lynx-agent's guard alone govern a number of calls."""
    guard = lynx.ToolGuard(
        policy=lynx.compile_policy(_POLICY), tools=lynx.ToolSet.from_functions(their_work)
    )

    async def run(steps: int) -> None:
        for number in range(1, steps + 1):
            call = await guard.check("work", {"number": number})
            assert call.allowed, call

    return run


async def timed(run: Run, steps: int) -> float:
    """Give the CPU time of one step, in microseconds; short runs are made several times."""
    runs = max(1, _LEAST_STEPS // steps)
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        for _ in range(runs):
            await run(steps)
        return (time.process_time() - began) / (steps * runs) * 1e6
    finally:
        gc.enable()


async def compared(one: Run, other: Run, steps: int, rounds: int) -> dict[str, float]:
    """Time two loops in turns, and give the median of each, and of their ratios."""
    pairs = [(await timed(one, steps), await timed(other, steps)) for _ in range(rounds)]
    mine, theirs = zip(*pairs, strict=True)
    return {
        "adjudge": statistics.median(mine),
        "lynx-agent": statistics.median(theirs),
        "ratio": statistics.median(mine / theirs for mine, theirs in pairs),
    }


async def measured(rounds: int, lengths: Sequence[int]) -> list[dict[str, Any]]:
    """Measure each way to run, at each length."""
    rows = []
    for name, one, other in (
        ("no sink, no store", our_run(), their_run()),
        ("a sink that does nothing", our_run(sinks=True), their_run(sinks=True)),
        ("a store in memory", our_run(store=True), their_run(store=True)),
        ("the guard alone, no loop", our_guard(), their_guard()),
    ):
        await compared(one, other, min(lengths), 2)
        for steps in lengths:
            found = await compared(one, other, steps, rounds)
            rows.append({"run": name, "steps": steps, **found})
    return rows


def shown(rows: Sequence[dict[str, Any]]) -> str:
    """Write the measurements as a table."""
    lines = [f"{'run':26} {'steps':>6} {'Adjudge':>9} {'lynx-agent':>11} {'ratio':>6}"]
    for row in rows:
        mine, theirs = row["adjudge"], row["lynx-agent"]
        lines.append(
            f"{row['run']:26} {row['steps']:>6} {mine:>9.1f} {theirs:>11.1f} {row['ratio']:>6.2f}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description="Time a step of the loop beside lynx-agent's.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the figures into this file")
    options = parser.parse_args(argv)
    rows = asyncio.run(measured(options.rounds, options.lengths))
    sys.stdout.write(shown(rows) + "\n")
    if options.json is not None:
        report = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
        report["loop"] = {
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
            "peer": f"lynx-agent {version('lynx-agent')}",
            "rows": rows,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
