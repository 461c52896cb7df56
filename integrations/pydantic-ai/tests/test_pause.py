"""Runs that wait for people: what they wait for, and how they go on, once."""

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
)

from adjudge import AnswerError, ApprovalDecision, GovernError, SQLiteLedger, pause_approval
from adjudge_pydantic_ai import AdjudgeCapability, delegate, govern, pending, reopen, resume

GRANTED = ApprovalDecision(True, "ana")
REFUSED = ApprovalDecision(False, "ana", "not now")
REQUESTS = TypeAdapter(DeferredToolRequests)
OUTPUT = [str, DeferredToolRequests]


@pytest.fixture
def agent(stage, pausing, erase):
    """A governed agent that wants to erase two notes at once."""
    stage.script(a=[[("erase", '{"name": "x"}'), ("erase", '{"name": "y"}')]])
    return govern(stage.agent(tools=[erase], output_type=OUTPUT), pausing())


@pytest.fixture
def paused(agent, stage):
    """Its run, which waits."""
    return stage.run(agent)


def going_on(agent, *args, **options):
    """Resume a run to its end, or to its next pause."""
    return asyncio.run(resume(agent, *args, **options))


def answers(agent, paused, **by_name):
    """Answer the pending calls by the names of their notes."""
    return {
        each.id: by_name[each.request.args["name"]]
        for each in pending(agent, paused)
        if each.request.args["name"] in by_name
    }


class TestPending:
    def test_what_waits_is_read_from_the_ledger(self, agent, paused):
        """A person is shown the final arguments, the rule and the digest that the answer binds."""
        first, second = sorted(pending(agent, paused), key=lambda each: each.request.args["name"])

        assert [{"name": "x", "hard": False}, {"name": "y", "hard": False}] == [
            dict(each.decision.effective_args) for each in (first, second)
        ]
        assert ("rest",) == first.decision.matched_rules
        assert first.digest != second.digest
        assert {first.id, second.id} == {each.id for each in pending(agent, paused.output)}

    def test_the_saved_state_carries_ids_alone(self, paused):
        """What a client may hold names entries of the ledger, and nothing that grants."""
        assert [{"pending", "run"}] * 2 == [
            set(metadata["adjudge"]) for metadata in paused.output.metadata.values()
        ]

    def test_nothing_waits_once_all_is_answered(self, agent, paused):
        """An answered call is no longer there to be answered."""
        given = answers(agent, paused, x=GRANTED, y=GRANTED)

        going_on(agent, paused, given)

        assert [] == pending(agent, paused)

    @pytest.mark.parametrize("paused", ["done", None], ids=repr)
    def test_a_run_that_waits_for_nobody_is_an_error(self, paused, agent):
        """What is no paused run cannot be asked about."""
        with pytest.raises(AnswerError, match="waits for nobody"):
            pending(agent, paused)

    def test_an_agent_without_a_guard_is_an_error(self, paused):
        """The ledger is the guard's."""
        with pytest.raises(GovernError, match="is not governed"):
            pending(Agent(TestModel()), paused)


