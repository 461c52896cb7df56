"""Saved runs that were tampered with or are not whole, and what goes on beside an answered call."""

import asyncio
import copy
from typing import Any

import pytest
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import ExternalToolset

from adjudge import AnswerError, ApprovalDecision, GovernError, SQLiteLedger, pause_approval
from adjudge_pydantic_ai import delegate, govern, pending, reopen, resume

GRANTED = ApprovalDecision(True, "ana")
OUTPUT = [str, DeferredToolRequests]
FREE = {"id": "free", "match": {"tool": {"in": ["shred", "ask"]}}, "decision": "allow"}
ERASE = ("erase", '{"name": "x"}', "call_e")
SHRED = ("shred", '{"name": "s"}', "call_s")


def going_on(agent, *args, **options):
    """Resume a run to its end, or to its next pause."""
    return asyncio.run(resume(agent, *args, **options))


def granted(agent, paused):
    """Grant all that waits."""
    return {each.id: GRANTED for each in pending(agent, paused)}


@pytest.fixture
def shred(ran):
    """A tool that needs the framework's own approval, and which the policy allows."""

    def shred(name: str) -> str:
        """Shred."""
        ran.append(name)
        return "shredded"

    return Tool(shred, requires_approval=True)


@pytest.fixture
def asking(stage, pausing, erase, shred):
    """Make an agent, with the tools of the tests, that asks the agent `b` by a tool."""

    def make(*delegations: tuple[str, str]) -> Any:
        guard = pausing(FREE)
        nested = {
            name: govern(stage.agent(name, tools=[erase, shred], output_type=OUTPUT), guard)
            for name, _ in delegations
        }

        async def ask(ctx: RunContext[Any]) -> str:
            """Ask the others."""
            told = [str(await delegate(ctx, nested[name], text)) for name, text in delegations]
            return " ".join(told)

        return govern(stage.agent("a", tools=[ask, erase, shred], output_type=OUTPUT), guard)

    return make


class TestTamperedRequests:
    @pytest.mark.parametrize("pending_id", [None, "of the other call"])
    def test_our_mark_on_another_call_approves_nothing(self, pending_id, stage, asking, ran):
        """Law 4: a client that copies a mark gets no native approval for what it copies it to."""
        stage.script(a=[[ERASE, SHRED]])
        agent = asking()
        paused = stage.run(agent)
        requests = copy.deepcopy(paused.output)
        mark = dict(requests.metadata["call_e"]["adjudge"])
        if pending_id is None:
            mark["pending"] = None
        requests.metadata["call_s"] = {"adjudge": mark}

        with pytest.raises(UserError, match="need to be provided for all deferred tool calls"):
            going_on(agent, requests, granted(agent, paused), message_history=paused.all_messages())

        assert [] == ran

    def test_nor_does_the_mark_of_a_nested_agent(self, stage, asking, ran):
        """Law 4: what is saved of a nested agent is good for the call that runs it alone."""
        stage.script(a=[[("ask", "{}", "call_a"), SHRED]], b=[ERASE])
        agent = asking(("b", "Go."))
        paused = stage.run(agent)
        requests = copy.deepcopy(paused.output)
        requests.metadata["call_s"] = copy.deepcopy(requests.metadata["call_a"])

        with pytest.raises(UserError, match="need to be provided for all deferred tool calls"):
            going_on(agent, requests, granted(agent, paused), message_history=paused.all_messages())

        assert [] == ran

    def test_a_nested_agent_that_cannot_be_read_is_an_error(self, stage, asking, ran):
        """Law 4: what is saved may be in anybody's hands."""
        stage.script(a=[("ask", "{}", "call_a")], b=[ERASE])
        agent = asking(("b", "Go."))
        paused = stage.run(agent)
        given = granted(agent, paused)
        paused.output.metadata["call_a"]["adjudge"]["nested"] = {"requests": "[]"}

        with pytest.raises(AnswerError, match="cannot be read"):
            going_on(agent, paused, given)

        assert [] == ran


class TestTamperedHistory:
    def test_a_call_that_became_one_of_another_tool_needs_its_own_approval(
        self, stage, asking, ran
    ):
        """Law 4: an answer to one call approves no tool that a client put in its place."""
        stage.script(a=[ERASE])
        agent = asking()
        paused = stage.run(agent)
        history = copy.deepcopy(paused.all_messages())
        [call] = [p for m in history for p in m.parts if isinstance(p, ToolCallPart)]
        call.tool_name = "shred"

        done = going_on(agent, paused.output, granted(agent, paused), message_history=history)

        assert [] == ran
        assert isinstance(done.output, DeferredToolRequests)

    def test_nor_does_the_call_that_runs_a_nested_agent_approve_one(self, stage, asking, ran):
        """Law 4: the same holds where what waits is inside of another agent."""
        stage.script(a=[("ask", "{}", "call_a")], b=[ERASE])
        agent = asking(("b", "Go."))
        paused = stage.run(agent)
        history = copy.deepcopy(paused.all_messages())
        [call] = [p for m in history for p in m.parts if isinstance(p, ToolCallPart)]
        call.tool_name, call.args = "shred", '{"name": "s"}'

        done = going_on(agent, paused.output, granted(agent, paused), message_history=history)

        assert [] == ran
        assert isinstance(done.output, DeferredToolRequests)


