"""Agents that the plain code of a tool's body asks: nobody can leave such a body and come back."""

import pytest

from adjudge import ApprovalDecision, MemoryRunStore, SQLiteLedger, ToolSet, pause_approval, tool
from adjudge_runtime import FinalAnswer, Usage, agent_tool

from .scripted import DONE, Script, call


@pytest.fixture
def ledger(tmp_path):
    """Give a ledger in a file."""
    opened = SQLiteLedger(tmp_path / "ledger.db")
    yield opened
    opened.close()


def asking(*asked):
    """Give a tool whose body asks agents' tools, one after the other, and says what they said."""

    @tool()
    async def plain() -> str:
        """Ask them all."""
        return " ".join([await each.fn(task="it") for each in asked])

    return ToolSet([plain])


def helper(world, name, *actions):
    """Give an agent's tool."""
    return agent_tool(Script(*actions, name=name), tools=world.tools)


async def test_what_needs_approval_is_denied_in_it(world, ledger):
    """Nobody is asked about a call with which nobody could go on, and nothing is uncertain."""
    told = Script(call("pay", amount=1), FinalAnswer("not paid"), name="payer")
    store, kept = MemoryRunStore(), {"run_id": "r", "on_approval": pause_approval(ledger)}
    tools = asking(agent_tool(told, tools=world.tools))
    agent = Script(call("plain"), DONE)

    result = await world.run(agent, tools=tools, store=store, **kept)

    assert ("done", ["not paid"], []) == (result.final_answer, agent.told, world.ran)
    assert "cannot be left waiting" in told.told[0]
    assert [] == world.bodies("approval.requested")
    assert 1 == result.denials


async def test_what_needs_approval_is_denied_in_an_agent_of_an_agent_in_it(world, ledger):
    """However deep it is proposed."""
    inner = helper(world, "inner", call("pay", amount=1), FinalAnswer("no"))
    outer = agent_tool(
        Script(call("inner", task="pay"), DONE, name="outer"), tools=ToolSet([inner])
    )
    kept = {"store": MemoryRunStore(), "run_id": "r", "on_approval": pause_approval(ledger)}

    result = await world.run(Script(call("plain"), DONE), tools=asking(outer), **kept)

    assert ("done", []) == (result.final_answer, world.ran)
    assert [] == world.bodies("approval.requested")


async def test_beside_it_a_call_may_wait(world, ledger):
    """A tool of the run's own is left waiting as ever, and goes on."""
    actions = (call("plain"), call("pay", amount=2), DONE)
    tools = ToolSet([*asking(helper(world, "echoes", call("echo"), DONE)), *world.tools])
    kept = {"store": MemoryRunStore(), "run_id": "r", "on_approval": pause_approval(ledger)}
    paused = await world.run(Script(*actions), tools=tools, **kept)
    answers = {each.id: ApprovalDecision(True, "ana") for each in paused.pending}

    result = await world.run(Script(*actions), tools=tools, answers=answers, **kept)

    assert ("paused", "done") == (paused.code, result.final_answer)
    assert [("echo", "hi"), ("pay", 2)] == world.ran


async def test_each_agent_has_a_run_of_its_own(world):
    """With the same task, one does not get the answer of the other."""
    used = Usage(1, 2)
    one, other = (
        helper(world, name, call("erase"), FinalAnswer(name, used)) for name in ("one", "other")
    )
    kept = {"store": MemoryRunStore(), "run_id": "r"}
    agent = Script(call("plain"), DONE)

    result = await world.run(agent, tools=asking(one, other), **kept)
    again = await world.run(agent, tools=asking(one, other), **kept)

    assert ["one other"] == agent.told
    assert (Usage(2, 4), 2) == (result.usage, result.denials) == (again.usage, again.denials)