class TestResume:
    def test_each_answer_reaches_its_own_call(self, agent, paused, stage, ran):
        """Clause 22: a grant runs its call and no other."""
        result = going_on(agent, paused, answers(agent, paused, x=GRANTED, y=REFUSED))

        assert "a is done." == result.output
        assert ["erased x", "[denied] approval refused by ana: not now"] == stage.said
        assert [("x", False)] == ran

    def test_a_call_that_nobody_has_answered_goes_on_waiting(self, agent, paused, stage, ran):
        """Partial answers: the framework wants all at once, the run pauses again instead."""
        again = going_on(agent, paused, answers(agent, paused, x=GRANTED))
        before = list(ran)
        done = going_on(agent, again, answers(agent, again, y=GRANTED))

        assert [("x", False)] == before
        assert [("x", False), ("y", False)] == sorted(ran)
        assert "a is done." == done.output

    def test_an_edit_runs_edited(self, agent, paused, ran):
        """Clause 23: edited arguments are validated, judged and run."""
        edited = ApprovalDecision(True, "ana", edited_args={"name": "z", "hard": "yes"})

        going_on(agent, paused, answers(agent, paused, x=edited, y=REFUSED))

        assert [("z", True)] == ran

    def test_a_run_goes_on_from_what_was_saved(self, agent, paused, ran):
        """The history and the requests are all that a resuming process needs besides the ledger."""
        history = ModelMessagesTypeAdapter.validate_json(paused.all_messages_json())
        requests = REQUESTS.validate_json(REQUESTS.dump_json(paused.output))
        given = answers(agent, requests, x=GRANTED, y=GRANTED)

        going_on(agent, requests, given, message_history=history)

        assert [("x", False), ("y", False)] == sorted(ran)

    def test_requests_without_their_history_are_an_error(self, agent, paused):
        """Both are needed, and the error says so."""
        with pytest.raises(AnswerError, match="message_history"):
            going_on(agent, paused.output, answers(agent, paused, x=GRANTED))

    def test_any_way_of_running_goes_on(self, agent, paused, ran):
        """`reopen` gives the results for a stream or whatever else."""

        async def run() -> None:
            given = await reopen(agent, paused, answers(agent, paused, x=GRANTED, y=GRANTED))
            async with agent.run_stream_events(
                message_history=paused.all_messages(), deferred_tool_results=given
            ) as events:
                async for _ in events:
                    pass

        asyncio.run(run())

        assert [("x", False), ("y", False)] == sorted(ran)

    def test_an_agent_built_with_the_capability_pauses_too(self, stage, pausing, erase, ran):
        """It does not matter how the guard came to the agent."""
        stage.script(a=[("erase", '{"name": "x"}')])
        agent = stage.agent(
            tools=[erase], output_type=OUTPUT, capabilities=[AdjudgeCapability(pausing())]
        )
        paused = stage.run(agent)

        going_on(agent, paused, answers(agent, paused, x=GRANTED))

        assert [("x", False)] == ran

    def test_a_transform_is_asked_about_and_runs(self, stage, pausing, erase, ran):
        """Clause 19: the approver sees, and the body gets, the final arguments."""
        rule = {
            "id": "soft",
            "priority": 1,
            "match": {"given.hard": True, "args.hard": True},
            "decision": "transform",
            "transform": {"path": "args.hard", "set": False},
        }
        ask = {"id": "ask", "match": {"args.hard": False}, "decision": "approve_required"}
        stage.script(a=[("erase", '{"name": "x", "hard": true}')])
        agent = govern(stage.agent(tools=[erase], output_type=OUTPUT), pausing(rule, ask))
        paused = stage.run(agent)
        (waits,) = pending(agent, paused)

        going_on(agent, paused, {waits.id: GRANTED})

        assert {"name": "x", "hard": False} == dict(waits.decision.effective_args)
        assert [("x", False)] == ran


