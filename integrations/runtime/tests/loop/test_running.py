"""A run without a store: what the agent is told, and how the run ends."""

import asyncio

import pytest

from adjudge import (
    ApprovalDecision,
    CallContext,
    EphemeralLedgerWarning,
    MemoryLedger,
    MemoryRunStore,
    Principal,
    SQLiteLedger,
    ToolGuard,
    ToolSet,
    auto_approve,
    inline_executor,
    pause_approval,
    required_sink,
    tool,
)
from adjudge_runtime import Budget, FinalAnswer, Message, ToolCall, ToolCalls, Usage, run_agent

from .scripted import DONE, Script, call, policy


class TestVerdicts:
    """What the model is told of a call."""

    @pytest.mark.parametrize(
        ("proposal", "told", "ran"),
        [
            (call("echo", text="a"), "a", [("echo", "a")]),
            (call("order", count=2), '{"ordered": 2}', [("order", 2)]),
            (call("order", count=9), '{"ordered": 5}', [("order", 5)]),
            (call("erase"), "[denied] never erase", []),
            (
                call("write", path="a"),
                '[dry_run] not executed; preview: {"would_write": "a"}',
                [],
            ),
            (
                call("pay", amount=1),
                "[denied] approval refused by system: no approval handler is configured",
                [],
            ),
            (call("fail"), "[error] ValueError: bang", [("fail",)]),
            (call("nothing"), "[denied] unknown tool: 'nothing'", []),
            (
                call("echo", volume=3),
                "[error] There is no argument 'volume'; the tool takes 'text'.",
                [],
            ),
            (ToolCall("echo", '{"text": "b"}'), "b", [("echo", "b")]),
        ],
    )
    async def test_each_is_told_as_it_is(self, world, proposal, told, ran):
        """Each verdict and failure has its text, and runs what it may."""
        agent = Script(proposal, DONE)

        result = await world.run(agent)

        assert ("done", [told], ran) == (result.final_answer, agent.told, world.ran)

    async def test_text_with_a_key_twice_is_denied(self, world):
        """The model's own text is read strictly (law 5)."""
        agent = Script(ToolCall("echo", '{"text": "a", "text": "b"}'), DONE)

        await world.run(agent)

        assert agent.told[0].startswith("[denied]")
        assert [] == world.ran

    async def test_a_value_of_another_kind_gets_no_body(self, world):
        """What the model was told of a tool's arguments is what is enforced."""
        agent = Script(call("order", count="many"), DONE)

        await world.run(agent)

        assert agent.told[0].startswith("[error]")
        assert [] == world.ran

    async def test_an_approved_call_runs(self, world):
        """A handler that grants lets the body run."""
        agent = Script(call("pay", amount=3), DONE)

        await world.run(agent, on_approval=auto_approve())

        assert (["3"], [("pay", 3)]) == (agent.told, world.ran)

    async def test_denials_are_counted(self, world):
        """A result says how many calls were denied."""
        agent = Script(call("erase"), call("nothing"), call("write", path="a"), DONE)

        assert 2 == (await world.run(agent)).denials

    async def test_a_result_that_cannot_be_shown_is_said_so(self, world):
        """A value that neither JSON nor `str` can show is no failure of the run."""

        class Shy:
            def __str__(self):
                raise RuntimeError("no")

        @tool()
        async def shy():
            return Shy()

        agent = Script(call("shy"), DONE)

        result = await world.run(agent, tools=ToolSet([shy]))

        assert "done" == result.final_answer
        assert agent.told[0].startswith("[error] the tool ran")

    @pytest.mark.parametrize("keeps", [False, True], ids=["plain", "kept"])
    async def test_a_number_too_long_to_write_is_said_so(self, world, keeps):
        """A result that Python will not write loses neither the run nor the calls beside it."""

        @tool()
        async def huge():
            return 10**5000

        store = MemoryRunStore()
        kept = {"store": store, "run_id": "r"} if keeps else {}
        agent = Script(ToolCalls((call("huge"), call("echo"))), DONE)

        result = await world.run(agent, tools=world.tools.with_tool(huge), **kept)

        assert "done" == result.final_answer
        assert agent.told[0].startswith("[error] the tool ran, and its result cannot be shown: ")
        assert "hi" == agent.told[1]
        records = [each for each in await store.load("r") if each.kind == "action.result"]
        journaled = sorted(agent.told) if keeps else []
        assert journaled == sorted(each.body["message"] for each in records)

    async def test_a_result_that_no_encoder_reads_is_shown_by_python(self, world):
        """Whatever a value raises where its items are read, the run goes on."""

        class Lazy(dict):
            def items(self):
                raise RuntimeError("the connection is closed")

        @tool()
        async def lazy():
            return Lazy(a=1)

        agent = Script(call("lazy"), DONE)

        result = await world.run(agent, tools=ToolSet([lazy]))

        assert ("done", ["{'a': 1}"]) == (result.final_answer, agent.told)

    @pytest.mark.parametrize("args", [{"count": 9}, '{"count": 9}'], ids=["values", "text"])
    @pytest.mark.parametrize(
        "rule",
        [
            {
                "decision": "transform",
                "transform": {"jsonpath": "$.args.count", "set": "five"},
            },
            {"decision": "approve_required"},
        ],
        ids=["transform", "edit"],
    )
    async def test_rewritten_arguments_are_held_to_the_schema(self, world, rule, args):
        """What a rule or an approver writes fits the tool or does not run, however it was sent."""

        async def edits(request):
            return ApprovalDecision(True, "ana", edited_args={"count": "five"})

        agent = Script(ToolCall("order", args), DONE)
        own = policy({"match": {"tool": "order"}, **rule})

        await world.run(agent, policy=own, on_approval=edits)

        assert [] == world.ran
        assert agent.told[0].startswith("[denied] the rewritten arguments do not fit the tool: ")

    async def test_an_id_that_is_there_already_ends_the_run_by_value(self, world):
        """An agent's own id that is one that the loop makes is no proposal."""
        agent = Script(ToolCalls((ToolCall("echo", {}, "step_0_1"), call("echo"))))

        result = await world.run(agent)

        assert ("agent_failed", []) == (result.code, world.ran)


