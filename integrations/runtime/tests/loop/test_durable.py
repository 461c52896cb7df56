"""A run in a store: it goes on where it was left, and nothing of it happens twice."""

import asyncio
import threading

import pytest

from adjudge import (
    DuplicateRecord,
    MemoryRunStore,
    SQLiteLedger,
    SQLiteRunStore,
    StepRecord,
    ToolSet,
    auto_approve,
    callback_approval,
    pause_approval,
    tool,
)
from adjudge_runtime import (
    Budget,
    FinalAnswer,
    ToolCall,
    ToolCalls,
    Usage,
    current_idempotency_key,
    idempotency_key,
    replay,
)

from .scripted import DONE, Died, DyingStore, Script, World, call, policy

USED = Usage(3, 4)
ACTIONS = (
    ToolCall("echo", {"text": "a"}, "id-1", USED),
    call("erase"),
    ToolCalls((call("order", count=1), call("order", count=9), call("fail"))),
    FinalAnswer("done", USED),
)
KEPT = {"run_id": "r"}
RERUN = {"match": {"context.extra.uncertain_retry": True}, "decision": "allow"}


async def journal_of(*actions):
    """Run to the end in a world of its own, and give the records."""
    store = MemoryRunStore()
    await World().run(Script(*actions), store=store, **KEPT)
    return await store.load("r")


class TestJournal:
    """What is put down, and when."""

    async def test_each_thing_comes_before_what_depends_on_it(self, world):
        """The decision before its calls, the intent before the body, the result after."""
        records = await journal_of(ToolCall("echo", {}, "x"), call("erase"), DONE)

        assert [
            "run.started",
            "model.output",
            "action.intent",
            "action.result",
            "model.output",
            "action.result",
            "model.output",
            "final",
        ] == [record.kind for record in records]
        assert list(range(8)) == [record.seq for record in records]

    async def test_the_intent_is_there_when_the_body_begins(self, world):
        """A body finds its own intent in the store, sync or async."""
        store, seen = MemoryRunStore(), []

        def last():
            return max(store._runs["r"].values(), key=lambda record: record.seq).kind

        @tool()
        async def look():
            seen.append(last())

        @tool()
        def look_from_thread():
            seen.append(last())

        await world.run(
            Script(call("look"), call("look_from_thread"), DONE),
            tools=ToolSet([look, look_from_thread]),
            store=store,
            **KEPT,
        )

        assert ["action.intent", "action.intent"] == seen

    async def test_arguments_that_no_store_can_keep_run_nothing(self, world):
        """A proposal that is no JSON ends the run before anything of it is done."""
        result = await world.run(
            Script(ToolCall("echo", {"text": object()})), store=MemoryRunStore(), **KEPT
        )

        assert ("agent_failed", []) == (result.code, world.ran)

    async def test_what_is_kept_is_what_runs(self, world):
        """An agent that changes its own arguments later changes nothing (law 5)."""
        args = {"text": "a"}
        store = MemoryRunStore()

        class Sly(MemoryRunStore):
            async def append(self, record):
                await store.append(record)
                if record.kind == "model.output":
                    args["text"] = "b"

            async def load(self, run_id):
                return await store.load(run_id)

        await world.run(Script(ToolCall("echo", args), DONE), store=Sly(), **KEPT)

        assert [("echo", "a")] == world.ran


