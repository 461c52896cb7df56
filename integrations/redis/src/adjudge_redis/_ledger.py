"""A ledger on a Redis server, shared by any number of processes on any number of machines.

An entry is one hash. Each change of it is read, judged as core judges it, and written by a script
that compares first: of any number of claimants exactly one wins. A step that fails, or whose answer
is lost, raises `LedgerError` and grants nothing. Whether an entry has expired goes by the clock of
the guard that asks. What outlives a crash of the server is a matter of its settings: see `durable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from adjudge import ApprovalDecision, LedgerError
from adjudge.integration import (
    WAITING,
    EntryState,
    LedgerEntry,
    answered,
    decode_entry,
    encode_answers,
    encode_entry,
    encode_result,
)
from adjudge_redis._door import Door

__all__ = ["RedisLedger"]

_NAME = "The Redis ledger"

# KEYS: the entry, its run's list. ARGV: the id, then the entry's fields and values.
_ADD = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
if KEYS[2] then redis.call('RPUSH', KEYS[2], ARGV[1]) end
return 1
"""
# KEYS: the entry. ARGV: what it has to be, then what it is to be; a field is '=' and its value, or
# '' where there is none.
_REPLACE = """
local fields = {'state', 'grants', 'answers', 'holder', 'outcome', 'result'}
local held = redis.call('HMGET', KEYS[1], unpack(fields))
for at = 1, #fields do
    if (held[at] and '=' .. held[at] or '') ~= ARGV[at] then return 0 end
end
for at, field in ipairs(fields) do
    local value = ARGV[#fields + at]
    if value == '' then
        redis.call('HDEL', KEYS[1], field)
    else
        redis.call('HSET', KEYS[1], field, string.sub(value, 2))
    end
end
return 1
"""
# KEYS: the run's list. ARGV: what an entry's key is before its id.
_OF_RUN = """
local found = {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    found[#found + 1] = {id, redis.call('HGETALL', ARGV[1] .. id)}
end
return found
"""

_CHANGING = ("state", "grants", "answers", "holder", "outcome", "result")
_NEEDED = frozenset({"record", "expires_at", "state", "grants", "answers"})
_FIELDS = _NEEDED | set(_CHANGING)
_MOMENT = re.compile(r"[0-9]{18}")
_FIRST = datetime.min.replace(tzinfo=UTC)
_TICK = timedelta(microseconds=1)


