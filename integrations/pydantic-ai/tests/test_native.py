"""Tools that run at the provider, where no guard can stand."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    AgentRunResult,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability, NativeTool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.native_tools import CodeExecutionTool, WebSearchTool
from pydantic_ai.profiles import ModelProfile

from adjudge import GovernError
from adjudge_pydantic_ai import AdjudgeCapability, govern


@pytest.fixture
def offered():
    """The tools at the provider that each request offered."""
    return []


@pytest.fixture
def model(offered):
    """A model at a provider that has such tools."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parameters: ModelRequestParameters = info.model_request_parameters
        offered.append([tool.kind for tool in parameters.native_tools])
        return ModelResponse([TextPart("done")])

    profile = ModelProfile(supported_native_tools=frozenset({WebSearchTool, CodeExecutionTool}))
    return FunctionModel(answer, profile=profile)


def searching(ctx: RunContext[Any]) -> WebSearchTool:
    """Make a tool at the provider for each request."""
    return WebSearchTool()


def run(agent: Agent[Any, Any], **options: Any) -> AgentRunResult[Any]:
    """Run an agent in a loop of its own."""
    return asyncio.run(agent.run("Go.", **options))


class TestProvider:
    def test_one_that_is_visible_is_refused(self, model, guard_of):
        """Law 3: what no guard can stop is refused when the agent is governed."""
        agent = Agent(model, capabilities=[NativeTool(WebSearchTool())])

        with pytest.raises(GovernError, match="'web_search' runs at the provider"):
            govern(agent, guard_of())

    @pytest.mark.parametrize(
        "late",
        [
            {"fields": {"capabilities": [NativeTool(searching)]}},
            {"options": {"capabilities": [NativeTool(WebSearchTool())]}},
        ],
        ids=["made for the request", "given to the run"],
    )
    def test_one_that_comes_later_ends_the_run(self, late, model, guard_of, offered):
        """Law 3: what is seen only at the request is refused there."""
        agent = govern(Agent(model, **late.get("fields", {})), guard_of())

        with pytest.raises(GovernError, match="'web_search' runs at the provider"):
            run(agent, **late.get("options", {}))

        assert [] == offered

    def test_one_that_a_capability_puts_into_the_request_ends_the_run(self, model, guard_of):
        """Law 3: the last word before the model is the guard's."""

        class Sneaking(AbstractCapability[Any]):
            async def before_model_request(self, ctx, request_context):
                parameters = request_context.model_request_parameters
                parameters.native_tools.append(WebSearchTool())
                return request_context

        agent = govern(Agent(model, capabilities=[Sneaking()]), guard_of())

        with pytest.raises(GovernError, match="'web_search' runs at the provider"):
            run(agent)

    def test_one_that_is_to_be_left_out_is(self, model, guard_of, offered):
        """`hosted="strip"`: the request goes out without it."""
        agent = Agent(model, capabilities=[NativeTool(WebSearchTool()), NativeTool(searching)])

        run(govern(agent, guard_of(), hosted="strip"))

        assert [[]] == offered

    def test_one_that_may_run_ungoverned_does(self, model, guard_of, offered):
        """`hosted="allow"`: the caller has said so."""
        agent = Agent(model, capabilities=[NativeTool(WebSearchTool())])

        run(govern(agent, guard_of(), hosted="allow"))

        assert [["web_search"]] == offered

    def test_one_that_is_named_may_run_and_no_other(self, model, guard_of, offered):
        """`ungoverned`: the caller has named it."""
        agent = Agent(model, capabilities=[NativeTool(WebSearchTool())])
        govern(agent, guard_of(), ungoverned=["web_search"])

        run(agent)
        with pytest.raises(GovernError, match="'code_execution' runs at the provider"):
            run(agent, capabilities=[NativeTool(CodeExecutionTool())])

        assert [["web_search"]] == offered

    @pytest.mark.parametrize("hosted", ["refuse", "strip", "allow"])
    def test_one_in_the_settings_is_one(self, hosted, guard_of):
        """Law 3: what a provider's own settings bring along is seen at the request."""
        seen = []

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            seen.append(info.model_settings["openai_native_tools"])
            return ModelResponse([TextPart("done")])

        search = {"type": "web_search"}
        agent = Agent(FunctionModel(answer), model_settings={"openai_native_tools": [search]})
        govern(agent, guard_of(), hosted=hosted)

        if hosted == "refuse":
            with pytest.raises(GovernError, match="'web_search' runs at the provider"):
                run(agent)
        else:
            run(agent)

        assert {"refuse": [], "strip": [[]], "allow": [[search]]}[hosted] == seen

    def test_the_capability_alone_refuses_too(self, model, guard_of, offered):
        """Law 3: also where nobody called `govern`."""
        agent = Agent(
            model, capabilities=[NativeTool(WebSearchTool()), AdjudgeCapability(guard_of())]
        )

        with pytest.raises(GovernError, match="'web_search' runs at the provider"):
            run(agent)

        assert [] == offered
