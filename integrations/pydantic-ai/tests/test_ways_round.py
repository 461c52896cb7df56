"""Ways round the guard that other capabilities, toolsets and providers could open: each is shut."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, TextOutput
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    HandleDeferredToolCalls,
    PrefixTools,
)
from pydantic_ai.exceptions import CallDeferred, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition
from pydantic_ai.toolsets import (
    CombinedToolset,
    DynamicToolset,
    ExternalToolset,
    FunctionToolset,
    WrapperToolset,
)

from adjudge import ApprovalDecision, GovernError
from adjudge_pydantic_ai import AdjudgeCapability, GovernedToolset, govern

DENIED = "[denied] not permitted by policy"
ERASE = ("erase", '{"name": "list"}')


class Brings(AbstractCapability[Any]):
    """A capability that brings a toolset along."""

    def __init__(self, toolset: Any) -> None:
        self._toolset = toolset

    def get_toolset(self) -> Any:
        """Give it."""
        return self._toolset


class Defers(AbstractCapability[Any]):
    """A capability that hands calls of one tool out of the run when they would begin."""

    async def before_tool_execute(self, ctx, *, call, tool_def, args):
        """Hand it out."""
        if call.tool_name == "erase":
            raise CallDeferred()
        return args


WAYS = {
    "combined, prefixed": lambda notes: {"toolsets": [CombinedToolset([notes]).prefixed("p")]},
    "combined, renamed": lambda notes: {
        "toolsets": [CombinedToolset([notes]).renamed({"p_erase": "erase"})]
    },
    "dynamic, prefixed": lambda notes: {
        "toolsets": [DynamicToolset(lambda ctx: notes).prefixed("p")]
    },
    "PrefixTools": lambda notes: {
        "capabilities": [
            PrefixTools(wrapped=Brings(CombinedToolset([notes, FunctionToolset()])), prefix="p")
        ]
    },
}


class TestNamespaces:
    @pytest.mark.parametrize("way", WAYS)
    def test_a_toolsets_id_is_the_namespace_behind_wrappers(self, way, stage, guard_of, erase, ran):
        """B033, law 3: a rule for the agent's own tool permits none of a named toolset's."""
        own = {"id": "own", "match": {"tool": "p_erase"}, "decision": "allow"}
        fields = WAYS[way](FunctionToolset([erase], id="notes"))
        stage.script(a=[("p_erase", '{"name": "list"}')])

        stage.run(govern(stage.agent(**fields), guard_of(own, rest="deny")))

        assert ([DENIED], []) == (stage.said, ran)

    def test_one_that_cannot_be_told_is_an_error(self, stage, guard_of, erase, ran):
        """Law 4: where a toolset hides which one a tool is of, its calls run under no policy."""

        class Hides(WrapperToolset[Any]):
            async def get_tools(self, ctx):
                tools = await FunctionToolset([erase]).get_tools(ctx)
                return {name: replace(tool, toolset=self) for name, tool in tools.items()}

        both = CombinedToolset([FunctionToolset([erase], id="a"), FunctionToolset([], id="b")])
        stage.script(a=[ERASE])

        with pytest.raises(GovernError, match="may come from any of 2 toolsets"):
            stage.run(govern(stage.agent(toolsets=[Hides(both)]), guard_of()))

        assert [] == ran


@pytest.mark.parametrize("how", ["govern", "capability"])
def test_a_tool_that_is_added_further_out_does_not_run(how, stage, guard_of, erase, ran):
    """Law 3: what a capability puts around the run's toolset never comes to the guard."""

    class Adds(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset):
            return CombinedToolset([toolset, FunctionToolset([erase])])

    guard = guard_of()
    stage.script(a=[ERASE])
    if how == "govern":
        agent = govern(stage.agent(capabilities=[Adds()]), guard)
    else:
        agent = stage.agent(capabilities=[Adds(), AdjudgeCapability(guard)])

    with pytest.raises(GovernError, match="past the guard"):
        stage.run(agent)

    assert [] == ran