class TestGoingOn:
    """A run that was interrupted at any point."""

    async def test_after_each_record_it_comes_to_the_same(self, world):
        """Wherever the worker dies, the run goes on to the same answer and nothing runs twice.

        A call whose intent is the last record is the exception: it is uncertain.
        """
        whole = Script(*ACTIONS)
        store = MemoryRunStore()
        await world.run(whole, store=store, **KEPT)
        records = await store.load("r")
        told = whole.told

        for survived in range(len(records)):
            world.ran.clear()
            dying = DyingStore([], survived)
            with pytest.raises(Died):
                await world.run(Script(*ACTIONS), store=dying, **KEPT)
            before = list(world.ran)
            kept = await dying.load("r")
            uncertain = sum(step.uncertain for step in replay(kept).steps) if kept else 0
            again = Script(*ACTIONS)
            dying.survive = 99
            result = await world.run(again, store=dying, **KEPT)

            assert ("done", 3, USED + USED, 1) == (
                result.final_answer,
                result.steps_taken,
                result.usage,
                result.denials,
            )
            decisions = sum(record.kind == "model.output" for record in kept)
            assert len(ACTIONS) - decisions == len(again.seen)
            assert len(set(world.ran)) == len(world.ran), (survived, before, world.ran)
            assert len(world.ran) >= 4 - uncertain
            if again.seen:
                same = sum(a == b for a, b in zip(told, again.told, strict=True))
                assert len(told) - uncertain <= same

    async def test_the_conversation_is_the_same(self, world):
        """An agent that depends on the conversation alone cannot tell that it was resumed."""
        whole = Script(*ACTIONS)
        records = await journal_of(*ACTIONS)
        await world.run(whole, store=MemoryRunStore(), **KEPT)
        resumed = Script(*ACTIONS)

        await world.run(resumed, store=DyingStore(records[:-2], 99), **KEPT)

        assert whole.seen[-1] == resumed.seen[-1]

    async def test_a_finished_run_has_its_answer_for_ever(self, world):
        """Called again it asks nobody, runs nothing, and counts the same."""
        store = MemoryRunStore()
        first = await world.run(Script(*ACTIONS), store=store, correlation_id="c", **KEPT)
        records = await store.load("r")
        agent = Script(ValueError("asked"))
        world.ran.clear()

        again = await world.run(agent, store=store, correlation_id="c", **KEPT)

        assert (first, [], []) == (again, agent.seen, world.ran)
        assert records == await store.load("r")
        assert world.bodies("run.succeeded")[-1]["replayed"]

    async def test_says_what_it_took_from_the_journal(self, world):
        """The record of the second attempt says that it is one."""
        records = await journal_of(*ACTIONS)

        await world.run(Script(*ACTIONS), store=DyingStore(records[:5], 99), **KEPT)

        assert [{"records": 5, "attempt": 2}] == world.bodies("run.resumed")
        assert ["echo"] == [body["tool"] for body in world.bodies("step.replayed")]

    async def test_another_policy_is_said(self, world):
        """Going on under another policy is recorded, and it is that which decides."""
        records = await journal_of(*ACTIONS)
        changed = policy({"match": {"tool": "order"}, "decision": "deny"})

        result = await world.run(
            Script(*ACTIONS), policy=changed, store=DyingStore(records[:6], 99), **KEPT
        )

        body = world.bodies("run.bundle_changed")[0]
        assert changed.id == body["current_bundle_id"]
        assert 3 == result.denials

    async def test_budgets_count_what_was_spent_before(self, world):
        """Steps and tokens of earlier attempts count; a larger budget goes on."""
        store = MemoryRunStore()
        actions = (ToolCall("echo", {}, usage=USED),) * 3 + (DONE,)

        first = await world.run(Script(*actions), store=store, budget=Budget(steps=2), **KEPT)
        same = await world.run(Script(*actions), store=store, budget=Budget(tokens=14), **KEPT)
        more = await world.run(Script(*actions), store=store, budget=Budget(steps=9), **KEPT)

        assert ("step budget exhausted (2)", 2) == (first.error, first.steps_taken)
        assert ("token budget exhausted (14)", 2) == (same.error, same.steps_taken)
        assert ("done", 3) == (more.final_answer, more.steps_taken)

    async def test_another_task_is_an_error(self, world):
        """A run goes on with the task that it was begun with."""
        store = DyingStore([_record(0, "run.started", {"task": "other", "bundle_id": "b"})], 99)

        with pytest.raises(ValueError, match="task"):
            await world.run(Script(DONE), store=store, **KEPT)

    async def test_a_journal_is_read_once(self, world):
        """Going on costs one reading, however many steps there were."""
        records = await journal_of(*(call("echo"),) * 10, DONE)
        read = []

        class Counting(DyingStore):
            async def load(self, run_id):
                read.append(run_id)
                return await super().load(run_id)

        await world.run(
            Script(*(call("echo"),) * 10, DONE), store=Counting(records[:20], 99), **KEPT
        )

        assert ["r"] == read

    async def test_over_a_file_it_goes_on(self, world, tmp_path):
        """A store on the disk gives back what the run needs, in another store object."""
        store = SQLiteRunStore(tmp_path / "runs.db")
        await world.run(Script(*ACTIONS), store=store, budget=Budget(steps=2), **KEPT)
        store.close()
        again = SQLiteRunStore(tmp_path / "runs.db")

        result = await world.run(Script(*ACTIONS), store=again, **KEPT)
        again.close()

        assert ("done", 4) == (result.final_answer, len(world.ran))


