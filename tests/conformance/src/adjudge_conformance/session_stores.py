"""What a session store owes the kernel, as tests that any store can be put through.

    class TestAcmeSessionStore(DurableSessionStoreContract):
        @staticmethod
        def open_store(place): return AcmeSessionStore(place)

        @pytest.fixture
        def place(self): ...  # an empty store, named in a text that another process understands

and two ways of spoiling the store. A store that forgets with its process subclasses
`SessionStoreContract`, and is opened once for each test. The races are between real threads, each
with its own event loop, and real processes, which find the class in its file again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adjudge import (
    ConcurrentModification,
    SessionExists,
    SessionRecord,
    StoreError,
    UnknownSession,
)
from adjudge.integration import FrozenDict, OpaqueValue
from adjudge_conformance._contests import contend_in_processes, contend_in_threads, finish
from adjudge_conformance._contract import StoreContract
from adjudge_conformance._rivals import Rival
from adjudge_conformance._steps import VALUES

__all__ = ["SESSION", "DurableSessionStoreContract", "SessionStoreContract"]

SESSION = SessionRecord("s", 0, FrozenDict({"goal": "pay"}))
"""A session that was not stored yet; tests change what they are about."""
_FIRST = replace(SESSION, version=1)

# Each of them is another session, whatever a database takes for equal.
_NAMES = ("s", "S", "s ", " s", "s1", "s:1", "s%", "é", "e\u0301", "ß")
_THREADS = 8


class SessionStoreContract(StoreContract):
    """Subclass it, and say how a store is opened; `rounds` is how often each race is run."""

    # What is kept

    def test_new_session_has_version_one(self, store: Any) -> None:
        """Whatever its record said, and it is there as it was given."""
        created = finish(store.create(replace(SESSION, version=7, body=VALUES)))

        found = finish(store.load("s"))
        assert replace(SESSION, version=1, body=VALUES) == created == found
        assert "1.10" == str(found.body["exact"])
        assert [float, bool, int] == [type(found.body[key]) for key in ("float", "flag", "whole")]

    def test_session_is_created_once(self, store: Any) -> None:
        """The second is told, and the first stays as it was."""
        finish(store.create(SESSION))

        with pytest.raises(SessionExists):
            finish(store.create(replace(SESSION, body={"goal": "other"})))

        assert _FIRST == finish(store.load("s"))

    def test_session_that_was_never_created_is_unknown(self, store: Any) -> None:
        """It can be neither loaded nor saved, and saving makes none."""
        with pytest.raises(UnknownSession):
            finish(store.load("s"))
        with pytest.raises(UnknownSession):
            finish(store.save(SESSION, expected_version=0))

        assert finish(store.exists("s")) is False

    def test_session_that_was_created_exists(self, store: Any) -> None:
        """And no other does."""
        finish(store.create(SESSION))

        assert [True, False] == [finish(store.exists(name)) for name in ("s", "t")]

    def test_saving_counts_the_version_up(self, store: Any) -> None:
        """Whatever version the record itself says."""
        finish(store.create(SESSION))
        versions = []
        saved = SESSION
        for number in (1, 2, 3):
            saved = finish(
                store.save(replace(SESSION, body={"n": number}), expected_version=number)
            )
            versions.append(saved.version)

        assert [2, 3, 4] == versions
        assert replace(SESSION, version=4, body={"n": 3}) == saved == finish(store.load("s"))

    @pytest.mark.parametrize("expected", [0, 1, 3])
    def test_stale_save_changes_nothing(self, store: Any, expected: int) -> None:
        """Who saw another version than the one that is there is told, and has to load again."""
        finish(store.create(SESSION))
        saved = finish(store.save(replace(SESSION, body={"n": 2}), expected_version=1))

        with pytest.raises(ConcurrentModification):
            finish(store.save(replace(SESSION, body={"n": 3}), expected_version=expected))

        assert saved == finish(store.load("s"))

    def test_sessions_are_kept_apart(self, store: Any) -> None:
        """Names that look alike are names of different sessions."""
        for name in _NAMES:
            finish(store.create(replace(SESSION, session_id=name, body={"of": name})))

        assert list(_NAMES) == [finish(store.load(name)).body["of"] for name in _NAMES]

    def test_large_session_is_kept(self, store: Any) -> None:
        """A long conversation is as long as it is."""
        large = {"text": "ab" * 500_000}
        finish(store.create(replace(SESSION, body=large)))

        assert large == finish(store.load("s")).body

    def test_secret_is_never_stored(self, store: Any) -> None:
        """What holds one is refused, and nothing has changed."""
        secret = replace(SESSION, body={"key": OpaqueValue()})
        finish(store.create(SESSION))

        with pytest.raises(StoreError):
            finish(store.create(replace(secret, session_id="t")))
        with pytest.raises(StoreError):
            finish(store.save(secret, expected_version=1))

        assert _FIRST == finish(store.load("s"))
        assert finish(store.exists("t")) is False

    # Many at once

    @pytest.mark.parametrize("step", ["create", "save"])
    def test_of_many_threads_one_wins(self, place: str, store: Any, step: str) -> None:
        """In every round exactly one creates the session, or saves the version that is there."""
        others = store if not self.durable else self.open_store(place)
        attempts = [
            _trying(others if who % 2 else store, step, f"t{who}") for who in range(_THREADS)
        ]
        self._prepare(store, step)

        won = contend_in_threads(attempts, self.rounds)

        assert list(range(self.rounds)) == [number for number, _ in won]
        assert [f"t{who}" for _, who in won] == self._winners(store)

    def _prepare(self, store: Any, step: str) -> None:
        for number in range(self.rounds if step == "save" else 0):
            finish(store.create(replace(SESSION, session_id=str(number))))

    def _winners(self, store: Any) -> list[str]:
        return [finish(store.load(str(number))).body["by"] for number in range(self.rounds)]


class DurableSessionStoreContract(SessionStoreContract):
    """Subclass it, and say how a store is opened and spoilt; `rounds` is how often races are run.

    What a store keeps is shared between processes, and outlives them.
    """

    durable = True

    @classmethod
    def open_rival(cls, place: str, name: str) -> Callable[[str, str], bool]:
        """Open it in another process, and give what creates or saves a session there."""
        store = cls.open_store(place)
        return lambda step, number: finish(_trying(store, step, name)(int(number)))

    def damage_session(self, place: str, session_id: str) -> Callable[[], None]:
        """Change what is stored so that this is no session any more; give what repairs it."""
        raise NotImplementedError

    def damage_store(self, place: str) -> None:
        """Make the store unusable, for those that have it open and for new ones."""
        raise NotImplementedError

    @pytest.mark.parametrize(("step", "processes"), [("create", 8), ("save", 2), ("save", 8)])
    def test_of_many_processes_one_wins(
        self, place: str, store: Any, step: str, processes: int
    ) -> None:
        """The same between processes that share nothing but the store."""
        self._prepare(store, step)

        won = contend_in_processes(
            type(self), place, processes=processes, step=step, rounds=self.rounds
        )

        assert list(range(self.rounds)) == [number for number, _ in won]
        assert [name for _, name in won] == self._winners(store)

    def test_everything_outlives_the_process(self, place: str, store: Any) -> None:
        """A store that is opened anew has the session as it was saved last."""
        finish(store.create(SESSION))
        saved = finish(store.save(replace(SESSION, body={"n": 2}), expected_version=1))

        assert saved == finish(self.open_store(place).load("s"))

    def test_killed_worker_leaves_what_it_saved(self, place: str, store: Any) -> None:
        """Whoever goes on has its session, at its version."""
        finish(store.create(replace(SESSION, session_id="0")))
        with Rival(type(self), place, "p0") as rival:
            rival.tell("save", "0")
            assert rival.won()
            rival.kill()

        found = finish(store.load("0"))
        assert (2, "p0") == (found.version, found.body["by"])

    def test_session_that_was_changed_is_found_out(self, place: str, store: Any) -> None:
        """It is not loaded, and other sessions are as they were."""
        other = replace(SESSION, session_id="t")
        finish(store.create(SESSION))
        finish(store.create(other))

        repair = self.damage_session(place, "s")

        with pytest.raises(StoreError):
            finish(store.load("s"))
        assert replace(other, version=1) == finish(store.load("t"))
        repair()
        assert _FIRST == finish(store.load("s"))

    def test_store_that_cannot_be_used_says_so(self, place: str, store: Any) -> None:
        """Whatever is asked of it raises `StoreError`, and no session is taken for unknown."""
        finish(store.create(SESSION))
        self.damage_store(place)

        uses: tuple[Callable[[], object], ...] = (
            lambda: finish(store.create(replace(SESSION, session_id="t"))),
            lambda: finish(store.load("s")),
            lambda: finish(store.save(SESSION, expected_version=1)),
            lambda: finish(store.exists("s")),
            lambda: finish(self.open_store(place).load("s")),
        )
        for use in uses:
            with pytest.raises(StoreError):
                use()


def _trying(store: Any, step: str, name: str) -> Callable[[int], Any]:
    """Give what does a step on the session of that number in somebody's name; whether it won."""

    async def attempt(number: int) -> bool:
        record = replace(SESSION, session_id=str(number), body={"by": name})
        try:
            if step == "create":
                await store.create(record)
            else:
                await store.save(record, expected_version=1)
        except (SessionExists, ConcurrentModification):
            return False
        return True

    return attempt
