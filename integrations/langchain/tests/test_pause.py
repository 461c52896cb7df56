"""Runs that wait for people: what they wait for, how they go on, and what grants nothing."""

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from adjudge import (
    AnswerError,
    ApprovalDecision,
    GovernError,
    LedgerError,
    MemoryLedger,
    pause_approval,
)
from adjudge_langchain import (
    AdjudgeMiddleware,
    apending,
    aresume,
    govern,
    pending,
    resume,
)

GRANTED = ApprovalDecision(True, "ana")
REFUSED = ApprovalDecision(False, "ana", "no")
ONE: Any = {"configurable": {"thread_id": "1"}}
OTHER: Any = {"configurable": {"thread_id": "2"}}
ERASE = ("erase", '{"name": "a"}')


@pytest.fixture
def database(tmp_path):
    """A file for checkpoints."""
    return tmp_path / "checkpoints.sqlite"


def answers_to(agent, config=ONE, answer=GRANTED, **options):
    """Answer everything that waits with the same words."""
    return {each.id: answer for each in pending(agent, config, **options)}


class TestGoingOn:
    def test_on_a_file(self, stage, pausing, erase, ran, database, record):
        """What waits is found again on the checkpointer's file, and runs once."""
        stage.script(a=[ERASE])
        with closing(sqlite3.connect(database, check_same_thread=False)) as opened:
            agent = govern(stage.agent([erase], checkpointer=SqliteSaver(opened)), pausing())
            paused = stage.run(agent, config=ONE)
            assert ["erase"] == [each.value["name"] for each in paused["__interrupt__"]]
        assert [] == ran

        with closing(sqlite3.connect(database, check_same_thread=False)) as opened:
            agent = govern(stage.agent([erase], checkpointer=SqliteSaver(opened)), pausing())
            (asked,) = pending(agent, ONE)
            state = resume(agent, ONE, {asked.id: GRANTED})

        assert ("erase", {"name": "a", "hard": False}) == (asked.request.tool, _args(asked))
        assert [("a", False)] == ran
        assert "a is done." == state["messages"][-1].content
        assert ["action.completed"] == record.ends

    def test_in_coroutines(self, stage, pausing, erase, ran):
        """The twins do the same for agents that run on an event loop."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())

        async def run() -> Any:
            await agent.ainvoke({"messages": [{"role": "user", "content": "Go."}]}, ONE)
            (asked,) = await apending(agent, ONE)
            return await aresume(agent, ONE, {asked.id: GRANTED})

        asyncio.run(run())

        assert [("a", False)] == ran

    def test_refused(self, stage, pausing, erase, ran):
        """A refusal is told to the model in its own words."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)

        resume(agent, ONE, answers_to(agent, answer=REFUSED))

        assert [] == ran
        assert stage.said[0].startswith("[denied]")

    def test_under_a_middleware(self, stage, pausing, erase, ran):
        """Where only a middleware governs, the guard is given by hand."""
        guard = pausing()
        stage.script(a=[ERASE])
        middleware = [AdjudgeMiddleware(guard)]
        agent = stage.agent([erase], middleware=middleware, checkpointer=InMemorySaver())
        stage.run(agent, config=ONE)

        with pytest.raises(GovernError, match="guard="):
            pending(agent, ONE)
        resume(agent, ONE, answers_to(agent, guard=guard), guard=guard)

        assert [("a", False)] == ran

    def test_with_answers_that_were_given_elsewhere(self, stage, pausing, erase, ran):
        """A run that nobody has answered waits on; what the ledger has by then is enough."""
        guard = pausing()
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), guard)
        stage.run(agent, config=ONE)
        given = answers_to(agent)

        assert resume(agent, ONE, {})["__interrupt__"]
        assert [] == ran
        guard.reopen_sync(given)
        resume(agent, ONE, dict.fromkeys(given))

        assert [("a", False)] == ran

    def test_each_of_a_batch_by_its_own_answer(self, stage, pausing, erase, ran):
        """One is allowed, one granted with an edit, one refused: each is answered, in order."""
        rule = {"id": "a", "match": {"args.name": "a"}, "decision": "allow"}
        stage.script(a=[[("erase", json.dumps({"name": name})) for name in "abc"]])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing(rule))
        stage.run(agent, config=ONE)
        asked = {each.request.args["name"]: each.id for each in pending(agent, ONE)}
        edited = ApprovalDecision(True, "ana", edited_args={"name": "d"})

        resume(agent, ONE, {asked["c"]: edited, asked["b"]: REFUSED})

        assert [("a", False), ("d", False)] == ran
        assert ["erased a", "[denied] approval refused by ana: no", "erased d"] == stage.said

    def test_some_first(self, stage, pausing, erase, ran):
        """What nobody has answered yet goes on waiting."""
        stage.script(a=[[ERASE, ("erase", '{"name": "b"}')]])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        # They were asked about at the same time, in either order.
        first, second = sorted(pending(agent, ONE), key=lambda each: each.request.args["name"])

        paused = resume(agent, ONE, {first.id: GRANTED})
        assert [second.id] == [each.id for each in pending(agent, ONE)]
        assert paused["__interrupt__"]
        resume(agent, ONE, {second.id: REFUSED})

        assert [("a", False)] == ran


