"""The agents of langchain-classic, whose executor runs tools without an id of the call."""

import asyncio
from typing import Any

import pytest
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.prompts import ChatPromptTemplate

from adjudge_langchain import AdjudgeCallbackHandler, ToolCallDenied, govern

DENIED = "[denied] not permitted by policy"

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


def run(stage: Any, tools: list[Any], *, in_loop: bool, **config: Any) -> Any:
    """Run an executor on the scripted model."""
    stage.script(a=[("erase", '{"name": "a"}')])
    prompt = ChatPromptTemplate.from_messages(
        [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
    )
    agent = create_tool_calling_agent(stage.model(), tools, prompt)
    executor = AgentExecutor(agent=agent, tools=tools)
    given: Any = {"input": "Go."}
    if in_loop:
        return asyncio.run(executor.ainvoke(given, config))
    return executor.invoke(given, config)


@in_any_style
class TestExecutor:
    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_of_governed_tools(self, stage, guard_of, erase, ran, record, in_loop, rest):
        """Governed copies are all that it needs; a denial is the tool's observation."""
        done = run(stage, govern([erase], guard_of(rest=rest)), in_loop=in_loop)

        assert "a is done." == done["output"]
        allowed = rest == "allow"
        assert ["erased a" if allowed else DENIED] == stage.said
        assert ([("a", False)] if allowed else []) == ran
        assert ["action.completed" if allowed else "action.denied"] == record.ends

    def test_with_a_handler_that_allows(self, stage, guard_of, erase, ran, record, in_loop):
        """Where only callbacks reach, the call is judged and on record."""
        handler = AdjudgeCallbackHandler(guard_of())

        run(stage, [erase], in_loop=in_loop, callbacks=[handler])

        assert ([("a", False)], ["action.completed"]) == (ran, record.ends)

    def test_with_a_handler_that_denies(self, stage, guard_of, erase, ran, in_loop):
        """There is nothing that would tell the model: the denial ends the run."""
        handler = AdjudgeCallbackHandler(guard_of(rest="deny"))

        with pytest.raises(ToolCallDenied):
            run(stage, [erase], in_loop=in_loop, callbacks=[handler])

        assert [] == ran
