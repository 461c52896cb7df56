"""Facts that outlive a session, each in the partition of its scope and owner.

Partitions are what the storage is made of, and a search opens those alone that its caller holds: a
fact of somebody else is not filtered out, it is never read. Whoever calls says what they hold; that
must come from their authenticated identity and never from a model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from adjudge import StoreError
from adjudge_runtime.kernel._sqlite import MemoryFile

__all__ = ["Fact", "SQLiteSemanticMemory", "SemanticMemory"]

_SCOPES = ("user", "tenant", "app")
Partition = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of an owner; a later one with the same key takes its place.

    `scope` is `user`, `tenant` or `app`, `owner` the id of the user, tenant or app. Raises
    `TypeError` or `ValueError`, which name the field, for values that are none.
    """

    key: str
    value: str
    scope: str
    owner: str
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("key", "value"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Fact.{name} is {getattr(self, name)!r}; give a string.")
        _check_partition(self.scope, self.owner)
        object.__setattr__(self, "tags", _tags(self.tags))


class SemanticMemory:
    """Facts in this process's memory.

    `partitions` is where they are kept, by scope and owner; a dictionary of its own unless given.
    """

    def __init__(
        self, partitions: MutableMapping[Partition, dict[str, Fact]] | None = None
    ) -> None:
        self._partitions = {} if partitions is None else partitions

    def put(self, fact: Fact) -> None:
        """Keep a fact, in place of what its owner had under its key."""
        self._partitions.setdefault((fact.scope, fact.owner), {})[fact.key] = fact

    def get(self, scope: str, owner: str, key: str) -> Fact | None:
        """Give the fact of an owner under a key; raises `ValueError` for an unknown scope."""
        _check_partition(scope, owner)
        return self._partitions.get((scope, owner), {}).get(key)

    def search(
        self, *, scopes: Mapping[str, str], tags: Sequence[str] = (), limit: int = 5
    ) -> list[Fact]:
        """Give the facts of these partitions that share a tag, the most tags first, then by key.

        `scopes` has, for each scope that the caller holds, the caller's id there. Without tags
        every fact of theirs counts. Raises `ValueError` for an unknown scope.
        """
        held = _held(scopes)
        found = (self._partitions.get(partition, {}) for partition in held)
        return _ranked((fact for facts in found for fact in facts.values()), tags, limit)


class SQLiteSemanticMemory:
    """Facts in a SQLite file at `path`, shared by the processes of one machine.

    It does what `SemanticMemory` does. Its methods block; in a coroutine write
    `await asyncio.to_thread(memory.put, fact)`. They raise `StoreError` where the file fails.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = MemoryFile(path, _SCHEMA)

    def put(self, fact: Fact) -> None:
        """Keep a fact, in place of what its owner had under its key."""
        row = (fact.scope, fact.owner, fact.key, fact.value, json.dumps(fact.tags))
        with self._file.step() as database:
            database.execute("INSERT OR REPLACE INTO adjudge_facts VALUES (?, ?, ?, ?, ?)", row)

    def get(self, scope: str, owner: str, key: str) -> Fact | None:
        """Give the fact of an owner under a key; raises `ValueError` for an unknown scope."""
        _check_partition(scope, owner)
        with self._file.step() as database:
            row = database.execute(f"{_OF_OWNER} AND key = ?", (scope, owner, key)).fetchone()
        return None if row is None else _fact(scope, owner, row)

    def search(
        self, *, scopes: Mapping[str, str], tags: Sequence[str] = (), limit: int = 5
    ) -> list[Fact]:
        """Give the facts of these partitions that share a tag, the most tags first, then by key.

        `scopes`, `tags` and errors are as in `SemanticMemory.search`.
        """
        held = _held(scopes)
        with self._file.step() as database:
            rows = {each: database.execute(_OF_OWNER, each).fetchall() for each in held}
        found = (_fact(*each, row) for each, several in rows.items() for row in several)
        return _ranked(found, tags, limit)


# Stored in the order of the key: a search of one partition reads no other.
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS adjudge_facts (scope TEXT NOT NULL, owner TEXT NOT NULL,"
    " key TEXT NOT NULL, value TEXT NOT NULL, tags TEXT NOT NULL,"
    " PRIMARY KEY (scope, owner, key)) WITHOUT ROWID"
)
_OF_OWNER = "SELECT key, value, tags FROM adjudge_facts WHERE scope = ? AND owner = ?"


def _fact(scope: str, owner: str, row: tuple[str, str, str]) -> Fact:
    key, value, tags = row
    try:
        return Fact(key, value, scope, owner, tuple(json.loads(tags)))
    except (TypeError, ValueError) as error:
        raise StoreError(f"The fact {key!r} of {scope} {owner!r} is none: {error}") from None


def _tags(value: object) -> tuple[str, ...]:
    # A text is a sequence of texts, too, and is none of tags.
    if not isinstance(value, tuple | list) or not all(isinstance(tag, str) for tag in value):
        raise TypeError(f"The tags are {value!r}; give a list of strings.")
    return tuple(value)


def _held(scopes: Mapping[str, str]) -> list[Partition]:
    if not isinstance(scopes, Mapping):
        raise TypeError(f'scopes is {scopes!r}; give a mapping such as {{"user": "u-1"}}.')
    for scope, owner in scopes.items():
        _check_partition(scope, owner)
    return list(scopes.items())


def _check_partition(scope: object, owner: object) -> None:
    if scope not in _SCOPES:
        raise ValueError(f"The scope is {scope!r}; give one of {', '.join(_SCOPES)}.")
    if not isinstance(owner, str) or not owner:
        raise ValueError(f"The owner in the scope {scope} is {owner!r}; give an id.")


def _ranked(facts: Iterable[Fact], tags: Sequence[str], limit: int) -> list[Fact]:
    if type(limit) is not int or limit < 0:
        raise ValueError(f"limit is {limit!r}; give a whole number from 0.")
    wanted = set(_tags(tags))
    scored = [(len(wanted.intersection(fact.tags)), fact) for fact in facts]
    chosen = [pair for pair in scored if pair[0] or not wanted]
    chosen.sort(key=lambda pair: (-pair[0], pair[1].key, pair[1].scope))
    return [fact for _, fact in chosen[:limit]]
