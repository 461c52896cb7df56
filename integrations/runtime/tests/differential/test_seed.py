"""The loop beside lynx-agent's: the same script through both, and each intended difference named.

Needs `lynx-agent`. What is compared is public behaviour alone: how a run ends, what ran, what was
counted, which events there were, what a journal holds and how a run goes on from any record of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import lynx
import pytest

import adjudge
import adjudge_runtime
from adjudge import MemoryRunStore

POLICY = """
version: 1
defaults: {on_no_match: deny}
rules:
  - {id: may, match: {tool.in: [echo, boom, pay]}, decision: allow}
  - {id: never, match: {tool: erase}, decision: deny, reason: "never"}
  - {id: look, match: {tool: write}, decision: dry_run}
  - {id: ask, match: {tool: ask}, decision: approve_required}
  - id: cap
    match: {tool: order}
    decision: transform
    transform: {jsonpath: "$.args.count", set: 5}
"""
RETRY = """
  - id: again
    priority: 9
    match: {context.extra.uncertain_retry: true, tool: echo}
    decision: allow
"""

# Their name of an event -> ours; None where ours has none, see the differences below.
EVENTS = {
    "action.started": None,
    "action.dry_run": None,
    "action.dry_run_completed": "action.previewed",
    "approval.denied": "approval.refused",
    "action.uncertain": "step.uncertain",
}
DIFFERENCES = {
    "text": "The model gets the tool's own result, with no `[ok]` before it, and JSON of what is "
    "no text (law 2: untouched).",
    "denied": "A denial reads `[denied] REASON`, once.",
    "dry_run": "A preview reads `[dry_run] not executed; preview: JSON`.",
    "traceback": "A tool's failure is told by its type and message, without a traceback.",
    "unknown": "A tool that is unknown is denied, not failed.",
    "started": "There is no `action.started`: each attempt has one terminal event (law 7).",
    "cancelled": "A call that the kill switch stopped has its own terminal event, `action.denied`.",
    "repeated": "A repeated call that is cut off is not proposed to the guard.",
    "junk": "An agent that gives no action ends its run by value.",
    "intent": "The intent is written immediately before a body, so a denied call has none.",
    "uncertain": "A call whose outcome is lost runs again only where the policy decides it "
    "otherwise than the same call made afresh (law 6).",
    "environment": "An environment that nobody gave is None, not `dev` (clause 9).",
    "run_id": "A run_id without a store is an error, not ignored.",
    "task": "Going on with another task is an error.",
    "compress": "A compressor takes the tool and the text; a route goes by the tool's name; one "
    "that says nothing counts as failed.",
    "compressed": "Compression is recorded after the call's terminal event.",
    "cache": "Cache tokens that nobody told stay None in the sum, and a model that all steps "
    "share is named there.",
    "step": "An event of the run says its step as `step`; `seq` numbers the record.",
}


@dataclass
class Side:
    """One of the two loops, with its names and what it did."""

    loop: Any
    values: Any
    ran: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def tools(self) -> Any:
        """Make the tools, each of which puts down that it ran."""
        ran, tool = self.ran, self.values.tool

        @tool()
        async def echo(text: str = "hi") -> str:
            ran.append(("echo", text))
            return text

        @tool()
        async def pay(amount: int) -> int:
            ran.append(("pay", amount))
            return amount

        @tool()
        async def boom() -> None:
            ran.append(("boom",))
            raise ValueError("bang")

        @tool()
        async def erase() -> None:
            ran.append(("erase",))

        @tool()
        async def write(path: str) -> None:
            ran.append(("write",))

        @self.values.shadow(write)
        async def preview(path: str) -> dict[str, str]:
            return {"would": path}

        @tool()
        async def ask() -> str:
            ran.append(("ask",))
            return "asked"

        @tool()
        async def order(count: int) -> int:
            ran.append(("order", count))
            return count

        return self.values.ToolSet.from_functions(echo, pay, boom, erase, write, ask, order)

    def action(self, spec: Any) -> Any:
        """Make an action of this side."""
        usage = None
        if isinstance(spec, tuple) and isinstance(spec[-1], int):
            usage = self.loop.Usage(input_tokens=spec[-2], output_tokens=spec[-1])
            spec = spec[:-2]
        if isinstance(spec, str):
            return self.loop.FinalAnswer(spec)
        if len(spec) == 1:
            return self.loop.FinalAnswer(spec[0], usage)
        return self.loop.ToolCall(spec[0], spec[1], usage=usage)

    async def run(self, script: list[Any], *, policy: str = POLICY, **options: Any) -> Any:
        """Run a script."""
        side = self

        class Agent:
            asked = 0

            async def step(self, conversation: Any) -> Any:
                self.asked += 1
                side.told[:] = [each.content for each in conversation if each.role == "tool"]
                done = sum(each.role == "assistant" for each in conversation)
                spec = script[min(done, len(script) - 1)]
                if isinstance(spec, Exception):
                    raise spec
                if callable(spec):
                    return await spec(side)
                return side.action(spec)

        async def record(event: Any) -> None:
            side.events.append((event.kind, dict(event.body)))

        agent = Agent()
        if isinstance(options.get("budget"), dict):
            options["budget"] = self.loop.Budget(**options["budget"])
        for name in ("cancel", "on_approval", "compressor"):
            if name in options:
                options[name] = options[name](self)
        result = await self.loop.run_agent(
            agent,
            "the task",
            tools=self.tools(),
            policy=self.values.compile_policy(policy),
            sinks=(self.values.callback_sink(record),),
            **options,
        )
        return result, agent.asked


class TheirStore:
    """A store of lynx-agent's, in memory."""

    def __init__(self, records: Any = ()) -> None:
        self.kept = {record.seq: record for record in records}
        self.taken: int | None = None

    async def append(self, record: Any) -> None:
        """Keep a record."""
        if record.seq in self.kept or record.seq == self.taken:
            raise lynx.DuplicateRecord("there is one")
        self.kept[record.seq] = record

    async def load(self, run_id: str) -> Any:
        """Give the records."""
        return [self.kept[seq] for seq in sorted(self.kept)]


