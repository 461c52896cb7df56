"""What a ledger keeps of runs and of people's answers: atomically, in order, not on trust."""

import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from adjudge._ledger.entries import EntryState, LedgerEntry, MemoryLedger
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._types import ApprovalDecision, Principal
from adjudge._values import FrozenDict, OpaqueValue
from adjudge.errors import LedgerError

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GRANT = ApprovalDecision(True, "ana", "fine")
OTHER, THIRD = ApprovalDecision(True, "cy"), ApprovalDecision(True, "di")
REFUSE = ApprovalDecision(False, "bo", "no")
ENTRY = LedgerEntry(
    id="e1",
    tool="pay",
    namespace=None,
    args=FrozenDict({"to": "x"}),
    digest="0" * 64,
    principal=Principal("user", "eve"),
    occurrence="o/1",
    policy_id="p",
    matched_rules=("r0",),
    approver_sets=(),
    correlation_id="c",
    seq=0,
    call_id="c1",
    attempt=1,
    environment=None,
    workspace=".",
    extra=FrozenDict(),
    session=None,
    injected=FrozenDict(),
    expires_at=NOW + timedelta(seconds=60),
    state=EntryState.PAUSED,
    run="run",
    reason="big",
    final_args=FrozenDict({"to": "y"}),
)


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request, tmp_path):
    """Make an empty ledger of each kind."""
    if request.param == "memory":
        return MemoryLedger()
    return SQLiteLedger(tmp_path / "ledger.sqlite")


def test_entries_of_a_run_come_in_the_order_of_adding(ledger):
    """Those of other runs, and of none, stay out."""
    for name, run in (("b", "run"), ("a", "run"), ("c", "other"), ("d", None), ("0", "run")):
        ledger.add(replace(ENTRY, id=name, run=run))

    assert ["b", "a", "0"] == [entry.id for entry in ledger.of_run("run")]
    assert () == ledger.of_run("nobody's")


def test_the_order_of_a_run_outlives_changes(ledger):
    """An entry that is answered, claimed or finished keeps its place."""
    for name in ("b", "a"):
        ledger.add(replace(ENTRY, id=name))
    ledger.answer("b", GRANT, now=NOW)
    ledger.claim("b", expected=EntryState.ANSWERED, holder="h", now=NOW)
    ledger.settle("b", holder="h", state=EntryState.FINISHED, grants=("ana",), outcome="completed")

    assert ["b", "a"] == [entry.id for entry in ledger.of_run("run")]


def test_an_answer_is_kept_as_it_was_given(ledger):
    """Its edit exactly, and everything else of the entry untouched."""
    edited = FrozenDict({"n": Decimal("1.10"), "i": 1, "f": 1.0, "$decimal": "x"})
    answer = replace(GRANT, edited_args=edited)
    ledger.add(ENTRY)

    given = ledger.answer("e1", answer, now=NOW)

    assert replace(ENTRY, answers=(answer,), state=EntryState.ANSWERED) == given
    assert given == ledger.get("e1")
    assert "1.10" == str(ledger.get("e1").answers[0].edited_args["n"])


@pytest.mark.parametrize(
    ("sets", "answers", "states"),
    [
        (0, [GRANT], ["answered"]),
        (1, [GRANT], ["answered"]),
        (2, [GRANT, OTHER], ["paused", "answered"]),
        (2, [REFUSE], ["answered"]),
        (2, [GRANT, REFUSE], ["paused", "answered"]),
        (3, [GRANT, OTHER, THIRD], ["paused", "paused", "answered"]),
    ],
)
def test_a_call_is_answered_once_all_have_granted_or_one_refused(ledger, sets, answers, states):
    """Clause 20: one answer for each approver set."""
    ledger.add(replace(ENTRY, approver_sets=(("ana",),) * sets))

    given = [ledger.answer("e1", answer, now=NOW) for answer in answers]

    assert states == [entry.state.value for entry in given]
    assert tuple(answers) == ledger.get("e1").answers
    assert ledger.answer("e1", GRANT, now=NOW) is None


def test_nobody_grants_for_two_approver_sets(ledger):
    """Clause 20: a grant that comes twice, from one click too many, is one grant."""
    ledger.add(replace(ENTRY, approver_sets=(("ana",), ("cy",))))

    given = [ledger.answer("e1", answer, now=NOW).state for answer in (GRANT, GRANT, OTHER)]

    assert [EntryState.PAUSED, EntryState.PAUSED, EntryState.ANSWERED] == given


@pytest.mark.parametrize("state", sorted(set(EntryState) - {EntryState.PAUSED}))
def test_only_what_is_paused_takes_an_answer(ledger, state):
    """Clause 22: what was answered, claimed or finished hears no second answer."""
    ends = {EntryState.CLAIMED: {"holder": "h"}, EntryState.FINISHED: {"outcome": "denied"}}
    ledger.add(replace(ENTRY, state=state, **ends.get(state, {})))

    assert ledger.answer("e1", GRANT, now=NOW) is None
    assert () == ledger.get("e1").answers


def test_an_expired_entry_takes_no_answer(ledger):
    """Clause 22: from its very second on."""
    ledger.add(ENTRY)
    late, in_time = (NOW + timedelta(seconds=n) for n in (60, 59))

    assert ledger.answer("e1", GRANT, now=late) is None
    assert ledger.answer("e1", GRANT, now=in_time) is not None


def test_nothing_takes_an_answer_under_an_unknown_id(ledger):
    """An id that is not there gives nothing, and raises nothing."""
    assert ledger.answer("nope", GRANT, now=NOW) is None