def test_a_call_that_a_hook_hands_out_is_judged_before_a_handler(stage, guard_of, erase):
    """Law 3: what one capability defers, another one executes only if the policy lets it."""
    executed = []

    def execute(_: object, requests: DeferredToolRequests) -> DeferredToolResults:
        executed.extend(call.tool_name for call in requests.calls)
        return DeferredToolResults(calls={call.tool_call_id: "x" for call in requests.calls})

    rule = {"id": "no", "match": {"args.name": "plan"}, "decision": "deny"}
    stage.script(a=[("erase", '{"name": "plan"}'), ERASE])
    agent = stage.agent(
        tools=[erase], capabilities=[Defers(), HandleDeferredToolCalls(handler=execute)]
    )

    stage.run(govern(agent, guard_of(rule)))

    assert ["erase"] == executed
    assert [f'{{"error":"{DENIED}"}}', "x"] == stage.said


def test_a_repeated_call_id_is_no_pass(guard_of, erase, record):
    """Law 3: a provider's id that comes again is another call, also where a hook hands it out."""
    parts = [ToolCallPart("read", {}, "call_x"), ToolCallPart("erase", {"name": "plan"}, "call_x")]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        made = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse([parts[made] if made < 2 else TextPart("done")])

    def read() -> str:
        """Read."""
        return "read"

    rule = {"id": "no", "match": {"tool": "erase"}, "decision": "deny"}
    agent = Agent(
        FunctionModel(answer),
        tools=[read, erase],
        capabilities=[Defers()],
        output_type=[str, DeferredToolRequests],
    )

    result = asyncio.run(govern(agent, guard_of(rule)).run("Go."))

    assert "done" == result.output
    assert ["action.completed", "action.denied"] == record.ends


BETWEEN = {
    "combined": lambda gate: CombinedToolset([gate]).prefixed("p"),
    "dynamic": lambda gate: DynamicToolset(lambda ctx: gate).prefixed("p"),
    "per step": lambda gate: gate.filtered(lambda ctx, tool: True),
}


class TestTwoGates:
    @pytest.mark.parametrize("as_itself", [True, False])
    def test_another_tool_with_the_same_values_is_judged(
        self, as_itself, stage, guard_of, erase, ran
    ):
        """Law 3: a toolset between two gates that calls another tool is caught by the inner one."""

        def read(name: str) -> str:
            """Read."""
            return name

        class Routes(WrapperToolset[Any]):
            async def call_tool(self, name, tool_args, ctx, tool):
                tools = await self.wrapped.get_tools(ctx)
                called = "erase" if as_itself else name
                return await self.wrapped.call_tool(called, tool_args, ctx, tools["erase"])

        rule = {"id": "no", "match": {"tool": "erase"}, "decision": "deny"}
        guard = guard_of(rule)
        inner = GovernedToolset(FunctionToolset([read, erase]), guard)
        stage.script(a=[("read", '{"name": "plan"}')])
        agent = govern(stage.agent(toolsets=[Routes(inner)]), guard)

        if as_itself:
            stage.run(agent)
            assert [DENIED] == stage.said
        else:
            with pytest.raises(GovernError, match="by its own name"):
                stage.run(agent)
        assert [] == ran

    def test_a_governed_toolset_on_top_takes_no_other_work_over(self, stage, guard_of, ran):
        """Law 3: output functions and external tools are judged whoever wraps the toolset."""
        guard = guard_of(rest="deny")

        class Wraps(AbstractCapability[Any]):
            def get_wrapper_toolset(self, toolset):
                return GovernedToolset(toolset, guard)

            def get_ordering(self):
                return CapabilityOrdering(position="innermost")

        def finish(disk: str) -> str:
            """Finish by wiping."""
            ran.append(disk)
            return "wiped"

        capabilities = [AdjudgeCapability(guard), Wraps()]
        stage.script(a=[("final_result", '{"disk": "a"}')] * 3)
        with pytest.raises(UnexpectedModelBehavior):
            stage.run(stage.agent(output_type=finish, capabilities=capabilities))
        stage.script(a=[("erase", "{}")])
        result = stage.run(
            stage.agent(
                toolsets=[ExternalToolset([ToolDefinition(name="erase")])],
                output_type=[str, DeferredToolRequests],
                capabilities=capabilities,
            )
        )

        assert [] == ran
        assert "a is done." == result.output

    @pytest.mark.parametrize("way", BETWEEN)
    def test_they_are_one_whatever_stands_between(self, way, stage, guard_of, erase, record):
        """Law 7: a call is judged and asked about once, in each step of the run."""
        asked = []

        class NewInEachStep(WrapperToolset[Any]):
            async def for_run_step(self, ctx):
                return NewInEachStep(self.wrapped)

        async def grant(request: Any) -> ApprovalDecision:
            asked.append(request.request.tool)
            return ApprovalDecision(True, "ana")

        guard = guard_of(rest="approve_required", on_approval=grant)
        gate = GovernedToolset(NewInEachStep(FunctionToolset([erase])), guard)
        name = "erase" if way == "per step" else "p_erase"
        stage.script(a=[(name, '{"name": "x"}'), (name, '{"name": "y"}')])

        stage.run(govern(stage.agent(toolsets=[BETWEEN[way](gate)]), guard))

        assert [name, name] == asked
        assert 2 == record.kinds.count("step.proposed")


