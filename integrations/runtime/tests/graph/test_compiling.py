"""A graph's text is read strictly: whatever it cannot mean is an error with its place."""

import pytest

from adjudge_runtime import Fork, GraphCompileError, NodeOutcome, RunResult, compile_graph
from adjudge_runtime.graph import load_graph_file

WORKFLOW = """\
start: triage
max_transitions: 8
edges:
  - { from: triage,   when: { answer_matches: "(?i)needs fix" }, to: fixer }
  - { from: triage,   to: done }
  - { from: fixer,    to: reviewer }
  - { from: reviewer, when: { answer_matches: "(?i)approved" },  to: done }
  - { from: reviewer, when: { denials_gt: 2 }, to: privileged }
  - { from: reviewer, to: fixer }
"""


def outcome(node, answer=None, *, error=None, denials=0, steps=0):
    """Make what a node came to."""
    return NodeOutcome(node, RunResult("c", "b", answer, error, steps), denials, 0)


def problems(text, **given):
    """Compile what cannot be compiled, and give what is said of it."""
    with pytest.raises(GraphCompileError) as caught:
        compile_graph(text, **given)
    assert caught.value.code == "graph_compile_error"
    return caught.value.problems


def graph(edges, head="start: a\nmax_transitions: 3"):
    """Write a graph of these edges, which begin on line 4."""
    return f"{head}\nedges:\n" + "".join(f"  - {edge}\n" for edge in edges)


def test_a_compiled_graph_is_a_router():
    """The first edge that holds says where to go next."""
    spec = compile_graph(WORKFLOW)

    assert ("triage", 8, ("triage", "fixer", "reviewer", "privileged")) == (
        spec.start,
        spec.max_transitions,
        spec.nodes,
    )
    assert spec(outcome("triage", "it Needs Fix")) == "fixer"
    assert spec(outcome("triage", "all good")) is None
    assert spec(outcome("reviewer", "APPROVED", denials=3)) is None
    assert spec(outcome("reviewer", "no", denials=3)) == "privileged"
    assert spec(outcome("reviewer", "no", denials=2)) == "fixer"


def test_a_node_without_an_edge_ends_the_work():
    """Where no edge leaves, there is no next node."""
    assert compile_graph(WORKFLOW)(outcome("privileged", "approved")) is None


@pytest.mark.parametrize(
    ("when", "holding", "failing"),
    [
        ("status: failed", outcome("a", error="e"), outcome("a", "x")),
        ("status: succeeded", outcome("a", "x"), outcome("a", error="e")),
        ("error_matches: '^time'", outcome("a", error="timed out"), outcome("a", "time")),
        ("answer_matches: 'x$'", outcome("a", "x"), outcome("a", "x\n")),
        ("steps_gt: 2", outcome("a", "x", steps=3), outcome("a", "x", steps=2)),
        ("denials_gt: 0, steps_gt: 0", outcome("a", "", denials=1, steps=1), outcome("a", "")),
    ],
)
def test_a_condition_holds_of_an_outcome(when, holding, failing):
    """Each predicate is true of what it names alone, and all of a when must hold."""
    spec = compile_graph(graph([f"{{ from: a, when: {{ {when} }}, to: b }}"]))

    assert (spec(holding), spec(failing)) == ("b", None)


def test_an_edge_may_lead_to_branches_with_a_join():
    """`to: [..]` with `join` is a fork."""
    spec = compile_graph(graph(["{ from: a, to: [b, c], join: d }"]))

    assert Fork(("b", "c"), "d") == spec(outcome("a", "x"))


