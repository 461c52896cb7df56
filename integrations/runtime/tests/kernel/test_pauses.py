"""Sessions that wait for approval: the call runs once, for the answer to it, in any process."""

import pytest

from adjudge import (
    AnswerError,
    ApprovalDecision,
    MemoryLedger,
    MemoryRunStore,
    MemorySessionStore,
    SQLiteLedger,
    StoreError,
    pause_approval,
)
from adjudge_runtime.kernel import RunState


@pytest.fixture
def desks(desk, tmp_path):
    """Give what makes desks that share stores and ledger, as processes would."""
    store, chain = MemorySessionStore(), MemoryRunStore()

    def make(*moves):
        guard = {"on_approval": pause_approval(SQLiteLedger(tmp_path / "ledger.db"))}
        return desk(*moves, store=store, chain=chain, guard=guard)

    return make


async def test_a_granted_call_runs_elsewhere(desks, propose, done):
    """The session waits for approval, and another worker goes on with the answer."""
    asking, granting = desks(propose("pay", amount=3)), desks(done)

    waiting = await asking.run()
    result = await granting.run(answers={waiting.pending: ApprovalDecision(True, "bo")})

    assert (RunState.WAITING_INPUT, True) == (waiting.state, waiting.pending is not None)
    assert ([], [("pay", 3)]) == (asking.ran, granting.ran)
    assert (True, None) == (result.succeeded, result.pending)


async def test_a_refused_call_is_told_to_the_model(desks, propose, done):
    """It does not run, and the model reads so."""
    d = desks(propose("pay", amount=3), done)

    waiting = await d.run()
    await d.run(answers={waiting.pending: ApprovalDecision(False, "bo", "too much")})

    assert [] == d.ran
    assert "error: [denied]" in d.read[1]


async def test_a_session_without_its_approval_goes_on_waiting(desks, propose):
    """Running it again asks nobody and puts nothing on the chain."""
    d = desks(propose("pay", amount=3))
    waiting = await d.run()
    length = len(await d.chain.load("session/s"))

    again = await d.run()

    assert waiting.pending == again.pending
    assert length == len(await d.chain.load("session/s"))


async def test_suspending_approves_nothing(desks, propose, done):
    """A session that is put aside while it waits for approval still needs it."""
    d = desks(propose("pay", amount=3), done)
    waiting = await d.run()

    await d.kernel.suspend("s")
    again = await d.run()
    result = await d.run(answers={waiting.pending: ApprovalDecision(True, "bo")})

    assert (waiting.pending, RunState.SUSPENDED) == (again.pending, again.state)
    assert (True, [("pay", 3)]) == (result.succeeded, d.ran)


async def test_an_answer_to_another_session_is_refused(desks, propose):
    """An approval is for one call of one session."""
    d = desks(propose("pay", amount=3), propose("pay", amount=3))
    one = await d.run("one")
    await d.run("two")

    with pytest.raises(AnswerError):
        await d.run("two", answers={one.pending: ApprovalDecision(True, "bo")})
    assert [] == d.ran


async def test_an_answer_where_nothing_waits_is_an_error(desk, done):
    """Nothing runs on it."""
    d = desk(done)

    with pytest.raises(AnswerError):
        await d.run(answers={"x": ApprovalDecision(True, "bo")})
    assert [] == d.read


class Forgetful(MemoryRunStore):
    """A chain that fails once where it is to take a record of a kind."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    async def append(self, record):
        """Keep a record, or fail."""
        if record.kind == self.kind:
            self.kind = None
            raise OSError("down")
        await super().append(record)


@pytest.fixture
def halfway(desk, propose, done):
    """Give what makes a desk whose chain failed where it was to say that a call waits."""

    async def make():
        ledger = MemoryLedger()
        d = desk(
            propose("pay", amount=3),
            done,
            chain=Forgetful("step.pending"),
            guard={"on_approval": pause_approval(ledger)},
        )
        with pytest.raises(StoreError, match="down"):
            await d.run()
        return d

    return make


async def test_a_person_is_asked_once_where_the_chain_failed(halfway):
    """What the ledger has is what the session waits for, though its chain does not say so."""
    d = await halfway()
    [asked] = await d.guard.waiting("session/s")

    again = await d.run()

    assert (RunState.WAITING_INPUT, asked.id) == (again.state, again.pending)
    assert [asked.id] == [each.id for each in await d.guard.waiting("session/s")]


async def test_an_answer_counts_where_the_chain_failed(halfway):
    """The person answers what was asked, and the call runs once for it."""
    d = await halfway()
    [asked] = await d.guard.waiting("session/s")

    result = await d.run(answers={asked.id: ApprovalDecision(True, "bo")})

    assert (True, [("pay", 3)]) == (result.succeeded, d.ran)
    assert [] == list(await d.guard.waiting("session/s"))


async def test_a_refusal_stands_where_the_chain_failed(desk, propose, done):
    """What somebody refused is not asked about again, whatever the chain has lost since."""
    ledger = MemoryLedger()
    d = desk(
        propose("pay", amount=3),
        done,
        chain=Forgetful("step.observed"),
        guard={"on_approval": pause_approval(ledger)},
    )
    waiting = await d.run()
    with pytest.raises(StoreError, match="down"):
        await d.run(answers={waiting.pending: ApprovalDecision(False, "bo", "no")})

    result = await d.run()

    assert (True, []) == (result.succeeded, d.ran)
    assert "error: [denied]" in d.read[1]