class TestOutputs:
    def test_what_another_capability_makes_of_an_output_is_judged(self, stage, guard_of, ran):
        """Law 5: an output function gets what was judged, whatever order a release has."""

        class Raises(AbstractCapability[Any]):
            async def before_output_process(self, ctx, *, output_context, output):
                return {**output, "amount": 10 * output["amount"]}

        def pay(to: str, amount: float) -> str:
            """Pay."""
            ran.append((to, amount))
            return "paid"

        rule = {"id": "big", "match": {"args.amount.gt": 100}, "decision": "deny"}
        texts = ['{"to": "a", "amount": 50}', '{"to": "a", "amount": 5}']
        stage.script(a=[("final_result", text) for text in texts])
        agent = stage.agent(output_type=pay, capabilities=[Raises()], retries=2)

        result = stage.run(govern(agent, guard_of(rule)))

        assert "paid" == result.output
        assert [("a", 50.0)] == ran

    def streamed(self, agent):
        """Stream an agent's output."""

        async def run() -> list[Any]:
            async with agent.run_stream("Go.") as result:
                return [each async for each in result.stream_output(debounce_by=None)]

        return asyncio.run(run())

    def test_a_stream_of_an_output_function_is_as_ungoverned(self, stage, guard_of, ran, record):
        """Law 1: what has come so far is no JSON text, and is judged on what the function gets."""

        def finish(disk: str, hard: bool = False) -> str:
            """Finish by wiping."""
            ran.append((disk, hard))
            return f"wiped {disk}"

        seen = []
        for guard in (None, guard_of()):
            stage.script(a=[("final_result", '{"disk": "a disk of many words", "hard": true}')])
            agent = stage.agent(output_type=finish)
            outputs = self.streamed(agent if guard is None else govern(agent, guard))
            seen.append((outputs, list(ran)))
            ran.clear()

        assert seen[0] == seen[1]
        assert {"action.completed"} == set(record.ends)

    def test_nobody_is_asked_about_half_an_output(self, stage, guard_of, ran):
        """Clause 22: a person is asked about the call that would run, once."""
        asked = []

        async def grant(request: Any) -> ApprovalDecision:
            asked.append(dict(request.request.args))
            return ApprovalDecision(True, "ana")

        def shout(text: str) -> str:
            ran.append(text)
            return text.upper()

        stage.script(a=[])
        agent = stage.agent(output_type=TextOutput(shout))
        guard = guard_of(rest="approve_required", on_approval=grant)

        outputs = self.streamed(govern(agent, guard))

        assert "A IS DONE." == outputs[-1]
        assert ([{"output": "a is done."}], ["a is done."]) == (asked, ran)
