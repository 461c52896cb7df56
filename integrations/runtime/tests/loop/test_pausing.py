"""A run that waits for people, and the agents inside of its tools."""

import asyncio

import pytest

from adjudge import (
    AnswerError,
    ApprovalDecision,
    CancelToken,
    LedgerError,
    MemoryRunStore,
    SQLiteLedger,
    SQLiteRunStore,
    ToolDefinitionError,
    ToolMetadata,
    ToolSet,
    auto_approve,
    inline_executor,
    pause_approval,
    required_sink,
)
from adjudge_runtime import (
    Budget,
    FinalAnswer,
    ToolCall,
    ToolCalls,
    Usage,
    agent_tool,
    replay,
)

from .scripted import DONE, Died, DyingStore, Script, call, policy

YES = ApprovalDecision(True, "ana")
NO = ApprovalDecision(False, "ana", "too much")
PAY = (call("pay", amount=1), DONE)
TWO = (ToolCalls((call("pay", amount=1), call("echo"), call("pay", amount=2))), DONE)


@pytest.fixture
def desk(world, tmp_path):
    """Give a world whose runs pause, in files."""
    return Desk(world, tmp_path)


class Desk:
    """Runs of one id that pause, each in what could be another process."""

    def __init__(self, world, folder):
        self.world = world
        self.folder = folder

    async def run(self, agent, **options):
        """Run or go on, with stores that nothing else has open."""
        store = SQLiteRunStore(self.folder / "runs.db")
        ledger = SQLiteLedger(self.folder / "ledger.db")
        settings = {"store": store, "run_id": "r", "on_approval": pause_approval(ledger)}
        try:
            return await self.world.run(agent, **(settings | options))
        finally:
            store.close()
            ledger.close()

    async def journal(self):
        """Give the records of the run."""
        store = SQLiteRunStore(self.folder / "runs.db")
        try:
            return await store.load("r")
        finally:
            store.close()


