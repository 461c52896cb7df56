"""What a durable ledger owes the guard, as tests that any ledger can be put through.

    class TestAcmeLedger(LedgerContract):
        @staticmethod
        def open_ledger(place): return AcmeLedger(place)

        @pytest.fixture
        def place(self): ...  # an empty store, named in a text that another process understands

and two ways of spoiling the store. The races are between real threads and real processes, which
find the class in its file again. A ledger whose methods are async is wrapped in `open_ledger`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any, ClassVar

import pytest

from adjudge import ApprovalDecision, LedgerError, Principal
from adjudge.integration import EntryState, FrozenDict, OpaqueValue
from adjudge_conformance._contract import Contract
from adjudge_conformance._rivals import Rival
from adjudge_conformance._steps import (
    ENDS,
    ENTRY,
    GRANT,
    LIMIT,
    NOW,
    REFUSAL,
    RESULT,
    VALUES,
    claim,
    settle,
    take,
    winner_of,
)

__all__ = ["ENTRY", "NOW", "LedgerContract"]

_THREADS, _PROCESSES = 8, 3
_STEPS = ("add", "answer", "claim", "expire")


class LedgerContract(Contract):
    """Subclass it, and say how a ledger is opened and how its store is spoilt.

    `rounds` is how often each race is run.
    """

    rounds: ClassVar[int] = 50

    # To be said by the subclass

    @staticmethod
    def open_ledger(place: str) -> Any:
        """Open the ledger at a place, in this process or another."""
        raise NotImplementedError

    @classmethod
    def open_rival(cls, place: str, name: str) -> Callable[[str, str], bool]:
        """Open it in another process, and give what tries a step on an entry there."""
        ledger = cls.open_ledger(place)
        return lambda step, entry: take(ledger, step, entry, name)

    @pytest.fixture
    def place(self) -> Iterator[str]:
        """Give the place of an empty store, for one test."""
        raise NotImplementedError

    def damage_entry(self, place: str, id: str) -> Callable[[], None]:
        """Change what is stored so that this is no entry any more; give what repairs it."""
        raise NotImplementedError

    def damage_store(self, place: str) -> None:
        """Make the store unusable, for ledgers that have it open and for new ones."""
        raise NotImplementedError

    # What is kept

    @pytest.fixture
    def ledger(self, place: str) -> Any:
        """Open a ledger on an empty store."""
        return self.open_ledger(place)

    def test_says_that_it_is_durable(self, place: str) -> None:
        """Guards warn of a ledger that is not."""
        assert self.open_ledger(place).durable is True

    def test_entry_comes_back_as_it_was_added(self, ledger: Any) -> None:
        """Numbers are exact, keys and texts untouched."""
        added = replace(
            ENTRY,
            args=VALUES,
            final_args=VALUES,
            principal=Principal("agent", "a", "Ägent"),
            approver_sets=(("ana", "bo"), ("cy",)),
            session=FrozenDict({"labels": FrozenDict()}),
            environment="prod",
            namespace="n",
            grants=("ana",),
            answers=(replace(GRANT, edited_args=VALUES),),
        )
        ledger.add(added)

        found = ledger.get("e1")

        assert added == found
        assert "1.10" == str(found.args["exact"])
        assert [float, bool, int] == [type(found.args[key]) for key in ("float", "flag", "whole")]

    def test_large_entry_is_kept(self, ledger: Any) -> None:
        """Arguments may be as long as the guard lets them be."""
        large = replace(ENTRY, args=FrozenDict({"text": "ab" * 500_000}))
        ledger.add(large)

        assert large == ledger.get("e1")

    def test_id_is_used_once(self, ledger: Any) -> None:
        """Adding an id again is an error, and the first entry stays."""
        ledger.add(ENTRY)

        with pytest.raises(LedgerError):
            ledger.add(replace(ENTRY, tool="other"))

        assert ENTRY == ledger.get("e1")

    def test_nothing_is_there_under_an_unknown_id(self, ledger: Any) -> None:
        """It gives nothing, takes nothing and raises nothing."""
        assert ledger.get("e1") is None
        assert ledger.answer("e1", GRANT, now=NOW) is None
        assert claim(ledger) is None
        assert ledger.expire("e1", now=LIMIT) is False
        assert settle(ledger) is False

    def test_entries_of_a_run_come_in_the_order_of_adding(self, ledger: Any) -> None:
        """Those of other runs, and of none, stay out; what becomes of an entry moves it nowhere."""
        for name, run in (("b", "run"), ("a", "run"), ("c", "other"), ("d", None), ("0", "run")):
            ledger.add(replace(ENTRY, id=name, run=run))
        ledger.answer("b", GRANT, now=NOW)
        claim(ledger, "b", expected=EntryState.ANSWERED)
        settle(ledger, "b")

        assert ["b", "a", "0"] == [entry.id for entry in ledger.of_run("run")]
        assert () == ledger.of_run("nobody's")

    @pytest.mark.parametrize("where", ["args", "edit", "result"])
    def test_secret_is_never_stored(self, ledger: Any, where: str) -> None:
        """What holds one is refused, and nothing has changed."""
        secret = FrozenDict({"key": OpaqueValue()})
        store: Mapping[str, Callable[[], object]] = {
            "args": lambda: ledger.add(replace(ENTRY, id="e2", args=secret)),
            "edit": lambda: ledger.answer("e1", replace(GRANT, edited_args=secret), now=NOW),
            "result": lambda: settle(ledger, result=secret),
        }
        ledger.add(ENTRY)
        if where == "result":
            claim(ledger)
        before = ledger.of_run("run")

        with pytest.raises(LedgerError):
            store[where]()

        assert before == ledger.of_run("run")

    # Answers

    def test_answer_is_kept_as_it_was_given(self, ledger: Any) -> None:
        """Its edit exactly, and everything else of the entry untouched."""
        answer = replace(GRANT, edited_args=VALUES)
        ledger.add(ENTRY)

        given = ledger.answer("e1", answer, now=NOW)

        assert replace(ENTRY, answers=(answer,), state=EntryState.ANSWERED) == given
        assert given == ledger.get("e1")

    def test_call_is_answered_once_each_has_granted(self, ledger: Any) -> None:
        """Clause 20: one answer for each approver set; a grant that comes twice counts once."""
        ledger.add(replace(ENTRY, approver_sets=(("ana",), ("cy",))))
        other = ApprovalDecision(True, "cy")

        given = [ledger.answer("e1", each, now=NOW) for each in (GRANT, GRANT, other)]
        states = [entry and entry.state for entry in given]

        assert [EntryState.PAUSED, EntryState.PAUSED, EntryState.ANSWERED] == states
        assert (GRANT, other) == ledger.get("e1").answers

    def test_refusal_answers_for_all(self, ledger: Any) -> None:
        """Clause 20: nobody else is waited for."""
        ledger.add(replace(ENTRY, approver_sets=(("bo",), ("cy",))))

        assert EntryState.ANSWERED is ledger.answer("e1", REFUSAL, now=NOW).state

    @pytest.mark.parametrize("state", sorted(set(EntryState) - {EntryState.PAUSED}))
    def test_only_what_is_paused_takes_an_answer(self, ledger: Any, state: EntryState) -> None:
        """Clause 22: what was answered, claimed or finished hears no second answer."""
        added = replace(ENTRY, state=state, **ENDS.get(state, {}))
        ledger.add(added)

        assert ledger.answer("e1", GRANT, now=NOW) is None
        assert added == ledger.get("e1")

    # Claims, and time

    @pytest.mark.parametrize("state", EntryState)
    @pytest.mark.parametrize("expected", EntryState)
    def test_only_the_expected_state_is_claimed(
        self, ledger: Any, state: EntryState, expected: EntryState
    ) -> None:
        """Clause 22: claimed from the state in which it was seen, or not at all."""
        added = replace(ENTRY, state=state, **ENDS.get(state, {}))
        ledger.add(added)
        waits = state not in (EntryState.CLAIMED, EntryState.FINISHED)

        claimed = claim(ledger, expected=expected) if waits or state is not expected else None

        taken = replace(added, state=EntryState.CLAIMED, holder="h")
        assert (taken if waits and state is expected else None) == claimed
        assert (claimed or added) == ledger.get("e1")

    def test_claim_succeeds_once(self, ledger: Any) -> None:
        """Clause 22: the second claimant has nothing, and takes nothing from the first."""
        ledger.add(ENTRY)

        first, second = claim(ledger, holder="h1"), claim(ledger, holder="h2")

        assert replace(ENTRY, state=EntryState.CLAIMED, holder="h1") == first == ledger.get("e1")
        assert second is None

    def test_entry_expires_to_the_microsecond(self, ledger: Any) -> None:
        """Clause 22: from its very moment on, by the caller's clock, in whatever zone it is."""
        east = timezone(timedelta(hours=5, minutes=30))
        for name in ("e1", "e2"):
            ledger.add(replace(ENTRY, id=name))
        last = LIMIT - timedelta(microseconds=1)

        assert claim(ledger, now=LIMIT.astimezone(east)) is None
        assert ledger.answer("e1", GRANT, now=LIMIT) is None
        assert ledger.expire("e1", now=last) is False
        assert claim(ledger, now=last.astimezone(east)) is not None
        assert ledger.answer("e2", GRANT, now=last) is not None

    @pytest.mark.parametrize("state", EntryState)
    def test_only_what_waits_for_people_expires(self, ledger: Any, state: EntryState) -> None:
        """Clause 22, law 6: once; what was begun is not ended by the clock."""
        added = replace(ENTRY, state=state, **ENDS.get(state, {}))
        ledger.add(added)
        waits = state in (EntryState.ASKED, EntryState.PAUSED, EntryState.ANSWERED)

        did = [ledger.expire("e1", now=LIMIT) for _ in range(2)]

        assert [waits, False] == did
        ended = replace(added, state=EntryState.FINISHED, outcome="expired")
        assert (ended if waits else added) == ledger.get("e1")

    def test_body_that_has_begun_goes_on_whenever(self, ledger: Any) -> None:
        """Law 6: one that suspended itself is claimed after its approval would have expired."""
        ledger.add(replace(ENTRY, state=EntryState.SUSPENDED))

        assert claim(ledger, expected=EntryState.SUSPENDED, now=LIMIT) is not None

    # Settling

    def test_only_the_holder_settles(self, ledger: Any) -> None:
        """Nobody else finishes a claim or gives it back, and the holder does so once."""
        ledger.add(ENTRY)
        claim(ledger, holder="h1")

        did = [settle(ledger, holder=name, result=RESULT) for name in ("h2", "h1", "h1")]

        assert [False, True, False] == did
        finished = replace(
            ENTRY, state=EntryState.FINISHED, holder="h1", outcome="completed", result=RESULT
        )
        assert finished == ledger.get("e1")

    def test_result_is_kept_as_it_was(self, ledger: Any) -> None:
        """What is to be given again is the same to the last digit."""
        ledger.add(ENTRY)
        claim(ledger)
        settle(ledger, result=VALUES)

        assert VALUES == ledger.get("e1").result
        assert "1.10" == str(ledger.get("e1").result["exact"])

    def test_entry_that_is_given_back_can_be_claimed_again(self, ledger: Any) -> None:
        """Between two approver sets it waits again, with the grants so far and no holder."""
        ledger.add(replace(ENTRY, approver_sets=(("ana",), ("cy",))))
        claim(ledger, holder="h1")
        settle(ledger, holder="h1", state=EntryState.PAUSED, grants=("ana",), outcome=None)

        found = ledger.get("e1")

        assert (EntryState.PAUSED, None, ("ana",)) == (found.state, found.holder, found.grants)
        assert claim(ledger, holder="h2") is not None
        assert settle(ledger, holder="h1") is False

    # Many at once

    @pytest.mark.parametrize("step", _STEPS)
    def test_of_many_threads_one_wins(self, place: str, ledger: Any, step: str) -> None:
        """Clause 22: any number at once, in every round exactly one."""
        for number in range(self.rounds if step != "add" else 0):
            ledger.add(replace(ENTRY, id=f"e{number}"))
        rivals = [self.open_ledger(place) if n % 2 else ledger for n in range(_THREADS)]
        won: list[tuple[int, str]] = []
        start = threading.Barrier(_THREADS)

        def compete(rival: Any, name: str) -> None:
            for number in range(self.rounds):
                start.wait(60)
                if take(rival, step, f"e{number}", name):
                    won.append((number, name))

        threads = [
            threading.Thread(target=compete, args=(rival, f"t{n}"))
            for n, rival in enumerate(rivals)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert list(range(self.rounds)) == sorted(number for number, _ in won)
        for number, name in won:
            assert name == winner_of(ledger.get(f"e{number}"), step, name)

    def test_of_many_processes_one_wins(self, place: str, ledger: Any) -> None:
        """Clause 22: the same between processes that share nothing but the store."""
        rivals = [Rival(type(self), place, f"p{n}") for n in range(_PROCESSES)]
        with ExitStack() as stack:
            for rival in rivals:
                stack.enter_context(rival)
            for step, number in itertools.product(_STEPS, range(self.rounds)):
                key = f"{step} {number}"
                if step != "add":
                    ledger.add(replace(ENTRY, id=key))
                for rival in rivals:
                    rival.tell(step, key)
                won = [rival.name for rival in rivals if rival.won()]

                assert 1 == len(won), f"{key}: {won}"
                assert won[0] == winner_of(ledger.get(key), step, won[0])

    # What outlives whom

    def test_everything_outlives_the_process(self, place: str, ledger: Any) -> None:
        """A ledger that is opened anew has each entry as it was left."""
        for name in ("waits", "answered", "claimed", "finished"):
            ledger.add(replace(ENTRY, id=name))
        ledger.answer("answered", GRANT, now=NOW)
        claim(ledger, "claimed")
        claim(ledger, "finished")
        settle(ledger, "finished", result=RESULT)

        again = self.open_ledger(place)

        assert ledger.of_run("run") == again.of_run("run")
        assert ["paused", "answered", "claimed", "finished"] == [
            entry.state.value for entry in again.of_run("run")
        ]

    def test_killed_holder_keeps_its_claim(self, place: str, ledger: Any) -> None:
        """Law 6: what became of the body is not known, so that nobody else gets the entry."""
        ledger.add(ENTRY)
        with Rival(type(self), place, "p0") as rival:
            rival.tell("claim", "e1")
            assert rival.won()
            rival.kill()

        assert replace(ENTRY, state=EntryState.CLAIMED, holder="p0") == ledger.get("e1")
        assert claim(ledger) is None
        assert ledger.expire("e1", now=LIMIT) is False
        assert settle(ledger) is False

    # What is spoilt

    def test_entry_that_was_changed_grants_nothing(self, place: str, ledger: Any) -> None:
        """Fault B017: it raises wherever it is read, and a claim or answer of it is taken back."""
        ledger.add(ENTRY)
        ledger.add(replace(ENTRY, id="e2", run=None))

        repair = self.damage_entry(place, "e1")

        for use in (
            lambda: ledger.get("e1"),
            lambda: ledger.of_run("run"),
            lambda: ledger.answer("e1", GRANT, now=NOW),
            lambda: claim(ledger),
        ):
            with pytest.raises(LedgerError):
                use()
        assert claim(ledger, "e2") is not None
        repair()
        assert ENTRY == ledger.get("e1")

    def test_store_that_cannot_be_used_grants_nothing(self, place: str, ledger: Any) -> None:
        """Whatever is asked of it raises `LedgerError`, which is how a guard knows to deny."""
        ledger.add(ENTRY)
        self.damage_store(place)

        for use in (
            lambda: ledger.add(replace(ENTRY, id="e2")),
            lambda: ledger.get("e1"),
            lambda: ledger.of_run("run"),
            lambda: ledger.answer("e1", GRANT, now=NOW),
            lambda: claim(ledger),
            lambda: ledger.expire("e1", now=LIMIT),
            lambda: settle(ledger),
            lambda: self.open_ledger(place).get("e1"),
        ):
            with pytest.raises(LedgerError):
                use()