class OurStore(MemoryRunStore):
    """The same for ours."""

    def __init__(self, records: Any = ()) -> None:
        super().__init__()
        for record in records:
            self._runs.setdefault(record.run_id, {})[record.seq] = record
        self.taken: int | None = None

    async def append(self, record: Any) -> None:
        """Keep a record."""
        if record.seq == self.taken:
            raise adjudge.DuplicateRecord("there is one")
        await super().append(record)


def sides() -> tuple[Side, Side]:
    """Give both loops, fresh."""
    return Side(lynx, lynx), Side(adjudge_runtime, adjudge)


def ended(result: Any) -> tuple[Any, ...]:
    """What a result says in both."""
    usage = result.usage
    tokens = None if usage is None else (usage.input_tokens, usage.output_tokens)
    return (result.final_answer, result.error, result.steps_taken, tokens)


def named(events: Any) -> list[str]:
    """Their events by our names."""
    kinds = [EVENTS.get(kind, kind) for kind, _ in events]
    return [kind for kind in kinds if kind is not None]


def reworded(text: str) -> str:
    """Their text of a result as ours has it: the differences of text, denied and traceback."""
    for theirs, ours in (
        ("[ok] ", ""),
        ("[denied] denied: ", "[denied] "),
        ("[error] unknown tool", "[denied] unknown tool"),
    ):
        if text.startswith(theirs):
            text = ours + text.removeprefix(theirs)
    if text.startswith("[dry_run]"):
        return '[dry_run] not executed; preview: {"would": "a"}'
    return text.split("\nTraceback")[0].replace(" \u2014 no on_approval handler configured", "")


SCRIPTS = {
    "answer": ["done"],
    "call": [("echo", {"text": "a"}), "done"],
    "number": [("pay", {"amount": 3}), "done"],
    "usage": [("echo", {}, 3, 4), ("done", 5, 6)],
    "failing tool": [("boom", {}), "done"],
    "denied": [("erase", {}), "done"],
    "preview": [("write", {"path": "a"}), "done"],
    "transformed": [("order", {"count": 9}), "done"],
    "unknown tool": [("nothing", {}), "done"],
    "several": [("echo", {"text": "a"}), ("erase", {}), ("echo", {"text": "b"}), "done"],
}