class TestUncertain:
    """A call whose body began and of which nobody knows how it ended."""

    async def test_is_not_run_again_by_a_policy_that_has_not_heard_of_it(self, world):
        """That a rule permits the call does not permit it twice (law 6)."""
        records = await journal_of(call("echo"), DONE)
        agent = Script(call("echo"), DONE)

        result = await world.run(agent, store=DyingStore(records[:3], 99), **KEPT)

        assert ("done", []) == (result.final_answer, world.ran)
        assert "uncertain" == world.bodies("action.failed")[0]["code"]
        assert agent.told[0].startswith("[error] whether an earlier attempt")

    @pytest.mark.parametrize("executor", [False, True])
    async def test_runs_again_where_the_policy_says_so(self, world, executor):
        """A rule that reads `context.extra.uncertain_retry` may permit it."""
        from adjudge import inline_executor

        records = await journal_of(call("echo"), DONE)
        agent = Script(call("echo"), DONE)
        options = {"executor": inline_executor()} if executor else {}
        store = DyingStore(records[:3], 99)

        await world.run(agent, policy=policy(RERUN), store=store, **options, **KEPT)

        assert (["hi"], [("echo", "hi")]) == (agent.told, world.ran)
        intents = [each for each in await store.load("r") if each.kind == "action.intent"]
        assert 2 == len(intents)
        assert 1 == len({each.idempotency_key for each in intents})

    async def test_a_rule_may_deny_it(self, world):
        """What the policy says of it is told to the model as any denial."""
        records = await journal_of(call("echo"), DONE)
        agent = Script(call("echo"), DONE)
        stop = {**RERUN, "decision": "deny", "reason": "ask accounting"}

        await world.run(agent, policy=policy(stop), store=DyingStore(records[:3], 99), **KEPT)

        assert (["[denied] ask accounting"], []) == (agent.told, world.ran)

    @pytest.mark.parametrize("pauses", [False, True], ids=["asks", "pauses"])
    async def test_nobody_is_asked_about_what_will_not_run_again(self, world, tmp_path, pauses):
        """A person's grant would change nothing, so that it is not asked for."""
        records = await journal_of(call("echo"), DONE)
        asked, agent = [], Script(call("echo"), DONE)
        ledger = SQLiteLedger(tmp_path / "ledger.db")
        handler = pause_approval(ledger) if pauses else callback_approval(asked.append)
        ask = policy({"match": {"tool": "echo"}, "decision": "approve_required"})
        store = DyingStore(records[:3], 99)

        result = await world.run(agent, policy=ask, store=store, on_approval=handler, **KEPT)
        ledger.close()

        assert ("done", [], []) == (result.final_answer, asked, world.ran)
        assert agent.told[0].startswith("[denied] whether an earlier attempt")
        assert "uncertain" == world.bodies("action.denied")[0]["code"]
        assert [] == world.bodies("approval.requested")

    async def test_a_person_is_asked_where_the_policy_says_so(self, world):
        """A rule about uncertain calls may leave it to somebody."""
        records = await journal_of(call("echo"), DONE)
        agent = Script(call("echo"), DONE)
        ask = {**RERUN, "decision": "approve_required"}
        options = {"policy": policy(ask), "on_approval": auto_approve()}

        await world.run(agent, store=DyingStore(records[:3], 99), **options, **KEPT)

        assert (["hi"], [("echo", "hi")]) == (agent.told, world.ran)

    async def test_a_python_rule_may_say_so(self, world):
        """What counts is that the decision is another, whoever made it."""
        from adjudge import allow, compile_policy

        def retry(request, context):
            if context.extra.get("uncertain_retry"):
                return allow("it is idempotent")
            return None

        open_policy = compile_policy(
            {"version": 1, "rules": [{"id": "all", "match": "always", "decision": "allow"}]},
            python_rules=(retry,),
            python_rule_priorities={"retry": 9},
        )
        records = await journal_of(call("echo"), DONE)

        await world.run(
            Script(call("echo"), DONE),
            policy=open_policy,
            store=DyingStore(records[:3], 99),
            **KEPT,
        )

        assert [("echo", "hi")] == world.ran

    async def test_is_said_on_the_record(self, world):
        """The second attempt says which call it is, by its key."""
        records = await journal_of(call("echo"), DONE)

        await world.run(Script(call("echo"), DONE), store=DyingStore(records[:3], 99), **KEPT)

        body = world.bodies("step.uncertain")[0]
        assert ("echo", records[2].idempotency_key) == (body["tool"], body["idempotency_key"])
        assert [True] == [
            body["extra"]["uncertain_retry"] for body in world.bodies("step.proposed")
        ]

    async def test_a_declared_isolation_is_still_asked_for(self, world):
        """What no executor provides is not provided for a retry either."""

        @tool(isolation="container")
        async def boxed():
            world.ran.append("boxed")

        started = [
            _record(0, "run.started", {"task": "the task", "bundle_id": "b"}),
            _record(
                1,
                "model.output",
                {"step": 0, "type": "tool_call", "tool": "boxed", "args": {}, "call_id": "c"},
            ),
            _record(2, "action.intent", {"step": 0, "call": 0, "tool": "boxed"}),
        ]

        await world.run(
            Script(call("boxed"), DONE),
            tools=ToolSet([boxed]),
            policy=policy(RERUN),
            store=DyingStore(started, 99),
            **KEPT,
        )

        assert [] == world.ran
        assert "isolation_unrouted" == world.bodies("action.failed")[0]["code"]


