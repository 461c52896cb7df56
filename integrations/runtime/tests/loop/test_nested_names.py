"""The run of an agent inside of a tool is that of its call and of its task, and of nobody else."""

import pytest

from adjudge import MemoryRunStore, ToolSet, tool
from adjudge_runtime import FinalAnswer, agent_tool

from .scripted import DONE, Died, Script, policy
from .test_pausing import call


def helping():
    """Give an agent's tool that says which task it had."""

    class Helper:
        name = "helper"
        asked = 0

        async def step(self, conversation):
            """Answer at once."""
            self.asked += 1
            return FinalAnswer(f"did {conversation[0].content}")

    helper = Helper()
    return helper, agent_tool(helper, tools=ToolSet())


def task_set_to(text):
    """Give a policy that changes what the helper is asked."""
    change = {"jsonpath": "$.args.task", "set": text}
    return policy({"match": {"tool": "helper"}, "decision": "transform", "transform": change})


async def test_another_task_does_not_get_the_answer_to_the_first(world):
    """A body that asks one agent twice within a call is told so the second time."""
    helper, asks = helping()

    @tool()
    async def twice() -> str:
        """Ask two things."""
        first = await asks.fn(task="one")
        return first + await asks.fn(task="two")

    agent = Script(call("twice"), DONE)
    await world.run(agent, tools=ToolSet([twice]), store=MemoryRunStore(), run_id="r")

    assert 1 == helper.asked
    assert "begun with the task 'one'" in agent.told[0]


async def test_a_task_that_a_policy_changed_meanwhile_is_another(world):
    """The next attempt does not take the answer to one task for that to the other."""

    class Dying(MemoryRunStore):
        dies = True

        async def append(self, record):
            if self.dies and record.kind == "action.result":
                raise Died
            await super().append(record)

    store = Dying()
    helper, asks = helping()
    options = {"tools": ToolSet([asks]), "store": store, "run_id": "r"}
    with pytest.raises(Died):
        await world.run(Script(call("helper", task="x")), policy=task_set_to("one"), **options)
    store.dies = False
    agent = Script(call("helper", task="x"), DONE)
    await world.run(agent, policy=task_set_to("two"), **options)

    assert 1 == helper.asked
    assert "cannot go on with 'two'" in agent.told[0]


async def test_a_run_cannot_be_named_as_a_nested_one(world):
    """An id that a nested run could have is refused before anything runs."""
    agent = Script(DONE)

    with pytest.raises(ValueError, match="/nested/"):
        await world.run(agent, store=MemoryRunStore(), run_id="r/nested/0.0")
    assert [] == agent.seen


async def test_a_run_that_looks_nearly_like_it_is_another(world):
    """The answer of the run `r/0.0` is not that of the first call of `r`."""
    store = MemoryRunStore()
    _, asks = helping()
    await world.run(Script(FinalAnswer("another's")), store=store, run_id="r/0.0")
    agent = Script(call("helper", task="x"), DONE)

    await world.run(agent, tools=ToolSet([asks]), store=store, run_id="r")

    assert ["did x"] == agent.told
