"""LangChain's own human in the loop: its decisions as answers, and beside the guard."""

import asyncio
import inspect
import json
from contextlib import nullcontext
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, hook_config
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from adjudge import AnswerError, ApprovalDecision, GovernError
from adjudge_langchain import AdjudgeMiddleware, govern, hitl_answers, pending, resume

DENIED = "[denied] not permitted by policy"
BIG = {"id": "big", "match": {"args.amount": {"gt": 100}}, "decision": "deny"}
ONE: Any = {"configurable": {"thread_id": "1"}}
ERASE = ("erase", '{"name": "a"}')
# Releases before 1.5 have one way to ask, and do not name it.
_BY_CALL = "interrupt_mode" in inspect.signature(HumanInTheLoopMiddleware).parameters
MODES: dict[str, dict[str, Any]] = {"batched": {}}
if _BY_CALL:
    MODES["per_call"] = {"interrupt_mode": "per_call"}

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
by_either = pytest.mark.parametrize("by", ["govern", "middleware"])
in_each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def pay(ran):
    """A tool that pays."""

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return f"paid {amount}"

    return pay


class Jumping(AgentMiddleware):
    """Jumps to the tools after each answer of the model, and so past other middleware."""

    @hook_config(can_jump_to=["tools"])
    def after_model(self, state, runtime):
        """Jump."""
        said = [each for each in state["messages"] if isinstance(each, AIMessage)]
        return {"jump_to": "tools"} if said[-1].tool_calls else None


class Again(AgentMiddleware):
    """Jumps back to the tools, with the calls that have been answered, once."""

    @hook_config(can_jump_to=["tools"])
    def before_model(self, state, runtime):
        """Jump."""
        if [each.type for each in state["messages"]] != ["human", "ai", "tool"]:
            return None
        asked = state["messages"][1]
        return {"jump_to": "tools", "messages": [asked.model_copy(update={"id": "again"})]}


def agent_of(stage, guard, by, tools, *middleware):
    """Make an agent that is governed one way or the other, and can wait."""
    saver = InMemorySaver()
    if by == "govern":
        agent = stage.agent(tools, middleware=list(middleware), checkpointer=saver)
        return govern(agent, guard)
    last = AdjudgeMiddleware(guard)
    return stage.agent(tools, middleware=[*middleware, last], checkpointer=saver)


def decide(agent, decision, mode, *, in_loop=False):
    """Go on with a run in LangChain's own words."""
    (asked,) = agent.get_state(ONE).interrupts
    resumed = {"decisions": [decision]} if mode == "batched" else {asked.id: decision}
    command: Any = Command(resume=resumed)
    return asyncio.run(agent.ainvoke(command, ONE)) if in_loop else agent.invoke(command, ONE)


def edit(name: str, /, **args: Any) -> dict[str, Any]:
    """Edit a call."""
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


class TestBesideTheGuard:
    """What a person says to the middleware is for the middleware: the call is judged after it."""

    @in_any_style
    @by_either
    @in_each_mode
    @pytest.mark.parametrize(
        ("decision", "told", "runs"),
        [
            ({"type": "approve"}, "paid 5", [5]),
            (edit("pay", amount=7), "paid 7", [7]),
            (edit("pay", amount=1000), DENIED, []),
            ({"type": "reject", "message": "not today"}, "not today", []),
            ({"type": "respond", "message": "it is paid"}, "it is paid", []),
        ],
        ids=["approve", "edit", "edit-too-far", "reject", "respond"],
    )
    def test_each_decision(
        self, stage, guard_of, pay, ran, in_loop, by, mode, decision, told, runs
    ):
        """An approval is none of the guard's, and an edit is judged."""
        every = ["approve", "edit", "reject", "respond"]
        asking = HumanInTheLoopMiddleware({"pay": {"allowed_decisions": every}}, **MODES[mode])
        stage.script(a=[("pay", '{"amount": 5}')])
        agent = agent_of(stage, guard_of(BIG), by, [pay], asking)
        stage.run(agent, in_loop=in_loop, config=ONE)

        decide(agent, decision, mode, in_loop=in_loop)

        assert runs == ran
        assert stage.said[0].endswith(told)

    @in_any_style
    @by_either
    def test_an_edit_to_another_tool(self, stage, guard_of, pay, erase, ran, in_loop, by):
        """It is judged as a call of that tool (one call at a time, LangChain refuses it itself).

        https://github.com/langchain-ai/langchain/issues/40166
        """
        asking = HumanInTheLoopMiddleware({"erase": True})
        stage.script(a=[ERASE])
        agent = agent_of(stage, guard_of(BIG), by, [pay, erase], asking)
        stage.run(agent, in_loop=in_loop, config=ONE)

        decide(agent, edit("pay", amount=1000), "batched", in_loop=in_loop)

        assert [] == ran
        assert stage.said[0].endswith(DENIED)

    @by_either
    @in_each_mode
    def test_both_ask(self, stage, pausing, pay, ran, by, mode):
        """Two questions, one after the other: the approval of one is none of the other's."""
        guard = pausing()
        asking = HumanInTheLoopMiddleware({"pay": True}, **MODES[mode])
        stage.script(a=[("pay", '{"amount": 5}')])
        agent = agent_of(stage, guard, by, [pay], asking)
        stage.run(agent, config=ONE)
        assert [] == pending(agent, ONE, guard=guard)

        decide(agent, {"type": "approve"}, mode)
        (asked,) = pending(agent, ONE, guard=guard)
        assert [] == ran
        resume(agent, ONE, {asked.id: ApprovalDecision(True, "ana")}, guard=guard)

        assert ([5], ["paid 5"]) == (ran, stage.said)

    @by_either
    @pytest.mark.parametrize("jumps", ["before", "after"])
    def test_a_jump_past_it(self, stage, pausing, pay, ran, record, by, jumps):
        """Middleware that jumps to the tools runs nothing: there it could not wait for a person.

        https://github.com/langchain-ai/langchain/issues/40492
        """
        asking = HumanInTheLoopMiddleware({"pay": True})
        order = [Jumping(), asking] if jumps == "before" else [asking, Jumping()]
        stage.script(a=[("pay", '{"amount": 5}')])
        agent = agent_of(stage, pausing(), by, [pay], *order)
        stage.run(agent, config=ONE)

        if jumps == "before":
            # The person's refusal is recorded, and the call goes to the tools all the same.
            decide(agent, {"type": "reject", "message": "no"}, "batched")

        assert ([], ["cannot_pause"]) == (ran, _codes(record))

    @by_either
    def test_a_jump_back_to_a_refused_call(self, stage, pausing, pay, ran, record, by):
        """A call that was refused, and is brought to the tools once more, has no answer left."""
        guard = pausing()
        stage.script(a=[("pay", '{"amount": 5}')])
        agent = agent_of(stage, guard, by, [pay], Again())
        stage.run(agent, config=ONE)
        (first,) = pending(agent, ONE, guard=guard)

        resume(agent, ONE, {first.id: ApprovalDecision(False, "ana")}, guard=guard)

        assert ([], ["approval_refused", "cannot_pause"]) == (ran, _codes(record))

    def test_it_cannot_edit_inside_of_the_guard(self, stage, guard_of, pay, erase, ran):
        """Listed after the guard, it edits before the tools are reached, or is refused there.

        https://github.com/langchain-ai/langchain/issues/40166
        """
        asking = HumanInTheLoopMiddleware({"erase": True})
        order = [AdjudgeMiddleware(guard_of(BIG)), asking]
        stage.script(a=[ERASE])
        agent = stage.agent([pay, erase], middleware=order, checkpointer=InMemorySaver())
        stage.run(agent, config=ONE)

        # Where it edits around the tool, the order is refused; else the call is judged as edited.
        wraps = "wrap_tool_call" in vars(HumanInTheLoopMiddleware)
        with pytest.raises(GovernError, match="list it last") if wraps else nullcontext():
            decide(agent, edit("pay", amount=1000), "batched")

        assert [] == ran