class TestConversation:
    """What the agent sees."""

    async def test_begins_with_the_task(self, world):
        """The first message is the task."""
        agent = Script(DONE)

        await world.run(agent)

        assert (Message("user", "the task"),) == tuple(agent.seen[0])

    async def test_has_each_call_and_its_answer(self, world):
        """One assistant's message carries the call, a tool's message the answer to it."""
        agent = Script(ToolCall("echo", {"text": "a"}, "id-1", Usage(1, 1)), DONE)

        await world.run(agent)

        expected = (
            Message("user", "the task"),
            Message("assistant", "", tool_calls=(ToolCall("echo", {"text": "a"}, "id-1"),)),
            Message("tool", "a", name="echo", tool_call_id="id-1"),
        )
        assert expected == tuple(agent.seen[-1])

    async def test_a_call_without_an_id_gets_one(self, world):
        """The loop names calls that the provider did not name."""
        agent = Script(call("echo"), ToolCalls((call("echo"), call("echo"))), DONE)

        await world.run(agent)

        ids = [message.tool_call_id for message in agent.seen[-1] if message.role == "tool"]
        assert ["step_0", "step_1_0", "step_1_1"] == ids


class TestParallelCalls:
    """Several calls that the model proposes in one step."""

    async def test_run_side_by_side_and_are_told_in_order(self, world):
        """Neither waits for the other to end, and the answers stand in the order of proposal."""
        other_began = asyncio.Event()

        @tool()
        async def first():
            await other_began.wait()
            return "first"

        @tool()
        async def second():
            other_began.set()
            return "second"

        agent = Script(ToolCalls((call("first"), call("second")), text="both"), DONE)

        await world.run(agent, tools=ToolSet([first, second]))

        assert ["first", "second"] == agent.told
        assert "both" == agent.seen[-1][1].content

    async def test_one_that_is_denied_leaves_the_others(self, world):
        """A denial is the answer to its own call alone."""
        agent = Script(ToolCalls((call("erase"), call("echo"), call("fail"))), DONE)

        await world.run(agent)

        assert ["[denied] never erase", "hi", "[error] ValueError: bang"] == agent.told

    async def test_each_that_is_cancelled_is_recorded(self, world):
        """A cancellation reaches all of them, and each has its terminal event (law 7)."""
        began = asyncio.Semaphore(0)

        @tool()
        async def hang():
            began.release()
            await asyncio.Event().wait()

        run = asyncio.ensure_future(
            world.run(Script(ToolCalls((call("hang"), call("hang")))), tools=ToolSet([hang]))
        )
        await began.acquire()
        await began.acquire()
        run.cancel()

        with pytest.raises(asyncio.CancelledError):
            await run
        assert 2 == world.events.count("action.cancelled")

    @pytest.mark.parametrize("beside", [0, 1], ids=["alone", "side by side"])
    async def test_what_a_body_raises_is_raised_as_it_is(self, world, beside):
        """What is no Exception leaves the run, and in no group, whatever runs beside it."""

        class Odd(BaseException):
            pass

        @tool()
        async def odd():
            raise Odd

        tools = ToolSet([odd, *world.tools])
        calls = ToolCalls((call("odd"), *[call("echo")] * beside))

        with pytest.raises(Odd):
            await world.run(Script(calls), tools=tools)
        assert {"reason": "interrupted by Odd"} == world.bodies("run.cancelled")[0]


