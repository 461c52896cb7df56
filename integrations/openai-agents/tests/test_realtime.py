"""Realtime sessions: the SDK's own session, on a transport that says what a script says."""

import asyncio
import sys
from pathlib import Path

import pytest
from agents import FunctionTool, RunContextWrapper, function_tool
from agents.mcp import MCPServerStdio
from agents.realtime import (
    RealtimeAgent,
    RealtimeModel,
    RealtimeModelSendToolOutput,
    RealtimeModelToolCallEvent,
    RealtimeRunner,
    realtime_handoff,
)
from agents.tool_context import ToolContext
from pydantic import BaseModel

from adjudge import (
    ApprovalDecision,
    CallContext,
    GovernError,
    Principal,
    SQLiteLedger,
    pause_approval,
)
from adjudge_openai_agents import HandoffDenied, govern, pending, resume_realtime

DENIED = "[denied] not here"


class Transport(RealtimeModel):
    """A model on a wire of its own: each message from the user makes it call the next tool."""

    def __init__(self, *calls: tuple[str, str]) -> None:
        self._calls = list(enumerate(calls))
        self._listeners = []
        self.settings = []
        self.outputs = []
        self.answered = asyncio.Event()

    async def connect(self, options):
        """Keep what the session offers."""
        self.settings.append(options["initial_model_settings"])

    def add_listener(self, listener):
        """Add the session."""
        self._listeners.append(listener)

    def remove_listener(self, listener):
        """Remove the session."""
        self._listeners.remove(listener)

    async def send_event(self, event):
        """Keep what a tool gave, and what the session offers from now on."""
        if isinstance(event, RealtimeModelSendToolOutput):
            self.outputs.append(event.output)
            self.answered.set()
        if hasattr(event, "session_settings"):
            self.settings.append(event.session_settings)

    async def close(self):
        """Close nothing."""

    async def call_next(self):
        """Propose the next call."""
        number, (tool, text) = self._calls.pop(0)
        event = RealtimeModelToolCallEvent(name=tool, call_id=f"call_{number}", arguments=text)
        for listener in tuple(self._listeners):
            await listener.on_event(event)


def run(agent, *calls, context=None, **config):
    """Run a session in which the model makes the calls; give its transport."""

    async def session():
        transport = Transport(*calls)
        # With calls in order an exception reaches whoever delivers the event.
        runner = RealtimeRunner(
            agent, model=transport, config={"async_tool_calls": False, **config}
        )
        async with await runner.run(context=context):
            for _ in calls:
                await transport.call_next()
        return transport

    return asyncio.run(session())


async def _approval_event(session):
    async for event in session:
        if event.type == "tool_approval_required":
            return event
    raise AssertionError("the session ended without asking")


@pytest.fixture
def ran():
    """Where the bodies leave their trace."""
    return []


@pytest.fixture
def walk(ran):
    """A tool."""

    @function_tool
    def walk(path: str = "/etc") -> str:
        """Walk somewhere."""
        ran.append(path)
        return "walked"

    return walk


def rule(tool, decision, **more):
    """Make a rule for a tool."""
    return {"id": "r", "match": {"tool": tool}, "decision": decision, **more}


