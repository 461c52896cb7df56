"""Copies of governed nodes and graphs: under the same guard, and no way round it.

LangGraph runs no deep copy of a compiled graph, governed or not; its nodes and builders it does.
"""

import copy
import pickle
from typing import Any

import pytest
from graph_desk import ONE, answers_to, builder_of, graph_of, run, told
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from adjudge import GovernError
from adjudge_langgraph import found, govern, governed_tool_node, resume

DENIED = "[denied] not permitted by policy"
NOTE, PAY = ("note", {"text": "x"}), ("pay", {"amount": 1})

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
in_either_layout = pytest.mark.parametrize("fan_out", [False, True], ids=["one-task", "fan-out"])
deep_or_not = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
stopped_or_not = pytest.mark.parametrize("rest", ["allow", "deny"])


def outcome_of(rest: str) -> tuple[list[str], list[Any]]:
    """What a model is told and what runs, by what the policy says."""
    return ([DENIED], []) if rest == "deny" else (["noted x"], [("note", "x")])


@in_any_style
@deep_or_not
@stopped_or_not
class TestUnderOneGuard:
    def test_a_node(self, guard_of, note, ran, copied, rest, in_loop):
        """A copy of a governed node is governed, in whichever graph it comes to be."""
        node = governed_tool_node([note], guard_of(rest=rest))

        graph = builder_of(copied(node), NOTE).compile()

        assert outcome_of(rest) == (told(run(graph, in_loop=in_loop)), ran)

    def test_a_builder(self, guard_of, note, ran, copied, rest, in_loop):
        """So is one that is copied with the builder of a graph."""
        builder = copied(builder_of(governed_tool_node([note], guard_of(rest=rest)), NOTE))

        assert outcome_of(rest) == (told(run(builder.compile(), in_loop=in_loop)), ran)

    def test_the_nodes_of_a_graph(self, guard_of, note, ran, copied, rest, in_loop):
        """So are the nodes that are copied with a graph."""
        graph = copied(graph_of([note], guard_of(rest=rest), NOTE))

        again = builder_of(graph.nodes["tools"].bound, NOTE).compile()

        assert outcome_of(rest) == (told(run(again, in_loop=in_loop)), ran)

    def test_what_a_wrapper_brings(self, guard_of, note, ran, copied, rest, in_loop):
        """A tool that a wrapper of calls brings is governed in a copy, too."""

        def bring(request: Any, execute: Any) -> Any:
            return execute(request.override(tool=brought))

        async def abring(request: Any, execute: Any) -> Any:
            return await execute(request.override(tool=brought))

        brought = note.model_copy()
        made = governed_tool_node(
            [note], guard_of(rest=rest), wrap_tool_call=bring, awrap_tool_call=abring
        )

        graph = builder_of(copied(made), NOTE).compile()

        assert outcome_of(rest) == (told(run(graph, in_loop=in_loop)), ran)


class TestDeepCopies:
    def test_share_no_node_with_the_original(self, guard_of, note, ran):
        """What is changed in a copy is changed there alone, as ungoverned."""
        node = governed_tool_node([note], guard_of())

        copied = copy.deepcopy(node)
        del copied.tools_by_name["note"]

        assert ["noted x"] == told(run(builder_of(node, NOTE).compile()))

    def test_under_the_same_guard_again(self, guard_of, note):
        """Governing a copy by the same guard changes nothing, and by another is an error."""
        guard = guard_of()
        copied = copy.deepcopy(graph_of([note], guard, NOTE))

        assert found(copied) == found(govern(copied, guard))
        with pytest.raises(GovernError, match="another guard"):
            govern(copied, guard_of())

    @in_any_style
    @in_either_layout
    def test_wait_and_go_on(self, pausing, note, pay, ran, in_loop, fan_out):
        """In a copy calls wait for a person, and the answers of the one ledger reach them."""
        node = copy.deepcopy(governed_tool_node([note, pay], pausing()))
        built = builder_of(node, NOTE, PAY, fan_out=fan_out)
        graph = built.compile(checkpointer=InMemorySaver())

        run(graph, in_loop=in_loop)
        graph.invoke(Command(resume=True), ONE)
        resume(graph, ONE, answers_to(graph))

        assert [("note", "x"), ("pay", 1)] == ran


def test_a_pickle(guard_of, note):
    """A governed node cannot be pickled, and the error says what to do."""
    node = governed_tool_node([note], guard_of())

    with pytest.raises(GovernError, match="govern that anew where it is loaded"):
        pickle.dumps(node)
