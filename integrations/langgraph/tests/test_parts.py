"""Who is calling, and the router that gives each call a task of its own."""

from typing import Any

import pytest
from graph_desk import GO, ONE, builder_of, run, told
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

from adjudge import (
    CallContext,
    Principal,
)
from adjudge_langgraph import (
    fan_out_tool_calls,
    govern,
    governed_tool_node,
    pending,
)

DENIED = "[denied] not permitted by policy"
NOTE = ("note", {"text": "x"})

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


def plain(node: Any) -> Any:
    """Put the node into a graph of its own."""
    return builder_of(node, NOTE).compile()


@in_any_style
class TestContext:
    @pytest.mark.parametrize("made", [False, True])
    def test_says_who_is_calling(self, guard_of, note, ran, in_loop, made):
        """`context` finds the caller in the graph's own context, and the thread in the config."""
        rule = {"id": "eve", "match": {"context.principal.id": "eve"}, "decision": "deny"}
        guard, seen = guard_of(rule), []

        def who(run: Any) -> CallContext:
            seen.append((run.tool, run.call_id, run.config["configurable"]["thread_id"]))
            return CallContext(principal=Principal("user", run.context))

        if made:
            graph = plain(governed_tool_node([note], guard, context=who))
        else:
            graph = govern(plain(ToolNode([note])), guard, context=who)
        state = run(graph, GO, in_loop=in_loop, context="eve")

        assert ([DENIED], []) == (told(state), ran)
        assert [("note", "0", "1")] == seen

    def test_that_fails_denies(self, guard_of, note, ran, record, in_loop):
        """Law 4: where nobody can say who is calling, nothing runs."""
        graph = govern(plain(ToolNode([note])), guard_of(), context=lambda run: run.context.user)

        run(graph, in_loop=in_loop)

        assert ([], ["context_failed"]) == (ran, record.codes())


class TestFanningOut:
    def calls(self, *ids: str) -> AIMessage:
        """Make a message with calls of these ids."""
        made: Any = [{"type": "tool_call", "name": "note", "args": {}, "id": each} for each in ids]
        return AIMessage("", tool_calls=made)

    def test_sends_each_call(self):
        """Each call gets a task of its own, in order."""
        message = self.calls("1", "2")

        sent = fan_out_tool_calls("desk")({"messages": [message]})

        assert [Send("desk", [call]) for call in message.tool_calls] == sent

    def test_leaves_out_what_is_answered(self):
        """A call that has its answer is not made again."""
        answered = [self.calls("1", "2"), ToolMessage("x", tool_call_id="1")]

        assert ["2"] == [each.arg[0]["id"] for each in fan_out_tool_calls()(answered)]

    @pytest.mark.parametrize(
        "messages", [[], [AIMessage("done")], [ToolMessage("x", tool_call_id="1")]]
    )
    def test_goes_on_where_there_is_none(self, messages):
        """Without a call the graph ends, or goes where it is told."""

        class State:
            notes = messages

        assert END == fan_out_tool_calls()({"messages": messages})
        assert "ask" == fan_out_tool_calls(otherwise="ask", messages_key="notes")(State())

    def test_one_task_for_each(self, pausing, pay):
        """What waits then waits in a task of its own, as with `create_agent`."""
        graph = builder_of(ToolNode([pay]), ("pay", {"amount": 1}), fan_out=True)
        graph = govern(graph.compile(checkpointer=InMemorySaver()), pausing())

        run(graph)

        (waiting,) = graph.get_state(ONE).tasks
        assert ("__pregel_push", 0, False) == waiting.path
        assert 1 == len(pending(graph, ONE))
