"""Copies of what is governed: under the same guard, and no way round it."""

import copy
import pickle
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from adjudge import GovernError
from adjudge_langchain import AdjudgeCallbackHandler, AdjudgeMiddleware, ToolCallDenied, govern

DENIED = "[denied] not permitted by policy"
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda made: made.model_copy(),
    "deep_model_copy": lambda made: made.model_copy(deep=True),
}

deep_or_not = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])


class Shred(BaseTool):
    """A tool whose class can be pickled."""

    name: str = "shred"
    description: str = "Shred a note."

    def _run(self, name: str) -> str:
        return f"shredded {name}"


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("rest", ["allow", "deny"])
def test_of_a_tool(guard_of, erase, ran, copied, rest):
    """A copy of a governed tool is governed by the same guard, and by no other."""
    guard = guard_of(rest=rest)

    made = copied(govern(erase, guard))

    assert (DENIED if rest == "deny" else "erased a") == made.invoke({"name": "a"})
    assert made is govern(made, guard)
    with pytest.raises(GovernError, match="another guard"):
        govern(made, guard_of())


@deep_or_not
def test_of_an_agents_nodes(guard_of, erase, ran, copied):
    """A copy of a governed agent has governed tools; LangGraph runs no deep copy of a graph."""
    model = ChatOpenAI(model="m", api_key="none")
    agent = govern(create_agent(model, [erase]), guard_of(rest="deny"))
    calls: Any = [{"type": "tool_call", "name": "erase", "id": "1", "args": {"name": "a"}}]

    node = copied(agent).nodes["tools"].bound
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    state = graph.invoke({"messages": [AIMessage("", tool_calls=calls)]})

    assert (DENIED, []) == (state["messages"][-1].content, ran)


@deep_or_not
@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_of_middleware(stage, guard_of, erase, ran, copied, in_loop):
    """A copy of the middleware governs its agent's calls, also those of tools it was given."""
    middleware = AdjudgeMiddleware(guard_of(rest="deny"))
    stage.script(a=[("erase", '{"name": "a"}')])
    stage.run(stage.agent([erase], middleware=[middleware]), in_loop=in_loop)

    stage.run(stage.agent([erase], middleware=[copied(middleware)]), in_loop=in_loop)

    assert ([DENIED], []) == (stage.said, ran)


class TestOfAHandler:
    @deep_or_not
    def test_judges(self, guard_of, erase, ran, copied):
        """A copy of the handler stops what its guard does not allow."""
        handler = copied(AdjudgeCallbackHandler(guard_of(rest="deny"), tools=[erase]))

        with pytest.raises(ToolCallDenied):
            erase.invoke({"name": "a"}, {"callbacks": [handler]})

        assert [] == ran

    @deep_or_not
    def test_beside_the_original(self, guard_of, erase, record, copied):
        """Both together judge a call once."""
        handler = AdjudgeCallbackHandler(guard_of(), tools=[erase])
        made = erase.model_copy(update={"callbacks": [copied(handler)]})

        made.invoke({"name": "a"}, {"callbacks": [handler]})

        assert ["action.completed"] == record.ends

    def test_while_a_call_runs(self, guard_of, erase, record):
        """What has begun under the original ends there, and once."""
        handler = AdjudgeCallbackHandler(guard_of())

        @tool
        def copying(name: str) -> str:
            """Call another under a copy of the handler, and fail."""
            erase.invoke({"name": name}, {"callbacks": [copy.deepcopy(handler)]})
            raise KeyError(name)

        with pytest.raises(KeyError):
            copying.invoke({"name": "a"}, {"callbacks": [handler]})

        assert ["action.completed", "action.failed"] == record.ends


@pytest.mark.parametrize(
    "made",
    [
        lambda guard: govern(Shred(), guard),
        AdjudgeMiddleware,
        AdjudgeCallbackHandler,
    ],
    ids=["tool", "middleware", "handler"],
)
def test_a_pickle(guard_of, made):
    """What is governed cannot be pickled, and the error says what to do."""
    with pytest.raises(GovernError, match="govern that anew where it is loaded"):
        pickle.dumps(made(guard_of()))


@pytest.mark.parametrize("name", ["run", "arun", "invoke", "_run", "_arun"])
def test_of_a_class_that_answers_for_its_methods(guard_of, name):
    """Law 3: a copy that would answer with other methods than the governed ones is refused."""

    class Answering(Shred):
        def __getattribute__(self, wanted: str) -> Any:
            if wanted == name:
                return lambda *_, **__: "shredded"
            return super().__getattribute__(wanted)

    with pytest.raises(GovernError, match=f"gives {name} in a way of its own"):
        govern(Answering(), guard_of())
