"""Who goes on with a session: the chain decides, and whoever loses has run nothing."""

import asyncio
from dataclasses import replace

import pytest

from adjudge import (
    ConcurrentModification,
    MemoryRunStore,
    MemorySessionStore,
    SessionRecord,
    SQLiteRunStore,
    SQLiteSessionStore,
    StepRecord,
    StoreError,
)
from adjudge_runtime.kernel import Budgets, RunState


class Interrupted(MemoryRunStore):
    """A chain whose next append of a kind has somebody else come first."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.other = None

    async def append(self, record):
        """Keep a record, after what the other one does."""
        if record.kind == self.kind and self.other is not None:
            other, self.other = self.other, None
            await other()
        await super().append(record)


@pytest.mark.parametrize("kind", ["session.started", "step.decided", "step.intent"])
async def test_whoever_loses_the_claim_runs_nothing(desk, look, done, kind):
    """A worker that is overtaken at any point before the body stops there."""
    store, chain = MemorySessionStore(), Interrupted(kind)
    slow = desk(look("slow"), store=store, chain=chain)
    fast = desk(look("fast"), done, store=store, chain=chain)
    await slow.create()
    chain.other = fast.run

    with pytest.raises(ConcurrentModification):
        await slow.run()

    assert [] == slow.ran
    assert ("look", "fast") in fast.ran
    assert len(fast.ran) == len(set(fast.ran))
    assert RunState.COMPLETED is (await fast.kernel.load("s")).state


async def test_a_call_that_is_overtaken_before_its_body_is_not_uncertain(desk, look, done):
    """Without an intent on the chain the body did not start: it runs, as it was decided."""
    store, chain = MemorySessionStore(), Interrupted("step.intent")
    slow = desk(look("decided by the slow one"), store=store, chain=chain)
    fast = desk(done, store=store, chain=chain)
    await slow.create()
    chain.other = fast.run

    with pytest.raises(ConcurrentModification):
        await slow.run()

    assert [("look", "decided by the slow one")] == fast.ran


async def test_a_call_that_is_overtaken_in_its_body_is_uncertain(desk, look, done):
    """Whoever takes the session over runs nothing again; the overtaken result counts no more."""
    store, chain = MemorySessionStore(), Interrupted("step.observed")
    slow = desk(look("once"), store=store, chain=chain)
    fast = desk(done, store=store, chain=chain)
    await slow.create()
    chain.other = fast.run

    with pytest.raises(ConcurrentModification):
        await slow.run()

    (step, _) = await fast.kernel.execution_chain("s")
    assert ([("look", "once")], []) == (slow.ran, fast.ran)
    assert (False, "uncertain") == (step.ok, step.code)


@pytest.mark.parametrize("workers", [2, 8])
async def test_of_many_workers_one_goes_on(desk, look, done, workers, tmp_path):
    """Workers that take up one session at once carry out its call once."""
    store, chain = SQLiteSessionStore(tmp_path / "k.db"), SQLiteRunStore(tmp_path / "k.db")
    desks = [desk(look("x"), done, store=store, chain=chain) for _ in range(workers)]
    await desks[0].create()

    came = await asyncio.gather(*(d.run() for d in desks), return_exceptions=True)

    steps = await desks[0].kernel.execution_chain("s")
    ran = [what for d in desks for what in d.ran]
    uncertain = [step for step in steps if step.code == "uncertain" or step.is_uncertain]
    assert len(ran) <= 1
    assert len(ran) == sum(step.ok is True for step in steps if step.tool) or uncertain
    assert {ConcurrentModification} >= {type(c) for c in came if isinstance(c, StoreError)}


class Lagging(MemorySessionStore):
    """A store in which a save of a worker that was overtaken arrives late."""

    def __init__(self):
        super().__init__()
        self.reached = asyncio.Event()
        self.arrives = asyncio.Event()
        self.late = True

    async def save(self, record, *, expected_version):
        """Keep a session; the first one that is saved when it is told to."""
        if self.late:
            self.late = False
            self.reached.set()
            await self.arrives.wait()
        return await super().save(record, expected_version=expected_version)


async def test_a_save_that_arrives_late_stops_nobody_else(desk, look, done):
    """Whoever has the session saves over what a worker of before it saved, and loses nothing."""
    store, chain = Lagging(), MemoryRunStore()
    slow = desk(look("one"), done, store=store, chain=chain)
    fast = desk(look("two"), done, store=store, chain=chain)
    await slow.create()
    overtaken = asyncio.create_task(slow.run())
    await store.reached.wait()
    ask = fast.kernel._model

    async def model(text):
        if not store.arrives.is_set():
            store.arrives.set()
            with pytest.raises(ConcurrentModification):
                await overtaken
        return ask(text)

    fast.kernel._model = model
    result = await fast.run()

    assert (RunState.COMPLETED, "the answer") == (result.state, result.answer)
    assert ([("look", "one")], [("look", "two")]) == (slow.ran, fast.ran)
    assert RunState.COMPLETED.value == (await store.load("s")).body["state"]


async def test_cancelling_is_not_undone_by_a_save_that_arrives_late(desk, look, done):
    """Ending a session succeeds at once, whatever a worker of before it still saves."""
    store, chain = Lagging(), MemoryRunStore()
    d = desk(look("one"), done, store=store, chain=chain)
    await d.create()
    overtaken = asyncio.create_task(d.run())
    await store.reached.wait()

    class Episodes:
        def record(self, episode):
            loop.call_soon_threadsafe(store.arrives.set)
            asyncio.run_coroutine_threadsafe(saved_late(), loop).result()

    async def saved_late():
        with pytest.raises(ConcurrentModification):
            await overtaken

    loop = asyncio.get_running_loop()
    d.kernel._episodic = Episodes()
    await d.kernel.cancel("s")

    assert RunState.CANCELLED.value == (await store.load("s")).body["state"]


async def test_a_session_that_was_saved_by_who_went_on_is_not_saved_over(desk, look, done):
    """A worker that comes to save after another has gone on is told so."""
    store, chain = Lagging(), MemoryRunStore()
    slow = desk(look("one"), store=store, chain=chain)
    fast = desk(look("two"), done, store=store, chain=chain)
    await slow.create()
    overtaken = asyncio.create_task(slow.run())
    await store.reached.wait()

    await fast.run()
    store.arrives.set()

    with pytest.raises(ConcurrentModification):
        await overtaken
    assert RunState.COMPLETED.value == (await store.load("s")).body["state"]


async def test_two_workers_may_save_the_same_end(desk, done):
    """An end that is on the chain is saved by whoever comes first, and the other is content."""
    store, chain = Lagging(), MemoryRunStore()
    one, other = desk(done, store=store, chain=chain), desk(store=store, chain=chain)
    await one.create()
    ending = asyncio.create_task(one.run())
    await store.reached.wait()

    again = await other.run()
    store.arrives.set()

    assert (await ending).answer == again.answer == "the answer"


async def test_a_session_goes_on_from_its_chain_where_a_save_was_lost(desk, look, done):
    """What the chain has beyond the snapshot is applied, and nothing of it is done again."""
    d = desk(look("one"), look("two"), OSError("down"), done)
    await d.create()
    first = await d.store.load("s")
    with pytest.raises(OSError, match="down"):
        await d.run()

    lost = MemorySessionStore()
    await lost.create(first)
    d.kernel._store = lost
    result = await d.kernel.run("s")

    assert [("look", "one"), ("look", "two")] == d.ran
    assert (True, 3) == (result.succeeded, len(result.steps))


async def test_an_end_that_was_not_saved_is_saved(desk, done):
    """A session that ended on its chain alone gives its answer, without another model call."""
    d = desk(done)
    await d.create()
    first = await d.store.load("s")
    await d.run()

    lost = MemorySessionStore()
    await lost.create(first)
    d.kernel._store = lost
    result = await d.kernel.run("s")

    assert (RunState.COMPLETED, "the answer") == (result.state, result.answer)
    assert RunState.COMPLETED.value == (await lost.load("s")).body["state"]


async def test_a_chain_that_fails_stops_the_worker(desk, look):
    """Where nobody knows whether a record is there, nothing more runs."""

    class Failing(MemoryRunStore):
        async def append(self, record):
            if record.kind == "step.intent":
                raise OSError("disk full")
            await super().append(record)

    d = desk(look(), chain=Failing())

    with pytest.raises(StoreError, match="disk full"):
        await d.run()
    assert [] == d.ran


async def test_cancelling_stops_a_worker_that_has_the_session(desk, look):
    """The worker finds the chain ahead of it before the next body."""
    store, chain = MemorySessionStore(), Interrupted("step.intent")
    d = desk(look(), store=store, chain=chain)
    await d.create()
    chain.other = lambda: d.kernel.cancel("s")

    with pytest.raises(ConcurrentModification):
        await d.run()

    assert [] == d.ran
    assert RunState.CANCELLED is (await d.kernel.load("s")).state


async def test_the_cost_of_a_step_does_not_grow(desk, look, done):
    """What is saved after five hundred steps is no larger than after two hundred."""
    sizes = []

    class Measured(MemorySessionStore):
        async def save(self, record, *, expected_version):
            sizes.append(len(repr(record.body)))
            return await super().save(record, expected_version=expected_version)

    wide = Budgets(max_steps=None, max_tokens=None, max_cost_micros=None, deadline_seconds=None)
    moves = [look("thing") for _ in range(500)]
    d = desk(*moves, done, store=Measured(), budgets=wide, scratchpad_max_tokens=300)

    await d.run()

    assert max(sizes[300:]) <= max(sizes[:200]) * 1.05
    assert max(map(len, d.read[300:])) <= max(map(len, d.read[:200])) * 1.05


@pytest.mark.parametrize(
    "change",
    [
        {"state": "dreaming"},
        {"cost_micros": 1.5},
        {"tokens_used": -1},
        {"steps": [{"index": 1}]},
        {"steps": ["{"]},
        {"steps": ["{}"]},
        {"steps": None},
        {"created_at": "yesterday"},
        {"updated_at": "2026-01-01T00:00:00"},
        {"has_begun": 1},
        {"extra": 1},
        {"covers": 7},
    ],
)
async def test_a_session_that_no_kernel_wrote_is_refused(desk, change):
    """Every field is held to its kind, and nothing runs on one that does not fit."""
    d = desk()
    await d.create()
    record = await d.store.load("s")
    body = {**record.body, **change}
    await d.store.save(SessionRecord("s", 1, body), expected_version=1)

    with pytest.raises(StoreError):
        await d.kernel.run("s")
    assert [] == d.read


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("step.observed", {"step": 1}),
        ("step.intent", {"step": 9}),
        ("session.started", {}),
        ("dream", {}),
    ],
)
async def test_a_chain_that_no_kernel_wrote_is_refused(desk, question, kind, body):
    """A record that cannot follow is an error, which names it."""
    d = desk(question)
    await d.run()
    records = await d.chain.load("session/s")
    made = StepRecord("session/s", len(records), kind, "", body, d.clock())
    await d.chain.append(made)

    with pytest.raises(StoreError, match=kind):
        await d.kernel.run("s", resume_answer="yes")


async def test_a_chain_with_a_gap_is_refused(desk, question):
    """Records that are missing from the middle are noticed."""
    d = desk(question)
    await d.run()
    chain = MemoryRunStore()
    for record in (await d.chain.load("session/s"))[1:]:
        await chain.append(record)
    d.kernel._chain = chain

    with pytest.raises(StoreError):
        await d.kernel.run("s", resume_answer="yes")


async def test_a_session_comes_back_as_it_was_saved(desk, look, question):
    """What a store gives back is the snapshot, field by field."""
    d = desk(look(), question)
    await d.run()

    loaded = await d.kernel.load("s")

    again = desk(store=d.store, chain=d.chain)
    assert loaded == await again.kernel.load("s")
    assert loaded != replace(loaded, goal="other")
    assert ("look", {"what": "a"}) == (loaded.steps[0].tool, loaded.steps[0].arguments)