class TestItsDecisions:
    """They are understood as answers to what the policy has a person asked."""

    def paused(self, stage, pausing, erase):
        """Make a run that waits, with a policy that has people asked about harmless calls."""
        rule = {"id": "hard", "match": {"args.hard": True}, "decision": "deny"}
        stage.script(a=[ERASE])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing(rule))
        return agent, stage.run(agent, config=ONE)["__interrupt__"]

    @pytest.mark.parametrize(
        ("decision", "runs"),
        [
            ({"type": "approve"}, [("a", False)]),
            ({"approved": True}, [("a", False)]),
            ({"approved": False}, []),
            ({"type": "reject", "message": "no"}, []),
            ({"type": "respond", "message": "ask me later"}, []),
            (
                {"type": "edit", "edited_action": {"name": "erase", "args": {"name": "b"}}},
                [("b", False)],
            ),
            (
                {
                    "type": "edit",
                    "edited_action": {"name": "erase", "args": {"name": "b", "hard": True}},
                },
                [],
            ),
        ],
    )
    @pytest.mark.parametrize("batched", [True, False])
    def test_each_kind(self, stage, pausing, erase, ran, decision, runs, batched):
        """By position or by interrupt, each decision does what it says; edits are judged."""
        agent, interrupts = self.paused(stage, pausing, erase)
        sent = {"decisions": [decision]} if batched else {interrupts[0].id: decision}

        resume(agent, ONE, hitl_answers(interrupts, sent, approver="ana"))

        assert runs == ran
        assert decision.get("message", "") in stage.said[0]

    @pytest.mark.parametrize(
        "sent",
        [
            {"decisions": []},
            {"decisions": "approve"},
            {"nobody": {"type": "approve"}},
            {"decisions": ["approve"]},
            {"decisions": [{"type": "maybe"}]},
            {"decisions": [{"approved": "yes"}]},
            {"decisions": [{"type": "edit"}]},
            {"decisions": [{"type": "edit", "edited_action": {"name": "erase"}}]},
            {"decisions": [{"type": "edit", "edited_action": {"name": "pay", "args": {}}}]},
        ],
    )
    def test_what_is_none(self, stage, pausing, erase, sent):
        """What cannot be read as a decision about this call is an error."""
        _, interrupts = self.paused(stage, pausing, erase)

        with pytest.raises(AnswerError):
            hitl_answers(interrupts, sent, approver="ana")

    def test_what_is_shown(self, stage, pausing, erase):
        """The interrupt is plain JSON in the middleware's shape, with nothing hidden in it."""
        stage.script(a=[("erase", json.dumps({"name": "a\u202eb"}))])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), pausing())

        (shown,) = stage.run(agent, config=ONE)["__interrupt__"]

        value = json.loads(json.dumps(shown.value))
        assert ("tool_approval", "erase") == (value["type"], value["name"])
        assert {"name": "a\u202eb", "hard": False} == value["args"]
        assert "\\u202e" in value["description"]
        assert "\u202e" not in value["description"]


def _codes(record: Any) -> list[str]:
    return [each["code"] for each in record.bodies("action.denied")]
