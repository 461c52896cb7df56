"""What `govern` takes, where it stands, and what it refuses."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.durable_exec._base import BaseDurabilityCapability
from pydantic_ai.exceptions import CallDeferred, SkipToolValidation
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from adjudge import EphemeralLedgerWarning, GovernError, MemoryLedger, pause_approval
from adjudge_pydantic_ai import AdjudgeCapability, GovernedToolset, govern
from adjudge_pydantic_ai._capability import Gate

DENIED = "[denied] not permitted by policy"
RULE = {"id": "no", "match": {"args.name": "plan"}, "decision": "deny"}


DURABLE = BaseDurabilityCapability.__module__


class Replayed(AbstractCapability[Any]):
    """What every engine's capability derives from, by its place."""

    __module__ = DURABLE


class TestTargets:
    def test_an_agent_is_governed_in_place(self, guard_of):
        """`govern` gives the very agent back, still an `Agent` by name and type."""
        agent = Agent(TestModel())

        governed = govern(agent, guard_of())

        assert agent is governed
        assert isinstance(agent, Agent)
        assert "Agent" == type(agent).__name__

    def test_the_same_guard_again_changes_nothing(self, guard_of):
        """Governing twice is governing once."""
        guard = guard_of()
        agent = govern(Agent(TestModel()), guard)
        kind = type(agent)

        govern(agent, guard)

        assert kind is type(agent)

    def test_another_guard_is_refused(self, guard_of):
        """An agent has one guard."""
        agent = govern(Agent(TestModel()), guard_of())

        with pytest.raises(GovernError, match="under another guard"):
            govern(agent, guard_of())

    def test_another_guard_in_a_capability_is_refused(self, guard_of):
        """A guard that was given as a capability counts."""
        agent = Agent(TestModel(), capabilities=[AdjudgeCapability(guard_of())])

        with pytest.raises(GovernError, match="under another guard"):
            govern(agent, guard_of())

    def test_the_agent_inside_a_wrapper_is_governed(self, stage, guard_of, erase, ran):
        """A wrapper leads to the agent inside, which is where it is governed."""
        stage.script(a=[("erase", '{"name": "plan"}')])
        inner = stage.agent(tools=[erase])

        stage.run(govern(WrapperAgent(inner), guard_of(RULE)))

        assert ([DENIED], []) == (stage.said, ran)

    @pytest.mark.parametrize("target", [None, "agent", [Agent(TestModel())], Agent], ids=repr)
    def test_what_is_no_agent_is_refused(self, target, guard_of):
        """A target that offers no place to stand is an error."""
        with pytest.raises(GovernError, match="cannot be governed"):
            govern(target, guard_of())

    def test_an_agent_that_is_replayed_is_refused(self, guard_of):
        """Durable execution runs tools again, which the record and the ledger do not (X048)."""
        durable = type("DurableAgent", (WrapperAgent,), {"__module__": DURABLE})
        targets = (durable(Agent(TestModel())), Agent(TestModel(), capabilities=[Replayed()]))

        for target in targets:
            with pytest.raises(GovernError, match="replayed"):
                govern(target, guard_of())

    def test_a_door_that_was_replaced_on_the_object_is_refused(self, guard_of):
        """What would hide the governed `iter` is no place to stand."""
        agent = Agent(TestModel())
        agent.iter = lambda *args, **options: None

        with pytest.raises(GovernError, match="has iter replaced"):
            govern(agent, guard_of())

    def test_a_class_that_drops_the_capability_is_refused_at_its_run(self, stage, guard_of, erase):
        """Law 3: a run without the guard's capability does not start."""

        class Forgetful(Agent[Any, Any]):
            def iter(self, *args: Any, capabilities: Any = None, **options: Any) -> Any:
                return super().iter(*args, **options)

        stage.script(a=[("erase", '{"name": "a"}')])
        agent = govern(Forgetful(stage.model(), tools=[erase]), guard_of())

        with pytest.raises(GovernError, match="did not take the guard's capability"):
            stage.run(agent)

        assert [] == stage.requests

    @pytest.mark.parametrize(
        "options",
        [{"hosted": "maybe"}, {"ungoverned": "web_search"}, {"context": 3}],
        ids=["hosted", "ungoverned", "context"],
    )
    def test_options_that_are_none_are_refused(self, options, guard_of):
        """A typo is an error, and no default."""
        with pytest.raises(GovernError):
            govern(Agent(TestModel()), guard_of(), **options)

    def test_what_is_no_guard_is_refused(self):
        """So is a guard that is none."""
        with pytest.raises(GovernError, match="give a ToolGuard"):
            govern(Agent(TestModel()), None)

    def test_a_pause_that_does_not_outlive_the_process_warns(self, guard_of):
        """A ledger in memory resumes in this process alone, and `govern` says so."""
        guard = guard_of(on_approval=pause_approval(MemoryLedger()))

        with pytest.warns(EphemeralLedgerWarning):
            govern(Agent(TestModel()), guard)
        with pytest.warns(EphemeralLedgerWarning):
            AdjudgeCapability(guard)

    def test_a_run_of_a_governed_agent_does_not_warn_again(self, stage, guard_of, erase):
        """The warning is for `govern` alone."""
        guard = guard_of(on_approval=pause_approval(MemoryLedger()))
        stage.script(a=[("erase", '{"name": "a"}')])
        with pytest.warns(EphemeralLedgerWarning):
            agent = govern(stage.agent(tools=[erase]), guard)

        stage.run(agent)

        assert ["erased a"] == stage.said


