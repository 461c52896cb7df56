"""What happened before: one episode for each session that ended, by tenant.

It only grows. An episode is recalled within its own tenant alone, by the tags that it shares and
then by how recent it is.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

from adjudge import StoreError
from adjudge_runtime.kernel._sqlite import MemoryFile

__all__ = ["Episode", "EpisodicMemory", "Episodes", "SQLiteEpisodicMemory"]


@dataclass(frozen=True, slots=True)
class Episode:
    """One session that ended: its goal, its outcome (a terminal state), and what it taught.

    `episode_id` is unique in its tenant. Raises `ValueError` where tenant or id are missing.
    """

    episode_id: str
    session_id: str
    tenant: str
    goal: str
    outcome: str
    steps: int
    tags: tuple[str, ...] = ()
    lesson: str = ""

    def __post_init__(self) -> None:
        for name in ("episode_id", "tenant"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ValueError(f"Episode.{name} is {value!r}; give an id.")
        object.__setattr__(self, "tags", tuple(self.tags))


class Episodes(Protocol):
    """Any memory of episodes, as the kernel uses it."""

    def record(self, episode: Episode) -> None:
        """Keep an episode; the same one again changes nothing, another of its id raises."""
        ...

    def recall(self, tags: Sequence[str], *, tenant: str, limit: int = 3) -> list[Episode]:
        """Give the episodes of a tenant that share a tag."""
        ...


@dataclass(slots=True)
class _Tenant:
    episodes: list[Episode] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    by_tag: dict[str, list[int]] = field(default_factory=dict)


class EpisodicMemory:
    """Episodes in this process's memory."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Tenant] = {}

    def record(self, episode: Episode) -> None:
        """Keep an episode; the same one again changes nothing.

        Raises `ValueError` for another one under an id that its tenant has: nothing is rewritten.
        """
        kept = self._tenants.setdefault(episode.tenant, _Tenant())
        number = kept.ids.get(episode.episode_id)
        if number is not None:
            _check_same(kept.episodes[number], episode)
            return
        kept.ids[episode.episode_id] = number = len(kept.episodes)
        kept.episodes.append(episode)
        for tag in set(episode.tags):
            kept.by_tag.setdefault(tag, []).append(number)

    def recall(self, tags: Sequence[str], *, tenant: str, limit: int = 3) -> list[Episode]:
        """Give the episodes of a tenant that share a tag, the most tags first, then the latest."""
        kept = self._tenants.get(tenant, _Tenant())
        shared = Counter(number for tag in set(tags) for number in kept.by_tag.get(tag, ()))
        best = sorted(shared, key=lambda number: (-shared[number], -number))
        return [kept.episodes[number] for number in best[:limit]]

    def __len__(self) -> int:
        return sum(len(kept.episodes) for kept in self._tenants.values())


class SQLiteEpisodicMemory:
    """Episodes in a SQLite file at `path`, shared by the processes of one machine.

    It does what `EpisodicMemory` does. Its methods block, and raise `StoreError` where the file
    fails.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = MemoryFile(path, _SCHEMA)

    def record(self, episode: Episode) -> None:
        """Keep an episode; the same one again changes nothing, another of its id raises."""
        place = (episode.tenant, episode.episode_id)
        with self._file.step() as database:
            text = json.dumps(asdict(episode))
            made = database.execute(
                "INSERT OR IGNORE INTO adjudge_episodes (tenant, episode_id, episode)"
                " VALUES (?, ?, ?)",
                (*place, text),
            )
            if made.rowcount:
                return
            row = database.execute(
                "SELECT episode FROM adjudge_episodes WHERE tenant = ? AND episode_id = ?", place
            ).fetchone()
        _check_same(_episode(episode.tenant, row[0]), episode)

    def recall(self, tags: Sequence[str], *, tenant: str, limit: int = 3) -> list[Episode]:
        """Give the episodes of a tenant that share a tag, the most tags first, then the latest."""
        with self._file.step() as database:
            rows = database.execute(
                "SELECT episode FROM adjudge_episodes WHERE tenant = ? ORDER BY number DESC",
                (tenant,),
            ).fetchall()
        wanted = set(tags)
        found = [_episode(tenant, text) for (text,) in rows]
        scored = [(len(wanted.intersection(each.tags)), each) for each in found]
        # The sort is stable: within one score the latest stay first.
        scored.sort(key=lambda pair: -pair[0])
        return [each for score, each in scored if score][:limit]


_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS adjudge_episodes (number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " tenant TEXT NOT NULL, episode_id TEXT NOT NULL, episode TEXT NOT NULL,"
    " UNIQUE (tenant, episode_id))"
)


def _episode(tenant: str, text: str) -> Episode:
    try:
        episode = Episode(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise StoreError(f"An episode of the tenant {tenant!r} is none: {error}") from None
    if episode.tenant != tenant:
        raise StoreError(f"An episode of the tenant {episode.tenant!r} is under {tenant!r}.")
    return episode


def _check_same(kept: Episode, episode: Episode) -> None:
    if kept != episode:
        raise ValueError(
            f"The tenant {episode.tenant!r} has another episode {episode.episode_id!r}; "
            "episodes are never rewritten, give it an id of its own."
        )