@pytest.mark.parametrize(
    ("edges", "line", "part"),
    [
        (["{ from: a, to: done, too: b }"], 4, 'no key "too". Did you mean "to"?'),
        (["{ from: a, from: b, to: done }"], 4, "from"),
        (["{ from: a }"], 4, "to is missing"),
        (["{ from: done, to: a }"], 4, "the end of the work"),
        (["{ from: a, when: {}, to: done }"], 4, "when is empty"),
        (["{ from: a, when: { status: done }, to: done }"], 4, "succeeded, failed"),
        (["{ from: a, when: { denials_gt: '2' }, to: done }"], 4, "whole number"),
        (["{ from: a, when: { steps_gt: -1 }, to: done }"], 4, "0 or more"),
        (["{ from: a, when: { steps_gt: true }, to: done }"], 4, "whole number"),
        (["{ from: a, when: { answer_matches: '(' }, to: done }"], 4, "answer_matches"),
        (["{ from: a, when: { answer_matches: '(a+)+$' }, to: done }"], 4, "exponential"),
        (["{ from: a, when: { answer_matches: x, status: failed }, to: done }"], 4, "never hold"),
        (["{ from: a, to: no }"], 4, 'write "no"'),
        (["{ from: a, to: done }", "{ from: a, to: b }"], 5, "never taken"),
        (
            ["{ from: a, when: {steps_gt: 1}, to: b }", "{ from: a, when: {steps_gt: 1}, to: c }"],
            5,
            "the same when",
        ),
        (["{ from: a, to: done }", "{ from: b, to: done }"], 5, 'No edge leads to "b"'),
        (["{ from: a, to: b }", "{ from: b, to: a }"], 4, "no way to done"),
        (["{ from: a, to: a }"], 4, "no way to done"),
        (["{ from: a, to: [b, c] }"], 4, "join is missing"),
        (["{ from: a, to: [b], join: c }"], 4, "two or more"),
        (["{ from: a, to: [b, b], join: c }"], 4, "twice"),
        (["{ from: a, to: [b, done], join: c }"], 4, "the end of the work"),
        (["{ from: a, to: [b, c], join: c }"], 4, "cannot be the join"),
        (["{ from: a, to: b, join: c }"], 4, "join brings branches together"),
        (["{ from: a, to: [b, c], join: d }", "{ from: b, to: done }"], 5, "as a branch alone"),
    ],
)
def test_an_edge_that_cannot_be_meant_is_an_error_in_its_place(edges, line, part):
    """File, line and column stand before what is wrong and what to write instead."""
    (problem,) = problems(graph(edges), file="work.yaml")

    assert problem.startswith(f"work.yaml:{line}:")
    assert part in problem


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "start, max_transitions and edges"),
        ("[]", "start, max_transitions and edges"),
        ("start: a\nedges: [{from: a, to: done}]", "max_transitions is missing"),
        ("max_transitions: 3\nedges: [{from: a, to: done}]", "start is missing"),
        ("start: a\nmax_transitions: 3", "edges is missing"),
        ("start: a\nmax_transitions: 3\nedges: []", "one edge or more"),
        (graph(["{from: a, to: done}"], "start: a\nmax_transitions: 0"), "1 or more"),
        (graph(["{from: a, to: done}"], "start: a\nmax_transitions: true"), "whole number"),
        (graph(["{from: a, to: done}"], "start: a\nstart: a\nmax_transitions: 3"), "start"),
        (graph(["{from: a, to: done}"], "start: a\nmax_transitions: 3\nmax: 3"), "max"),
        (graph(["{from: a, to: done}"], "version: 2\nstart: a\nmax_transitions: 3"), "version: 1"),
    ],
)
def test_a_graph_that_lacks_something_is_an_error(text, part):
    """Nothing is filled in: a loop without a bound, least of all."""
    assert any(part in problem for problem in problems(text))


def test_a_name_that_is_not_listed_is_unknown():
    """Where the text lists its nodes, another name is a slip."""
    head = "start: a\nmax_transitions: 3\nnodes: [a, fixer]"
    found = problems(graph(["{ from: a, to: fixr }"], head))

    assert any('There is no node "fixr". Did you mean "fixer"?' in problem for problem in found)


def test_the_caller_can_say_which_nodes_there_are():
    """`nodes=` does what the section does."""
    (problem,) = problems(graph(["{ from: a, to: fixr }"]), nodes=["a", "fixer"])

    assert 'Did you mean "fixer"?' in problem


def test_all_problems_are_told_at_once():
    """An author sees every problem of the text."""
    assert len(problems("start: done\nedges: [{from: a, to: 3}]")) == 3


def test_a_file_is_compiled_under_its_name(tmp_path):
    """Problems of a file begin with its path."""
    path = tmp_path / "work.yaml"
    path.write_text(graph(["{ from: a, too: b }"]))
    with pytest.raises(GraphCompileError) as caught:
        load_graph_file(path)

    assert all(problem.startswith(f"{path}:4:") for problem in caught.value.problems)


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    """Bytes that are no UTF-8 are told as such."""
    path = tmp_path / "work.yaml"
    path.write_bytes(b"\xff")
    with pytest.raises(GraphCompileError):
        load_graph_file(path)