class TestTools:
    def test_an_allowed_one_runs(self, walk, guard_of, ran, record):
        """The body runs, the model gets its result, and the record has the call."""
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard_of())

        assert ["walked"] == run(agent, ("walk", '{"path": "/tmp"}')).outputs
        assert ["/tmp"] == ran
        assert ["step.proposed", "policy.evaluated", "action.completed"] == record.kinds
        assert "call_0" == record.bodies("step.proposed")[0]["call_id"]

    def test_a_denied_one_does_not(self, walk, guard_of, ran):
        """The model is told why, and goes on; the arguments judged have the defaults."""
        denial = {
            "id": "r",
            "match": {"tool": "walk", "args.path": "/etc"},
            "decision": "deny",
            "reason": "not here",
        }
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard_of(denial))

        assert [DENIED, "walked"] == run(
            agent, ("walk", "{}"), ("walk", '{"path": "/tmp"}')
        ).outputs
        assert ["/tmp"] == ran

    def test_a_transform_rewrites_what_runs(self, walk, guard_of, ran):
        """Law 5: the body gets the rewritten arguments."""
        change = {"path": "args.path", "set": "/tmp"}
        agent = RealtimeAgent(name="a", tools=[walk])

        run(govern(agent, guard_of(rule("walk", "transform", transform=change))), ("walk", "{}"))

        assert ["/tmp"] == ran

    def test_a_dry_run_shows_the_shadow(self, walk, guard_of, ran):
        """The model gets the preview, and nothing runs."""
        guard = guard_of(rule("walk", "dry_run"), shadows={"walk": lambda path: f"to {path}"})
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard)

        assert ['[dry_run] not executed; preview: "to /etc"'] == run(agent, ("walk", "{}")).outputs
        assert [] == ran

    @pytest.mark.parametrize(("granted", "said"), [(True, "walked"), (False, "[denied] ")])
    def test_approval_is_asked_for(self, walk, guard_of, ran, granted, said):
        """A handler is asked while the session waits."""

        async def answer(_request):
            return ApprovalDecision(granted=granted, approver="ana")

        guard = guard_of(rule("walk", "approve_required"), on_approval=answer)
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard)

        (output,) = run(agent, ("walk", "{}")).outputs

        assert output.startswith(said)
        assert granted == bool(ran)

    @pytest.mark.parametrize(("granted", "said"), [(True, "walked"), (False, "[denied] ")])
    def test_a_session_waits_for_an_answer(self, walk, guard_of, ran, tmp_path, granted, said):
        """The session says that a call waits, and goes on with an answer that the ledger has."""
        ledger = SQLiteLedger(tmp_path / "ledger.db")
        guard = guard_of(rule("walk", "approve_required"), on_approval=pause_approval(ledger))
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard)

        async def session():
            transport = Transport(("walk", "{}"))
            runner = RealtimeRunner(agent, model=transport, config={"async_tool_calls": False})
            async with await runner.run() as live:
                await transport.call_next()
                event = await _approval_event(live)
                [waits] = pending(event)
                answer = ApprovalDecision(granted, "ana")
                await resume_realtime(agent, live, {waits.id: answer})
            return waits, transport.outputs

        waits, (output,) = asyncio.run(session())

        assert dict(waits.decision.effective_args) == {"path": "/etc"}
        assert output.startswith(said)
        assert granted == bool(ran)

    def test_the_sessions_own_approval_alone_grants_nothing(self, walk, guard_of, ran, tmp_path):
        """Law 4: what the policy asks about is not the session's to approve."""
        ledger = SQLiteLedger(tmp_path / "ledger.db")
        guard = guard_of(rule("walk", "approve_required"), on_approval=pause_approval(ledger))
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard)

        async def session():
            transport = Transport(("walk", "{}"))
            runner = RealtimeRunner(agent, model=transport, config={"async_tool_calls": False})
            async with await runner.run() as live:
                await transport.call_next()
                await live.approve_tool_call("call_0")
            return transport.outputs

        assert asyncio.run(session())[0].startswith("[denied] ")
        assert [] == ran

    def test_calls_that_run_beside_the_session_are_governed(self, walk, guard_of, ran):
        """Law 3: so they are where the session does not wait for them, as it does by default."""
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard_of(rest="deny"))

        async def session():
            transport = Transport(("walk", "{}"))
            runner = RealtimeRunner(agent, model=transport)
            async with await runner.run():
                await transport.call_next()
                await asyncio.wait_for(transport.answered.wait(), 10)
            return transport.outputs

        assert ["[denied] not permitted by policy"] == asyncio.run(session())
        assert [] == ran

    def test_the_caller_is_asked_for(self, walk, guard_of, ran):
        """Clause 26: `context=` gets the run context of the session."""

        def who(context: RunContextWrapper) -> CallContext:
            return CallContext(Principal("user", context.context))

        allowed = {"id": "r", "match": {"context.principal.id": "ana"}, "decision": "allow"}
        agent = RealtimeAgent(name="a", tools=[walk])
        govern(agent, guard_of(allowed, rest="deny"), context=who)

        assert ["walked"] == run(agent, ("walk", "{}"), context="ana").outputs
        assert run(agent, ("walk", "{}"), context="bo").outputs[0].startswith("[denied] ")

    def test_a_tool_that_an_agent_gets_later_is_governed(self, walk, guard_of, ran):
        """Law 3: a session asks its agent when it starts."""
        agent = govern(RealtimeAgent(name="a"), guard_of(rest="deny"))
        agent.tools.append(walk)

        assert run(agent.clone(), ("walk", "{}")).outputs[0].startswith("[denied] ")
        assert [] == ran

    def test_an_mcp_servers_tools_are_governed(self, guard_of, tmp_path):
        """A tool of a local MCP server is judged under its server's name as namespace."""
        log = tmp_path / "ran.txt"
        log.touch()
        denial = {
            "id": "r",
            "match": {"tool": "erase", "tool.namespace": "notes", "args.hard": True},
            "decision": "deny",
            "reason": "not here",
        }

        async def session():
            script = str(Path(__file__).with_name("mcp_notes.py"))
            params = {"command": sys.executable, "args": [script, str(log)]}
            async with MCPServerStdio(params, name="notes") as server:
                agent = govern(RealtimeAgent(name="a", mcp_servers=[server]), guard_of(denial))
                transport = Transport(
                    ("erase", '{"name": "plan", "hard": true}'), ("erase", '{"name": "plan"}')
                )
                runner = RealtimeRunner(agent, model=transport, config={"async_tool_calls": False})
                async with await runner.run():
                    await transport.call_next()
                    await transport.call_next()
                return transport.outputs

        denied, erased = asyncio.run(session())

        assert DENIED == denied
        assert "erased plan" in erased
        assert "erase plan False\n" == log.read_text()

    def test_tools_in_the_settings_of_a_session_are_governed_as_a_list(self, walk, guard_of, ran):
        """What a session is given past its agent is governed before it is given."""
        agent = govern(RealtimeAgent(name="a"), guard_of())

        async def session():
            transport = Transport(("walk", "{}"))
            settings = {"tools": govern([walk], guard_of(rest="deny"))}
            runner = RealtimeRunner(agent, model=transport, config={"async_tool_calls": False})
            async with await runner.run(model_config={"initial_model_settings": settings}):
                await transport.call_next()
            return transport.outputs

        assert ["[denied] not permitted by policy"] == asyncio.run(session())
        assert [] == ran

    def test_an_approval_of_its_own_opens_no_way_round(self, walk, guard_of, ran):
        """Law 3: whoever approves what a tool wants approved, the policy has its say."""
        walk.needs_approval = True
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard_of(rest="deny"))

        async def session():
            transport = Transport(("walk", "{}"))
            runner = RealtimeRunner(agent, model=transport, config={"async_tool_calls": False})
            async with await runner.run() as opened:
                await transport.call_next()
                before = list(transport.outputs)
                await opened.approve_tool_call("call_0")
            return before, transport.outputs

        assert ([], ["[denied] not permitted by policy"]) == asyncio.run(session())
        assert [] == ran

    def test_an_agent_that_a_session_is_given_later_has_its_guard(self, walk, guard_of, ran):
        """Law 3: a governed agent is governed in whichever session."""
        later = govern(RealtimeAgent(name="b", tools=[walk]), guard_of(rest="deny"))

        async def session():
            transport = Transport(("walk", "{}"))
            runner = RealtimeRunner(
                RealtimeAgent(name="a"), model=transport, config={"async_tool_calls": False}
            )
            async with await runner.run() as opened:
                await opened.update_agent(later)
                await transport.call_next()
            return transport.outputs

        assert ["[denied] not permitted by policy"] == asyncio.run(session())
        assert [] == ran


