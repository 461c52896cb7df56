"""Which replica serves a session: consistent hashing, with draining.

Affinity keeps what is warm (caches, connections) where the session goes on; the session itself is
in its store, so a session that moves costs a cache miss and no conversation. The router knows
replicas and no sessions: whoever calls it says where a session is placed, if it is.

The idea is that of Karger and others, "Consistent hashing and random trees" (1997).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from adjudge import AdjudgeError

__all__ = ["AffinityRouter", "NoReplica", "UnknownReplica"]


class NoReplica(AdjudgeError, LookupError):
    """There is no replica that takes new sessions."""

    code = "no_replica"


class UnknownReplica(AdjudgeError, LookupError):
    """There is no replica of that name."""

    code = "unknown_replica"


class AffinityRouter:
    """Spreads sessions over replicas so that few move when one comes or goes.

    Each replica stands at `virtual_nodes` points of a ring of 64 bits; more points balance better
    and make `add`, `drain` and `remove` slower. Points depend on names alone: every process that
    has the same replicas routes alike, whatever the order in which they came.
    """

    def __init__(self, replicas: Iterable[str] = (), *, virtual_nodes: int = 64) -> None:
        if type(virtual_nodes) is not int or virtual_nodes < 1:
            raise ValueError(f"virtual_nodes is {virtual_nodes!r}; give a whole number above 0.")
        self.virtual_nodes = virtual_nodes
        names = dict.fromkeys(_checked(name) for name in replicas)
        self._accepting = set(names)
        self._draining: set[str] = set()
        ring = sorted((point, name) for name in names for point in self._points_of(name))
        # Those of replicas that take new sessions, in two lists side by side.
        self._points = [point for point, _ in ring]
        self._owners = [name for _, name in ring]

    @property
    def replicas(self) -> tuple[str, ...]:
        """The replicas that are there, draining ones included, in order."""
        return tuple(sorted(self._accepting | self._draining))

    @property
    def draining(self) -> tuple[str, ...]:
        """The replicas that take no new sessions, in order."""
        return tuple(sorted(self._draining))

    def add(self, replica: str) -> None:
        """Let a replica take new sessions: one that was not there, or one that was draining."""
        name = _checked(replica)
        if name in self._accepting:
            return
        self._draining.discard(name)
        self._accepting.add(name)
        for point in self._points_of(name):
            place = self._place(point, name)
            self._points.insert(place, point)
            self._owners.insert(place, name)

    def drain(self, replica: str) -> None:
        """Let a replica take no new sessions; those that are placed on it stay.

        Raises `UnknownReplica` where there is none of that name.
        """
        if replica in self._draining:
            return
        self._leave_ring(replica)
        self._draining.add(replica)

    def remove(self, replica: str) -> None:
        """Forget a replica; its sessions move. Raises `UnknownReplica` where there is none."""
        if replica in self._draining:
            self._draining.remove(replica)
        else:
            self._leave_ring(replica)

    def route(self, session_id: str, *, placed_on: str | None = None) -> str:
        """Give the replica that serves a session.

        `placed_on` is the replica that serves it so far; it stays there as long as that replica is
        there at all, draining or not. A session without a placement, or whose replica is gone, goes
        to the next point of the ring. Raises `NoReplica` where nobody takes it.
        """
        if placed_on is not None and (placed_on in self._accepting or placed_on in self._draining):
            return placed_on
        points = self._points
        if not points:
            why = "all are draining" if self._draining else "there is none"
            raise NoReplica(f"No replica takes the session {session_id!r}: {why}; add one.")
        place = bisect_left(points, _point(session_id))
        return self._owners[place if place < len(points) else 0]

    def distribution(self, session_ids: Iterable[str]) -> dict[str, int]:
        """Count how many of these sessions, all new, each replica would get."""
        counts = Counter(self.route(session_id) for session_id in session_ids)
        return {name: counts[name] for name in sorted(self._accepting)}

    def _leave_ring(self, replica: str) -> None:
        if replica not in self._accepting:
            there = ", ".join(self.replicas[:5]) or "none"
            raise UnknownReplica(f"There is no replica {replica!r}; there are: {there}.")
        self._accepting.remove(replica)
        for point in self._points_of(replica):
            place = self._place(point, replica)
            del self._points[place], self._owners[place]

    def _points_of(self, replica: str) -> list[int]:
        return [_point(f"{replica}#{number}") for number in range(self.virtual_nodes)]

    def _place(self, point: int, replica: str) -> int:
        """Find where a point stands, or would stand; equal points are in the order of names."""
        place = bisect_left(self._points, point)
        while (
            place < len(self._points)
            and self._points[place] == point
            and self._owners[place] < replica
        ):
            place += 1
        return place


def _point(text: str) -> int:
    # `hash` is salted anew in each process.
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


def _checked(replica: object) -> str:
    if not isinstance(replica, str) or not replica:
        raise ValueError(f"A replica is {replica!r}; give its name, a string that is not empty.")
    return replica
