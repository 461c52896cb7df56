"""A workflow goes on where it died, and of several workers one goes on."""

import asyncio

import pytest

from adjudge import (
    ApprovalDecision,
    DuplicateRecord,
    LedgerError,
    MemoryRunStore,
    SQLiteLedger,
    SQLiteRunStore,
    StoreError,
    ToolSet,
    pause_approval,
)
from adjudge_runtime import FinalAnswer, GraphError, Usage, compile_graph, run_agent, run_graph

from .scripted import ASKS, CAN_WRITE, READ_ONLY, Crash, Script, after, answers, node, writes

FORKED = """\
start: plan
max_transitions: 9
edges:
  - { from: plan, to: [search, lookup], join: review }
  - { from: review, to: done }
"""


def names(result):
    """Give the nodes of a result's path."""
    return [outcome.node for outcome in result.path]


async def work(nodes, store, router=None, **given):
    """Run the chain a, b, c, or another workflow."""
    return await run_graph(
        nodes,
        "Goal",
        router=router or after(a="b", b="c"),
        **({} if router else {"start": "a", "max_transitions": 9}),
        store=store,
        run_id="w",
        **given,
    )


async def test_a_workflow_goes_on_at_the_node_that_it_died_in(tmp_path):
    """Finished nodes are not asked again, and finished calls not run again."""
    path, written = tmp_path / "runs.db", []
    first = answers("x")
    dying = Script(writes("once"), Crash())
    with pytest.raises(Crash):
        await work(
            {"a": node(first), "b": node(dying, written=written), "c": node(answers("z"))},
            SQLiteRunStore(path),
        )
    again = Script(writes("twice"), FinalAnswer("y"))
    last = answers("z")
    result = await work(
        {"a": node(first), "b": node(again, written=written), "c": node(last)},
        SQLiteRunStore(path),
    )

    assert (None, ["a", "b", "c"], "z") == (result.error, names(result), result.final.final_answer)
    assert (["once"], 1, 1) == (written, first.steps, again.steps)
    assert "]\ny\n" in last.tasks[0]


