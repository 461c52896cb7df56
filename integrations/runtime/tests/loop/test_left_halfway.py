"""Runs that stop between two of their own records: a person's answer is not lost, nor is a result.

The ledger and the journal are two stores, so a run can stop when one of them knows and the other
does not. Whatever is then not known to have begun is asked about again, and never run unasked.
"""

import asyncio
import contextlib

import pytest

from adjudge import (
    ApprovalDecision,
    MemoryRunStore,
    SQLiteLedger,
    StoreError,
    ToolSet,
    pause_approval,
    required_sink,
)
from adjudge_runtime import FinalAnswer, ToolCall, agent_tool, truncate_compressor

from .scripted import DONE, Died, Script, call

YES = ApprovalDecision(True, "ana")
NO = ApprovalDecision(False, "ana", "too much")
PAY = (call("pay", amount=1), DONE)
ASK = (call("helper", task="help me"), DONE)


class Failing(MemoryRunStore):
    """A store that does not take one kind of record of one run, or dies at it."""

    def __init__(self, kind, *, run_id="r", error=None):
        super().__init__()
        self.refused = (kind, run_id)
        self.error = StoreError("down") if error is None else error

    async def append(self, record):
        """Keep a record, or raise."""
        if (record.kind, record.run_id) == self.refused:
            self.refused = None
            raise self.error
        await super().append(record)


@pytest.fixture
def ledger(tmp_path):
    """Give a ledger in a file."""
    opened = SQLiteLedger(tmp_path / "ledger.db")
    yield opened
    opened.close()


def kept(store, ledger):
    """Give what makes a run pause, and go on."""
    return {"store": store, "run_id": "r", "on_approval": pause_approval(ledger)}


def helper(world):
    """Give the tools of an agent that asks another, which pays."""
    payer = Script(call("pay", amount=7), call("echo"), FinalAnswer("helped"), name="helper")
    return ToolSet([agent_tool(payer, tools=world.tools)])


class TestAsked:
    """A call that the ledger has, and the journal not."""

    async def test_still_waits(self, world, ledger):
        """It is told as waiting again, under the same id, and goes on with the answer."""
        store = Failing("action.pending")
        options = kept(store, ledger)
        await world.run(Script(*PAY), **options)
        asked = world.bodies("approval.requested")

        paused = await world.run(Script(*PAY), **options)
        again = await world.run(Script(*PAY), **options)
        result = await world.run(Script(*PAY), answers={paused.pending[0].id: YES}, **options)

        assert ["paused", "paused"] == [paused.code, again.code]
        assert asked == world.bodies("approval.requested")
        assert [] == world.bodies("action.denied")
        assert ("done", [("pay", 1)]) == (result.final_answer, world.ran)

    async def test_still_waits_inside_of_a_tool(self, world, ledger):
        """A nested call that was asked about is found as well."""
        options = kept(Failing("action.pending", run_id="r/nested/0.0"), ledger)
        await world.run(Script(*ASK), tools=helper(world), **options)

        paused = await world.run(Script(*ASK), tools=helper(world), **options)
        answers = {each.id: YES for each in paused.pending}
        result = await world.run(Script(*ASK), tools=helper(world), answers=answers, **options)

        assert ("paused", 1) == (paused.code, len(answers))
        assert ("done", [("pay", 7), ("echo", "hi")]) == (result.final_answer, world.ran)


