"""What a whole governed call costs: a guard around a tool that does nothing.

`python core/benchmarks/guard.py` prints a table; with `--json docs/reference/speed.json` the
figures are put there, under `guard`. Adjudge and lynx-agent govern the same tool under the same
one rule, without a sink, with lines in a file, and with a hash chain in a file; beside them stands
the bare await of the tool. The calls take turns in short batches, and the ratio is the median of
the ratios of neighbours: it holds on a busy machine, the microseconds only on this one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lynx
from lynx.integrations.core import ToolGuard as LynxGuard
from timing import quiet_collector

import adjudge

Call = Callable[[], Awaitable[object]]
ROUNDS = 60
BATCH = 200
ARGUMENTS = {"order": "A-1007", "amount": 12}
POLICY = """
version: 1
rules:
  - id: small
    match: {tool: refund, args.amount.lt: 100}
    decision: allow
"""


async def refund(order: str, amount: int) -> int:
    """Do nothing."""
    return amount


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the figures into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(_compared(Path(folder), options.rounds))
    found = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "peer": f"lynx-agent {version('lynx-agent')}",
        "calls": options.rounds * BATCH,
        "rows": rows,
    }
    print(_table(found))
    if options.json is not None:
        report = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
        report["guard"] = found
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


async def _compared(folder: Path, rounds: int) -> list[dict[str, Any]]:
    rows = []
    with (folder / "lynx.jsonl").open("w") as lines, (folder / "lynx-chain.jsonl").open("w") as end:
        settings = {
            "no sink": ([], []),
            "lines in a file": (
                [adjudge.jsonl_sink(folder / "adjudge.jsonl")],
                [lynx.jsonl_sink(lines)],
            ),
            "hash chain in a file": (
                [adjudge.hash_chained_sink(folder / "adjudge-chain.jsonl")],
                [lynx.hash_chained_sink(end)],
            ),
        }
        for name, (own, theirs) in settings.items():
            calls = {"bare": _bare, "adjudge": _adjudge(own), "lynx": _lynx(theirs)}
            times = await _in_turns(calls, rounds)
            ratios = [a / b for a, b in zip(times["adjudge"], times["lynx"], strict=True)]
            medians = {each: statistics.median(found) for each, found in times.items()}
            rows.append({"record": name, **medians, "ratio": statistics.median(ratios)})
    # What was timed must be what was promised.
    assert adjudge.verify_chain(folder / "adjudge-chain.jsonl").intact
    return rows


async def _bare() -> object:
    return await refund(**ARGUMENTS)


def _adjudge(sinks: list[Any]) -> Call:
    guard = adjudge.ToolGuard(
        policy=adjudge.compile_policy(POLICY),
        tools=adjudge.ToolSet.from_functions(adjudge.tool(name="refund")(_copy())),
        environment="prod",
        sinks=sinks,
    )
    return lambda: guard.check("refund", ARGUMENTS)


def _lynx(sinks: list[Any]) -> Call:
    guard = LynxGuard(
        policy=lynx.compile_policy(POLICY),
        tools=lynx.ToolSet.from_functions(lynx.tool(name="refund")(_copy())),
        environment="prod",
        sinks=sinks,
    )
    return lambda: guard.check("refund", ARGUMENTS)


def _copy() -> Callable[[str, int], Awaitable[int]]:
    async def copied(order: str, amount: int) -> int:
        """Do nothing."""
        return amount

    return copied


async def _in_turns(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Give the microseconds of processor time per call of each batch, by name."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for name in calls:
        answer = await calls[name]()
        assert getattr(getattr(answer, "result", None), "value", answer) == ARGUMENTS["amount"]
    with quiet_collector():
        for _ in range(rounds):
            for name, call in calls.items():
                begin = time.process_time()
                for _ in range(BATCH):
                    await call()
                times[name].append((time.process_time() - begin) / BATCH * 1e6)
    return times


def _table(found: dict[str, Any]) -> str:
    head = f"| record | bare await | {found['peer']} | Adjudge | ratio |"
    rows = (
        f"| {row['record']} | {row['bare']:.2f} | {row['lynx']:.1f} | {row['adjudge']:.1f} "
        f"| {row['ratio']:.2f} |"
        for row in found["rows"]
    )
    return "\n".join([head, "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    main()