async def test_a_finished_workflow_gives_its_result_again(tmp_path):
    """No agent and no router is asked a second time."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    agent = Script(writes("n"), FinalAnswer("x", Usage(input_tokens=3, model="m")))
    nodes = {"a": node(agent, READ_ONLY), "b": node(answers("y")), "c": node(answers("z"))}
    first = await work(nodes, store)
    again = await work(nodes, store)

    assert (first.path, first.final, 2) == (again.path, again.final, agent.steps)


async def test_a_decision_that_was_made_is_not_made_again(tmp_path):
    """What the router said before the crash holds, whatever it would say now."""
    path = tmp_path / "runs.db"
    nodes = {"a": node(answers("x")), "b": node(Script(Crash())), "c": node(answers("z"))}
    with pytest.raises(Crash):
        await work(nodes, SQLiteRunStore(path))
    result = await run_graph(
        {**nodes, "b": node(answers("y"))},
        "Goal",
        router=lambda outcome: "c" if outcome.node == "a" else None,
        start="a",
        max_transitions=9,
        store=SQLiteRunStore(path),
        run_id="w",
    )

    assert ["a", "b"] == names(result)


async def test_denials_before_a_crash_count_after_it(tmp_path):
    """What routes by denials sees those of all attempts."""
    path = tmp_path / "runs.db"
    nodes = {"b": node(answers("y")), "c": node(answers("z"))}
    with pytest.raises(Crash):
        await work(
            {**nodes, "a": node(Script(writes("n"), Crash()), READ_ONLY)}, SQLiteRunStore(path)
        )
    result = await work(
        {**nodes, "a": node(Script(writes("n"), FinalAnswer("x")), READ_ONLY)}, SQLiteRunStore(path)
    )

    assert result.path[0].denials == 1


async def test_a_crash_in_a_branch_leaves_the_finished_branches_finished(tmp_path):
    """The branch that died is gone on with, the other gives its result again."""
    path, search, join = tmp_path / "runs.db", answers("s"), answers("r")
    finished = asyncio.Event()

    class Observed:
        async def step(self, conversation):
            finished.set()
            return await search.step(conversation)

    class Dies:
        async def step(self, conversation):
            await finished.wait()
            for _ in range(50):  # the other branch's answer is in its journal by then
                if (await SQLiteRunStore(path).load("w::1:search"))[-1].kind == "final":
                    break
                await asyncio.sleep(0.01)
            raise Crash

    nodes = {"plan": node(answers("p")), "search": node(Observed()), "review": node(join)}
    with pytest.raises(Crash):
        await work({**nodes, "lookup": node(Dies())}, SQLiteRunStore(path), compile_graph(FORKED))
    result = await work(
        {**nodes, "lookup": node(answers("l"))}, SQLiteRunStore(path), compile_graph(FORKED)
    )

    assert (None, 1, 1) == (result.error, search.steps, join.steps)
    assert ["plan", "search", "lookup", "review"] == names(result)


async def test_a_failed_branch_is_tried_again_by_the_same_call(tmp_path):
    """No handover was decided, so the workflow can still come to its end."""
    store, search = SQLiteRunStore(tmp_path / "runs.db"), answers("s")
    nodes = {"plan": node(answers("p")), "search": node(search), "review": node(answers("r"))}
    failed = await work(
        {**nodes, "lookup": node(Script(RuntimeError("down")))}, store, compile_graph(FORKED)
    )
    result = await work({**nodes, "lookup": node(answers("l"))}, store, compile_graph(FORKED))

    assert ("branch_failed", "", 1) == (failed.code, result.code, search.steps)


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("forked", [False, True], ids=["chain", "fork"])
async def test_of_racing_workers_one_goes_on(tmp_path, workers, forked):
    """One comes to the end, every other is superseded, and each body runs once at most."""
    path, written = tmp_path / "runs.db", []

    def nodes():
        return {
            name: node(Script(writes(name), FinalAnswer(name)), written=written)
            for name in ("a", "b", "c", "plan", "search", "lookup", "review")
        }

    router = compile_graph(FORKED) if forked else None
    results = await asyncio.gather(
        *(work(nodes(), SQLiteRunStore(path), router) for _ in range(workers))
    )
    codes = sorted(result.code for result in results)

    assert codes == ["", *["superseded"] * (workers - 1)]
    assert len(written) == len(set(written))


async def test_workers_that_meet_inside_of_a_fork_leave_one(tmp_path):
    """A second worker that comes while branches run takes over, or gives up."""
    path, written = tmp_path / "runs.db", []
    begun = asyncio.Event()

    def branch(name):
        def act():
            begun.set()
            return writes(name)

        return node(Script(act, FinalAnswer(name)), written=written)

    def nodes():
        quiet = {"plan": node(answers("p")), "review": node(answers("r"))}
        return quiet | {name: branch(name) for name in ("search", "lookup")}

    async def late():
        await begun.wait()
        return await work(nodes(), SQLiteRunStore(path), compile_graph(FORKED))

    results = await asyncio.gather(
        work(nodes(), SQLiteRunStore(path), compile_graph(FORKED)), late(), late()
    )
    finished = [result for result in results if result.code == ""]

    assert len(written) == len(set(written))
    assert {"", "superseded"} >= {result.code for result in results}
    assert len(finished) >= 1
    assert {tuple(names(result)) for result in finished} == {("plan", "search", "lookup", "review")}


async def test_a_workflow_that_pauses_goes_on_with_the_answers(tmp_path):
    """The node that waits is the only one that works again."""
    path, written = tmp_path / "runs.db", []

    def nodes(first):
        ledger = SQLiteLedger(tmp_path / "ledger.db")
        asking = Script(writes("t"), FinalAnswer("y"))
        return {
            "a": node(first),
            "b": node(asking, ASKS, written=written, on_approval=pause_approval(ledger)),
            "c": node(answers("z")),
        }

    first = answers("x")
    paused = await work(nodes(first), SQLiteRunStore(path))
    (waiting,) = paused.pending
    assert ("paused", [], ["a", "b"]) == (paused.code, written, names(paused))
    still = await work(nodes(first), SQLiteRunStore(path))
    assert [waiting.id] == [each.id for each in still.pending]
    result = await work(
        nodes(first), SQLiteRunStore(path), answers={waiting.id: ApprovalDecision(True, "ann")}
    )

    assert ("", ["t"], ["a", "b", "c"], 1) == (result.code, written, names(result), first.steps)


async def test_a_ledger_that_fails_for_a_while_ends_no_node(tmp_path):
    """The node that waits is not handed over as failed; it goes on once the ledger can be read."""

    class Ledger(SQLiteLedger):
        is_down = False

        def of_run(self, run):
            if self.is_down:
                raise LedgerError("down for a while")
            return super().of_run(run)

    ledger, written, last = Ledger(tmp_path / "ledger.db"), [], answers("y")
    asking = Script(writes("t"), FinalAnswer("x"))
    pauses = pause_approval(ledger)
    nodes = {"a": node(asking, ASKS, written=written, on_approval=pauses), "b": node(last)}
    router = {"router": after(a="b"), "start": "a", "max_transitions": 9}
    same = {"nodes": nodes, "task": "Goal", "store": MemoryRunStore(), "run_id": "w", **router}
    paused = await run_graph(**same)
    yes = {paused.pending[0].id: ApprovalDecision(True, "ann")}

    ledger.is_down = True
    down = await run_graph(**same, answers=yes)
    assert ("ledger_failed", 0, []) == (down.code, last.steps, written)
    ledger.is_down = False
    result = await run_graph(**same, answers=yes)

    assert ("", ["a", "b"], ["t"]) == (result.code, names(result), written)


async def test_a_workflow_is_not_named_as_the_run_of_a_nested_agent():
    """Such an id could be that of another run's."""
    first = answers("x")
    with pytest.raises(ValueError, match="nested"):
        await run_graph(
            {"a": node(first)},
            "Goal",
            router=after(),
            start="a",
            max_transitions=1,
            store=MemoryRunStore(),
            run_id="r/nested/0.0",
        )
    assert first.steps == 0