class TestRuns:
    """One run in each."""

    @pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
    async def test_come_to_the_same(self, script):
        """The answer, what ran, what was counted and what the model was told agree."""
        theirs, ours = sides()

        their_result, their_asked = await theirs.run(script)
        our_result, our_asked = await ours.run(script)

        assert ended(their_result) == ended(our_result)
        assert theirs.ran == ours.ran
        assert their_asked == our_asked
        assert [reworded(text) for text in theirs.told] == ours.told

    @pytest.mark.parametrize(
        "script",
        [SCRIPTS[name] for name in SCRIPTS if name != "unknown tool"],
        ids=[name for name in SCRIPTS if name != "unknown tool"],
    )
    async def test_record_the_same_events(self, script):
        """The kinds of events agree in order, by our names."""
        theirs, ours = sides()

        await theirs.run(script)
        await ours.run(script)

        assert named(theirs.events) == [kind for kind, _ in ours.events]

    async def test_an_unknown_tool_is_denied_here(self):
        """Theirs fails it, ours denies it, and neither judges it."""
        theirs, ours = sides()

        await theirs.run(SCRIPTS["unknown tool"])
        await ours.run(SCRIPTS["unknown tool"])

        assert "action.failed" in named(theirs.events)
        assert "action.denied" in [kind for kind, _ in ours.events]
        assert "policy.evaluated" not in named(theirs.events)
        assert "policy.evaluated" not in [kind for kind, _ in ours.events]

    @pytest.mark.parametrize(
        "handler",
        [lambda side: side.values.auto_approve(), lambda side: side.values.auto_deny("no")],
        ids=["granted", "refused"],
    )
    async def test_approvals_agree(self, handler):
        """A granted call runs, a refused one does not, with the same events."""
        theirs, ours = sides()
        script = [("ask", {}), "done"]

        await theirs.run(script, on_approval=handler)
        await ours.run(script, on_approval=handler)

        assert theirs.ran == ours.ran
        assert named(theirs.events) == [kind for kind, _ in ours.events]


CAPS = {
    "steps": ({"steps": 2}, [("echo", {})]),
    "no step at all": ({"steps": 0}, [("echo", {})]),
    "tokens": ({"tokens": 20}, [("echo", {}, 6, 7)]),
    "tokens to the last": ({"tokens": 13}, [("echo", {}, 6, 7)]),
    "input tokens": ({"input_tokens": 6}, [("echo", {}, 6, 7)]),
    "output tokens": ({"output_tokens": 8}, [("echo", {}, 6, 7)]),
    "an answer over the cap": ({"output_tokens": 1}, [("done", 6, 7)]),
    "no usage": ({"tokens": 1}, [("echo", {}), "done"]),
    "repeated": ({"max_repeated_calls": 2}, [("echo", {"text": "a"})]),
    "not repeated": (
        {"max_repeated_calls": 1},
        [("echo", {"text": "a"}), ("echo", {"text": "b"}), ("echo", {"text": "a"}), "done"],
    ),
}


class TestLimits:
    """Budgets and the kill switch."""

    @pytest.mark.parametrize(("budget", "script"), CAPS.values(), ids=CAPS)
    async def test_caps_agree(self, budget, script):
        """A run ends at the same step, for the same reason, in the same words."""
        theirs, ours = sides()

        their_result, their_asked = await theirs.run(script, budget=dict(budget))
        our_result, our_asked = await ours.run(script, budget=dict(budget))

        assert ended(their_result) == ended(our_result)
        assert (theirs.ran, their_asked) == (ours.ran, our_asked)

    async def test_a_step_that_hangs_is_cut_off_alike(self):
        """The words of the step time-out agree."""

        async def hang(side):
            await asyncio.Event().wait()

        theirs, ours = sides()
        budget = {"step_timeout_seconds": 0.05}

        their_result, _ = await theirs.run([hang], budget=dict(budget))
        our_result, _ = await ours.run([hang], budget=dict(budget))

        assert ended(their_result) == ended(our_result)

    async def test_an_agent_that_raises_ends_alike(self):
        """The words of an agent's failure agree."""
        theirs, ours = sides()

        their_result, _ = await theirs.run([ValueError("down")])
        our_result, _ = await ours.run([ValueError("down")])

        assert ended(their_result) == ended(our_result)

    async def test_a_cancellation_passes_in_both(self):
        """Neither swallows a cancellation."""

        async def cancelled(side):
            raise asyncio.CancelledError

        for side in sides():
            with pytest.raises(asyncio.CancelledError):
                await side.run([cancelled])

    @pytest.mark.parametrize("late", [False, True], ids=["before", "between"])
    async def test_the_kill_switch_agrees(self, late):
        """A token that is tripped ends the run with the same words, place and nothing run."""
        found = []
        for side in sides():
            token = side.values.CancelToken()

            async def trip(side, token=token):
                token.cancel("stop")
                return side.action(("echo", {}))

            if not late:
                token.cancel("stop")
            result, _ = await side.run([trip], cancel=lambda side, token=token: token)
            body = dict(side.events)["run.cancelled"]
            found.append((ended(result), side.ran, body["reason"], body["at"]))

        assert found[0] == found[1]


