"""What is no `Exception` passes, wherever it is raised: nothing takes it for a failure."""

import asyncio

import pytest

from adjudge import ToolSet, tool
from adjudge_runtime import Budget, FinalAnswer, Usage, agent_tool

from ..leaving import Store, Switch, leave
from .scripted import DONE, Script, call


class Unreadable(dict):
    """A value whose items cannot be read."""

    def items(self):
        """Read them."""
        return leave()


class Unspeakable:
    """A value that cannot be shown."""

    def __str__(self):
        return leave()


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self):
        return leave()


def giving(value):
    """Give a tool that gives a value."""

    @tool()
    async def give() -> object:
        """Give it."""
        return value

    return {"tools": ToolSet([give])}


def stored(kind):
    """Give a store for a run."""
    return {"store": Store(kind), "run_id": "r"}


USED = FinalAnswer("done", Usage(1, 2))


@pytest.mark.parametrize(
    ("actions", "options"),
    [
        ([call("echo"), DONE], stored("load")),
        ([call("echo"), DONE], stored("run.started")),
        ([call("echo"), DONE], stored("model.output")),
        ([call("echo"), DONE], stored("action.intent")),
        ([call("echo"), DONE], stored("action.result")),
        ([USED], {"budget": Budget(cost=leave)}),
        ([call("echo"), DONE], {"compressor": leave}),
        ([call("echo"), DONE], {"cancel": Switch()}),
        ([call("give"), DONE], giving({"of": Unreadable(a=1)})),
        ([call("give"), DONE], giving(Unspeakable())),
        ([Mute()], {}),
        ([Mute()], {"budget": Budget(step_timeout_seconds=60)}),
        ([asyncio.CancelledError()], {"budget": Budget(step_timeout_seconds=60)}),
    ],
    ids=[
        "load",
        "begin",
        "decide",
        "intend",
        "keep",
        "price",
        "compressor",
        "switch",
        "items",
        "value",
        "error",
        "late error",
        "agent",
    ],
)
async def test_a_cancellation_passes(world, actions, options):
    """It ends the run where it is raised, and is what the caller gets."""
    with pytest.raises(asyncio.CancelledError):
        await world.run(Script(*actions), **options)


async def test_a_cancellation_passes_an_agent_inside_of_a_tool(world):
    """Both runs end with it."""
    inner = agent_tool(Script(asyncio.CancelledError(), name="inner"), tools=ToolSet())

    with pytest.raises(asyncio.CancelledError):
        await world.run(Script(call("inner", task="x"), DONE), tools=ToolSet([inner]))
    assert 2 == world.events.count("run.cancelled")