class TestGrantsNothing:
    """What is stale, foreign, repeated, sticky or tampered (B030, B036, B045, X029)."""

    def natively(self, agent, paused, results):
        """Go on with the framework's own words alone."""
        return asyncio.run(
            agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
        )

    @pytest.mark.parametrize(
        "approval", [True, ToolApproved(), ToolApproved(override_args={"name": "z"})], ids=repr
    )
    def test_the_frameworks_own_approval(self, approval, agent, paused, ran):
        """Native approval alone leaves the calls waiting, overridden arguments or not."""
        ids = [call.tool_call_id for call in paused.output.approvals]
        given = DeferredToolResults(
            approvals=dict.fromkeys(ids, approval), metadata=paused.output.metadata
        )

        again = self.natively(agent, paused, given)

        assert ids == [call.tool_call_id for call in again.output.approvals]
        assert [] == ran

    def test_metadata_that_a_client_makes_up(self, agent, paused, ran):
        """What JSON can say names no reopened run."""
        ids = [call.tool_call_id for call in paused.output.approvals]
        forged = {"run": "r", "pending": "p", "granted": True, "entries": []}
        given = DeferredToolResults(
            approvals=dict.fromkeys(ids, True),
            metadata={each: {"adjudge": forged} for each in ids},
        )

        self.natively(agent, paused, given)

        assert [] == ran

    def test_a_handler_of_the_frameworks_that_approves_all(self, stage, pausing, erase, ran):
        """Approval in place, by the application's own handler, is none of the policy's."""

        def approve(_: object, requests: DeferredToolRequests) -> DeferredToolResults:
            return requests.build_results(approve_all=True)

        stage.script(a=[("erase", '{"name": "x"}')])
        agent = stage.agent(
            tools=[erase], output_type=OUTPUT, capabilities=[HandleDeferredToolCalls(approve)]
        )

        result = stage.run(govern(agent, pausing()))

        assert isinstance(result.output, DeferredToolRequests)
        assert [] == ran

    def test_the_same_answers_again(self, agent, paused, ran):
        """Law 6: a state that was resumed before runs nothing."""
        given = answers(agent, paused, x=GRANTED, y=GRANTED)
        going_on(agent, paused, given)

        going_on(agent, paused, given)

        assert [("x", False), ("y", False)] == sorted(ran)

    def test_the_same_results_again(self, agent, paused, ran):
        """Law 6: nor does a results object that was used before."""
        given = asyncio.run(reopen(agent, paused, answers(agent, paused, x=GRANTED, y=GRANTED)))

        for _ in range(2):
            self.natively(agent, paused, given)

        assert [("x", False), ("y", False)] == sorted(ran)

    def test_a_second_answer_that_differs(self, agent, paused, ran):
        """X029: the first answer to a question counts."""
        first = answers(agent, paused, x=REFUSED, y=REFUSED)
        asyncio.run(reopen(agent, paused, first))

        going_on(agent, paused, dict.fromkeys(first, GRANTED))

        assert [] == ran

    @pytest.mark.parametrize("name", ["all", "y"])
    def test_a_history_that_was_edited(self, name, agent, paused, ran):
        """Law 5: the arguments are those that were asked about, or the call is a new one."""
        given = asyncio.run(reopen(agent, paused, answers(agent, paused, x=GRANTED)))
        history = [
            dataclasses.replace(
                message,
                parts=[
                    dataclasses.replace(part, args=json.dumps({"name": name}))
                    if isinstance(part, ToolCallPart)
                    else part
                    for part in message.parts
                ],
            )
            if isinstance(message, ModelResponse)
            else message
            for message in paused.all_messages()
        ]

        asyncio.run(agent.run(message_history=history, deferred_tool_results=given))

        assert [] == ran

    def test_answers_to_another_run(self, agent, stage, paused, ran):
        """An answer belongs to the run in which it was asked for."""
        other = stage.run(agent)

        with pytest.raises(AnswerError, match="another run"):
            going_on(agent, paused, answers(agent, other, x=GRANTED))

        assert [] == ran

    def test_an_answer_to_nothing(self, agent, paused, ran):
        """An id that the ledger does not know is an error, before anything runs."""
        with pytest.raises(AnswerError, match="No call waits"):
            going_on(agent, paused, {"x": GRANTED})

        assert [] == ran

    def test_a_grant_is_for_one_call(self, stage, pausing, erase, ran):
        """B036: the same call again, later in the run, is asked about again."""
        stage.script(a=[("erase", '{"name": "x"}'), ("erase", '{"name": "x"}')])
        agent = govern(stage.agent(tools=[erase], output_type=OUTPUT), pausing())
        paused = stage.run(agent)

        again = going_on(agent, paused, answers(agent, paused, x=GRANTED))

        assert isinstance(again.output, DeferredToolRequests)
        assert [("x", False)] == ran

    def test_a_history_that_ends_in_an_unapproved_call(self, agent, paused, ran):
        """B030: results for other calls, or none, approve nothing."""
        ids = [call.tool_call_id for call in paused.output.approvals]
        given = DeferredToolResults(approvals={ids[0]: True, ids[1]: False})

        again = self.natively(agent, paused, given)

        assert ids[:1] == [call.tool_call_id for call in again.output.approvals]
        assert [] == ran

    def test_another_guards_ledger(self, agent, paused, stage, guard_of, erase, ran, tmp_path):
        """A process that cannot see the entry denies."""
        given = asyncio.run(reopen(agent, paused, answers(agent, paused, x=GRANTED, y=GRANTED)))
        ledger = SQLiteLedger(tmp_path / "other.sqlite")
        elsewhere = guard_of(rest="approve_required", on_approval=pause_approval(ledger))
        other = govern(stage.agent(tools=[erase], output_type=OUTPUT), elsewhere)

        self.natively(other, paused, given)

        assert [] == ran