class TestRaces:
    """Two workers and one run."""

    @pytest.mark.parametrize("place", range(12))
    async def test_whoever_comes_second_does_nothing_more(self, world, place):
        """A number that is taken ends the run of whoever did not take it."""
        records = await journal_of(*ACTIONS)
        taken = records[place]

        class Taken(MemoryRunStore):
            async def append(self, record):
                if record.seq == place:
                    raise DuplicateRecord("there is one")
                await super().append(record)

        result = await world.run(Script(*ACTIONS), store=Taken(), **KEPT)

        assert "superseded" == result.code
        assert "superseded: another worker is executing run 'r'" == result.error
        assert 1 == len(world.bodies("run.superseded"))
        if taken.kind == "action.intent" and taken.body["step"] == 0:
            assert [] == world.ran

    async def test_of_many_workers_one_runs_each_call(self, world):
        """Workers that race on one run do each call once between them."""
        store = MemoryRunStore()

        class Slow(Script):
            async def step(self, conversation):
                await asyncio.sleep(0)
                return await super().step(conversation)

        results = await asyncio.gather(
            *(world.run(Slow(*ACTIONS), store=store, **KEPT) for _ in range(8))
        )

        assert 1 == sum(result.final_answer == "done" for result in results)
        assert {"", "superseded"} == {result.code for result in results}
        assert 4 == len(world.ran)


