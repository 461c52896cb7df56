"""Sessions that the kill switch stops, and tools that say what no store takes."""

import asyncio
import threading

import pytest

from adjudge import (
    ApprovalDecision,
    CancelToken,
    MemoryLedger,
    MemoryRunStore,
    MemorySessionStore,
    StoreError,
    ToolGuard,
    ToolSet,
    compile_policy,
    pause_approval,
    required_sink,
    tool,
)
from adjudge_runtime import FinalAnswer, ToolCall, agent_tool
from adjudge_runtime.kernel import AgentKernel, Decision, RunState

ODD = "caf\udce9"
"""What a file's name that is no UTF-8 is in Python."""


class Helper:
    """An agent that pays, and says what came of it."""

    name = "helper"

    def __init__(self, before=None):
        self.asked = 0
        self._before = before

    async def step(self, conversation):
        """Propose to pay, then answer."""
        self.asked += 1
        if len(conversation) > 1:
            return FinalAnswer(conversation[-1].content)
        if self._before is not None:
            self._before()
        return ToolCall("pay", {"amount": 3})


def asking(helper, paid, **guard):
    """Give a kernel whose model asks the helper once, and then has its answer."""

    @tool()
    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return "paid"

    def model(text):
        if "action" in text:
            return Decision("finish", "enough", answer="the answer")
        return Decision("act", "on", tool="helper", arguments={"task": "pay"})

    rules = [
        {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required"},
        {"id": "all", "match": "always", "decision": "allow"},
    ]
    allow = compile_policy({"version": 1, "rules": rules if "on_approval" in guard else rules[1:]})
    return AgentKernel(
        model,
        guard=ToolGuard(policy=allow, **guard),
        tools=ToolSet([agent_tool(helper, tools=ToolSet([pay]))]),
        store=MemorySessionStore(),
        chain=MemoryRunStore(),
    )


async def test_the_kill_switch_suspends_a_session(desk, look, done):
    """The model is not asked again, and the call that was stopped is made once it may be."""
    token, store, chain = CancelToken(), MemorySessionStore(), MemoryRunStore()
    stopped = desk(look(), guard={"cancel": token}, store=store, chain=chain)
    token.cancel("enough")

    first = await stopped.run()
    again = await stopped.run()

    assert (RunState.SUSPENDED, RunState.SUSPENDED) == (first.state, again.state)
    assert (1, []) == (len(stopped.read), stopped.ran)
    other = desk(done, store=store, chain=chain)
    assert (await other.run()).succeeded
    assert [("look", "a")] == other.ran
    assert "observation: saw a" in other.read[0]


async def test_the_kill_switch_suspends_a_session_whose_tool_is_an_agent():
    """The agent inside asks its model no more; with another kernel it goes on where it was."""
    token, paid = CancelToken(), []
    helper = Helper(lambda: token.cancel("enough"))
    kernel = asking(helper, paid, cancel=token)
    await kernel.create_session(session_id="s", tenant="t", user_id="ana", goal="pay")

    stopped = await kernel.run("s")
    assert (RunState.SUSPENDED, 1, []) == (stopped.state, helper.asked, paid)
    kernel._guard = asking(helper, paid)._guard
    result = await kernel.run("s")

    assert (True, 2, [3]) == (result.succeeded, helper.asked, paid)


async def test_what_waits_inside_of_a_tool_is_said():
    """The id of what an agent inside of a tool waits for is that of its call in the ledger."""
    paid = []
    kernel = asking(Helper(), paid, on_approval=pause_approval(MemoryLedger()))
    await kernel.create_session(session_id="s", tenant="t", user_id="ana", goal="pay")

    waiting = await kernel.run("s")
    result = await kernel.run("s", answers={waiting.pending: ApprovalDecision(True, "bo")})

    assert RunState.WAITING_INPUT is waiting.state
    assert (True, [3]) == (result.succeeded, paid)


@pytest.mark.parametrize("fails", [False, True])
async def test_text_that_no_store_takes_is_told_escaped(desk, propose, done, fails):
    """The body has run, so that what it said is kept, and nothing is uncertain."""
    d = desk(propose("name"), done)
    ran = []

    @tool()
    def name() -> str:
        """Give a file's name."""
        ran.append("name")
        if fails:
            raise OSError(ODD)
        return ODD

    d.kernel._tools = ToolSet([name])

    result = await d.run()

    assert (True, ["name"]) == (result.succeeded, ran)
    assert "caf\\udce9" in d.read[1]


async def test_a_model_may_say_what_no_store_takes(desk):
    """Its words are kept escaped, also where they are the answer."""
    d = desk(Decision("finish", ODD, answer=ODD))

    assert "caf\\udce9" == (await d.run()).answer


async def test_a_summary_that_no_store_takes_is_kept_escaped(desk, look, done):
    """The session goes on with it."""
    moves = [look("x" * 80) for _ in range(4)]
    d = desk(*moves, done, scratchpad_max_tokens=60, summarize=lambda steps: ODD)

    result = await d.run()

    assert (True, True) == (result.succeeded, result.compactions > 0)
    assert "caf\\udce9" in d.read[-1]


async def test_a_session_is_not_named_as_a_nested_run(desk):
    """Its chain could be that of another session's call."""
    with pytest.raises(ValueError, match="/nested/"):
        await desk().create("s/nested/0.0")


async def test_a_run_that_is_interrupted_has_its_end_on_the_record(desk, look):
    """What ended it is said, whether the task was cancelled or the model failed."""
    cancelled, failed = desk(asyncio.CancelledError()), desk(look(), OSError("down"))

    with pytest.raises(asyncio.CancelledError):
        await cancelled.run()
    with pytest.raises(OSError, match="down"):
        await failed.run()

    for d, error in ((cancelled, "CancelledError"), (failed, "OSError: down")):
        last = d.events[-1]
        assert ("session.run_ended", error) == (last.kind, last.body["error"])
        assert "planning" == last.body["state"]


async def test_an_interruption_stands_where_its_event_fails(desk):
    """A required sink that is down does not take the place of what was raised."""

    def refuse(event):
        if event.kind == "session.run_ended":
            raise OSError("full")

    d = desk(asyncio.CancelledError())
    policy = compile_policy({"version": 1, "rules": []})
    d.kernel._guard = ToolGuard(policy=policy, sinks=[required_sink(refuse)])

    with pytest.raises(asyncio.CancelledError):
        await d.run()


async def test_a_body_does_not_begin_after_an_interruption(desk, propose):
    """A thread that comes late finds the run over."""
    held, go_on = asyncio.Event(), asyncio.Event()

    class Holding(MemoryRunStore):
        async def append(self, record):
            if record.kind == "step.intent":
                held.set()
                await go_on.wait()
            await super().append(record)

    d = desk(propose("fail"), chain=Holding())
    run = asyncio.ensure_future(d.run())
    await held.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    go_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("adjudge"):
            await asyncio.to_thread(thread.join)

    assert [] == d.ran


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


async def test_a_chain_that_cannot_say_what_failed_stops_the_worker(desk, look):
    """A failure is one, whatever it says of itself."""

    class Failing(MemoryRunStore):
        async def append(self, record):
            if record.kind == "step.intent":
                raise Mute
            await super().append(record)

    d = desk(look(), chain=Failing())

    with pytest.raises(StoreError, match="Mute"):
        await d.run()
    assert ([], 1) == (d.ran, len(d.read))


@pytest.mark.parametrize("kind", ["session.started", "step.decided", "step.intent"])
async def test_a_cancellation_passes_the_chain(desk, look, kind):
    """It is no failure of the store, and ends the run as what it is."""

    class Cancelled(MemoryRunStore):
        async def append(self, record):
            if record.kind == kind:
                raise asyncio.CancelledError
            await super().append(record)

    d = desk(look(), chain=Cancelled())

    with pytest.raises(asyncio.CancelledError):
        await d.run()
    assert [] == d.ran
