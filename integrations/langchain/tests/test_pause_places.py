"""Where in a graph a call may wait for a person, and where it is denied because it could not."""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from adjudge import ApprovalDecision
from adjudge_langchain import govern, pending, resume, vouching_for_pauses

ONE: Any = {"configurable": {"thread_id": "1"}}


def answers_to(graph, guard):
    """Grant everything that waits."""
    granted = ApprovalDecision(True, "ana")
    return {each.id: granted for each in pending(graph, ONE, guard=guard)}


class TestWhereNothingCanWait:
    def test_without_a_checkpointer(self, stage, pausing, erase, ran, record):
        """A run that nobody could resume does not wait: the call is denied."""
        stage.script(a=[("erase", '{"name": "a"}')])

        state = stage.run(govern(stage.agent([erase]), pausing()), config=ONE)

        assert "a is done." == state["messages"][-1].content
        assert ([], ["cannot_pause"]) == (ran, _codes(record))

    def test_outside_of_a_graph(self, pausing, erase, ran, record):
        """A tool that is called by itself cannot wait either."""
        told = govern(erase, pausing()).invoke({"name": "a"})

        assert told.startswith("[denied]")
        assert ([], ["cannot_pause"]) == (ran, _codes(record))

    def test_in_a_task_that_runs_several_calls(self, pausing, erase, ran, record):
        """A node of one's own runs all its calls again on resume, so none of them waits there."""
        graph = _one_task(govern([erase], pausing()))

        state = graph.invoke(_message("a"), ONE)

        assert state["messages"][-1].content.startswith("[denied]")
        assert ([], ["cannot_pause"]) == (ran, _codes(record))

    def test_but_for_those_who_vouch(self, pausing, erase, ran):
        """Who answers for the others in the task may let a call wait."""
        guard = pausing()
        graph = _one_task(govern([erase], guard))

        with vouching_for_pauses():
            graph.invoke(_message("a"), ONE)
            resume(graph, ONE, answers_to(graph, guard), guard=guard)

        assert [("a", False)] == ran


class TestFunctions:
    """Runs of LangGraph's functional API, whose tasks are functions."""

    def graph(self, made):
        """Make a run whose one task makes one call."""

        @task
        def erased(name: str) -> Any:
            return made.invoke(_call(name))

        @entrypoint(checkpointer=InMemorySaver())
        def run(name: str) -> Any:
            return erased(name).result().content

        return run

    def test_a_task_cannot_wait(self, pausing, erase, ran, record):
        """Nobody knows what else the function of a task does: the call is denied."""
        graph = self.graph(govern(erase, pausing()))

        assert graph.invoke("a", ONE).startswith("[denied]")
        assert ([], ["cannot_pause"]) == (ran, _codes(record))

    def test_but_for_those_who_vouch(self, pausing, erase, ran, record):
        """Who knows that it makes this call alone may let it wait."""
        guard = pausing()
        graph = self.graph(govern(erase, guard))

        with vouching_for_pauses():
            graph.invoke("a", ONE)
            told = resume(graph, ONE, answers_to(graph, guard), guard=guard)

        assert ("erased a", [("a", False)]) == (told, ran)
        assert ["action.completed"] == record.ends


def _one_task(tools: Any) -> Any:
    builder = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge(START, "tools")
    return builder.compile(checkpointer=InMemorySaver())


def _message(*names: str) -> Any:
    return {"messages": [AIMessage("", tool_calls=[_call(name) for name in names])]}


def _call(name: str) -> Any:
    return {"type": "tool_call", "name": "erase", "id": name, "args": {"name": name}}


def _codes(record: Any) -> list[str]:
    return [each["code"] for each in record.bodies("action.denied")]
