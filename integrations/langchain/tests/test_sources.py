"""Where tools come from: servers, toolkits, middleware, one request, other agents, and nowhere."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from pydantic import BaseModel

from adjudge import GovernError
from adjudge_langchain import AdjudgeMiddleware, govern

DENIED = "[denied] not permitted by policy"
MCP_SERVER = Path(__file__).with_name("mcp_notes.py")

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


class TestSources:
    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_a_server_of_mcp(self, guard_of, record, tmp_path, rest):
        """Tools of a real MCP server are governed like any other."""
        log = tmp_path / "ran.txt"
        log.touch()

        async def erased() -> Any:
            bare = await _of_server(log, "erase")
            made = govern(bare, guard_of(rest=rest))
            assert convert_to_openai_tool(bare) == convert_to_openai_tool(made)
            return await made.ainvoke(_proposed("erase"))

        told = asyncio.run(erased())

        allowed = rest == "allow"
        assert ("erase a False\n" if allowed else "") == log.read_text()
        assert (DENIED, "error") == (told.content, told.status) or allowed
        assert [{"name": "a", "hard": False}] == [
            body["args"] for body in record.bodies("step.proposed")
        ]

    def test_a_failure_on_a_server_of_mcp(self, guard_of, record, tmp_path):
        """An error that a server answers with is LangChain's own answer, and a failure on record.

        https://github.com/langchain-ai/langchain-mcp-adapters/issues/432
        """

        async def failed() -> list[Any]:
            bare = await _of_server(tmp_path / "ran.txt", "fail")
            both = (bare, govern(bare, guard_of()))
            return [await made.ainvoke(_proposed("fail")) for made in both]

        ungoverned, governed = asyncio.run(failed())

        # Each block of text gets an id of its own.
        texts = [[block["text"] for block in each.content] for each in (ungoverned, governed)]
        assert texts[0] == texts[1]
        assert ("error", "error") == (ungoverned.status, governed.status)
        assert ["action.failed"] == record.ends

    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_a_toolkit(self, guard_of, erase, ran, rest):
        """What a toolkit gives is a list."""

        class Kit(BaseToolkit):
            def get_tools(self) -> list[BaseTool]:
                return [erase]

        (made,) = govern(Kit().get_tools(), guard_of(rest=rest))
        made.invoke({"name": "a"})

        assert ([("a", False)] if rest == "allow" else []) == ran

    @in_any_style
    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_a_tool_that_middleware_brings(self, stage, guard_of, erase, ran, rest, in_loop):
        """What a middleware lists as its tools is in the agent, and governed with it."""

        class Bringing(AgentMiddleware):
            tools = (erase,)

        stage.script(a=[("erase", '{"name": "a"}')])

        stage.run(
            govern(stage.agent(middleware=[Bringing()]), guard_of(rest=rest)), in_loop=in_loop
        )

        assert ([("a", False)] if rest == "allow" else []) == ran

    @in_any_style
    @pytest.mark.parametrize("rest", ["allow", "deny"])
    @pytest.mark.parametrize("by", ["govern", "middleware"])
    def test_a_tool_of_one_request_alone(self, stage, guard_of, erase, ran, rest, by, in_loop):
        """What a middleware adds to a request and serves itself is judged at its body."""
        stage.script(a=[("erase", '{"name": "a"}')])
        guard = guard_of(rest=rest)
        if by == "govern":
            agent = govern(stage.agent(middleware=[Dynamic(erase)]), guard)
        else:
            agent = stage.agent(middleware=[Dynamic(erase), AdjudgeMiddleware(guard)])

        stage.run(agent, in_loop=in_loop)

        assert ([("a", False)] if rest == "allow" else []) == ran

    @in_any_style
    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_an_agent_as_a_tool(self, stage, guard_of, erase, ran, rest, in_loop):
        """A nested agent is governed by its own `govern`, the call of it by the outer one's."""
        guard = guard_of({"id": "ask", "match": {"tool": "ask"}, "decision": "allow"}, rest=rest)
        stage.script(a=[("ask", '{"question": "?"}')], b=[("erase", '{"name": "a"}')])
        ask = _asking(govern(stage.agent([erase], "b"), guard))

        stage.run(govern(stage.agent([ask]), guard), in_loop=in_loop)

        assert ([("a", False)] if rest == "allow" else []) == ran

    @in_any_style
    def test_an_agent_as_a_tool_that_may_not_be_asked(self, stage, guard_of, erase, ran, in_loop):
        """The nested agent never starts."""
        stage.script(a=[("ask", '{"question": "?"}')], b=[("erase", '{"name": "a"}')])
        ask = _asking(stage.agent([erase], "b"))

        stage.run(govern(stage.agent([ask]), guard_of(rest="deny")), in_loop=in_loop)

        assert (["a", "a"], []) == ([request.model for request in stage.requests], ran)

    @in_any_style
    def test_a_schema_for_the_answer(self, stage, guard_of, record, in_loop):
        """What a model answers by way of a tool that has no body is no call."""

        class Answer(BaseModel):
            text: str

        stage.script(a=[("Answer", '{"text": "done"}')])
        bare = stage.agent([_asking(None)], response_format=ToolStrategy(Answer))

        state = stage.run(govern(bare, guard_of(rest="deny")), in_loop=in_loop)

        assert (Answer(text="done"), []) == (state["structured_response"], record.kinds)

    def test_a_name_that_nobody_knows(self, stage, guard_of, erase, record):
        """Law 1: the framework's own answer, and no call on record."""
        stage.script(a=[("vanish", "{}")])

        stage.run(govern(stage.agent([erase]), guard_of(rest="deny")))

        assert "not a valid tool" in stage.said[0]
        assert [] == record.kinds