class TestCapability:
    def test_it_governs_the_agent_that_is_built_with_it(self, stage, guard_of, erase, ran):
        """Law 3: the capability alone governs."""
        stage.script(a=[("erase", '{"name": "list"}'), ("erase", '{"name": "plan"}')])

        stage.run(stage.agent(tools=[erase], capabilities=[AdjudgeCapability(guard_of(RULE))]))

        assert ["erased list", DENIED] == stage.said

    def test_it_governs_the_run_that_it_is_given_to(self, stage, guard_of, erase, ran):
        """Law 3: so does one for a single run."""
        stage.script(a=[("erase", '{"name": "plan"}')])

        stage.run(stage.agent(tools=[erase]), capabilities=[AdjudgeCapability(guard_of(RULE))])

        assert ([DENIED], []) == (stage.said, ran)

    @pytest.mark.parametrize(
        "text", ['{"name": "list"}', '{"name": 1}', '{"name": "a", "name": 1}']
    )
    def test_with_a_governed_agent_each_call_is_judged_once(
        self, text, stage, guard_of, erase, record
    ):
        """Law 7: the same guard twice is one guard, also for calls that never run."""
        guard = guard_of()
        stage.script(a=[("erase", text)])
        agent = stage.agent(tools=[erase], capabilities=[AdjudgeCapability(guard)])

        stage.run(govern(agent, guard), capabilities=[AdjudgeCapability(guard)])

        assert 1 == len(record.ends)
        assert 1 == record.kinds.count("step.proposed")

    def test_govern_keeps_the_settings_of_the_capability(self, stage, guard_of, erase):
        """Clause 26: who is calling is asked as the capability says, and nothing falls back."""
        guard = guard_of()
        capability = AdjudgeCapability(guard, context=lambda ctx: None)
        stage.script(a=[("erase", '{"name": "list"}')])

        stage.run(govern(stage.agent(tools=[erase], capabilities=[capability]), guard))

        assert stage.said[0].startswith("[denied] who is calling")

    def test_two_functions_for_the_context_are_refused(self, stage, guard_of, erase):
        """Clause 26: it must be clear who says who is calling."""
        guard = guard_of()
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = govern(stage.agent(tools=[erase]), guard)

        with pytest.raises(GovernError, match="two functions for context"):
            stage.run(agent, capabilities=[AdjudgeCapability(guard, context=lambda ctx: None)])

    def test_two_guards_in_one_run_are_refused(self, stage, guard_of, erase):
        """A run has one guard."""
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = govern(stage.agent(tools=[erase]), guard_of())

        with pytest.raises(GovernError, match="two guards"):
            stage.run(agent, capabilities=[AdjudgeCapability(guard_of())])


class Rewrites(WrapperToolset[Any]):
    """A toolset that changes what its tools get."""

    async def call_tool(self, name, tool_args, ctx, tool):
        """Change it."""
        return await super().call_tool(name, {**tool_args, "name": "plan"}, ctx, tool)