class TestJournals:
    """Runs in a store."""

    SCRIPT = [("echo", {"text": "a"}, 3, 4), ("erase", {}), ("done", 5, 6)]  # noqa: RUF012

    async def kept(self, side, store, **options):
        """Run in a store."""
        return await side.run(self.SCRIPT, store=store, run_id="r", **options)

    async def test_hold_the_same_kinds(self):
        """The kinds of records agree, but that a denied call has no intent here."""
        theirs, ours = sides()
        their_store, our_store = TheirStore(), OurStore()

        await self.kept(theirs, their_store)
        await self.kept(ours, our_store)

        their_kinds = [record.kind for record in await their_store.load("r")]
        our_kinds = [record.kind for record in await our_store.load("r")]
        del their_kinds[5]  # the intent of the denied call
        assert their_kinds == our_kinds

    async def test_go_on_alike_from_each_record(self):
        """Wherever the first worker stopped, the second comes to the same."""
        theirs, ours = sides()
        their_store, our_store = TheirStore(), OurStore()
        await self.kept(theirs, their_store, policy=POLICY + RETRY)
        await self.kept(ours, our_store, policy=POLICY + RETRY)
        their_records = await their_store.load("r")
        our_records = list(await our_store.load("r"))
        # Without the denied call's intent of theirs, both have the same places to stop at.
        places = [(count, count - (count > 5)) for count in range(10) if count != 6]

        for their_count, our_count in places:
            theirs, ours = sides()
            their_result, their_asked = await self.kept(
                theirs, TheirStore(their_records[:their_count]), policy=POLICY + RETRY
            )
            our_result, our_asked = await self.kept(
                ours, OurStore(our_records[:our_count]), policy=POLICY + RETRY
            )

            assert ended(their_result) == ended(our_result), their_count
            assert (theirs.ran, their_asked) == (ours.ran, our_asked), their_count
            assert named(theirs.events)[1:] == _without_order([kind for kind, _ in ours.events][1:])

    async def test_a_call_whose_outcome_is_lost_needs_a_rule_here(self):
        """Theirs runs it again where any rule permits the call, ours where a rule speaks of it."""
        theirs, ours = sides()
        their_store, our_store = TheirStore(), OurStore()
        await self.kept(theirs, their_store)
        await self.kept(ours, our_store)
        theirs.ran.clear()
        ours.ran.clear()

        await self.kept(theirs, TheirStore((await their_store.load("r"))[:3]))
        await self.kept(ours, OurStore((await our_store.load("r"))[:3]))

        assert ([("echo", "a")], []) == (theirs.ran, ours.ran)

    @pytest.mark.parametrize("place", range(8))
    async def test_a_number_that_is_taken_supersedes_alike(self, place):
        """The words and what has run agree, at each record."""
        theirs, ours = sides()
        their_store, our_store = TheirStore(), OurStore()
        their_store.taken = place + (place >= 5)
        our_store.taken = place

        their_result, _ = await self.kept(theirs, their_store)
        our_result, _ = await self.kept(ours, our_store)

        assert ended(their_result) == ended(our_result)
        assert theirs.ran == ours.ran
        assert "run.superseded" == theirs.events[-1][0] == ours.events[-1][0]

    async def test_a_view_of_a_journal_agrees(self):
        """`replay` says the same of the same run, however much of it there is."""
        theirs, ours = sides()
        their_store, our_store = TheirStore(), OurStore()
        await self.kept(theirs, their_store)
        await self.kept(ours, our_store)
        their_records = await their_store.load("r")
        our_records = list(await our_store.load("r"))

        for count in range(1, 9):
            # Theirs says the verdict of an intent, which is written before the verdict here.
            their_view = lynx.replay(their_records[: count + (count > 5)])
            our_view = adjudge_runtime.replay(our_records[:count])
            assert (their_view.attempts, their_view.final_answer) == (
                our_view.attempts,
                our_view.final_answer,
            )
            for one, other in zip(their_view.steps, our_view.steps, strict=True):
                assert (one.step, one.tool, one.ok, one.uncertain) == (
                    other.step,
                    other.tool,
                    other.ok,
                    other.uncertain,
                )

    async def test_a_store_that_fails_ends_alike(self):
        """The words of a store's failure agree, and nothing runs."""

        class TheirBroken(TheirStore):
            async def append(self, record):
                raise OSError("disk")

        class OurBroken(OurStore):
            async def append(self, record):
                raise OSError("disk")

        theirs, ours = sides()

        their_result, _ = await self.kept(theirs, TheirBroken())
        our_result, _ = await self.kept(ours, OurBroken())

        assert ended(their_result) == ended(our_result)
        assert ([], []) == (theirs.ran, ours.ran)

    async def test_another_policy_is_said_alike(self):
        """Going on under another policy is the same event, with the same fields."""
        theirs, ours = sides()
        their_store, our_store = TheirStore(), OurStore()
        await self.kept(theirs, their_store)
        await self.kept(ours, our_store)
        changed = POLICY + RETRY

        await self.kept(theirs, TheirStore((await their_store.load("r"))[:4]), policy=changed)
        await self.kept(ours, OurStore((await our_store.load("r"))[:4]), policy=changed)

        theirs_said = dict(theirs.events)["run.bundle_changed"].keys() - {"detail"}
        assert theirs_said == dict(ours.events)["run.bundle_changed"].keys()

    async def test_a_store_needs_an_id_in_both(self):
        """A store without a run_id is an error before anything runs."""
        for side, store in zip(sides(), (TheirStore(), OurStore()), strict=True):
            with pytest.raises(ValueError):
                await side.run(["done"], store=store)