class TestGranted:
    """A call that was granted, and stopped before its body."""

    @pytest.mark.parametrize("error", [None, Died()], ids=["fails", "dies"])
    async def test_is_asked_about_again(self, world, ledger, error):
        """The grant is spent; the call is neither denied for good nor run without a new one."""
        options = kept(Failing("action.intent", error=error), ledger)
        paused = await world.run(Script(*PAY), **options)
        answers = {paused.pending[0].id: YES}
        with contextlib.suppress(Died):
            await world.run(Script(*PAY), answers=answers, **options)

        again = await world.run(Script(*PAY), **options)
        before = list(world.ran)
        result = await world.run(Script(*PAY), answers={again.pending[0].id: YES}, **options)

        assert ("paused", []) == (again.code, before)
        assert ("done", [("pay", 1)]) == (result.final_answer, world.ran)

    async def test_is_not_run_again_once_its_body_began(self, world, ledger):
        """A body of which nobody knows how it ended is not run again."""
        options = kept(Failing("action.result", error=Died()), ledger)
        paused = await world.run(Script(*PAY), **options)
        with pytest.raises(Died):
            await world.run(Script(*PAY), answers={paused.pending[0].id: YES}, **options)
        agent = Script(*PAY)

        result = await world.run(agent, **options)

        assert ("done", [("pay", 1)]) == (result.final_answer, world.ran)
        assert "not run again" in agent.told[0]

    async def test_a_refusal_stands(self, world, ledger):
        """Nobody is asked again about what somebody refused."""
        options = kept(Failing("action.result"), ledger)
        paused = await world.run(Script(*PAY), **options)
        await world.run(Script(*PAY), answers={paused.pending[0].id: NO}, **options)
        agent = Script(*PAY)

        result = await world.run(agent, **options)

        assert ("done", []) == (result.final_answer, world.ran)
        assert ["[denied] the call ended as denied; it is not run again"] == agent.told

    async def test_who_was_about_to_begin_is_superseded(self, world, ledger):
        """Of two workers with one grant, the one that comes late starts no body."""
        reached, gate = asyncio.Event(), asyncio.Event()

        class Slow(MemoryRunStore):
            async def append(self, record):
                if record.kind == "action.intent" and not reached.is_set():
                    reached.set()
                    await gate.wait()
                await super().append(record)

        options = kept(Slow(), ledger)
        paused = await world.run(Script(*PAY), **options)
        answers = {paused.pending[0].id: YES}
        late = asyncio.create_task(world.run(Script(*PAY), answers=answers, **options))
        await reached.wait()

        agent = Script(*PAY)
        again = await world.run(agent, **options)
        gate.set()

        # Whoever holds the claim may be at the body, for all that anybody else can know.
        assert ("", "superseded") == (again.code, (await late).code)
        assert ([], True) == (world.ran, agent.told[0].startswith("[denied] "))

    async def test_an_agent_inside_of_a_tool_goes_on(self, world, ledger):
        """A nested run that stopped after a pause goes on where it was, and pays once."""
        store = Failing(None)
        options = kept(store, ledger)
        paused = await world.run(Script(*ASK), tools=helper(world), **options)
        store.refused = ("model.output", "r/nested/0.0")
        answers = {paused.pending[0].id: YES}
        stopped = await world.run(Script(*ASK), tools=helper(world), answers=answers, **options)
        agent = Script(*ASK)

        result = await world.run(agent, tools=helper(world), **options)

        assert ("store_failed", "done") == (stopped.code, result.final_answer)
        assert (["helped"], [("pay", 7), ("echo", "hi")]) == (agent.told, world.ran)


class TestReusedIds:
    """A provider that gives two calls of a run one id."""

    async def test_a_later_call_is_its_own(self, world, ledger):
        """What became of an earlier step's call is no answer to a later one."""
        same = ToolCall("pay", {"amount": 1}, "c")
        store = Failing(None)
        options = kept(store, ledger)
        paused = await world.run(Script(same, same, DONE), **options)
        answers = {paused.pending[0].id: YES}
        store.refused = ("model.output", "r")
        await world.run(Script(same, same, DONE), answers=answers, **options)

        again = await world.run(Script(same, same, DONE), **options)
        answers = {again.pending[0].id: YES}
        result = await world.run(Script(same, same, DONE), answers=answers, **options)

        assert "paused" == again.code
        assert ("done", [("pay", 1), ("pay", 1)]) == (result.final_answer, world.ran)


class TestResults:
    """A body that ran, and a record that fails right after it."""

    async def test_is_kept_before_it_is_said_that_it_is_short(self, world):
        """A sink that fails at `step.compressed` does not lose the result."""
        down = [True]

        async def sink(event):
            if event.kind == "step.compressed" and down.pop():
                raise OSError("disk full")

        options = {"store": MemoryRunStore(), "run_id": "r", "sinks": (required_sink(sink),)}
        options["compressor"] = truncate_compressor(max_chars=1)
        actions = (call("echo", text="a" * 99), DONE)

        stopped = await world.run(Script(*actions), **options)
        agent = Script(*actions)
        result = await world.run(agent, **options)

        assert ("record_failed", "done") == (stopped.code, result.final_answer)
        assert 1 == len(world.ran)
        assert not agent.told[0].startswith("[error]")
