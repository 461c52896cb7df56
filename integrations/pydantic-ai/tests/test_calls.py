"""Single calls in the framework's own loop: what runs, what the model is told, what is recorded."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic_ai import BinaryContent, ModelRetry, RunContext, Tool, ToolReturn, UsageLimits
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    SkipToolExecution,
    ToolFailed,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.toolsets import FunctionToolset

from adjudge import ApprovalDecision, CallContext, Principal, ToolGuard, compile_policy
from adjudge_pydantic_ai import govern

DENIED = "[denied] not permitted by policy"
DONE = ["step.proposed", "policy.evaluated", "action.completed"]


def outcomes_of(result):
    """Give the outcomes of the tool calls in a result's history."""
    return [
        part.outcome
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


class TestAnswers:
    def test_a_denial_is_a_value(self, stage, guard_of, erase, ran):
        """A denied call is one in the history, and costs no retry."""
        stage.script(a=[("erase", '{"name": "a"}')] * 3)

        result = stage.run(govern(stage.agent(tools=[erase], retries=0), guard_of(rest="deny")))

        assert [DENIED] * 3 == stage.said
        assert [] == ran
        assert "a is done." == result.output
        assert ["denied"] * 3 == outcomes_of(result)

    def test_a_preview_is_told_as_one(self, stage, guard_of, erase, ran):
        """dry_run: the shadow runs, and the model is told that the tool did not."""
        guard = guard_of(rest="dry_run", shadows={"erase": lambda **args: {"would": args["name"]}})
        stage.script(a=[("erase", '{"name": "a"}')])

        stage.run(govern(stage.agent(tools=[erase]), guard))

        assert ['[dry_run] not executed; preview: {"would": "a"}'] == stage.said
        assert [] == ran

    @pytest.mark.parametrize(
        "value",
        [
            ToolReturn("short", content="and more", metadata={"kept": 1}),
            [BinaryContent(b"x", media_type="image/png"), "a picture"],
            {"deep": [1, None, True]},
            None,
        ],
        ids=["return", "binary", "json", "none"],
    )
    def test_an_allowed_calls_result_is_untouched(self, value, stage, guard_of, record):
        """Law 1: whatever a tool gives goes on as it is."""
        histories = []
        for guard in (None, guard_of()):

            def look() -> Any:
                """Look."""
                return value

            stage.script(a=[("look", "{}")])
            agent = stage.agent(tools=[look])
            stage.run(agent if guard is None else govern(agent, guard))
            histories.append(stage.requests[1].body["messages"][-2:])

        assert histories[0] == histories[1]
        assert DONE == record.kinds

    def test_an_unknown_tool_is_the_frameworks_to_answer(self, stage, guard_of, erase, record):
        """Law 1: a name that nobody has gets the framework's own answer."""
        stage.script(a=[("wipe", "{}")])

        stage.run(govern(stage.agent(tools=[erase]), guard_of()))

        assert "Unknown tool name: 'wipe'" in stage.said[0]
        assert [] == record.kinds


class TestRaised:
    @pytest.mark.parametrize("error", [ModelRetry("again"), ToolFailed("broken")])
    def test_what_a_body_raises_is_told_as_ungoverned(self, error, stage, guard_of, record):
        """Law 1: a failure of the tool is the framework's to tell, and on record as one."""
        told = []
        for guard in (None, guard_of()):

            def fail() -> str:
                """Fail."""
                raise error

            stage.script(a=[("fail", "{}")])
            agent = stage.agent(tools=[fail])
            stage.run(agent if guard is None else govern(agent, guard))
            told.append(stage.said)

        assert told[0] == told[1]
        assert ["action.failed"] == record.ends

    def test_another_exception_ends_the_run_as_ungoverned(self, stage, guard_of, record):
        """Law 1: what is no answer to the model is the caller's to see."""

        class Broken(Exception):
            pass

        def fail() -> str:
            """Fail."""
            raise Broken("pipe")

        stage.script(a=[("fail", "{}")])

        with pytest.raises(Broken, match="pipe"):
            stage.run(govern(stage.agent(tools=[fail]), guard_of()))

        assert ["action.failed"] == record.ends

    def test_each_attempt_of_a_tool_that_asks_for_a_retry_is_judged(self, stage, guard_of, record):
        """Law 6: a retry is a call of the model's own, until the budget is spent."""

        def fail() -> str:
            """Fail."""
            raise ModelRetry("again")

        stage.script(a=[("fail", "{}")] * 3)

        with pytest.raises(UnexpectedModelBehavior, match="max retries"):
            stage.run(govern(stage.agent(tools=[fail], retries=1), guard_of()))

        assert ["action.failed"] * 2 == record.ends

    @pytest.mark.parametrize("deferral", [CallDeferred, ApprovalRequired])
    def test_a_body_that_defers_itself_is_suspended(self, deferral, stage, guard_of, record):
        """Clause of law 7: that is no end, and what comes of it is the framework's affair."""

        def wait() -> str:
            """Wait."""
            raise deferral({"why": "because"})

        stage.script(a=[("wait", "{}")])
        agent = stage.agent(tools=[wait], output_type=[str, DeferredToolRequests])

        result = stage.run(govern(agent, guard_of()))

        assert [{"why": "because"}] == list(result.output.metadata.values())
        assert ["action.suspended"] == record.ends

    def test_a_result_that_a_body_raises_is_a_result(self, stage, guard_of, record):
        """A body may give its result by `SkipToolExecution`."""

        def skip() -> str:
            """Skip."""
            raise SkipToolExecution("skipped")

        stage.script(a=[("skip", "{}")])

        stage.run(govern(stage.agent(tools=[skip]), guard_of()))

        assert ["skipped"] == stage.said
        assert DONE == record.kinds


class TestAround:
    def test_a_time_limit_is_the_tools_own(self, stage, guard_of, record):
        """The limit covers the body alone, as ungoverned; running into it is a failure."""

        async def slow() -> str:
            """Be slow."""
            await asyncio.Event().wait()
            return "never"

        stage.script(a=[("slow", "{}")])

        stage.run(govern(stage.agent(tools=[Tool(slow, timeout=0.05)]), guard_of()))

        assert "Timed out after 0.05 seconds." in stage.said[0]
        assert ["action.failed"] == record.ends

    def test_a_time_limit_does_not_cover_the_asking(self, stage, guard_of, erase, ran):
        """A person may take longer than the tool."""

        async def grant(_: object) -> ApprovalDecision:
            await asyncio.sleep(0.2)
            return ApprovalDecision(True, "ana")

        stage.script(a=[("erase", '{"name": "a"}')])
        guard = guard_of(rest="approve_required", on_approval=grant)

        stage.run(govern(stage.agent(tools=[Tool(erase, timeout=0.1)]), guard))

        assert ["erased a"] == stage.said

    def test_limits_of_usage_are_the_frameworks_own(self, stage, guard_of, erase, ran, record):
        """Law 1: a call that the framework does not start is not judged."""
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = govern(stage.agent(tools=[erase]), guard_of())

        with pytest.raises(UsageLimitExceeded):
            stage.run(agent, usage_limits=UsageLimits(tool_calls_limit=0))

        assert ([], []) == (ran, record.kinds)

    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_usage_counts_as_ungoverned(self, rest, stage, guard_of, erase):
        """A call that was answered counts, run or not."""
        stage.script(a=[("erase", '{"name": "a"}')])

        result = stage.run(govern(stage.agent(tools=[erase]), guard_of(rest=rest)))

        assert 1 == result.usage.tool_calls

    def test_calls_of_one_turn_run_together(self, stage, guard_of, record):
        """Law 1: parallel calls stay parallel, a denied one beside them."""
        together = threading.Barrier(2, timeout=20)

        def meet(who: str) -> str:
            """Meet."""
            together.wait()
            return f"met {who}"

        rule = {"id": "no", "match": {"args.who": "eve"}, "decision": "deny"}
        calls = [("meet", f'{{"who": "{who}"}}') for who in ("ana", "eve", "bo")]
        stage.script(a=[calls])

        stage.run(govern(stage.agent(tools=[meet]), guard_of(rule)))

        assert ["met ana", DENIED, "met bo"] == stage.said
        assert ["action.completed"] * 2 + ["action.denied"] == sorted(record.ends)

    def test_sequential_tools_run_alone(self, stage, guard_of, record):
        """Law 1: what may not overlap does not."""
        running: list[str] = []

        async def step(n: int) -> str:
            """Step."""
            running.append(f"in {n}")
            await asyncio.sleep(0)
            running.append(f"out {n}")
            return "done"

        stage.script(a=[[("step", '{"n": 1}'), ("step", '{"n": 2}')]])

        stage.run(govern(stage.agent(tools=[Tool(step, sequential=True)]), guard_of()))

        assert ["in 1", "out 1", "in 2", "out 2"] == running

    def test_a_cancelled_call_ends_once(self, stage, guard_of, record):
        """Law 7: a run that is cancelled leaves one terminal event for the call it interrupts."""
        started = asyncio.Event()

        async def wait() -> str:
            """Wait."""
            started.set()
            await asyncio.Event().wait()
            return "never"

        stage.script(a=[("wait", "{}")])
        agent = govern(stage.agent(tools=[wait]), guard_of())

        async def run() -> None:
            task = asyncio.create_task(agent.run("Go."))
            await started.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() or task.exception() is not None

        asyncio.run(run())

        assert ["action.cancelled"] == record.ends

    def test_a_sink_that_fails_denies(self, stage, guard_of, erase, ran):
        """Law 4: what must be recorded and cannot be is not done."""

        class Broken:
            required = True

            def __call__(self, _: object) -> None:
                raise OSError("disk full")

        policy = compile_policy(
            {"version": 1, "rules": [{"id": "r", "match": "always", "decision": "allow"}]}
        )
        stage.script(a=[("erase", '{"name": "a"}')])

        with ToolGuard(policy=policy, sinks=[Broken()]) as guard:
            stage.run(govern(stage.agent(tools=[erase]), guard))

        assert stage.said[0].startswith("[denied] ")
        assert [] == ran


class TestContext:
    @pytest.mark.parametrize("is_async", [False, True])
    def test_who_is_calling_comes_with_the_run(self, is_async, stage, guard_of, erase):
        """Clause 26: `context=` gets the run context of each call."""

        def who(ctx: RunContext[str]) -> CallContext:
            return CallContext(
                Principal("user", ctx.deps), "prod", extra={"tool": ctx.tool_name or ""}
            )

        async def who_async(ctx: RunContext[str]) -> CallContext:
            return who(ctx)

        rule = {
            "id": "ana",
            "match": {"context.principal.id": "ana", "context.extra.tool": "erase"},
            "decision": "allow",
        }
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = govern(
            stage.agent(tools=[erase], deps_type=str),
            guard_of(rule, rest="deny"),
            context=who_async if is_async else who,
        )

        async def run() -> None:
            await asyncio.gather(agent.run("Go 1.", deps="ana"), agent.run("Go 2.", deps="eve"))

        asyncio.run(run())

        assert [DENIED, "erased a"] == sorted(stage.said)

    @pytest.mark.parametrize(
        "answer", [None, "ana", ZeroDivisionError()], ids=["none", "text", "error"]
    )
    def test_a_caller_that_is_not_known_denies(self, answer, stage, guard_of, erase, ran, record):
        """Clause 26: None or an exception denies, and nothing falls back."""

        def who(_: object) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        stage.script(a=[("erase", '{"name": "a"}')])

        stage.run(govern(stage.agent(tools=[erase]), guard_of(), context=who))

        assert stage.said[0].startswith("[denied] who is calling could not be found out")
        assert ([], ["action.denied"]) == (ran, record.ends)


class TestApprovalOfItsOwn:
    """Tools that the framework itself has approved: `requires_approval`, and toolsets of them."""

    @pytest.fixture(params=["tool", "toolset"])
    def agent(self, request, stage, erase):
        """An agent whose tool needs the framework's own approval."""
        stage.script(a=[("erase", '{"name": "plan"}')])
        fields: dict[str, Any] = (
            {"tools": [Tool(erase, requires_approval=True)]}
            if request.param == "tool"
            else {"toolsets": [FunctionToolset([erase]).approval_required()]}
        )
        return stage.agent(output_type=[str, DeferredToolRequests], **fields)

    def test_a_denied_call_is_never_put_to_anybody(self, agent, stage, guard_of, ran, record):
        """Law 3: a denial stops the call before the framework asks."""
        result = stage.run(govern(agent, guard_of(rest="deny")))

        assert "a is done." == result.output
        assert ([], ["action.denied"]) == (ran, record.ends)

    def test_an_approved_call_is_judged_when_it_runs(self, agent, stage, guard_of, ran, record):
        """Law 7: what waited was suspended, and what runs has its one end."""
        govern(agent, guard_of())
        paused = stage.run(agent)
        (call,) = paused.output.approvals
        before = list(ran)

        given = DeferredToolResults(approvals={call.tool_call_id: True})
        asyncio.run(agent.run(message_history=paused.all_messages(), deferred_tool_results=given))

        assert ([], [("plan", False)]) == (before, ran)
        assert ["action.suspended", "action.completed"] == record.ends

    def test_a_policy_that_denies_meanwhile_denies(self, agent, stage, guard_of, ran, record):
        """The framework's approval is no permission of the policy's."""
        rule = {
            "id": "approved-ones",
            "match": {"context.extra.approved": True},
            "decision": "deny",
        }
        govern(
            agent,
            guard_of(rule),
            context=lambda ctx: CallContext(
                Principal("user", "ana"), extra={"approved": ctx.tool_call_approved}
            ),
        )
        paused = stage.run(agent)
        (call,) = paused.output.approvals
        given = DeferredToolResults(approvals={call.tool_call_id: True})

        asyncio.run(agent.run(message_history=paused.all_messages(), deferred_tool_results=given))

        assert ([DENIED], []) == (stage.said, ran)
        assert ["action.suspended", "action.denied"] == record.ends

    @pytest.mark.parametrize("text", ['{"name": "a", "name": "b"}', '{"name": "\\ud800"}'])
    def test_refused_arguments_are_never_put_to_anybody(
        self, text, stage, guard_of, erase, ran, record
    ):
        """Clause 2: what cannot be read in one way is no question for a person."""
        stage.script(a=[("erase", text)])
        tools = [Tool(erase, requires_approval=True)]

        result = stage.run(
            govern(stage.agent(tools=tools, output_type=[str, DeferredToolRequests]), guard_of())
        )

        assert "a is done." == result.output
        assert ["refused_arguments"] == [each["code"] for each in record.bodies("action.denied")]
        assert ([], ["action.denied"]) == (ran, record.ends)

    def test_approval_in_place_is_judged_too(self, stage, guard_of, erase, ran, record):
        """A handler of the framework's that approves at once leads through the gate."""

        def approve(_: object, requests: DeferredToolRequests) -> DeferredToolResults:
            return requests.build_results(approve_all=True)

        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(
            tools=[Tool(erase, requires_approval=True)],
            capabilities=[HandleDeferredToolCalls(approve)],
        )

        stage.run(govern(agent, guard_of()))

        assert ["erased list"] == stage.said
        assert ["action.suspended", "action.completed"] == record.ends

    def test_overridden_arguments_are_judged(self, agent, stage, guard_of, ran):
        """Law 5: what an approver puts in place of the model's arguments is judged like them."""
        rule = {"id": "no", "match": {"args.name": "all"}, "decision": "deny"}
        govern(agent, guard_of(rule))
        paused = stage.run(agent)
        (call,) = paused.output.approvals
        override = ToolApproved(override_args={"name": "all"})
        given = DeferredToolResults(approvals={call.tool_call_id: override})

        asyncio.run(agent.run(message_history=paused.all_messages(), deferred_tool_results=given))

        assert ([DENIED], []) == (stage.said, ran)