class TestStores:
    """A store that fails."""

    async def test_one_that_cannot_be_read_runs_nothing(self, world):
        """Without its past a run does not go on."""

        class Unreadable(MemoryRunStore):
            async def load(self, run_id):
                raise OSError("gone")

        agent = Script(DONE)
        result = await world.run(agent, store=Unreadable(), **KEPT)

        assert ("store_failed", "store.load failed: OSError: gone", []) == (
            result.code,
            result.error,
            agent.seen,
        )

    async def test_one_that_cannot_be_written_starts_no_body(self, world):
        """What cannot be put down is not done (law 4)."""

        class Full(MemoryRunStore):
            async def append(self, record):
                if record.kind == "action.intent":
                    raise OSError("disk full")
                await super().append(record)

        result = await world.run(
            Script(ToolCalls((call("echo"), call("pay", amount=1)))),
            policy=policy({"match": "always", "decision": "allow"}),
            store=Full(),
            **KEPT,
        )

        assert ("store_failed", []) == (result.code, world.ran)
        assert "store.append failed: OSError: disk full" == result.error

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("nonsense", {}),
            ("model.output", {"step": 4, "type": "final_answer", "text": "x"}),
            ("model.output", {"step": 0, "type": "other"}),
            ("action.result", {"step": 0}),
        ],
    )
    async def test_a_journal_that_is_none_runs_nothing(self, world, kind, body):
        """Records that no run wrote are not guessed at."""
        started = _record(0, "run.started", {"task": "the task", "bundle_id": "b"})
        store = DyingStore([started, _record(1, kind, body)], 99)
        agent = Script(DONE)

        result = await world.run(agent, store=store, **KEPT)

        assert ("store_failed", []) == (result.code, agent.seen)


class TestOddTexts:
    """What a store cannot take."""

    async def test_a_result_that_is_no_unicode_is_kept_escaped(self, world):
        """A tool that ran keeps its result, and the model reads what was kept."""
        agent = Script(call("speak"), call("stumble"), DONE)

        @tool()
        async def speak():
            return "a\ud800é"

        @tool()
        async def stumble():
            raise ValueError("\ud800")

        result = await world.run(
            agent, tools=ToolSet([speak, stumble]), store=MemoryRunStore(), **KEPT
        )

        assert ("done", ["a\\ud800é", "[error] ValueError: \\ud800"]) == (
            result.final_answer,
            agent.told,
        )


