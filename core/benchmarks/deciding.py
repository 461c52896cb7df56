"""What a decision costs, here and elsewhere, as the number of rules grows.

`python core/benchmarks/deciding.py` prints a table; with `--json docs/reference/speed.json` the
figures are put there after each size, for `python tests/repo/_speed.py` to make the page of. Each
peer is checked for the right answers first and then timed side by side with the floor and with
Adjudge, in this process: the ratios hold on a busy machine, the microseconds only on this one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers import PEERS, Ask, Peer, call_of, call_of_none, call_of_unnamed, calls_that_miss
from timing import quiet_collector, side_by_side

Call = tuple[str, dict[str, Any]]
Builds = dict[str, tuple[int, float] | str]
"""Of each peer the last size that was built and its seconds, or why it refused."""
SIZES = (10, 1_000, 10_000, 100_000)
OURS = ("floor", "Adjudge")
# Building for more rules is not tried where it can be foreseen to take longer, nor is timing a
# decider that takes longer for one call; both in seconds.
LONGEST_BUILD = 180.0
LONGEST_CALL = 5.0


class Refused(Exception):
    """A peer that cannot be compared at this size; the text says why."""


def main() -> None:
    """Run the comparison."""
    options = _options()
    chosen = [peer for peer in PEERS if peer.name in OURS or peer.name in options.peers]
    found: dict[str, Any] = {"sizes": {}, **_circumstances(chosen)}
    builds: Builds = {}
    for size in options.sizes:
        found["sizes"][str(size)] = _at(size, chosen, builds)
        if options.json is not None:
            _keep(found, options.json)


def _keep(found: Mapping[str, Any], path: Path) -> None:
    """Put the figures into the report; what it has of other sizes and peers stays."""
    report = json.loads(path.read_text("utf-8")) if path.exists() else {}
    kept = report.get("deciding", {"peers": {}, "sizes": {}})
    peers = {**kept["peers"], **found["peers"]}
    sizes = {
        size: {**kept["sizes"].get(size, {}), **found["sizes"].get(size, {})}
        for size in sorted({*kept["sizes"], *found["sizes"]}, key=int)
    }
    in_order = {peer.name: peers[peer.name] for peer in PEERS if peer.name in peers}
    report["deciding"] = {**found, "peers": in_order, "sizes": sizes}
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="RULES")
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the figures into this file")
    parser.add_argument(
        "--peers", nargs="*", default=[peer.name for peer in PEERS], help="default: all of them"
    )
    return parser.parse_args()


def _circumstances(peers: list[Peer]) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "peers": {
            peer.name: {"version": version(peer.package) if peer.package else "", "how": peer.how}
            for peer in peers
        },
    }


def _at(size: int, peers: list[Peer], builds: Builds) -> dict[str, Any]:
    """Measure every peer at one size, and print a line for each."""
    ours = {peer.name: _built(peer, size, builds) for peer in peers if peer.name in OURS}
    print(f"\n{size} rules\n", file=sys.stderr)
    print("| decider | meets the last, us | times the floor | meets none, us | times the floor |")
    print("|---|---|---|---|---|")
    figures: dict[str, Any] = {}
    for peer in peers:
        try:
            figures[peer.name] = _compared(peer, size, ours, builds)
        except Refused as why:
            figures[peer.name] = {"why": str(why)}
        print(_line(peer.name, figures[peer.name]), flush=True)
    return figures


def _compared(
    peer: Peer, size: int, ours: Mapping[str, tuple[Ask, float]], builds: Builds
) -> dict[str, Any]:
    """Time one peer beside the floor and Adjudge."""
    ask, seconds = ours.get(peer.name) or _built(peer, size, builds)
    _check(peer, ask, size)
    figures: dict[str, Any] = {"build_seconds": seconds}
    for kind, call, own in _calls(peer, size):
        beside = {name: our(*call) for name, (our, _) in ours.items()}
        with quiet_collector():
            timings = side_by_side({**beside, peer.name: ask(*own)})
        figures[kind] = {
            "us": timings[peer.name].microseconds,
            "calls": timings[peer.name].calls,
            "floor_us": timings["floor"].microseconds,
            "adjudge_us": timings["Adjudge"].microseconds,
        }
    return figures


def _calls(peer: Peer, size: int) -> Iterator[tuple[str, Call, Call]]:
    """Give each kind of call, as it is for all and as it is for this peer."""
    last = call_of(size - 1)
    yield "last", last, last
    none = call_of_none(size - 1, patterns=True)
    yield "none", none, call_of_none(size - 1, patterns=peer.patterns)
    if peer.name in OURS:
        yield "unnamed", call_of_unnamed(), call_of_unnamed()


def _built(peer: Peer, size: int, builds: Builds) -> tuple[Ask, float]:
    """Build a peer for so many rules, unless that would take too long or the peer refuses."""
    known = builds.get(peer.name)
    if isinstance(known, str):
        raise Refused(known)
    if known is not None:
        smaller, seconds = known
        expected = seconds * size / smaller
        if expected > LONGEST_BUILD:
            raise Refused(f"building would take over {expected:.0f} s")
    begin = time.process_time()
    try:
        ask = peer.build(size)
    except Exception as error:
        builds[peer.name] = f"{type(error).__name__}: {str(error)[:100]}"
        raise Refused(builds[peer.name]) from error
    seconds = time.process_time() - begin
    builds[peer.name] = size, seconds
    return ask, seconds


def _check(peer: Peer, ask: Ask, size: int) -> None:
    """See that a peer answers rightly, and in reasonable time, before it is timed."""
    begin = time.process_time()
    met = peer.met(ask(*call_of(size - 1))())
    seconds = time.process_time() - begin
    missed = [peer.met(ask(*call)()) for call in calls_that_miss(size - 1, patterns=peer.patterns)]
    if not met or any(missed):
        raise Refused("it answers wrongly")
    if seconds > LONGEST_CALL:
        raise Refused(f"one call takes {seconds:.0f} s")


def _line(name: str, figures: Mapping[str, Any]) -> str:
    if "why" in figures:
        return f"| {name} | {figures['why']} | | | |"
    cells = [
        cell
        for kind in ("last", "none")
        for cell in (
            f"{figures[kind]['us']:.2f}",
            f"{figures[kind]['us'] / figures[kind]['floor_us']:.1f}",
        )
    ]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