class TestWhatGrantsNothing:
    def test_the_framework_alone(self, stage, pausing, erase, ran):
        """A native approval passes nothing, and takes nothing from the true answer."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        (before,) = pending(agent, ONE)

        for value in ({"type": "approve"}, "yes", True, {"adjudge": {"goes_on": before.id}}):
            agent.invoke(Command(resume=value), ONE)
            assert [] == ran
        (after,) = pending(agent, ONE)
        resume(agent, ONE, {after.id: GRANTED})

        assert (before.id, before.digest) == (after.id, after.digest)
        assert [("a", False)] == ran

    def test_an_answer_twice(self, stage, pausing, erase, ran):
        """An answer that has been used grants nothing more."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        given = answers_to(agent)

        resume(agent, ONE, given)
        resume(agent, ONE, given)

        assert [("a", False)] == ran

    def test_an_earlier_state(self, stage, pausing, erase, ran):
        """A run that is taken back to where it waited does not run again."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        given, waited = answers_to(agent), agent.get_state(ONE).config

        resume(agent, ONE, given)
        resume(agent, waited, given)

        assert [("a", False)] == ran

    def test_answers_to_another_thread(self, stage, pausing, erase, ran):
        """Each thread is resumed with the answers to its own calls."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        stage.run(agent, config=OTHER)

        with pytest.raises(AnswerError, match="another run"):
            resume(agent, OTHER, answers_to(agent, ONE))

        assert [] == ran

    @pytest.mark.parametrize("answers", [{"x": GRANTED}, {"x": True}, GRANTED])
    def test_what_is_no_answer(self, stage, pausing, erase, answers):
        """What no call waits for, and what is no decision, is an error."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)

        with pytest.raises(AnswerError):
            resume(agent, ONE, answers)

    def test_another_guard(self, stage, pausing, erase):
        """A run goes on under the guard that paused it."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)

        with pytest.raises(GovernError, match="another guard"):
            resume(agent, ONE, answers_to(agent), guard=pausing())

    def test_a_config_without_a_thread(self, stage, pausing, erase):
        """A run is known by its thread."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())

        with pytest.raises(AnswerError, match="thread_id"):
            resume(agent, {}, {"x": GRANTED})

    def test_a_changed_state(self, stage, pausing, erase, ran):
        """What somebody edits into the state is another call, which asks anew."""
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        given = answers_to(agent)
        message = agent.get_state(ONE).values["messages"][-1]
        call = {**message.tool_calls[0], "args": {"name": "everything"}}
        agent.update_state(ONE, {"messages": [message.model_copy(update={"tool_calls": [call]})]})

        agent.invoke(None, ONE)
        resume(agent, ONE, given)

        assert [] == ran


class TestRetries:
    def test_a_retry_asks_anew(self, stage, pausing, ran, record):
        """Law 6: a grant covers the first attempt, and the next one waits for another."""

        @tool
        def flaky(name: str) -> str:
            """Fail at first."""
            ran.append(name)
            if len(ran) < 2:
                raise ConnectionError("down")
            return "done"

        stage.script(a=[("flaky", '{"name": "a"}')])
        again = ToolRetryMiddleware(max_retries=2, initial_delay=0.01)
        made = stage.agent([flaky], middleware=[again], checkpointer=InMemorySaver())
        agent = govern(made, pausing())
        stage.run(agent, config=ONE)

        resume(agent, ONE, answers_to(agent))
        assert ["a"] == ran
        (asked,) = pending(agent, ONE)
        resume(agent, ONE, {asked.id: GRANTED})

        assert (["a", "a"], ["done"]) == (ran, stage.said)
        assert [1, 2] == [each["attempt"] for each in record.bodies("approval.granted")]


class TestALedgerThatCannotBeRead:
    @pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
    def test_lets_nothing_run(self, stage, guard_of, erase, ran, record, in_loop):
        """Laws 4 and 7: nothing runs of which that is not known; a denial by value, on record."""
        guard = guard_of(on_approval=pause_approval(Broken()))
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), guard)

        stage.run(agent, in_loop=in_loop, config=ONE)

        assert [] == ran
        assert stage.said[0].startswith("[denied] the ledger cannot be read")
        assert ["ledger_failed"] == [each["code"] for each in record.bodies("action.denied")]


class Broken(MemoryLedger):
    """A ledger that cannot be read."""

    durable = True

    def of_run(self, run):
        """Fail."""
        raise LedgerError("the disk is gone")


class TestBodiesThatWait:
    @pytest.mark.parametrize("rest", ["allow", "approve_required"])
    def test_get_their_own_answer(self, stage, pausing, record, rest):
        """A body's interrupt gets what it was resumed with, and nothing of ours; it runs once."""
        heard: list[Any] = []

        @tool
        def choose(of: str) -> str:
            """Choose."""
            heard.append(interrupt(f"which {of}?"))
            return f"chose {heard[-1]}"

        stage.script(a=[("choose", '{"of": "note"}')])
        agent = govern(stage.agent([choose], checkpointer=InMemorySaver()), pausing(rest=rest))
        stage.run(agent, config=ONE)
        if rest == "approve_required":
            agent.invoke(Command(resume="not ours"), ONE)
            resume(agent, ONE, answers_to(agent))

        assert ["which note?"] == [each.value for each in agent.get_state(ONE).interrupts]
        assert [] == pending(agent, ONE)
        agent.invoke(Command(resume="b"), ONE)

        assert ["b"] == heard
        assert ["chose b"] == stage.said
        assert ["action.suspended", "action.completed"] == record.ends
        assert 1 == record.kinds.count("step.proposed")

    def test_after_another_call_was_answered_first(self, stage, pausing, erase):
        """What goes on with one call leaves nothing behind that the body of another could get."""
        heard: list[Any] = []

        @tool
        def choose(of: str) -> str:
            """Choose."""
            heard.append(interrupt(f"which {of}?"))
            return f"chose {heard[-1]}"

        stage.script(a=[[ERASE, ("choose", '{"of": "note"}')]])
        agent = govern(stage.agent([erase, choose], checkpointer=InMemorySaver()), pausing())
        stage.run(agent, config=ONE)
        ids = {each.request.tool: each.id for each in pending(agent, ONE)}

        resume(agent, ONE, {ids["erase"]: GRANTED})
        resume(agent, ONE, {})
        resume(agent, ONE, {ids["choose"]: GRANTED})

        # Older releases show the question of a call that has run until the others have, too.
        assert "which note?" == agent.get_state(ONE).interrupts[-1].value
        assert [] == pending(agent, ONE)
        agent.invoke(Command(resume="b"), ONE)
        assert ["b"] == heard


class TestSwallowed:
    def test_by_middleware(self, stage, pausing, erase, ran):
        """Middleware that takes the interrupt for an error loses the question; nothing runs."""

        class Broad(AgentMiddleware):
            def wrap_tool_call(self, request, handler):
                try:
                    return handler(request)
                except Exception:
                    return ToolMessage("failed", tool_call_id=request.tool_call["id"])

        stage.script(a=[ERASE])
        agent = stage.agent([erase], middleware=[Broad()], checkpointer=InMemorySaver())

        stage.run(govern(agent, pausing()), config=ONE)

        assert (["failed"], []) == (stage.said, ran)


def _args(asked: Any) -> dict[str, Any]:
    return dict(asked.decision.effective_args or asked.request.args)