class TestKeys:
    """The key under which a call is the same in every attempt."""

    def test_is_the_same_however_the_arguments_are_written(self):
        """Values and text, in any order, have one key."""
        key = idempotency_key("r", 1, "pay", {"to": "a", "n": 1})

        assert key == idempotency_key("r", 1, "pay", '{"n": 1, "to": "a"}')
        assert 32 == len(key)

    @pytest.mark.parametrize(
        "other",
        [
            ("s", 1, "pay", {"n": 1}),
            ("r", 2, "pay", {"n": 1}),
            ("r", 1, "give", {"n": 1}),
            ("r", 1, "pay", {"n": 1.0}),
            ("r", 1, "pay", {"n": True}),
        ],
    )
    def test_is_another_for_another_call(self, other):
        """Run, step, tool and arguments, kinds strict, make the key."""
        assert idempotency_key("r", 1, "pay", {"n": 1}) != idempotency_key(*other)

    def test_is_another_for_each_of_two_side_by_side(self):
        """The same call twice in one step is two calls."""
        keys = [idempotency_key("r", 1, "pay", {"n": 1}, index=index) for index in range(3)]

        assert 3 == len(set(keys))

    async def test_a_body_can_read_it(self, world):
        """A body, sync or async, finds the key of its own call, side by side or alone."""
        keys = []

        @tool()
        async def remote(n: int):
            keys.append(current_idempotency_key())

        @tool()
        def remote_from_thread(n: int):
            keys.append(current_idempotency_key())

        await world.run(
            Script(
                ToolCalls((call("remote", n=1), call("remote", n=1))),
                call("remote_from_thread", n=1),
                DONE,
            ),
            tools=ToolSet([remote, remote_from_thread]),
            store=MemoryRunStore(),
            **KEPT,
        )

        assert [
            idempotency_key("r", 0, "remote", {"n": 1}),
            idempotency_key("r", 0, "remote", {"n": 1}, index=1),
            idempotency_key("r", 1, "remote_from_thread", {"n": 1}),
        ] == keys

    async def test_there_is_none_without_a_store(self, world):
        """No key would be the same in another attempt."""
        keys = []

        @tool()
        async def remote():
            keys.append(current_idempotency_key())

        await world.run(Script(call("remote"), DONE), tools=ToolSet([remote]))

        assert ([None], None) == (keys, current_idempotency_key())

    async def test_a_run_inside_of_a_body_has_none_of_the_bodys(self, world):
        """Calls of a run that is kept nowhere have no key, though a call around it has one."""
        keys = []

        @tool()
        async def charge(n: int):
            keys.append(current_idempotency_key())

        @tool()
        async def outer():
            inner = Script(call("charge", n=1), call("charge", n=2), DONE)
            await World().run(inner, tools=ToolSet([charge]))
            keys.append(current_idempotency_key())

        await world.run(
            Script(call("outer"), DONE), tools=ToolSet([outer]), store=MemoryRunStore(), **KEPT
        )

        assert [None, None, idempotency_key("r", 0, "outer", {})] == keys


class TestLateBodies:
    """A body that is about to begin when its run ends."""

    async def test_does_not_begin_after_an_interruption(self, world):
        """A thread that comes late finds the run over; one that was in time has its intent."""
        store = MemoryRunStore()
        held, go_on = asyncio.Event(), asyncio.Event()

        class Holding(MemoryRunStore):
            async def append(self, record):
                if record.kind == "action.intent" and not held.is_set():
                    held.set()
                    await go_on.wait()
                await store.append(record)

            async def load(self, run_id):
                return await store.load(run_id)

        both = ToolCalls((call("pay", amount=1), call("pay", amount=2)))
        run = asyncio.ensure_future(
            world.run(
                Script(both),
                policy=policy({"match": "always", "decision": "allow"}),
                store=Holding(),
                **KEPT,
            )
        )
        await held.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        go_on.set()
        for thread in threading.enumerate():
            if thread.name.startswith("adjudge"):
                await asyncio.to_thread(thread.join)

        intents = [each for each in await store.load("r") if each.kind == "action.intent"]
        assert 1 == len(world.ran) == len(intents)

    async def test_does_not_begin_once_the_run_is_superseded(self, world):
        """A call beside one that came second does not begin either."""
        lost = asyncio.Event()

        class Taken(MemoryRunStore):
            async def append(self, record):
                if record.kind == "action.intent" and not lost.is_set():
                    lost.set()
                    raise DuplicateRecord("there is one")
                await super().append(record)

        async def wait(obligation, request, context):
            await lost.wait()

        owed = policy(
            {
                "match": {"tool": "order"},
                "decision": "allow",
                "obligations": [{"id": "wait", "phase": "pre"}],
            }
        )

        result = await world.run(
            Script(ToolCalls((call("order", count=1), call("echo")))),
            policy=owed,
            obligations={"wait": wait},
            store=Taken(),
            **KEPT,
        )

        assert ("superseded", []) == (result.code, world.ran)


def _record(seq, kind, body):
    from datetime import UTC, datetime

    return StepRecord("r", seq, kind, "", body, datetime.now(UTC))