class TestWithTheFrameworksOwn:
    """Calls for which the framework waits by itself, beside those of the policy."""

    def test_both_approvals_are_one_request(self, stage, pausing, erase, ran, record):
        """B032: a tool that needs approval and a policy that asks put one question."""
        stage.script(a=[("erase", '{"name": "x"}')])
        tools = [Tool(erase, requires_approval=True)]
        agent = govern(stage.agent(tools=tools, output_type=OUTPUT), pausing())
        paused = stage.run(agent)
        before = len(paused.output.approvals)

        going_on(agent, paused, answers(agent, paused, x=GRANTED))

        assert (1, [("x", False)]) == (before, ran)
        assert ["action.completed"] == record.ends

    def test_the_frameworks_own_requests_are_answered_beside(self, stage, pausing, erase, ran):
        """`results` holds what the framework asks; the policy's calls are in `answers`."""

        def shred(name: str) -> str:
            """Shred."""
            ran.append(name)
            return "shredded"

        rule = {"id": "free", "match": {"tool": "shred"}, "decision": "allow"}
        stage.script(a=[[("erase", '{"name": "x"}'), ("shred", '{"name": "s"}', "call_s")]])
        tools = [erase, Tool(shred, requires_approval=True)]
        agent = govern(stage.agent(tools=tools, output_type=OUTPUT), pausing(rule))
        paused = stage.run(agent)

        result = going_on(
            agent,
            paused,
            answers(agent, paused, x=GRANTED),
            results=DeferredToolResults(approvals={"call_s": True}),
        )

        assert "a is done." == result.output
        assert {("x", False), "s"} == set(ran)

    def test_a_call_of_the_policys_is_not_answered_there(self, agent, paused, ran):
        """One place for each answer, so that none is taken for the other."""
        call = paused.output.approvals[0].tool_call_id

        with pytest.raises(AnswerError, match="waits for its policy"):
            going_on(
                agent,
                paused,
                answers(agent, paused, x=GRANTED, y=GRANTED),
                results=DeferredToolResults(approvals={call: False}),
            )

        assert [] == ran

    def test_a_call_that_was_suspended_goes_on(self, stage, pausing, erase, ran, record):
        """Law 6: what the framework approved beside an answered call is the same execution."""

        def shred(name: str) -> str:
            """Shred."""
            ran.append(name)
            return "shredded"

        rule = {"id": "free", "match": {"tool": "shred"}, "decision": "allow"}
        stage.script(a=[[("erase", '{"name": "x"}'), ("shred", '{"name": "s"}', "call_s")]])
        tools = [erase, Tool(shred, requires_approval=True)]
        agent = govern(stage.agent(tools=tools, output_type=OUTPUT), pausing(rule))
        paused = stage.run(agent)
        results = DeferredToolResults(approvals={"call_s": True})

        going_on(agent, paused, answers(agent, paused, x=GRANTED), results=results)

        assert "s" in ran
        assert ["erase", "shred"] == sorted(each["tool"] for each in record.bodies("step.proposed"))


class TestNested:
    @pytest.fixture
    def outer(self, stage, pausing, erase):
        """An agent whose tool asks another one, which wants to erase."""
        rule = {"id": "ask", "match": {"tool": "ask"}, "decision": "allow"}
        guard = pausing(rule)
        stage.script(a=[("ask", "{}")], b=[("erase", '{"name": "x"}')])
        inner = govern(stage.agent("b", tools=[erase], output_type=OUTPUT), guard)

        async def ask(ctx: RunContext[Any]) -> str:
            """Ask the other agent."""
            return str(await delegate(ctx, inner, "Go."))

        return govern(stage.agent("a", tools=[ask], output_type=OUTPUT), guard)

    def test_the_whole_run_waits_where_the_nested_one_does(self, outer, stage, ran, record):
        """Law 6: the tool that ran the nested agent is suspended, and goes on once."""
        paused = stage.run(outer)

        done = going_on(outer, paused, answers(outer, paused, x=GRANTED))

        assert "a is done." == done.output
        assert [("x", False)] == ran
        assert ["action.suspended", "action.completed", "action.completed"] == record.ends
        assert 2 == record.kinds.count("step.proposed")

    def test_resumed_twice_it_runs_once(self, outer, stage, ran):
        """Law 6: neither the nested call nor the one around it runs again."""
        paused = stage.run(outer)
        given = answers(outer, paused, x=GRANTED)

        for _ in range(2):
            going_on(outer, paused, given)

        assert [("x", False)] == ran

    def test_a_tool_that_is_not_governed_cannot_wait(self, stage, pausing, erase, ran):
        """A nested agent that waits where nobody outside would know is an error."""
        stage.script(a=[("ask", "{}")], b=[("erase", '{"name": "x"}')])
        inner = govern(stage.agent("b", tools=[erase], output_type=OUTPUT), pausing())

        async def ask(ctx: RunContext[Any]) -> str:
            """Ask the other agent."""
            return str(await delegate(ctx, inner, "Go."))

        with pytest.raises(GovernError, match="govern the agent that has the tool"):
            stage.run(stage.agent("a", tools=[ask], output_type=OUTPUT))

        assert [] == ran