class TestTransparency:
    def test_a_session_in_which_all_is_allowed_is_the_session_ungoverned(self, walk, guard_of):
        """Law 1: the same tools are offered, and the same answers given."""

        def outcome(governing):
            other = RealtimeAgent(name="b", tools=[walk], instructions="Be b.")
            agent = RealtimeAgent(name="a", tools=[walk], handoffs=[other], instructions="Be a.")
            transport = run(
                governing(agent), ("walk", '{"path": 1}'), ("transfer_to_b", "{}"), ("walk", "{}")
            )
            offered = [
                [
                    (tool.name, tool.description, tool.params_json_schema)
                    for tool in settings["tools"]
                ]
                + [
                    (item.tool_name, item.tool_description, item.input_json_schema)
                    for item in settings["handoffs"]
                ]
                for settings in transport.settings
            ]
            instructions = [settings["instructions"] for settings in transport.settings]
            return offered, instructions, transport.outputs

        assert outcome(lambda agent: agent) == outcome(lambda agent: govern(agent, guard_of()))


class Ticket(BaseModel):
    reason: str


class TestHandoffs:
    def test_an_allowed_one_leads_to_a_governed_agent(self, walk, guard_of, ran):
        """Law 3: the session goes on with an agent whose tools are governed."""
        other = RealtimeAgent(name="b", tools=[walk])
        agent = govern(RealtimeAgent(name="a", handoffs=[other]), guard_of(rule("walk", "deny")))

        outputs = run(agent, ("transfer_to_b", "{}"), ("walk", "{}")).outputs

        assert ['{"assistant": "b"}', "[denied] not permitted by policy"] == outputs
        assert [] == ran

    @pytest.mark.parametrize("make", [lambda agent: agent, realtime_handoff], ids=["plain", "made"])
    def test_a_denied_one_is_an_error_of_the_session(self, walk, guard_of, make):
        """The SDK has no value by which to refuse it; the agent stays the same."""
        other = RealtimeAgent(name="b", tools=[walk])
        agent = RealtimeAgent(name="a", handoffs=[make(other)])
        govern(agent, guard_of(rule("transfer_to_b", "deny", reason="not here")))

        with pytest.raises(HandoffDenied, match="not here"):
            run(agent, ("transfer_to_b", "{}"))

    def test_a_denial_beside_the_session_reaches_who_reads_its_events(self, guard_of):
        """By default calls run beside the session, and their exception ends the reading."""
        agent = RealtimeAgent(name="a", handoffs=[RealtimeAgent(name="b")])
        govern(agent, guard_of(rest="deny"))

        async def session():
            transport = Transport(("transfer_to_b", "{}"))
            runner = RealtimeRunner(agent, model=transport)
            async with await runner.run() as opened:
                await transport.call_next()
                async for _ in opened:
                    pass

        with pytest.raises(HandoffDenied):
            asyncio.run(asyncio.wait_for(session(), 10))

    def test_its_arguments_are_judged_and_rewritten(self, guard_of):
        """Law 5: the callback gets the rewritten input."""
        called = []
        item = realtime_handoff(
            RealtimeAgent(name="b"),
            on_handoff=lambda _context, ticket: called.append(ticket),
            input_type=Ticket,
        )
        change = {
            "id": "r",
            "match": {"tool": "transfer_to_b", "args.reason": "refund"},
            "decision": "transform",
            "transform": {"path": "args.reason", "set": "help"},
        }
        agent = govern(RealtimeAgent(name="a", handoffs=[item]), guard_of(change))

        run(agent, ("transfer_to_b", '{"reason": "refund"}'))

        assert [Ticket(reason="help")] == called

    def test_one_that_dynamic_instructions_add_is_governed(self, guard_of):
        """Law 3: a session reads instructions, tools and handoffs at once."""
        other = RealtimeAgent(name="b")

        def instruct(_context, agent) -> str:
            if other not in agent.handoffs:
                agent.handoffs.append(other)
            return "Be kind."

        agent = govern(RealtimeAgent(name="a", instructions=instruct), guard_of(rest="deny"))

        with pytest.raises(HandoffDenied):
            run(agent, ("transfer_to_b", "{}"))
        assert RealtimeAgent is not type(other)

    def test_one_that_an_agent_gets_later_is_governed(self, guard_of):
        """Law 3: so it is where the session has its handoffs before its instructions."""

        async def instruct(_context, _agent) -> str:
            await asyncio.sleep(0)  # whoever runs beside it comes first
            return "Be kind."

        agent = govern(RealtimeAgent(name="a", instructions=instruct), guard_of(rest="deny"))
        agent.handoffs.append(RealtimeAgent(name="b"))

        with pytest.raises(HandoffDenied):
            run(agent, ("transfer_to_b", "{}"))