class TestAgents:
    """What an agent may do wrong."""

    async def test_an_exception_is_the_runs_error(self, world):
        """An agent that raises ends the run, by value."""
        result = await world.run(Script(ValueError("model down")))

        assert ("agent_failed", "agent.step raised: ValueError: model down") == (
            result.code,
            result.error,
        )

    async def test_an_exception_that_says_nothing_is_named(self, world):
        """An exception whose text cannot be had ends the run as any."""

        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no")

        assert "agent.step raised: Mute" == (await world.run(Script(Mute()))).error

    async def test_its_own_time_out_is_no_other(self, world):
        """A TimeoutError of the agent's own is not taken for the budget's."""
        result = await world.run(
            Script(TimeoutError("mine")), budget=Budget(step_timeout_seconds=60)
        )

        assert "agent_failed" == result.code

    @pytest.mark.parametrize("junk", ["text", None, 3])
    async def test_something_else_than_an_action_is_an_error(self, world, junk):
        """An agent gives an action, or the run ends by value."""

        async def nonsense():
            return junk

        assert "agent_failed" == (await world.run(Script(nonsense))).code

    async def test_a_cancellation_passes(self, world):
        """Cancellations are never swallowed."""
        with pytest.raises(asyncio.CancelledError):
            await world.run(Script(asyncio.CancelledError()))

    async def test_one_that_streams_tells_what_it_writes(self, world):
        """With on_token an agent's stream is used in place of its step."""

        class Streaming(Script):
            async def stream(self, conversation, on_token):
                on_token("do")
                on_token("ne")
                return await self.step(conversation)

        pieces = []

        result = await world.run(Streaming(DONE), on_token=pieces.append)

        assert ("done", ["do", "ne"]) == (result.final_answer, pieces)


