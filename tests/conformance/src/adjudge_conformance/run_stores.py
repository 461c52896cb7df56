"""What a run store owes the runtime, as tests that any store can be put through.

    class TestAcmeRunStore(DurableRunStoreContract):
        @staticmethod
        def open_store(place): return AcmeRunStore(place)

        @pytest.fixture
        def place(self): ...  # an empty store, named in a text that another process understands

and two ways of spoiling the store. A store that forgets with its process subclasses
`RunStoreContract`, and is opened once for each test. The races are between real threads, each with
its own event loop, and real processes, which find the class in its file again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest

from adjudge import DuplicateRecord, StepRecord, StoreError
from adjudge.integration import FrozenDict, OpaqueValue
from adjudge_conformance._contests import contend_in_processes, contend_in_threads, finish
from adjudge_conformance._contract import StoreContract
from adjudge_conformance._rivals import Rival
from adjudge_conformance._steps import NOW, VALUES

__all__ = ["STEP", "DurableRunStoreContract", "RunStoreContract"]

STEP = StepRecord("run", 0, "intent", "key", FrozenDict({"tool": "pay"}), NOW)
"""A step; tests change what they are about."""

# Each of them is another run, whatever a database takes for equal.
_NAMES = ("run", "Run", "run ", " run", "ru", "run1", "run:1", "run%", "r_n", "é", "e\u0301", "ß")
_THREADS = 8


class RunStoreContract(StoreContract):
    """Subclass it, and say how a store is opened; `rounds` is how often each race is run."""

    # What is kept

    def test_step_comes_back_as_it_was_appended(self, store: Any) -> None:
        """Numbers are exact, texts untouched, and the time is the same to the microsecond."""
        east = timezone(timedelta(hours=5, minutes=30))
        added = replace(STEP, kind="a kind", idempotency_key="", body=VALUES)
        finish(store.append(replace(added, timestamp=NOW.astimezone(east))))

        (found,) = finish(store.load("run"))

        assert added == found
        assert NOW.isoformat() == found.timestamp.isoformat()
        assert "1.10" == str(found.body["exact"])
        assert [float, bool, int] == [type(found.body[key]) for key in ("float", "flag", "whole")]

    def test_large_step_is_kept(self, store: Any) -> None:
        """A tool's result may be as long as it is."""
        large = replace(STEP, body={"text": "ab" * 500_000})
        finish(store.append(large))

        assert [large] == list(finish(store.load("run")))

    def test_unknown_run_has_no_steps(self, store: Any) -> None:
        """A run that has not begun is no error."""
        assert [] == list(finish(store.load("nobody's")))

    def test_steps_come_in_the_order_of_their_numbers(self, store: Any) -> None:
        """And neither in that of their coming nor in that of their digits."""
        for seq in (10, 9, 0, 2**53 - 1, 100, 1):
            finish(store.append(replace(STEP, seq=seq)))

        assert [0, 1, 9, 10, 100, 2**53 - 1] == [step.seq for step in finish(store.load("run"))]

    def test_long_run_is_loaded_whole(self, store: Any) -> None:
        """No step of some hundreds is left out."""

        async def append_all() -> None:
            for seq in range(500):
                await store.append(replace(STEP, seq=seq, body={"seq": seq}))

        finish(append_all())

        steps = finish(store.load("run"))
        assert [(seq, {"seq": seq}) for seq in range(500)] == [(s.seq, s.body) for s in steps]

    def test_runs_are_kept_apart(self, store: Any) -> None:
        """Names that look alike are names of different runs."""
        for name in _NAMES:
            finish(store.append(replace(STEP, run_id=name)))

        assert [[name] for name in _NAMES] == [
            [step.run_id for step in finish(store.load(name))] for name in _NAMES
        ]

    def test_number_is_used_once(self, store: Any) -> None:
        """Law 6: the second is told, the same step too, and the first stays as it was."""
        finish(store.append(STEP))

        for again in (STEP, replace(STEP, body={"tool": "other"})):
            with pytest.raises(DuplicateRecord):
                finish(store.append(again))

        finish(store.append(replace(STEP, seq=1)))
        assert [STEP, replace(STEP, seq=1)] == list(finish(store.load("run")))

    def test_secret_is_never_stored(self, store: Any) -> None:
        """What holds one is refused, and nothing has changed."""
        with pytest.raises(StoreError):
            finish(store.append(replace(STEP, body={"key": OpaqueValue()})))

        assert [] == list(finish(store.load("run")))

    # Many at once

    def test_tasks_of_one_loop_append_at_once(self, store: Any) -> None:
        """Forty at once, and all are there."""

        async def append_all() -> None:
            await asyncio.gather(*(store.append(replace(STEP, seq=n)) for n in range(40)))

        finish(append_all())

        assert list(range(40)) == [step.seq for step in finish(store.load("run"))]

    def test_append_that_is_cancelled_spoils_nothing(self, store: Any) -> None:
        """It is there or not, and what comes after it is."""

        async def append_and_cancel() -> None:
            task = asyncio.create_task(store.append(STEP))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        finish(append_and_cancel())
        finish(store.append(replace(STEP, seq=1)))

        assert 1 == finish(store.load("run"))[-1].seq

    def test_of_many_threads_one_wins(self, place: str, store: Any) -> None:
        """Law 6: the write of a number is the claim, so that in every round exactly one has it."""
        others = store if not self.durable else self.open_store(place)
        attempts = [_appending(others if who % 2 else store, f"t{who}") for who in range(_THREADS)]

        won = contend_in_threads(attempts, self.rounds)

        steps = finish(store.load("run"))
        assert list(range(self.rounds)) == [number for number, _ in won]
        assert [f"t{who}" for _, who in won] == [step.body["by"] for step in steps]


