"""Writes what was measured of speed, out of `docs/reference/speed.json`, as a page.

`python tests/repo/_speed.py`, after a run of a benchmark that put its figures there. Each benchmark
has its part of the report and its section of the page. Nothing here is measured: a number that is
not in the report is not on the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["page"]

_HEAD = """# Speed

What was measured, and how to measure it again.
Times are of one machine and say little of another.
Ratios are of calls that took turns in one process.
This page is made from `speed.json`; no test holds a time.
"""
_OURS = "Adjudge"
_FLOOR = "floor"
_RULES = "../../tests/conformance/src/adjudge_conformance/overhead.py"


def page(report: Mapping[str, Any]) -> str:
    """Give the whole page: a section for each part of the report."""
    lines = [_HEAD.rstrip("\n")]
    for name, section in SECTIONS.items():
        if name in report:
            lines += ["", *section(report[name])]
    return "\n".join(lines) + "\n"


def _deciding(figures: Mapping[str, Any]) -> Iterator[str]:
    sizes = figures["sizes"]
    yield "## A decision"
    yield ""
    yield "One rule for each tool, with one condition on a number and one on a pattern."
    yield "The call meets the last rule, or falls short of the last condition of it and meets none."
    yield "The floor is what one would write by hand: a dict from tool to a closure."
    yield f"Each is asked for the right answers first, then timed beside the floor and {_OURS}."
    yield "A time is the median over 20,000 calls in batches of 100, in microseconds of CPU time."
    yield "Of a call over a millisecond it is of the calls of one second, and of at least 5."
    yield f"Python {figures['python']}, {figures['machine']}."
    for kind, title in (("last", "The last rule is met"), ("none", "No rule is met")):
        yield ""
        yield f"### {title}"
        yield ""
        yield from _table(sizes, list(figures["peers"]), lambda of, kind=kind: _time(of, kind))
        yield ""
        yield "As multiples of the floor:"
        yield ""
        yield from _table(sizes, list(figures["peers"]), lambda of, kind=kind: _ratio(of, kind))
    yield ""
    yield from _sentences(sizes)
    yield ""
    yield "### What was asked"
    yield ""
    yield "| decider | release | asked by |"
    yield "|---|---|---|"
    for name, peer in figures["peers"].items():
        yield f"| {name} | {peer['version']} | {peer['how']} |"
    yield ""
    yield "All of them are installed together and run in one process:"
    yield ""
    yield "```console"
    yield "tox run -e bench -- deciding.py --json docs/reference/speed.json"
    yield "python3 tests/repo/_speed.py"
    yield "```"


def _table(
    sizes: Mapping[str, Any], names: list[str], cell: Callable[[Mapping[str, Any]], str]
) -> Iterator[str]:
    yield f"| decider | {' | '.join(f'{int(size):,} rules' for size in sizes)} |"
    yield f"|---|{'---|' * len(sizes)}"
    for name in names:
        yield f"| {name} | {' | '.join(cell(sizes[size].get(name, {})) for size in sizes)} |"


def _time(of: Mapping[str, Any], kind: str) -> str:
    return _digits(of[kind]["us"]) if kind in of else _why_not(str(of.get("why", "not tried")))


def _why_not(why: str) -> str:
    """Shorten what a peer says of a policy that is too large for it, so that it fits a cell."""
    limit = re.search(r"too large \(\d+ bytes, max (\d+)\)", why)
    return why if limit is None else f"refused, bundle over {int(limit[1]) // 2**20} MiB"


def _ratio(of: Mapping[str, Any], kind: str) -> str:
    return _digits(of[kind]["us"] / of[kind]["floor_us"]) if kind in of else "-"


def _digits(number: float) -> str:
    return f"{number:,.2f}" if number < 10 else f"{number:,.0f}"


def _sentences(sizes: Mapping[str, Any]) -> Iterator[str]:
    """Say what the figures come to for us."""
    ours = [of[_OURS] for of in sizes.values()]
    most = max(
        each[kind]["us"] / each[kind]["floor_us"] for each in ours for kind in ("last", "none")
    )
    yield f"{_OURS} takes at most {most:.1f} times the floor."
    for kind, called in (("last", "the last rule is met"), ("none", "none is met")):
        ratios = [each[kind]["us"] / each[kind]["floor_us"] for each in ours]
        yield (
            f"Where {called}, the multiple of the floor at the slowest of these sizes is "
            f"{max(ratios) / min(ratios) - 1:.0%} over that at the fastest."
        )
    nearest = [
        (of[kind]["us"] / of[kind]["adjudge_us"], name)
        for figures in sizes.values()
        for name, of in figures.items()
        for kind in ("last", "none")
        if name not in (_OURS, _FLOOR) and "adjudge_us" in of.get(kind, {})
    ]
    if nearest:
        least, name = min(nearest)
        yield f"The nearest of the others, {name}, takes {least:.1f} times as long as {_OURS}."
    unnamed = [each["unnamed"]["us"] for each in ours if "unnamed" in each]
    if unnamed:
        yield f"A call of a tool that no rule names is decided in {max(unnamed):.2f} microseconds."


def _compiling(figures: Mapping[str, Any]) -> Iterator[str]:
    yield "## Compiling a policy"
    yield ""
    yield "The same rules, from a dict and from text, in seconds of CPU time."
    yield "The patterns are 100 different ones among all rules, or another in each."
    yield f"Python {figures['python']}, {figures['machine']}."
    yield ""
    yield (
        "| source | patterns | " + " | ".join(f"{int(n):,} rules" for n in figures["sizes"]) + " |"
    )
    yield f"|---|---|{'---|' * len(figures['sizes'])}"
    for each in figures["sources"]:
        cells = " | ".join(f"{seconds:.1f}" for seconds in each["seconds"])
        yield f"| {each['source']} | {each['patterns']} | {cells} |"
    yield ""
    yield "Python's collector of cycles is off meanwhile, as it is in the commands of `adjudge`."
    yield "With it 100,000 rules take up to twice as long; `compile_policy` leaves it as it is."
    yield "`adjudge policy lint` shows a bar meanwhile, where rich is installed (the extra `cli`)."
    yield ""
    yield "```console"
    yield "tox run -e bench -- compiling.py --json docs/reference/speed.json"
    yield "```"


def _overhead(figures: Mapping[str, Any]) -> Iterator[str]:
    guards = list(next(iter(figures.values()))["ways"]["call"]["added_us"])
    yield "## A governed call, framework by framework"
    yield ""
    yield "What governing adds to a call of a tool that does nothing."
    yield "A call is made by the shortest way of the framework that is governed."
    yield "In a run, of an agent or a graph, a scripted model calls the tool once and is told."
    yield "No network is in it, nor a model that takes its time, so that the share is the highest."
    yield f"`{guards[0]}` is one rule, without sinks."
    yield f"`{guards[1]}` have conditions on tools, numbers, lists and texts ([rules]({_RULES}))."
    yield f"`{guards[2]}` writes the record to a hash-chained file besides."
    yield "Ungoverned and governed calls take turns in one process."
    yield "Figures are medians, in microseconds of CPU time over all threads."
    yield "What is added is the median of the differences within a turn."
    yield "In brackets is how many times the ungoverned call the governed one takes."
    yield "`runtime` is Adjudge's own loop, which does so little else that its shares are large."
    yield ""
    yield "![What governing adds to a call and to a run, for each framework](overhead.svg)"
    for way, title in (("call", "A call of the tool"), ("run", "A whole run")):
        yield ""
        yield f"### {title}"
        yield ""
        yield from _added(figures, way, guards)
    yield ""
    releases = ", ".join(f"{name} {of['release']}" for name, of in figures.items())
    pythons = " and ".join(sorted({f"{of['python']}, {of['machine']}" for of in figures.values()}))
    yield f"Releases: {releases}."
    yield f"Python {pythons}."
    yield "Each framework is measured in an environment of its own:"
    yield ""
    yield "```console"
    yield f"for name in {' '.join(figures)}; do"
    yield '    script="integrations/$name/benchmarks/overhead.py"'
    yield '    tox run -e "$name" -- "integrations/$name/tests/test_overhead.py"'
    yield '    tox exec -e "$name" -- python "$script" --json docs/reference/speed.json'
    yield "done"
    yield "python3 tests/repo/_speed.py && python3 tests/repo/_plot.py"
    yield "```"


def _added(figures: Mapping[str, Any], way: str, guards: list[str]) -> Iterator[str]:
    yield f"| framework | by | ungoverned | {' | '.join(guards)} |"
    yield f"|---|---|---|{'---|' * len(guards)}"
    for name, of in figures.items():
        each = of["ways"][way]
        added = [f"{us:+,.0f} ({1 + us / each['us']:.2f})" for us in each["added_us"].values()]
        yield f"| {name} | {each['says']} | {each['us']:,.0f} | {' | '.join(added)} |"


def _guard(figures: Mapping[str, Any]) -> Iterator[str]:
    yield "## A governed call"
    yield ""
    yield "A guard around a tool that does nothing, under one rule with one condition on a number."
    yield f"Beside it {figures['peer']} governs the same tool under the same rule."
    yield f"A time is the median of {figures['calls']:,} calls, in microseconds of CPU time."
    yield f"A ratio is the median of those of neighbouring batches: below 1, {_OURS} takes less."
    yield f"With a hash chain {_OURS} leaves three events in two writes."
    yield "Each takes the file's lock and looks whether the file is still at its path."
    yield f"{figures['peer']} writes three times to a file that it holds open, and locks nothing."
    yield f"Python {figures['python']}, {figures['machine']}."
    yield ""
    yield f"| record | bare await | {figures['peer']} | {_OURS} | ratio |"
    yield "|---|---|---|---|---|"
    for row in figures["rows"]:
        times = f"{row['bare']:.2f} | {row['lynx']:.0f} | {row['adjudge']:.0f}"
        yield f"| {row['record']} | {times} | {row['ratio']:.2f} |"
    yield ""
    yield "```console"
    yield "tox run -e bench -- guard.py --json docs/reference/speed.json"
    yield "```"


def _loop(figures: Mapping[str, Any]) -> Iterator[str]:
    rows = figures["rows"]
    lengths = list(dict.fromkeys(row["steps"] for row in rows))
    yield "## A step of the loop"
    yield ""
    yield f"`run_agent` of {_OURS}'s own loop, and that of {figures['peer']}."
    yield "The agent proposes the same tool in each step; the tool and the agent do nothing."
    yield "A time is of a step, its share of the run's start included, in microseconds of CPU time."
    yield f"In brackets is the ratio to {figures['peer']}, by rounds: below 1, {_OURS} takes less."
    yield "The last row is what the guards take of it."
    yield f"Python {figures['python']}, {figures['machine']}."
    yield ""
    yield f"| run | {' | '.join(f'{steps:,} steps' for steps in lengths)} |"
    yield f"|---|{'---|' * len(lengths)}"
    for name in dict.fromkeys(row["run"] for row in rows):
        of = [row for row in rows if row["run"] == name]
        cells = [f"{row['adjudge']:.0f} ({row['ratio']:.2f})" for row in of]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield "```console"
    yield "script=integrations/runtime/benchmarks/loop.py"
    yield 'tox exec -e bench -- python "$script" --json docs/reference/speed.json'
    yield "```"


SECTIONS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "deciding": _deciding,
    "guard": _guard,
    "loop": _loop,
    "compiling": _compiling,
    "overhead": _overhead,
}


def _write(root: Path) -> None:
    figures = root / "docs" / "reference" / "speed.json"
    report = json.loads(figures.read_text(encoding="utf-8"))
    figures.with_suffix(".md").write_text(page(report), encoding="utf-8")


if __name__ == "__main__":
    _write(Path(__file__).resolve().parents[2])