class TestArguments:
    """What run_agent refuses before anything runs."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"policy": None},
            {"tools": []},
            {"budget": 3},
            {"on_token": print},
        ],
    )
    async def test_a_wrong_kind_is_an_error(self, world, wrong):
        """An argument of another kind is said, and nothing runs."""
        agent = Script(DONE)

        with pytest.raises(TypeError):
            await world.run(agent, **wrong)
        assert [] == agent.seen

    @pytest.mark.parametrize("wrong", [{"run_id": "r"}, {"run_id": ""}])
    async def test_half_of_durability_is_an_error(self, world, wrong):
        """A run that can go on needs a store and an id."""
        with pytest.raises(ValueError, match="run_id"):
            await world.run(Script(DONE), **wrong)

    async def test_a_pause_without_a_store_is_an_error(self, world, tmp_path):
        """What pauses has to be kept somewhere."""
        ledger = SQLiteLedger(tmp_path / "ledger.db")

        with pytest.raises(ValueError, match="store"):
            await world.run(Script(DONE), on_approval=pause_approval(ledger))

    async def test_answers_without_a_pausing_run_are_an_error(self, world):
        """Answers are to calls that wait."""
        with pytest.raises(ValueError, match="answers"):
            await world.run(Script(DONE), answers={"x": ApprovalDecision(True)})

    async def test_a_guard_stands_for_all_that_it_has(self, world):
        """With a guard of the caller's, nothing that it has may be given besides."""
        guard = ToolGuard(policy=policy())

        with pytest.raises(ValueError, match="environment"):
            await world.run(Script(DONE), guard=guard, environment="prod")
        with pytest.raises(ValueError, match="policy"):
            await run_agent(Script(DONE), "t", tools=world.tools, policy=policy(), guard=guard)


class TestSurroundings:
    """Who is calling, where it runs, and what is recorded."""

    async def test_a_guard_of_the_callers_is_used(self, world):
        """The calls of a run go through the guard that was given, onto its record."""
        guard = ToolGuard(policy=policy(), sinks=(world.sink,), correlation_id="mine")

        result = await world.run(Script(call("erase"), DONE), guard=guard)

        assert "mine" == result.correlation_id
        assert {"mine"} == {event.correlation_id for event in world.sink.events}
        assert "action.denied" in world.events

    async def test_who_is_calling_is_asked_for_each_call(self, world):
        """A context that fails denies; one that answers is what rules read (clause 26)."""
        only_ana = policy(
            {"match": {"context.principal.id.ne": "ana"}, "decision": "deny", "reason": "not ana"}
        )
        agent = Script(call("echo"), DONE)

        await world.run(
            agent, policy=only_ana, context=lambda: CallContext(Principal("user", "ana"))
        )

        assert ["hi"] == agent.told

    async def test_an_environment_that_nobody_gave_is_none(self, world):
        """A rule that reads it errs, and does not see another name for it (clause 9)."""
        outside = policy(
            {"match": {"context.environment.ne": "prod"}, "decision": "allow", "id": "outside"}
        )

        await world.run(Script(call("erase"), DONE), policy=outside)

        assert [None] == [body["environment"] for body in world.bodies("policy.evaluated")]
        assert [] == world.ran

    async def test_an_executor_runs_the_bodies(self, world):
        """Bodies run where the executor says."""
        routed = []
        inline = inline_executor()

        async def executor(request, definition):
            routed.append(definition.name)
            return await inline(request, definition)

        await world.run(Script(call("echo"), call("erase"), DONE), executor=executor)

        assert ["echo"] == routed

    async def test_obligations_are_discharged(self, world):
        """What rides on a decision is done before the body."""
        told = []
        owed = policy(
            {
                "match": {"tool": "echo"},
                "decision": "allow",
                "obligations": [{"id": "tell", "phase": "pre"}],
            }
        )

        async def tell(obligation, request, context):
            told.append((obligation.id, list(world.ran)))

        await world.run(Script(call("echo"), DONE), policy=owed, obligations={"tell": tell})

        assert [("tell", [])] == told

    async def test_an_ephemeral_ledger_is_warned_of(self, world):
        """A pause that the process alone could go on with is said."""
        from adjudge import MemoryRunStore

        with pytest.warns(EphemeralLedgerWarning):
            await world.run(
                Script(DONE),
                on_approval=pause_approval(MemoryLedger()),
                store=MemoryRunStore(),
                run_id="r",
            )


