"""`adjudge_langchain.integration`: what an integration that builds on this one relies on."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain.tools import InjectedState
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from adjudge import GovernedCall, GovernError, Outcome
from adjudge.integration import GovernedRun
from adjudge_langchain import govern
from adjudge_langchain.integration import (
    Binding,
    call_of,
    govern_tool_node,
    governed_tool,
    pending_mark,
    run_id_of,
    tool_nodes,
)

ONE: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def injecting(ran):
    """A tool with an injected argument and a default."""

    @tool
    def erase(
        name: str, state: Annotated[dict[str, Any], InjectedState], hard: bool = False
    ) -> str:
        """Erase a note."""
        ran.append(name)
        return "erased"

    return erase


class TestALookAhead:
    def test_reads_the_arguments_and_runs_nothing(self, pausing, injecting, ran, record):
        """A call can be put to the guard before it is made, as its body would get it."""
        guard = pausing()
        made = governed_tool(injecting, Binding.of(guard))

        call = call_of(made, {"name": "a", "state": {}}, "c1", {})
        run = GovernedRun()
        asked = guard.pause_call_sync(call.proposal(run))

        assert {"name": "a", "hard": False} == dict(asked.request.args)
        assert ("erase", "c1") == (asked.request.tool, asked.call_id)
        assert ([], ["step.proposed"]) == (ran, record.kinds[:1])

    def test_of_arguments_that_the_tool_does_not_take(self, guard_of, injecting):
        """What LangChain will reject is nothing to look at."""
        made = govern(injecting, guard_of())

        assert call_of(made, {"nome": "a", "state": {}}, "c1", {}) is None

    def test_of_arguments_that_are_refused(self, guard_of):
        """What is denied before LangChain reads it is nothing to look at either."""

        @tool
        def weigh(weight: float) -> str:
            """Weigh."""
            return "weighed"

        made = govern(weigh, guard_of())

        assert call_of(made, {"weight": float("nan")}, "c1", {}) is None

    def test_of_a_tool_that_is_not_governed(self, injecting):
        """There is no guard that could look."""
        with pytest.raises(GovernError, match="not governed"):
            call_of(injecting, {"name": "a", "state": {}}, "c1", {})


class TestParts:
    def test_tool_nodes_are_found_and_governed(self, stage, guard_of, erase, ran):
        """The tools of an agent's node are governed for themselves."""
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = stage.agent([erase])
        (node,) = tool_nodes(agent)

        govern_tool_node(node, Binding.of(guard_of(rest="deny")))
        stage.run(agent)

        assert [] == ran

    def test_the_run_of_a_thread_has_one_name(self, stage, pausing, erase):
        """What waits is found by the thread alone, and the interrupt carries its id alone."""
        guard = pausing()
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = govern(stage.agent([erase], checkpointer=InMemorySaver()), guard)

        (shown,) = stage.run(agent, config=ONE)["__interrupt__"]

        (asked,) = guard.waiting_sync(run_id_of("1"))
        assert asked.id == pending_mark(shown.value)
        assert run_id_of(1) == run_id_of("1") != run_id_of("2")

    def test_a_call_can_be_governed_by_its_parts(self, guard_of, injecting):
        """The proposal of a call that was looked at goes through any door of the guard."""
        guard = guard_of(rest="deny")
        call = call_of(govern(injecting, guard), {"name": "a", "state": {}}, "c1", {})

        async def execute(_: Any) -> None:
            raise AssertionError("a denied call runs nothing")

        done: GovernedCall = asyncio.run(guard.govern_call(call.proposal(None), execute))

        assert Outcome.DENIED is done.outcome