class DurableRunStoreContract(RunStoreContract):
    """Subclass it, and say how a store is opened and spoilt; `rounds` is how often races are run.

    What a store keeps is shared between processes, and outlives them.
    """

    durable = True

    @classmethod
    def open_rival(cls, place: str, name: str) -> Callable[[str, str], bool]:
        """Open it in another process, and give what appends a step there."""
        attempt = _appending(cls.open_store(place), name)
        return lambda _, number: finish(attempt(int(number)))

    def damage_step(self, place: str, run_id: str, seq: int) -> Callable[[], None]:
        """Change what is stored so that this is no step any more; give what repairs it."""
        raise NotImplementedError

    def damage_store(self, place: str) -> None:
        """Make the store unusable, for those that have it open and for new ones."""
        raise NotImplementedError

    @pytest.mark.parametrize("processes", [2, 8])
    def test_of_many_processes_one_wins(self, place: str, store: Any, processes: int) -> None:
        """Law 6: the same between processes that share nothing but the store."""
        won = contend_in_processes(
            type(self), place, processes=processes, step="append", rounds=self.rounds
        )

        steps = finish(store.load("run"))
        assert list(range(self.rounds)) == [number for number, _ in won]
        assert [name for _, name in won] == [step.body["by"] for step in steps]

    def test_everything_outlives_the_process(self, place: str, store: Any) -> None:
        """A store that is opened anew has each step."""
        for seq in range(3):
            finish(store.append(replace(STEP, seq=seq)))

        assert [0, 1, 2] == [step.seq for step in finish(self.open_store(place).load("run"))]

    def test_killed_worker_leaves_what_it_appended(self, place: str, store: Any) -> None:
        """Its steps are there for whoever goes on, and their numbers are taken."""
        with Rival(type(self), place, "p0") as rival:
            rival.tell("append", "0")
            assert rival.won()
            rival.kill()

        assert ["p0"] == [step.body["by"] for step in finish(store.load("run"))]
        with pytest.raises(DuplicateRecord):
            finish(store.append(STEP))

    def test_step_that_was_changed_is_found_out(self, place: str, store: Any) -> None:
        """Its run is not loaded, its number is taken still, and other runs are as they were."""
        others = replace(STEP, run_id="other")
        for step in (STEP, replace(STEP, seq=1), others):
            finish(store.append(step))

        repair = self.damage_step(place, "run", 0)

        with pytest.raises(StoreError):
            finish(store.load("run"))
        with pytest.raises(DuplicateRecord):
            finish(store.append(STEP))
        assert [others] == list(finish(store.load("other")))
        repair()
        assert STEP == finish(store.load("run"))[0]

    def test_store_that_cannot_be_used_says_so(self, place: str, store: Any) -> None:
        """Whatever is asked of it raises `StoreError`, and nothing is taken for an empty run."""
        finish(store.append(STEP))
        self.damage_store(place)

        uses: tuple[Callable[[], object], ...] = (
            lambda: finish(store.append(replace(STEP, seq=1))),
            lambda: finish(store.load("run")),
            lambda: finish(self.open_store(place).load("run")),
        )
        for use in uses:
            with pytest.raises(StoreError):
                use()


def _appending(store: Any, name: str) -> Callable[[int], Any]:
    """Give what appends a step of that number in somebody's name; whether it was the first."""

    async def attempt(number: int) -> bool:
        try:
            await store.append(replace(STEP, seq=number, body={"by": name}))
        except DuplicateRecord:
            return False
        return True

    return attempt
