"""Branches work side by side, and a join gets what all of them came to."""

import asyncio

import pytest

from adjudge_runtime import FinalAnswer, Fork, GraphError, compile_graph, run_graph

from .scripted import CAN_WRITE, READ_ONLY, Meeting, Script, answers, node, writes

TABLE = """\
start: plan
max_transitions: 4
edges:
  - { from: plan, to: [search, lookup], join: review }
  - { from: review, to: done }
"""


def nodes(**agents):
    """Make the four nodes of the table."""
    made = {"plan": node(answers("planned")), "review": node(answers("reviewed"))}
    return made | {name: node(agent) for name, agent in agents.items()}


def names(result):
    """Give the nodes of a result's path."""
    return [outcome.node for outcome in result.path]


async def test_branches_work_at_the_same_time():
    """Each waits for the other, so that one after the other would never end."""
    barrier = asyncio.Barrier(2)
    result = await asyncio.wait_for(
        run_graph(
            nodes(search=Meeting(barrier, "s"), lookup=Meeting(barrier, "l")),
            "Goal",
            router=compile_graph(TABLE),
        ),
        30,
    )

    assert (None, 3, "reviewed") == (result.error, result.transitions, result.final.final_answer)
    assert ["plan", "search", "lookup", "review"] == names(result)
    assert [0, 1, 2, 3] == [outcome.transitions for outcome in result.path]


async def test_the_join_gets_all_results_in_declared_order():
    """However the branches come in, the task of the join is the same."""
    first_done = asyncio.Event()

    class Late:
        async def step(self, conversation):
            await first_done.wait()
            return FinalAnswer("found s")

    class Early:
        async def step(self, conversation):
            first_done.set()
            return FinalAnswer("found l")

    join = answers("reviewed")
    await run_graph(
        nodes(search=Late(), lookup=Early(), review=join), "Goal", router=compile_graph(TABLE)
    )
    (task,) = join.tasks

    assert task.startswith("Goal\n\n")
    assert 0 < task.index("]\nfound s\n[end of search, ") < task.index("]\nfound l\n[end of lookup")


async def test_compose_join_writes_the_task_of_the_join():
    """The caller may say how results come together."""
    join = answers("reviewed")
    await run_graph(
        nodes(search=answers("s"), lookup=answers("l"), review=join),
        "Goal",
        router=compile_graph(TABLE),
        compose_join=lambda goal, outcomes: "+".join(each.node for each in outcomes),
    )

    assert join.tasks == ["search+lookup"]


async def test_each_branch_is_held_by_its_own_policy():
    """Branches share a task and no powers."""
    written = []
    result = await run_graph(
        {
            **nodes(),
            "search": node(Script(writes("s"), FinalAnswer("x")), READ_ONLY, written=written),
            "lookup": node(Script(writes("l"), FinalAnswer("y")), CAN_WRITE, written=written),
        },
        "Goal",
        router=compile_graph(TABLE),
    )

    assert (["l"], [0, 1, 0, 0]) == (written, [outcome.denials for outcome in result.path])


async def test_a_branch_that_failed_keeps_the_join_from_working():
    """The others come to their ends, and the failure is final."""
    join = answers("reviewed")
    result = await run_graph(
        nodes(search=Script(RuntimeError("boom")), lookup=answers("l"), review=join),
        "Goal",
        router=compile_graph(TABLE),
    )

    assert ("branch_failed", 0) == (result.code, join.steps)
    assert ["plan", "search", "lookup"] == names(result)
    assert result.final.code == "agent_failed"
    assert result.path[2].result.final_answer == "l"


async def test_each_branch_counts_for_the_bound():
    """A fork for which there is no room, its join included, does not begin."""
    search = answers("s")
    result = await run_graph(
        nodes(search=search, lookup=answers("l")),
        "Goal",
        router=compile_graph(TABLE),
        max_transitions=3,
    )

    assert ("max_transitions", ["plan"], 0) == (result.code, names(result), search.steps)


async def test_a_router_may_fork():
    """A Python router gives a Fork."""
    result = await run_graph(
        nodes(search=answers("s"), lookup=answers("l")),
        "Goal",
        router=lambda each: Fork(("search", "lookup"), "review") if each.node == "plan" else None,
        start="plan",
        max_transitions=4,
    )

    assert ["plan", "search", "lookup", "review"] == names(result)


@pytest.mark.parametrize(
    ("to", "join"),
    [("ab", "c"), (("a",), "c"), (("a", "a"), "c"), (("a", "done"), "c"), (("a", "b"), "b")],
)
def test_a_fork_that_cannot_be_is_refused(to, join):
    """Branches are two or more nodes, and the join is another one."""
    with pytest.raises(GraphError):
        Fork(to, join)


async def test_a_cancellation_passes():
    """Who cancels the workflow gets the cancellation, and no branch goes on."""
    begun, cancelled = asyncio.Event(), []

    class Waits:
        async def step(self, conversation):
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(1)
                raise

    task = asyncio.ensure_future(
        run_graph(nodes(search=Waits(), lookup=Waits()), "Goal", router=compile_graph(TABLE))
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(cancelled) >= 1