class RedisLedger(Door):
    """A ledger on the server that `url` names, as redis-py takes it; keys begin with `prefix`.

    `durable` is whether the server keeps what it acknowledged: by its settings, which are read
    here, or by your word. Where it does not, or does not say, this warns. `connections` is how many
    this process has at once. `connect_seconds` bounds connecting, `busy_seconds` the waiting for a
    free connection and for each answer. Every method raises `LedgerError` where the server cannot
    be used. Threads and forked processes may share one.
    """

    _name = _NAME
    _error = LedgerError

    def add(self, entry: LedgerEntry) -> None:
        """Keep a new entry; an id that is there already raises `LedgerError`."""
        values = {
            "record": encode_entry(entry),
            "expires_at": f"{(entry.expires_at - _FIRST) // _TICK:018}",
            **{name: text for name, text in _changing(entry).items() if text is not None},
        }
        keys = [self._key(entry.id)]
        if entry.run is not None:
            keys.append(self._server.key("run", entry.run))
        flat = [part for pair in values.items() for part in pair]
        if self._script(_ADD, keys, entry.id, *flat) != 1:
            raise LedgerError(f"There is an entry {entry.id!r} already.")

    def get(self, id: str) -> LedgerEntry | None:
        """Give the entry of that id, None where there is none."""
        found: Mapping[bytes, bytes] = self._server.do(lambda client: client.hgetall(self._key(id)))
        return _entry(id, found) if found else None

    def of_run(self, run: str) -> tuple[LedgerEntry, ...]:
        """Give the entries of a run, in the order in which they were added."""
        found = self._script(_OF_RUN, [self._server.key("run", run)], self._key(""))
        return tuple(
            _entry(_text(run, "id", name), dict(zip(flat[::2], flat[1::2], strict=True)))
            for name, flat in found
        )

    def answer(self, id: str, answer: ApprovalDecision, *, now: datetime) -> LedgerEntry | None:
        """Add an answer to the entry that is paused and has not expired, or give None."""

        def add(entry: LedgerEntry) -> LedgerEntry | None:
            takes = entry.state is EntryState.PAUSED and entry.expires_at > now
            return answered(entry, answer) if takes else None

        return self._change(id, add)

    def claim(
        self, id: str, *, expected: EntryState, holder: str, now: datetime
    ) -> LedgerEntry | None:
        """Take the entry that is in the expected state and has not expired, or None."""

        def take(entry: LedgerEntry) -> LedgerEntry | None:
            waits = entry.state is expected and entry.state in WAITING
            if not waits or _has_expired(entry, now):
                return None
            return replace(entry, state=EntryState.CLAIMED, holder=holder)

        return self._change(id, take)

    def expire(self, id: str, *, now: datetime) -> bool:
        """Finish an entry that waits and has expired; whether this call did it."""

        def end(entry: LedgerEntry) -> LedgerEntry | None:
            if entry.state not in WAITING or not _has_expired(entry, now):
                return None
            return replace(entry, state=EntryState.FINISHED, outcome="expired")

        return self._change(id, end) is not None

    def settle(
        self,
        id: str,
        *,
        holder: str,
        state: EntryState,
        grants: tuple[str, ...],
        outcome: str | None,
        result: Mapping[str, Any] | None = None,
    ) -> bool:
        """Move the entry that this holder has claimed; False where it has it no more."""
        kept = holder if state is EntryState.FINISHED else None

        def move(entry: LedgerEntry) -> LedgerEntry | None:
            if entry.state is not EntryState.CLAIMED or entry.holder != holder:
                return None
            return replace(
                entry, state=state, grants=grants, outcome=outcome, holder=kept, result=result
            )

        return self._change(id, move) is not None

    def _change(
        self, id: str, change: Callable[[LedgerEntry], LedgerEntry | None]
    ) -> LedgerEntry | None:
        """Change the entry as it is, or give None where it is not to be changed.

        Where somebody else was quicker, what they made of it is looked at: each round is a change
        of theirs, of which an entry has few.
        """
        while True:
            entry = self.get(id)
            changed = None if entry is None else change(entry)
            if entry is None or changed is None:
                return None
            fields = (*_changing(entry).values(), *_changing(changed).values())
            marked = ("" if text is None else f"={text}" for text in fields)
            if self._script(_REPLACE, [self._key(id)], *marked) == 1:
                return changed

    def _key(self, id: str) -> str:
        return self._server.key("entry", id)

    def _script(self, script: str, keys: Sequence[str], *values: str) -> Any:
        return self._server.do(lambda client: client.eval(script, len(keys), *keys, *values))


def _changing(entry: LedgerEntry) -> dict[str, str | None]:
    """Write the fields that change, in the order of the script."""
    return {
        "state": entry.state.value,
        "grants": json.dumps(entry.grants),
        "answers": encode_answers(entry.id, entry.answers),
        "holder": entry.holder,
        "outcome": entry.outcome,
        "result": encode_result(entry.id, entry.result),
    }


def _has_expired(entry: LedgerEntry, now: datetime) -> bool:
    return entry.state is not EntryState.SUSPENDED and entry.expires_at <= now


def _entry(id: str, found: Mapping[bytes, bytes]) -> LedgerEntry:
    fields = {_text(id, "field", key): _text(id, "value", value) for key, value in found.items()}
    odd = sorted((_NEEDED - fields.keys()) | (fields.keys() - _FIELDS))
    if odd:
        raise LedgerError(
            f"The ledger's entry {id!r} is not as it was written: its {odd[0]} is missing or "
            "unknown."
        )
    return decode_entry(
        id,
        fields["record"],
        expires_at=_moment(id, fields["expires_at"]),
        state=fields["state"],
        grants=_list(fields["grants"]),
        answers=fields["answers"],
        holder=fields.get("holder"),
        outcome=fields.get("outcome"),
        result=fields.get("result"),
    )


def _text(id: str, what: str, value: object) -> str:
    try:
        if not isinstance(value, bytes):
            raise ValueError
        return value.decode()
    except ValueError:
        raise LedgerError(
            f"The ledger's entry {id!r} is not as it was written: a {what} of it is no text."
        ) from None


def _moment(id: str, text: str) -> datetime:
    try:
        if _MOMENT.fullmatch(text) is None:
            raise ValueError
        return _FIRST + int(text) * _TICK
    except (ValueError, OverflowError):
        raise LedgerError(
            f"The ledger's entry {id!r} is not as it was written: its expires_at is {text!r}."
        ) from None


def _list(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # which is no list, as `decode_entry` will say
