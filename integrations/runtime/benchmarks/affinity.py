"""How evenly the affinity router spreads sessions, how many move, and how fast it is.

`python integrations/runtime/benchmarks/affinity.py` prints the figures for 1,000 replicas and a
million sessions (`--replicas`, `--sessions`, `--virtual-nodes`). Counts are exact and the same
everywhere; times are of this machine. `modulo` is what `hash(session) % replicas` would move.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from hashlib import blake2b
from statistics import mean, pstdev

from adjudge_runtime.kernel import AffinityRouter

EVERY = 50_000


def main() -> None:
    """Measure, and print one block for each number of virtual nodes."""
    options = _options()
    sessions = [f"session-{number}" for number in range(options.sessions)]
    names = [f"replica-{number:04}" for number in range(options.replicas)]
    print(f"{len(names):,} replicas, {len(sessions):,} sessions")
    for virtual_nodes in options.virtual_nodes:
        _measure(names, sessions, virtual_nodes)
    _modulo(names, sessions)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=1_000)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--virtual-nodes", type=int, nargs="+", default=[64, 256])
    return parser.parse_args()


def _measure(names: list[str], sessions: list[str], virtual_nodes: int) -> None:
    print(f"\n{virtual_nodes} virtual nodes")
    router, seconds = _timed(lambda: AffinityRouter(names, virtual_nodes=virtual_nodes))
    print(f"  build       {seconds * 1e3:,.0f} ms")
    began = time.perf_counter()
    before = _routed(router, sessions, "routing")
    rate = len(sessions) / (time.perf_counter() - began)
    print(f"  routes      {rate:,.0f} a second")
    _balance(names, before)
    one = names[len(names) // 2]
    _, seconds = _timed(lambda: router.add("replica-new"))
    after = _routed(router, sessions, "after one came")
    _moved("one added", before, after, 1 / (len(names) + 1), seconds)
    router.remove("replica-new")
    _, seconds = _timed(lambda: router.remove(one))
    after = _routed(router, sessions, "after one went")
    _moved("one removed", before, after, 1 / len(names), seconds)
    router.add(one)
    _, seconds = _timed(lambda: router.drain(one))
    after = _routed(router, sessions, "new ones while draining")
    _moved("drained, new", before, after, 1 / len(names), seconds)
    placed = [router.route(each, placed_on=at) for each, at in zip(sessions, before, strict=True)]
    _moved("drained, placed", before, placed, 0.0, seconds)


def _modulo(names: list[str], sessions: list[str]) -> None:
    points = [int.from_bytes(blake2b(s.encode(), digest_size=8).digest(), "big") for s in sessions]
    count = len(names)
    print("\nmodulo")
    for title, other in (("one added", count + 1), ("one removed", count - 1)):
        moved = sum(point % count != point % other for point in points)
        print(f"  {title:<15} {moved / len(points):8.3%} moved")


def _routed(router: AffinityRouter, sessions: list[str], what: str) -> list[str]:
    found = []
    for start in range(0, len(sessions), EVERY):
        found += [router.route(each) for each in sessions[start : start + EVERY]]
        print(f"\r  {what}: {len(found):,}", end="", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return found


def _balance(names: list[str], placed: list[str]) -> None:
    counts = Counter(placed)
    loads = [counts[name] for name in names]
    even, spread = mean(loads), pstdev(loads)
    print(
        f"  balance     min {min(loads):,}, max {max(loads):,}, mean {even:,.0f}, "
        f"stddev {spread:,.0f} ({spread / even:.1%}), max/mean {max(loads) / even:.2f}"
    )


def _moved(title: str, before: list[str], after: list[str], ideal: float, seconds: float) -> None:
    moved = sum(old != new for old, new in zip(before, after, strict=True)) / len(before)
    print(f"  {title:<15} {moved:8.3%} moved, ideal {ideal:.3%}, in {seconds * 1e3:,.1f} ms")


def _timed(action):
    began = time.perf_counter()
    made = action()
    return made, time.perf_counter() - began


if __name__ == "__main__":
    main()