async def test_two_branches_that_pause_are_answered_each_by_its_id(tmp_path):
    """Answers find their branch, and what is not answered still waits."""
    path, written = tmp_path / "runs.db", []

    def nodes():
        ledger = SQLiteLedger(tmp_path / "ledger.db")
        quiet = {"plan": node(answers("p")), "review": node(answers("r"))}
        return quiet | {
            name: node(
                Script(writes(name), FinalAnswer(name)),
                ASKS,
                written=written,
                on_approval=pause_approval(ledger),
            )
            for name in ("search", "lookup")
        }

    paused = await work(nodes(), SQLiteRunStore(path), compile_graph(FORKED))
    one, other = paused.pending
    yes = ApprovalDecision(True, "ann")
    half = await work(nodes(), SQLiteRunStore(path), compile_graph(FORKED), answers={one.id: yes})
    assert ([other.id], 1) == ([each.id for each in half.pending], len(written))
    result = await work(
        nodes(), SQLiteRunStore(path), compile_graph(FORKED), answers={other.id: yes}
    )

    assert ("", ["lookup", "search"]) == (result.code, sorted(written))


async def test_a_pausing_node_without_a_store_is_refused(tmp_path):
    """Nothing runs where nobody could go on."""
    asking = answers("x")
    pausing = pause_approval(SQLiteLedger(tmp_path / "ledger.db"))
    with pytest.raises(GraphError):
        await run_graph(
            {"a": node(asking, on_approval=pausing)},
            "Goal",
            router=after(),
            start="a",
            max_transitions=1,
        )

    assert asking.steps == 0


async def test_another_task_under_the_same_id_is_refused(tmp_path):
    """A workflow is gone on with as it was begun."""
    store, nodes = SQLiteRunStore(tmp_path / "runs.db"), {"a": node(answers("x"))}
    await run_graph(
        nodes, "One", router=after(), start="a", max_transitions=1, store=store, run_id="w"
    )
    with pytest.raises(GraphError):
        await run_graph(
            nodes, "Two", router=after(), start="a", max_transitions=1, store=store, run_id="w"
        )


class Failing(MemoryRunStore):
    """A store that stops working after some records of the workflow itself."""

    def __init__(self, takes, error):
        super().__init__()
        self.takes = takes
        self._error = error

    async def append(self, record):
        """Keep a record, or fail."""
        if record.run_id == "w":
            if self.takes == 0:
                raise self._error
            self.takes -= 1
        await super().append(record)


@pytest.mark.parametrize("takes", [0, 1, 2])
@pytest.mark.parametrize(
    ("error", "code"),
    [(StoreError("down"), "store_failed"), (DuplicateRecord("taken"), "superseded")],
    ids=["down", "taken"],
)
async def test_nothing_follows_from_a_decision_that_is_not_in_the_journal(takes, error, code):
    """The node after a handover works only once the handover is kept."""
    store = Failing(takes, error)
    agents = [answers("x"), answers("y"), answers("z")]
    nodes = dict(zip("abc", map(node, agents), strict=True))
    result = await work(nodes, store)

    assert (code, takes) == (result.code, sum(agent.steps for agent in agents))
    store.takes = 99
    assert (await work(nodes, store)).final.final_answer == "z"


async def test_a_journal_that_no_workflow_wrote_is_refused(tmp_path):
    """What cannot be understood is never gone on with."""
    store, agent = SQLiteRunStore(tmp_path / "runs.db"), answers("x")
    tools = node(agent).tools
    await run_agent(agent, "Goal", tools=tools, policy=CAN_WRITE, store=store, run_id="w")
    result = await work({"a": node(agent)}, store)

    assert ("store_failed", 1) == (result.code, agent.steps)


async def test_a_journal_that_cannot_be_read_runs_nothing():
    """Nobody knows what has happened, so that nothing does."""

    class Unreadable(MemoryRunStore):
        async def load(self, run_id):
            raise OSError("down")

    agent = answers("x")
    result = await work({"a": node(agent)}, Unreadable())

    assert ("store_failed", 0) == (result.code, agent.steps)
    assert "OSError: down" in result.error


async def test_what_a_branch_raises_leaves_those_beside_it(tmp_path):
    """A branch that cannot begin cuts off none; it is raised once all have come to their ends."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    other = answers("another task's")
    await run_agent(
        other, "else", tools=ToolSet([]), policy=CAN_WRITE, store=store, run_id="w::1:search"
    )

    class Slow:
        async def step(self, conversation):
            for _ in range(100):
                await asyncio.sleep(0)
            return FinalAnswer("found")

    nodes = {"plan": node(answers("p")), "search": node(answers("s"))}
    nodes |= {"lookup": node(Slow()), "review": node(answers("r"))}
    with pytest.raises(ValueError, match="begun with the task 'else'"):
        await work(nodes, store, compile_graph(FORKED))

    assert "final" == (await store.load("w::2:lookup"))[-1].kind