class TestGoverning:
    def test_it_is_governed_in_place(self, walk, guard_of):
        """References that others hold stay good, and the class keeps its name."""
        agent = RealtimeAgent(name="a", tools=[walk])

        assert agent is govern(agent, guard_of())
        assert isinstance(agent, RealtimeAgent)
        assert "RealtimeAgent" == type(agent).__name__
        assert not hasattr(agent, "get_prompt")

    def test_another_guard_is_an_error(self, guard_of):
        """An agent has one guard."""
        agent = govern(RealtimeAgent(name="a"), guard_of())

        with pytest.raises(GovernError):
            govern(agent, guard_of())
        with pytest.raises(GovernError):
            govern(RealtimeAgent(name="b", handoffs=[agent]), guard_of())

    def test_agents_in_a_circle_are_governed_once(self, guard_of):
        """Agents may hand off to each other."""
        one, two = RealtimeAgent(name="one"), RealtimeAgent(name="two")
        one.handoffs, two.handoffs = [two], [one]

        govern(one, guard_of())

        assert RealtimeAgent not in (type(one), type(two))

    def test_what_it_answers_is_governed(self, walk, guard_of, ran):
        """A governed tool object that is called by an application meets the guard."""
        agent = govern(RealtimeAgent(name="a", tools=[walk]), guard_of(rest="deny"))
        context = ToolContext(None, tool_name="walk", tool_call_id="c", tool_arguments="{}")

        async def call() -> str:
            (tool,) = await agent.get_all_tools(RunContextWrapper(None))
            assert isinstance(tool, FunctionTool)
            return await tool.on_invoke_tool(context, "{}")

        assert asyncio.run(call()).startswith("[denied] ")
        assert [] == ran