@dataclass
class Rewriting(AbstractCapability[Any]):
    """A capability that changes what tools get, in each of the ways that there are."""

    way: str
    ordering: CapabilityOrdering | None = None

    def get_ordering(self) -> CapabilityOrdering | None:
        """Stand where it was told."""
        return self.ordering

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Wrap the tools."""
        return Rewrites(toolset) if self.way == "toolset" else None

    async def before_tool_validate(self, ctx, *, call, tool_def, args):
        """Change the text."""
        return '{"name": "plan"}' if self.way == "before_tool_validate" else args

    async def after_tool_validate(self, ctx, *, call, tool_def, args):
        """Change the values."""
        return {**args, "name": "plan"} if self.way == "after_tool_validate" else args

    async def before_tool_execute(self, ctx, *, call, tool_def, args):
        """Change the values."""
        return {**args, "name": "plan"} if self.way == "before_tool_execute" else args

    async def wrap_tool_execute(self, ctx, *, call, tool_def, args, handler):
        """Change the values, or run the tool twice."""
        if self.way == "twice":
            await handler(args)
            return await handler({**args, "name": "plan"})
        return await handler({**args, "name": "plan"} if self.way == "wrap_tool_execute" else args)


INNERMOST = CapabilityOrdering(position="innermost")
BEHIND_US = CapabilityOrdering(position="innermost", wrapped_by=[Gate])
WAYS = (
    "toolset",
    "before_tool_validate",
    "after_tool_validate",
    "before_tool_execute",
    "wrap_tool_execute",
)


class TestOtherCapabilities:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("ordering", [None, INNERMOST], ids=["any", "innermost"])
    def test_what_another_capability_rewrites_is_judged(
        self, way, ordering, stage, guard_of, erase, ran
    ):
        """Law 5: whatever other capabilities do, the guard sees what the tool would get."""
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(tools=[erase], capabilities=[Rewriting(way, ordering)])

        stage.run(govern(agent, guard_of(RULE)))

        assert ([DENIED], []) == (stage.said, ran)

    @pytest.mark.parametrize("way", [way for way in WAYS if way != "toolset"])
    def test_hooks_that_claim_to_be_further_in_are_judged(self, way, stage, guard_of, erase, ran):
        """Law 5: hooks come before the toolset, wherever their capability stands."""
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(tools=[erase], capabilities=[Rewriting(way, BEHIND_US)])

        stage.run(govern(agent, guard_of(RULE)))

        assert ([DENIED], []) == (stage.said, ran)

    def test_a_toolset_that_gets_behind_the_guard_is_refused(self, stage, guard_of, erase, ran):
        """Law 3: a run in which something stands between the guard and the tools does not start."""
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(tools=[erase], capabilities=[Rewriting("toolset", BEHIND_US)])

        with pytest.raises(GovernError, match="stand between the guard and the tools"):
            stage.run(govern(agent, guard_of(RULE)))

        assert ([], []) == (stage.requests, ran)

    def test_a_capability_that_is_listed_after_the_guards_is_refused(self, stage, guard_of, erase):
        """The order of the list decides between two that would be innermost."""
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(
            tools=[erase],
            capabilities=[AdjudgeCapability(guard_of(RULE)), Rewriting("toolset", INNERMOST)],
        )

        with pytest.raises(GovernError, match="stand between the guard and the tools"):
            stage.run(agent)

    def test_a_capability_that_is_made_for_the_run_is_no_way_round(
        self, stage, guard_of, erase, ran
    ):
        """Law 5: what a capability function makes when the run begins stands outside as well."""

        def make(ctx: RunContext[Any]) -> AbstractCapability[Any]:
            return Rewriting("toolset", INNERMOST)

        stage.script(a=[("erase", '{"name": "list"}')])
        agent = govern(stage.agent(tools=[erase], capabilities=[make]), guard_of(RULE))

        stage.run(agent)

        assert ([DENIED], []) == (stage.said, ran)

    def test_a_tool_that_is_run_twice_is_judged_twice(self, stage, guard_of, erase, ran, record):
        """Law 6: each run of the body is an attempt with a judgment and an end of its own."""
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(tools=[erase], capabilities=[Rewriting("twice")])

        stage.run(govern(agent, guard_of(RULE)))

        assert [("list", False)] == ran
        assert ["action.completed", "action.denied"] == record.ends

    def test_runs_at_the_same_time_have_each_their_own_calls(self, stage, guard_of, erase, ran):
        """Law 8 of the capability: nothing of one run is known in another."""
        capability = AdjudgeCapability(guard_of(RULE))
        stage.script(a=[("erase", '{"name": "plan"}')])
        agent = stage.agent(tools=[erase], capabilities=[capability])

        async def run() -> None:
            await asyncio.gather(*(agent.run(f"Go {number}.") for number in range(4)))

        asyncio.run(run())

        assert ([DENIED] * 4, []) == (stage.said, ran)
        assert {} == capability.state.sent

    def test_a_governed_toolset_stands_before_the_tools(self, guard_of):
        """The capability's toolset is the one next to the agent's own."""
        toolset = AdjudgeCapability(guard_of()).get_wrapper_toolset(WrapperToolsetOf())

        assert isinstance(toolset, GovernedToolset)

    @pytest.mark.parametrize(
        ("rest", "handed_out", "ends"),
        [("allow", ["erase"], ["action.suspended"]), ("deny", [], ["action.denied"])],
    )
    @pytest.mark.parametrize("hook", ["before_tool_validate", "before_tool_execute"])
    def test_a_call_that_another_capability_hands_out_is_judged(
        self, hook, rest, handed_out, ends, stage, guard_of, erase, ran, record
    ):
        """Law 3: what is to be executed elsewhere is judged, however it leaves the run."""

        class HandsOut(AbstractCapability[Any]):
            async def before_tool_validate(self, ctx, *, call, tool_def, args):
                if hook == "before_tool_validate":
                    raise SkipToolValidation({"name": "plan"})
                return args

            async def before_tool_execute(self, ctx, *, call, tool_def, args):
                raise CallDeferred

        stage.script(a=[("erase", '{"name": "plan"}')])
        agent = stage.agent(
            tools=[erase], output_type=[str, DeferredToolRequests], capabilities=[HandsOut()]
        )

        result = stage.run(govern(agent, guard_of(rest=rest)))

        out = result.output.calls if isinstance(result.output, DeferredToolRequests) else []
        assert handed_out == [call.tool_name for call in out]
        assert ([], ends) == (ran, record.ends)


class WrapperToolsetOf(AbstractToolset[Any]):
    """A toolset of nothing."""

    @property
    def id(self) -> None:
        """It has none."""

    async def get_tools(self, ctx):
        """Give none."""
        return {}

    async def call_tool(self, name, tool_args, ctx, tool):
        """There is none."""
        raise NotImplementedError