class TestOnce:
    @pytest.mark.parametrize("calls", [[ERASE, SHRED], [SHRED, ERASE]], ids=["after", "before"])
    def test_what_the_framework_approves_beside_ours_runs_once(self, calls, stage, asking, ran):
        """Law 6: in whichever order they were called, a state resumed twice runs nothing again."""
        stage.script(a=[calls])
        agent = asking()
        paused = stage.run(agent)
        given = granted(agent, paused)

        for _ in range(2):
            results = DeferredToolResults(approvals={"call_s": True})
            going_on(agent, paused, given, results=results)

        assert sorted(["s", "('x', False)"]) == sorted(map(str, ran))

    def test_answers_that_were_kept_before_go_on(self, stage, asking, ran):
        """Clause 24: a process that ended after it kept the answers leaves the run resumable."""
        stage.script(a=[ERASE])
        agent = asking()
        paused = stage.run(agent)
        asyncio.run(reopen(agent, paused, granted(agent, paused)))

        result = going_on(agent, paused, {})

        assert "a is done." == result.output
        assert [("x", False)] == ran

    def test_without_answers_it_goes_on_waiting(self, stage, asking, ran):
        """Law 4: no answer is no grant."""
        stage.script(a=[ERASE])
        agent = asking()

        again = going_on(agent, stage.run(agent), {})

        assert isinstance(again.output, DeferredToolRequests)
        assert [] == ran

    def test_without_its_ledger_it_does_not_go_on(self, stage, asking, guard_of, erase, tmp_path):
        """Law 4: a process that cannot see what was asked ends with an error."""
        stage.script(a=[ERASE])
        paused = stage.run(asking())
        elsewhere = pause_approval(SQLiteLedger(tmp_path / "other.sqlite"))
        guard = guard_of(rest="approve_required", on_approval=elsewhere)
        other = govern(stage.agent(tools=[erase], output_type=OUTPUT), guard)

        with pytest.raises(AnswerError, match="No call of this run is in the guard's ledger"):
            going_on(other, paused, {})


class TestNested:
    def test_what_is_delegated_after_it_is_run_on_its_own(self, stage, asking, ran):
        """Law 6: each `delegate` of a body gives its own agent's answer."""
        stage.script(a=[("ask", "{}")], b=[ERASE], c=[])
        agent = asking(("b", "Go."), ("c", "Go."))
        paused = stage.run(agent)

        going_on(agent, paused, granted(agent, paused))

        assert "b is done. c is done." == stage.said[-1]
        assert [("x", False)] == ran

    def test_only_the_first_that_a_body_delegates_to_can_wait(self, stage, asking, ran):
        """Law 6: what ran before would run again, so a later one that waits is an error."""
        stage.script(a=[("ask", "{}")], b=[], c=[ERASE])

        with pytest.raises(GovernError, match="Delegate once in each tool"):
            stage.run(asking(("b", "Go."), ("c", "Go.")))

        assert [] == ran

    def test_one_that_waits_for_the_frameworks_own_approval_is_an_error(self, stage, asking, ran):
        """Law 4: there is no way on for it, and that is said at once."""
        stage.script(a=[("ask", "{}")], b=[SHRED])

        with pytest.raises(GovernError, match="framework's own approval"):
            stage.run(asking(("b", "Go.")))

        assert [] == ran

    def test_one_that_waits_for_a_result_from_elsewhere_is_an_error(self, stage, pausing):
        """Law 4: the same for an external tool."""
        guard = pausing(FREE)
        stage.script(a=[("ask", "{}")], b=[("shred", "{}")])
        tools = ExternalToolset([ToolDefinition(name="shred")])
        inner = govern(stage.agent("b", toolsets=[tools], output_type=OUTPUT), guard)

        async def ask(ctx: RunContext[Any]) -> str:
            """Ask the other agent."""
            return str(await delegate(ctx, inner, "Go."))

        with pytest.raises(GovernError, match="a result from elsewhere"):
            stage.run(govern(stage.agent(tools=[ask], output_type=OUTPUT), guard))


def test_what_a_body_dispatches_cannot_wait(stage, pausing, erase, ran, record):
    """Clause 24: a call under an id of the body's own could never be known again."""
    answers = []

    async def ask(ctx: RunContext[Any]) -> str:
        """Dispatch."""
        call = ToolCallPart("erase", {"name": "x"})
        answers.append(await ctx.tool_manager.handle_call(call))
        return "dispatched"

    stage.script(a=[("ask", "{}")])
    agent = stage.agent(tools=[ask, erase], output_type=OUTPUT)

    result = stage.run(govern(agent, pausing(FREE)))

    assert "a is done." == result.output
    assert (True, []) == (isinstance(answers[0], ToolDenied), ran)
    assert ["cannot_pause"] == [each["code"] for each in record.bodies("action.denied")]


def test_what_waits_comes_in_the_order_of_the_requests(stage, asking):
    """A person is shown the calls as the model made them, a nested one in its place."""
    calls = [("erase", f'{{"name": "{name}"}}', f"call_{name}") for name in "zya"]
    stage.script(a=[[*calls[:2], ("ask", "{}", "call_b"), calls[2]]], b=[ERASE])
    agent = asking(("b", "Go."))

    waiting = pending(agent, stage.run(agent))

    assert ["z", "y", "x", "a"] == [each.request.args["name"] for each in waiting]