class TestEvents:
    """What is recorded of a run."""

    async def test_come_in_order(self, world):
        """A run's own events stand around those of its calls."""
        used = Usage(3, 4)
        agent = Script(ToolCall("echo", {}, usage=used), FinalAnswer("done", used))

        await world.run(agent)

        assert [
            "run.started",
            "step.usage",
            "step.proposed",
            "policy.evaluated",
            "action.completed",
            "step.usage",
            "run.succeeded",
        ] == world.events
        assert [3, 6] == [body["total_input"] for body in world.bodies("step.usage")]
        assert {"input_tokens": 6, "output_tokens": 8} == world.bodies("run.succeeded")[0]["usage"]

    async def test_begin_with_what_the_run_is(self, world):
        """The first event says the task, who it is for and how far it may go."""
        await world.run(Script(DONE, name="clerk"), principal=Principal("user", "ana"))

        body = world.bodies("run.started")[0]
        assert ("the task", "ana", "clerk", 20) == (
            body["task"],
            body["principal_id"],
            body["agent"],
            body["budget"]["steps"],
        )

    async def test_a_run_without_caps_is_said_out_loud(self, world):
        """A budget without any cap has an event of its own."""
        await world.run(Script(DONE), budget=Budget.unlimited())

        assert "run.unbounded" in world.events

    async def test_say_how_a_run_failed(self, world):
        """A failed run says its code and why."""
        await world.run(Script(ValueError("x")))

        assert [{"reason": "agent.step raised: ValueError: x", "code": "agent_failed"}] == (
            world.bodies("run.failed")
        )

    async def test_say_that_a_run_was_interrupted(self, world):
        """A task that is cancelled leaves an ending on the record, and stays cancelled."""
        began = asyncio.Event()

        async def hang():
            began.set()
            await asyncio.Event().wait()

        run = asyncio.ensure_future(world.run(Script(hang)))
        await began.wait()
        run.cancel()

        with pytest.raises(asyncio.CancelledError):
            await run
        assert ["run.started", "run.cancelled"] == world.events

    async def test_an_interruption_stands_where_its_event_fails(self, world):
        """A required sink that is down does not take the place of what was raised."""

        def refuse(event):
            if event.kind == "run.cancelled":
                raise OSError("full")

        with pytest.raises(asyncio.CancelledError):
            await world.run(Script(asyncio.CancelledError()), sinks=[required_sink(refuse)])

    async def test_are_redacted(self, world):
        """A run's own events go through the redactor as those of its calls do."""
        await world.run(Script(DONE), redact=lambda body: {"hidden": True})

        assert {True} == {event.body["hidden"] for event in world.sink.events}

    async def test_a_redactor_that_fails_shows_nothing(self, world):
        """What could not be redacted is not recorded, and the run goes on."""

        def broken(body):
            raise ValueError(body)

        result = await world.run(Script(call("echo"), DONE), redact=broken)

        assert "done" == result.final_answer
        assert "the task" not in repr(world.sink.events)

    async def test_a_required_sink_that_fails_stops_the_run(self, world):
        """Where a required sink takes nothing, nothing runs (law 4)."""

        async def broken(event):
            raise OSError("disk full")

        agent = Script(call("echo"), DONE)

        result = await world.run(agent, sinks=(required_sink(broken),))

        assert "record_failed" == result.code
        assert ([], []) == (agent.seen, world.ran)

    async def test_the_last_event_changes_nothing(self, world):
        """A run that has its answer keeps it, whatever its last event comes to."""

        async def broken(event):
            if event.kind == "run.succeeded":
                raise OSError("disk full")

        result = await world.run(Script(DONE), sinks=(required_sink(broken),))

        assert ("done", "") == (result.final_answer, result.code)