def test_what_waits_for_its_run_expires_too(ledger):
    """An answer that nobody went on with is no grant for ever."""
    ledger.add(replace(ENTRY, state=EntryState.ANSWERED))
    late = NOW + timedelta(seconds=60)

    assert ledger.claim("e1", expected=EntryState.ANSWERED, holder="h", now=late) is None
    assert [True, False] == [ledger.expire("e1", now=late) for _ in range(2)]


def test_a_body_that_has_begun_does_not_expire(ledger):
    """Law 6: the time-out of an approval is for the asking, which is over."""
    ledger.add(replace(ENTRY, state=EntryState.SUSPENDED))
    late = NOW + timedelta(seconds=60)

    assert ledger.expire("e1", now=late) is False
    assert ledger.claim("e1", expected=EntryState.SUSPENDED, holder="h", now=late) is not None


def test_of_many_threads_one_answers(ledger):
    """Any number of answers at once: exactly one counts."""
    ledger.add(ENTRY)
    took = []
    start = threading.Barrier(8)

    def run(name):
        start.wait()
        if ledger.answer("e1", ApprovalDecision(True, name), now=NOW) is not None:
            took.append(name)

    threads = [threading.Thread(target=run, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == len(took)
    assert took == [answer.approver for answer in ledger.get("e1").answers]


ANSWERS = """
import sys
from datetime import datetime, timezone
from adjudge import ApprovalDecision, SQLiteLedger
path, name = sys.argv[1:]
ledger = SQLiteLedger(path)
print("ready", flush=True)
sys.stdin.readline()
now = datetime(2026, 1, 2, tzinfo=timezone.utc)
for number in range(20):
    took = ledger.answer(f"e{number}", ApprovalDecision(name == "p0", name), now=now)
    print(int(took is not None), flush=True)
"""


def test_of_two_processes_one_answers(tmp_path):
    """A grant and a refusal at the same time: one of them counts, whole."""
    path = tmp_path / "ledger.sqlite"
    ledger = SQLiteLedger(path)
    for number in range(20):
        ledger.add(replace(ENTRY, id=f"e{number}"))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", ANSWERS, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("p0", "p1")
    ]
    assert ["ready\n"] * 2 == [worker.stdout.readline() for worker in workers]
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()

    took = [worker.communicate(timeout=60)[0].split() for worker in workers]

    assert ["1"] * 20 == [str(int(one) + int(other)) for one, other in zip(*took, strict=True)]
    for number in range(20):
        (answer,) = ledger.get(f"e{number}").answers
        assert took[int(answer.approver[1])][number] == "1"
        assert answer.granted is (answer.approver == "p0")


def test_an_edit_that_holds_a_secret_is_not_stored(tmp_path):
    """A ledger never gets to see a secret, and what it refuses counts for nothing."""
    ledger = SQLiteLedger(tmp_path / "ledger.sqlite")
    ledger.add(ENTRY)

    with pytest.raises(LedgerError):
        ledger.answer("e1", replace(GRANT, edited_args=FrozenDict({"key": OpaqueValue()})), now=NOW)

    assert EntryState.PAUSED is ledger.get("e1").state


GOOD = '{"approver":"ana","edited_args":null,"granted":true,"reason":"fine"}'
DAMAGED = {
    "no list": "{}",
    "no JSON": "[",
    "no text": b"[]",
    "nothing": "",
    "a bool": "[true]",
    "no bool": f"[{GOOD.replace('true', '1')}]",
    "a text for a bool": "[" + GOOD.replace("true", '"true"') + "]",
    "no approver": '[{"edited_args":null,"granted":true,"reason":"fine"}]',
    "a surplus": f'[{GOOD[:-1]},"level":"root"}}]',
    "granted twice": f'[{GOOD[:-1]},"granted":true}}]',
    "an approver that is no text": "[" + GOOD.replace('"ana"', "7") + "]",
    "an edit that is no object": f"[{GOOD.replace('null', '[]')}]",
    "an edit with an unknown tag": "[" + GOOD.replace("null", '{"$x":1}') + "]",
    "more than were asked": f"[{GOOD},{GOOD}]",
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("answers", DAMAGED.values(), ids=DAMAGED)
def test_answers_that_were_changed_grant_nothing(tmp_path, answers):
    """Fault B017: a changed column raises LedgerError naming it, and the entry is not claimed."""
    path = tmp_path / "ledger.sqlite"
    ledger = SQLiteLedger(path)
    ledger.add(replace(ENTRY, state=EntryState.ANSWERED, answers=(GRANT,)))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE adjudge_entries SET answers = ?", (answers,))
    database.close()

    for use in (
        lambda: ledger.get("e1"),
        lambda: ledger.of_run("run"),
        lambda: ledger.claim("e1", expected=EntryState.ANSWERED, holder="h", now=NOW),
    ):
        with pytest.raises(LedgerError, match="answers"):
            use()

    with sqlite3.connect(path) as database:
        assert [("answered",)] == database.execute("SELECT state FROM adjudge_entries").fetchall()
    database.close()


def test_an_undamaged_answer_is_read(tmp_path):
    """The text that the damaged ones are made of is a good one."""
    ledger = SQLiteLedger(tmp_path / "ledger.sqlite")
    ledger.add(replace(ENTRY, state=EntryState.ANSWERED, answers=(GRANT,)))
    with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
        database.execute("UPDATE adjudge_entries SET answers = ?", (f"[{GOOD}]",))
    database.close()

    assert (GRANT,) == ledger.get("e1").answers