class TestPausing:
    """A call that a person is asked about."""

    async def test_stops_the_run(self, desk):
        """The run stops by value, and says what it waits for."""
        result = await desk.run(Script(*PAY))

        assert ("paused", []) == (result.code, desk.world.ran)
        assert ["pay"] == [waits.request.tool for waits in result.pending]
        assert "run.paused" == desk.world.events[-1]

    @pytest.mark.parametrize(
        ("answer", "told", "ran"),
        [
            (YES, ["1"], [("pay", 1)]),
            (NO, ["[denied] approval refused by ana: too much"], []),
        ],
    )
    async def test_goes_on_with_the_answer(self, desk, answer, told, ran):
        """The same call with answers goes on from where it stands."""
        paused = await desk.run(Script(*PAY))
        agent = Script(*PAY)

        result = await desk.run(agent, answers={paused.pending[0].id: answer})

        assert ("done", told, ran) == (result.final_answer, agent.told, desk.world.ran)
        assert 1 == len(agent.seen)

    async def test_without_an_answer_it_still_waits(self, desk):
        """Called again without answers it waits for the same, and asks no model."""
        paused = await desk.run(Script(*PAY))
        agent = Script(*PAY)

        again = await desk.run(agent)

        assert ("paused", []) == (again.code, agent.seen)
        assert [each.id for each in paused.pending] == [each.id for each in again.pending]

    async def test_each_call_waits_for_its_own_answer(self, desk):
        """Calls beside one that waits have run, and do not run again."""
        paused = await desk.run(Script(*TWO))
        first, second = paused.pending

        half = await desk.run(Script(*TWO), answers={first.id: YES})
        agent = Script(*TWO)
        whole = await desk.run(agent, answers={second.id: NO})

        assert [second.id] == [each.id for each in half.pending]
        expected = ["1", "hi", "[denied] approval refused by ana: too much"]
        assert ("done", expected) == (whole.final_answer, agent.told)
        assert [("echo", "hi"), ("pay", 1)] == desk.world.ran

    async def test_an_answer_counts_once(self, desk):
        """A finished run with the same answer again runs nothing."""
        paused = await desk.run(Script(*PAY))
        answers = {paused.pending[0].id: YES}
        await desk.run(Script(*PAY), answers=answers)

        again = await desk.run(Script(*PAY), answers=answers)

        assert ("done", [("pay", 1)]) == (again.final_answer, desk.world.ran)

    async def test_an_answer_of_another_run_is_an_error(self, desk):
        """An answer is to a call of this run, and nothing runs otherwise."""
        await desk.run(Script(*PAY))
        other = await desk.run(Script(*PAY), run_id="other")

        with pytest.raises(AnswerError):
            await desk.run(Script(*PAY), answers={other.pending[0].id: YES})
        assert [] == desk.world.ran

    async def test_answers_where_a_run_begins_are_an_error(self, desk):
        """A run that has not paused has nothing to be answered."""
        with pytest.raises(ValueError, match="answers"):
            await desk.run(Script(*PAY), answers={"x": YES})

    async def test_a_policy_that_has_changed_denies(self, desk):
        """A granted call is judged again when it goes on."""
        paused = await desk.run(Script(*PAY))
        stop = policy({"match": {"tool": "pay"}, "decision": "deny", "reason": "closed"})
        agent = Script(*PAY)

        await desk.run(agent, policy=stop, answers={paused.pending[0].id: YES})

        assert [] == desk.world.ran
        assert agent.told[0].startswith("[denied]")

    async def test_of_two_workers_with_the_answer_one_goes_on(self, desk):
        """The same answer in two processes at once runs the call once."""
        paused = await desk.run(Script(*PAY))
        answers = {paused.pending[0].id: YES}

        results = await asyncio.gather(*(desk.run(Script(*PAY), answers=answers) for _ in range(4)))

        assert [("pay", 1)] == desk.world.ran
        assert {"", "superseded"} == {result.code for result in results}

    async def test_a_run_that_began_without_pausing_may_pause_later(self, desk):
        """A run that is resumed under a ledger pauses, and goes on with the answer."""
        await desk.run(Script(*PAY), on_approval=None, budget=Budget(steps=0))
        paused = await desk.run(Script(*PAY))

        result = await desk.run(Script(*PAY), answers={paused.pending[0].id: YES})

        assert ("done", [("pay", 1)]) == (result.final_answer, desk.world.ran)

    async def test_a_ledger_that_fails_runs_nothing(self, desk):
        """Without its ledger a paused run does not go on."""
        paused = await desk.run(Script(*PAY))

        class Broken(SQLiteLedger):
            def get(self, id):
                raise LedgerError("gone")

            of_run = get

        ledger = Broken(desk.folder / "ledger.db")
        result = await desk.run(
            Script(*PAY),
            on_approval=pause_approval(ledger),
            answers={paused.pending[0].id: YES},
        )
        ledger.close()

        assert ("ledger_failed", []) == (result.code, desk.world.ran)

    async def test_the_journal_says_who_waits(self, desk):
        """A view of the run shows the call as pending."""
        await desk.run(Script(*PAY))

        view = replay(await desk.journal())

        assert [True] == [step.pending for step in view.steps]


HELPER = (call("pay", amount=7), call("echo"), FinalAnswer("helped", Usage(5, 6)))
ASK = (call("helper", task="help me"), DONE)


def asking(world, *actions, **options):
    """Give the tools of an agent that can ask another."""
    helper = Script(*(actions or HELPER), name="helper")
    made = agent_tool(helper, tools=world.tools, **options)
    return helper, ToolSet([made])


