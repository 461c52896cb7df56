"""What the tests of enforcement share: tools that count, a sink that remembers, and both doors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.guard import ToolGuard
from adjudge._enforcement.runs import GovernedRun
from adjudge._enforcement.tools import ToolSet, tool
from adjudge._ledger.entries import MemoryLedger
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._types import ApprovalDecision
from adjudge.policy import compile_policy

GRANT = ApprovalDecision(True, "ana", "fine")

TERMINAL = frozenset(
    {
        "action.completed",
        "action.failed",
        "action.denied",
        "action.previewed",
        "action.cancelled",
        "approval.expired",
    }
)


class Bench:
    """Tools whose runs are counted, guards over them, and the events that those emitted."""

    def __init__(self):
        self.ran = []
        self.shadowed = []
        self.events = []
        self.guards = []
        self.tools = ToolSet.from_functions(*self._functions())

    def _functions(self):
        @tool(reversible=False)
        async def pay(to: str, amount: int = 5):
            """Pay somebody."""
            self.ran.append({"to": to, "amount": amount})
            return f"paid {amount}"

        @pay.shadow
        async def preview(to: str, amount: int):
            self.shadowed.append({"to": to, "amount": amount})
            return {"would_pay": amount}

        @tool()
        def note(text: str):
            """Note something."""
            self.ran.append({"text": text})
            return text

        @tool()
        async def breaks(text: str = ""):
            """Raise."""
            self.ran.append({"text": text})
            raise KeyError(text)

        return pay, note, breaks

    def sink(self, event):
        """Remember an event."""
        self.events.append(event)

    def guard(self, *rules, tools=None, sinks=None, defaults=None, **settings):
        """Make a guard; a rule without `match` is for everything."""
        written = [{"id": f"r{n}", "match": "always", **rule} for n, rule in enumerate(rules)]
        source = {"version": 1, "rules": written}
        if defaults is not None:
            source["defaults"] = defaults
        guard = ToolGuard(
            policy=settings.pop("policy", None) or compile_policy(source),
            tools=self.tools if tools is None else ToolSet.from_functions(*tools),
            sinks=[self.sink] if sinks is None else sinks,
            **settings,
        )
        self.guards.append(guard)
        return guard

    @property
    def kinds(self):
        """Give the kinds of all events, in order."""
        return [event.kind for event in self.events]

    @property
    def terminals(self):
        """Give the kinds of the terminal events."""
        return [event.kind for event in self.events if event.kind in TERMINAL]

    @property
    def last(self):
        """Give the last event."""
        return self.events[-1]

    def body(self, kind):
        """Give the body of the last event of a kind."""
        return next(event.body for event in reversed(self.events) if event.kind == kind)


@pytest.fixture
def bench():
    """Make a fresh bench, and close its guards afterwards."""
    made = Bench()
    yield made
    for guard in made.guards:
        guard.close()


@pytest.fixture(params=["async", "sync"])
def door(request):
    """Say through which door this test goes."""
    return request.param


@pytest.fixture
def check(door):
    """Check a call through the async door, or through the sync one inside a running loop."""

    async def through_async(guard, *args, **kwargs):
        return await guard.check(*args, **kwargs)

    async def through_sync(guard, *args, **kwargs):
        return guard.check_sync(*args, **kwargs)

    return through_async if door == "async" else through_sync


@pytest.fixture
def resume(door):
    """Resume a call through the same door."""

    async def through_async(guard, *args):
        return await guard.resume(*args)

    async def through_sync(guard, *args):
        return guard.resume_sync(*args)

    return through_async if door == "async" else through_sync


@pytest.fixture
def govern(door):
    """Govern a continuation through the same door."""

    async def through_async(guard, call, execute, **kwargs):
        async def continuation(effective):
            return execute(effective)

        return await guard.govern_call(call, continuation, **kwargs)

    async def through_sync(guard, call, execute, **kwargs):
        return guard.govern_call_sync(call, execute, **kwargs)

    return through_async if door == "async" else through_sync


@pytest.fixture
def ledger(door, tmp_path):
    """Make an empty ledger: in memory for the async door, in a file for the sync one."""
    return MemoryLedger() if door == "async" else SQLiteLedger(tmp_path / "ledger.sqlite")


class Desk:
    """A framework whose runs can pause, at the points where it meets a guard."""

    def __init__(self, bench, ledger, door):
        self.bench = bench
        self.ledger = ledger
        self._sync = door == "sync"

    def guard(self, *rules, **settings):
        """Make a guard that pauses."""
        settings.setdefault("on_approval", pause_approval(self.ledger))
        return self.bench.guard(*rules, **settings)

    def call(self, run, **changed):
        """Propose to pay."""
        fields = {
            "tool": "pay",
            "arguments": {"to": "x", "amount": 5},
            "call_id": "c1",
            "run": run,
            "agent": "main",
        }
        return ProposedCall(**{**fields, **changed})

    async def look(self, guard, call, **more):
        """Ask whether a person must be asked."""
        if self._sync:
            return guard.pause_call_sync(call, **more)
        return await guard.pause_call(call, **more)

    async def body(self, guard, call, execute=None, **more):
        """Come to the body's door."""
        run = self._pay if execute is None else execute
        if self._sync:
            return guard.govern_call_sync(call, run, **more)

        async def continuation(effective):
            return run(effective)

        return await guard.govern_call(call, continuation, **more)

    async def reopen(self, guard, answers, run=None):
        """Take up a run with people's answers, or by its id."""
        if self._sync:
            return guard.reopen_sync(answers, run=run)
        return await guard.reopen(answers, run=run)

    async def waiting(self, guard, run):
        """Give what waits in a run."""
        return guard.waiting_sync(run) if self._sync else await guard.waiting(run)

    async def paused(self, guard, **changed):
        """Begin a run whose call waits; give the call, to be proposed again, and what is pending.

        The call of a run that was opened again is `replace(call, run=run)`.
        """
        call = self.call(GovernedRun(), **changed)
        return call, (await self.body(guard, call)).pending

    async def answered(self, guard, answer=GRANT, **changed):
        """Begin a run, have its call answered, and give the call as it is proposed now."""
        call, pending = await self.paused(guard, **changed)
        run = await self.reopen(guard, {pending.id: answer})
        return replace(call, run=run)

    def _pay(self, effective):
        self.bench.ran.append(dict(effective.args))
        return "paid"


@pytest.fixture
def desk(bench, ledger, door):
    """Make a desk, its ledger empty."""
    return Desk(bench, ledger, door)