async def _of_server(log: Path, name: str) -> BaseTool:
    """Get a tool of a server that runs beside this process."""
    how: Any = {
        "transport": "stdio",
        "command": sys.executable,
        "args": [str(MCP_SERVER), str(log)],
    }
    tools = await MultiServerMCPClient({"notes": how}).get_tools()
    return next(each for each in tools if each.name == name)


def _proposed(name: str) -> Any:
    return {"type": "tool_call", "name": name, "id": "c1", "args": {"name": "a"}}


def _asking(inner: Any) -> BaseTool:
    """Make a tool that asks another agent."""
    given: Any = {"messages": [{"role": "user", "content": "?"}]}

    def ask(question: str) -> str:
        """Ask."""
        return str(inner.invoke(given)["messages"][-1].content)

    async def aask(question: str) -> str:
        """Ask."""
        return str((await inner.ainvoke(given))["messages"][-1].content)

    return StructuredTool.from_function(ask, aask)


class Dynamic(AgentMiddleware):
    """Offers a tool that the agent does not have, and runs it."""

    def __init__(self, served: BaseTool) -> None:
        super().__init__()
        self.served = served

    def wrap_model_call(self, request, handler):
        """Offer it."""
        return handler(request.override(tools=[*request.tools, self.served]))

    async def awrap_model_call(self, request, handler):
        """Offer it."""
        return await handler(request.override(tools=[*request.tools, self.served]))

    def wrap_tool_call(self, request, handler):
        """Serve it."""
        return handler(request.override(tool=self.served))

    async def awrap_tool_call(self, request, handler):
        """Serve it."""
        return await handler(request.override(tool=self.served))


@pytest.mark.parametrize("hosted", ["refuse", "strip"])
def test_a_model_with_fallbacks(stage, guard_of, erase, hosted):
    """A tool at the provider to which one of several models was bound is looked at, too."""
    stage.script("responses", a=[])
    bound = stage.model().bind(tools=[{"type": "web_search"}])
    agent = create_agent(
        bound.with_fallbacks([stage.model()]),
        [],
        middleware=[AdjudgeMiddleware(guard_of(), hosted=hosted)],
    )

    if hosted == "refuse":
        with pytest.raises(GovernError, match="web_search"):
            stage.run(agent)
    else:
        stage.run(agent)
        assert [[]] == stage.offered