class TestNestedAgents:
    """An agent inside of a tool of another."""

    async def test_is_governed_by_the_same_guard(self, world):
        """Its calls are judged, recorded and told as any."""
        helper, tools = asking(world, call("erase"), call("echo"), FinalAnswer("helped"))
        agent = Script(*ASK)

        result = await world.run(agent, tools=tools)

        assert ("done", ["helped"]) == (result.final_answer, agent.told)
        assert ["[denied] never erase", "hi"] == helper.told
        assert ["helper", "erase", "echo"] == [
            body["tool"] for body in world.bodies("step.proposed")
        ]

    async def test_gets_its_task(self, world):
        """The task is what the calling agent wrote."""
        helper, tools = asking(world, FinalAnswer("helped"))

        await world.run(Script(*ASK), tools=tools)

        assert "help me" == helper.seen[0][0].content

    async def test_without_an_answer_is_a_failure(self, world):
        """A nested run that fails is a failure of the tool, told to the model."""
        _, tools = asking(world, ValueError("lost"))
        agent = Script(*ASK)

        await world.run(agent, tools=tools)

        expected = "[error] AgentToolError: helper: agent.step raised: ValueError: lost"
        assert [expected] == agent.told

    async def test_has_a_budget_of_its_own(self, world):
        """A nested run stops at its own caps, and the outer one goes on."""
        _, tools = asking(world, call("echo"), budget=Budget(steps=2))
        agent = Script(*ASK)

        result = await world.run(agent, tools=tools)

        assert "done" == result.final_answer
        assert ["[error] AgentToolError: helper: step budget exhausted (2)"] == agent.told

    async def test_what_it_uses_counts_outside(self, world):
        """Tokens cannot be hidden from a cap inside of a tool."""
        _, tools = asking(world, FinalAnswer("helped", Usage(5, 6)))

        result = await world.run(Script(*ASK), tools=tools, budget=Budget(tokens=11))

        assert ("budget_exhausted", Usage(5, 6)) == (result.code, result.usage)

    async def test_the_kill_switch_stops_both(self, world):
        """A token that is tripped inside ends the whole run."""
        token = CancelToken()

        async def trip():
            token.cancel("enough")
            return call("echo")

        _, tools = asking(world, trip)

        result = await world.run(Script(*ASK), tools=tools, cancel=token)

        assert ("cancelled", []) == (result.code, world.ran)

    async def test_a_record_that_fails_inside_stops_both(self, world):
        """Where a required sink takes nothing, no agent goes on (law 4)."""

        async def broken(event):
            if event.kind == "step.usage":
                raise OSError("disk full")

        _, tools = asking(world, ToolCall("echo", {}, usage=Usage(1, 1)), DONE)

        result = await world.run(Script(*ASK), tools=tools, sinks=(required_sink(broken),))

        assert ("record_failed", []) == (result.code, world.ran)

    async def test_its_pause_is_the_runs(self, desk):
        """A nested call that waits leaves the outer body waiting; both go on with the answer."""
        _, tools = asking(desk.world)
        paused = await desk.run(Script(*ASK), tools=tools)
        helper, tools = asking(desk.world)
        agent = Script(*ASK)

        result = await desk.run(agent, tools=tools, answers={paused.pending[0].id: YES})

        assert ("paused", "pay") == (paused.code, paused.pending[0].request.tool)
        assert ("done", ["helped"], ["7", "hi"]) == (
            result.final_answer,
            agent.told,
            helper.told,
        )
        assert [("pay", 7), ("echo", "hi")] == desk.world.ran
        assert Usage(5, 6) == result.usage

    async def test_its_pause_keeps_one_terminal_event_for_each_call(self, desk):
        """The outer call is suspended and then completed: one execution (laws 6 and 7)."""
        _, tools = asking(desk.world)
        paused = await desk.run(Script(*ASK), tools=tools)
        _, tools = asking(desk.world)
        await desk.run(Script(*ASK), tools=tools, answers={paused.pending[0].id: YES})

        outer = [
            event.kind for event in desk.world.sink.events if event.body.get("tool") == "helper"
        ]
        assert [
            "step.proposed",
            "policy.evaluated",
            "action.suspended",
            "policy.evaluated",
            "action.completed",
        ] == outer

    async def test_two_side_by_side_wait_for_their_own_answers(self, desk):
        """Nested agents that look the same are told apart by the calls that asked them."""
        both = (ToolCalls((ASK[0], ASK[0])), DONE)
        _, tools = asking(desk.world)
        paused = await desk.run(Script(*both), tools=tools)
        yes, no = (each.id for each in paused.pending)
        _, tools = asking(desk.world)

        result = await desk.run(Script(*both), tools=tools, answers={yes: YES, no: NO})

        assert "done" == result.final_answer
        assert 1 == desk.world.ran.count(("pay", 7))

    async def test_a_crash_inside_runs_nothing_twice(self, world):
        """Wherever the worker dies, the nested run goes on where it was."""
        grant = {"on_approval": auto_approve()}
        _, tools = asking(world)
        whole = MemoryRunStore()
        await world.run(Script(*ASK), tools=tools, store=whole, run_id="r", **grant)
        total = len(await whole.load("r")) + len(await whole.load("r/nested/0.0"))

        for survived in range(total):
            world.ran.clear()
            dying = DyingStore([], survived)
            _, tools = asking(world)
            with pytest.raises(Died):
                await world.run(Script(*ASK), tools=tools, store=dying, run_id="r", **grant)
            kept = await dying.load("r/nested/0.0")
            uncertain = sum(step.uncertain for step in replay(kept).steps)
            dying.survive = 99
            _, tools = asking(world)
            result = await world.run(Script(*ASK), tools=tools, store=dying, run_id="r", **grant)

            assert ("done", Usage(5, 6)) == (result.final_answer, result.usage)
            assert len(set(world.ran)) == len(world.ran)
            assert 2 - uncertain <= len(world.ran)

    async def test_runs_here_whatever_the_executor(self, world):
        """An executor gets the bodies of tools, and never that of an agent's tool."""
        routed = []
        inline = inline_executor()

        async def executor(request, definition):
            routed.append(definition.name)
            return await inline(request, definition)

        _, tools = asking(world, call("echo"), FinalAnswer("helped"))

        await world.run(Script(*ASK), tools=tools, executor=executor)

        assert ["echo"] == routed

    @pytest.mark.parametrize("executor", [None, inline_executor()], ids=["none", "inline"])
    async def test_never_runs_where_it_is_to_be_isolated(self, world, executor):
        """It runs in this process, so that no executor provides what it declares."""
        _, tools = asking(world, declared=ToolMetadata(isolation="container"))
        agent = Script(*ASK)

        result = await world.run(agent, tools=tools, executor=executor)

        assert ("done", []) == (result.final_answer, world.ran)
        assert "declares the isolation 'container'" in agent.told[0]

    async def test_its_denials_count_outside(self, world):
        """Those of earlier attempts too, once each."""
        options = {"store": MemoryRunStore(), "run_id": "r", "budget": Budget(steps=1)}
        _, tools = asking(world, call("erase"), call("erase"), FinalAnswer("no"))
        actions = (*ASK[:1], call("erase"), DONE)

        first = await world.run(Script(*actions), tools=tools, **options)
        more = await world.run(Script(*actions), tools=tools, **{**options, "budget": Budget()})
        again = await world.run(Script(*actions), tools=tools, **options)

        assert [2, 3, 3] == [result.denials for result in (first, more, again)]

    async def test_outside_of_a_run_it_fails(self, world):
        """The body of an agent's tool needs the run around it."""
        _, tools = asking(world)

        with pytest.raises(RuntimeError, match="run_agent"):
            await tools.get("helper").fn(task="x")

    def test_declares_what_it_is_told_to(self, world):
        """A policy can tell an agent's tool by what it declares."""
        declared = ToolMetadata(reversible=False)
        _, tools = asking(world, declared=declared, name="other", description="Ask.")

        made = tools.get("other")

        assert (declared, "Ask.") == (made.metadata, made.description)

    def test_an_agent_without_a_name_is_an_error(self, world):
        """A tool has a name."""
        with pytest.raises(ToolDefinitionError):
            agent_tool(Script(DONE), tools=world.tools)
        with pytest.raises(ToolDefinitionError):
            agent_tool(object(), tools=world.tools, name="x")


class TestSideBySide:
    """A call that waits beside one that suspends itself."""

    async def test_both_are_kept(self, desk):
        """The answered one goes on, and the other is entered where it was."""
        both = (ToolCalls((call("pay", amount=1), ASK[0])), DONE)
        _, tools = asking(desk.world)
        tools = tools.with_tool(desk.world.tools.get("pay"))
        paused = await desk.run(Script(*both), tools=tools)
        answers = {each.id: YES for each in paused.pending}
        agent = Script(*both)

        result = await desk.run(agent, tools=tools, answers=answers)

        assert 2 == len(answers)
        assert ("done", ["1", "helped"]) == (result.final_answer, agent.told)
        assert {("pay", 1), ("pay", 7), ("echo", "hi")} == set(desk.world.ran)
        assert 3 == len(desk.world.ran)