class TestNames:
    """The names that carry over."""

    @pytest.mark.parametrize(
        "name",
        [
            "Agent",
            "AgentAction",
            "Budget",
            "Compressor",
            "FinalAnswer",
            "Message",
            "RunResult",
            "RunView",
            "StepView",
            "ToolCall",
            "Usage",
            "compose_compressors",
            "dedup_compressor",
            "external_filter_compressor",
            "idempotency_key",
            "identity_compressor",
            "replay",
            "route_compressor",
            "run_agent",
            "truncate_compressor",
        ],
    )
    def test_are_here(self, name):
        """Each name of the loop that lynx-agent exports is exported here."""
        assert hasattr(lynx, name)
        assert name in adjudge_runtime.__all__

    def test_run_agent_takes_each_keyword(self):
        """Every keyword of theirs is one of ours."""
        import inspect

        theirs = inspect.signature(lynx.run_agent).parameters
        ours = inspect.signature(adjudge_runtime.run_agent).parameters

        assert not theirs.keys() - ours.keys()

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (lynx.Budget, adjudge_runtime.Budget),
            (lynx.Usage, adjudge_runtime.Usage),
            (lynx.RunResult, adjudge_runtime.RunResult),
            (lynx.RunView, adjudge_runtime.RunView),
            (lynx.StepView, adjudge_runtime.StepView),
            (lynx.FinalAnswer, adjudge_runtime.FinalAnswer),
            (lynx.ToolCall, adjudge_runtime.ToolCall),
        ],
        ids=lambda value: f"{value.__module__.split('.')[0]}.{value.__name__}",
    )
    def test_values_have_their_fields_in_place(self, one, other):
        """Each value begins with the fields that theirs has, so that positions mean the same."""
        from dataclasses import fields

        theirs = [item.name for item in fields(one)]

        assert theirs == [item.name for item in fields(other)][: len(theirs)]

    def test_the_usual_budget_is_theirs(self):
        """Who says nothing has the same caps."""
        theirs, ours = lynx.Budget(), adjudge_runtime.Budget()

        assert (theirs.steps, theirs.duration_seconds) == (ours.steps, ours.duration_seconds)


def test_each_difference_is_a_sentence():
    """What differs on purpose is said in words."""
    assert all(text.endswith(".") for text in DIFFERENCES.values())


def _without_order(kinds: list[str]) -> list[str]:
    """Ours says that a call is uncertain before it is proposed, theirs after."""
    if "step.uncertain" in kinds:
        place = kinds.index("step.uncertain")
        kinds[place], kinds[place + 1] = kinds[place + 1], kinds[place]
    return kinds
