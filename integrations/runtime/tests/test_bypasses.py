"""Every way to a body that the reference loop offers, driven under a policy that permits little.

`test_inventory.py` has the list of the package's names, which notices a new way.
"""

import asyncio
import copy
import dataclasses

import pytest

from adjudge import (
    AnswerError,
    ApprovalDecision,
    MemoryRunStore,
    MemorySessionStore,
    SQLiteLedger,
    ToolGuard,
    ToolSet,
    compile_policy,
    inline_executor,
    pause_approval,
    tool,
)
from adjudge_runtime import (
    FinalAnswer,
    Fork,
    GraphNode,
    ToolCall,
    ToolCalls,
    agent_tool,
    kernel,
    run_agent,
    run_graph,
)

NESTED = {"id": "nested", "match": {"tool.in": ["ask", "look"]}, "decision": "allow"}
REST = {"id": "rest", "match": "always", "decision": "deny", "reason": "not here"}
NEVER = compile_policy({"version": 1, "rules": [NESTED, REST]})
ALWAYS = compile_policy({"version": 1, "defaults": {"on_no_match": "allow"}})
ASKS = compile_policy({"version": 1, "defaults": {"on_no_match": "approve_required"}})
DENIED = "[denied] not here"
WIPE = ToolCall("wipe", "{}", "1")
SCRUB = ToolCall("scrub", '{"disk": "b"}', "2")
LOOK = ToolCall("look", "{}", "3")
DONE = FinalAnswer("done")


class Died(BaseException):
    """The worker is gone; nothing handles it."""


class Script:
    """An agent that proposes one action after the other, or dies, and keeps what it was told."""

    def __init__(self, *actions, name="script"):
        self.actions, self.name, self.said = (*actions, DONE), name, []

    async def step(self, conversation):
        """Propose the next action."""
        self.said = [each.content for each in conversation if each.role == "tool"]
        action = self.actions[sum(each.role == "assistant" for each in conversation)]
        if isinstance(action, Died):
            raise action
        return action

    async def stream(self, conversation, on_token):
        """Propose the next action, with a word about it."""
        on_token("Well.")
        return await self.step(conversation)


@pytest.fixture
def ran():
    """Where bodies and previews leave their trace."""
    return []


@pytest.fixture
def tools(ran):
    """Two tools that may not run, one of them blocking, and one that may."""

    @tool()
    async def wipe(disk: str = "a") -> str:
        """Wipe a disk."""
        ran.append(disk)
        return "wiped"

    @tool()
    def scrub(disk: str = "a") -> str:
        """Wipe a disk, from plain code."""
        ran.append(disk)
        return "scrubbed"

    @tool()
    def look() -> str:
        """Look."""
        return "seen"

    return ToolSet([wipe, scrub, look])


@pytest.fixture
def governing(ran):
    """What governs a run, with previews that a denial does not show either."""
    return {"policy": NEVER, "shadows": {"wipe": ran.append, "scrub": ran.append}}


@pytest.fixture
def run(tools, governing):
    """Give what runs an agent under the policy that permits next to nothing."""

    async def run(agent, **options):
        return await run_agent(agent, "Go.", **{"tools": tools, **governing, **options})

    return run


@pytest.fixture
def governed_node(tools):
    """Give what makes a node of an agent that wants to wipe."""
    return lambda: GraphNode(Script(WIPE), tools, NEVER)


@pytest.mark.parametrize("call", [WIPE, SCRUB, ToolCall("wipe", {"disk": "c"})])
async def test_async(call, run, ran):
    """`run_agent` with a policy goes through the guard, to bodies of both kinds."""
    agent = Script(call)

    await run(agent)

    assert ([DENIED], []) == (agent.said, ran)


async def test_guard(tools, governing, ran):
    """`run_agent` with a guard of the caller's goes through that one."""
    agent = Script(WIPE, SCRUB)

    await run_agent(agent, "Go.", tools=tools, guard=ToolGuard(**governing))

    assert ([DENIED] * 2, []) == (agent.said, ran)


async def test_stream(run, ran):
    """A run whose agent streams goes through the guard."""
    agent, heard = Script(WIPE), []

    await run(agent, on_token=heard.append)

    assert ([DENIED], [], ["Well."] * 2) == (agent.said, ran, heard)


async def test_parallel(run, ran):
    """Calls of one step go through the guard each, and so do runs at the same time."""
    agents = [Script(ToolCalls((WIPE, SCRUB))) for _ in range(3)]

    await asyncio.gather(*(run(agent) for agent in agents))

    assert ([[DENIED] * 2] * 3, []) == ([agent.said for agent in agents], ran)


async def test_denied_call_that_is_made_again(run, ran):
    """A model that insists is denied each time."""
    agent = Script(WIPE, WIPE, WIPE)

    await run(agent)

    assert ([DENIED] * 3, []) == (agent.said, ran)


@pytest.mark.parametrize("how", ["inline", "executor"])
async def test_body_that_was_lost(how, run, tools, ran):
    """A call whose worker died in the body is judged again in the next attempt, and not run."""

    @tool()
    async def wipe() -> None:
        """Begin to wipe, and die."""
        ran.append("begun")
        raise Died

    kept = {"store": MemoryRunStore(), "run_id": "r"}
    agent = Script(WIPE)
    with pytest.raises(Died):
        await run(agent, tools=ToolSet([wipe]), policy=ALWAYS, **kept)
    executor = inline_executor() if how == "executor" else None

    result = await run(agent, executor=executor, **kept)

    assert ("", [DENIED], ["begun"]) == (result.code, agent.said, ran)


async def test_kept_result(run, ran):
    """A resumed run gives again what its journal kept, and goes to no body for it."""
    kept = {"store": MemoryRunStore(), "run_id": "r"}
    with pytest.raises(Died):
        await run(Script(WIPE, Died()), policy=ALWAYS, **kept)
    agent = Script(WIPE)

    await run(agent, **kept)

    assert (["wiped"], ["a"]) == (agent.said, ran)


async def test_resumed_run(run, ran):
    """What a resumed run proposes after the results that it has goes through the guard."""
    kept = {"store": MemoryRunStore(), "run_id": "r"}
    with pytest.raises(Died):
        await run(Script(LOOK, Died()), policy=ALWAYS, **kept)
    agent = Script(LOOK, WIPE, SCRUB)

    await run(agent, **kept)

    assert (["seen", DENIED, DENIED], []) == (agent.said, ran)


async def test_decided_call(run, ran):
    """A call that the journal has, and whose worker died before its body, is judged again."""
    kept = {"store": MemoryRunStore(), "run_id": "r"}
    agent = Script(WIPE)

    def die() -> None:
        raise Died

    with pytest.raises(Died):
        await run(agent, policy=ALWAYS, context=die, **kept)

    await run(agent, **kept)

    assert ([DENIED], []) == (agent.said, ran)


async def _paused(run, path, agent):
    """Run an agent to a pause, and give what to go on with and what waits."""
    kept = {"store": MemoryRunStore(), "run_id": "r"}
    kept["on_approval"] = pause_approval(SQLiteLedger(path / "ledger.db"))
    result = await run(agent, policy=ASKS, **kept)
    assert "paused" == result.code
    return kept, [each.id for each in result.pending]


async def test_answers_that_a_person_gave_earlier(run, ran, tmp_path):
    """A granted call that the policy denies by now does not run."""
    agent = Script(WIPE)
    kept, pending = await _paused(run, tmp_path, agent)

    await run(agent, answers={each: ApprovalDecision(True, "ana") for each in pending}, **kept)

    assert ([DENIED], []) == (agent.said, ran)


async def test_answers_to_nothing(run, ran, tmp_path):
    """An answer that is made up is an error, and grants nothing."""
    agent = Script(WIPE)
    kept, _ = await _paused(run, tmp_path, agent)

    with pytest.raises(AnswerError):
        await run(agent, policy=ASKS, answers={"x": ApprovalDecision(True, "eve")}, **kept)

    assert [] == ran


async def test_executor(run, ran):
    """An executor gets no call that was denied."""
    agent = Script(WIPE, SCRUB, LOOK)
    own, executed = inline_executor(), []

    async def execute(request, definition):
        executed.append(request.tool)
        return await own(request, definition)

    await run(agent, executor=execute)

    assert ([DENIED, DENIED, "seen"], ["look"], []) == (agent.said, executed, ran)


async def test_compressor(run, ran):
    """A compressor, which is handed the tool, is not asked about a call that was denied."""
    agent, asked = Script(WIPE, LOOK), []

    def compress(definition, text):
        asked.append(definition.name)
        return "less"

    await run(agent, compressor=compress)

    assert ([DENIED, "less"], ["look"], []) == (agent.said, asked, ran)


async def test_direct_call(tools, ran):
    """An agent's tool has no body outside of a governed run."""
    inner = Script(WIPE, name="ask")

    with pytest.raises(RuntimeError, match="inside of run_agent alone"):
        await agent_tool(inner, tools=tools).fn("Go.")

    assert ([], []) == (inner.said, ran)


async def test_copied_tool(run, tools, ran):
    """Copies of tools, of a tool set and of an agent's tool are governed."""
    inner = Script(WIPE, name="ask")
    asks = copy.copy(agent_tool(inner, tools=copy.copy(tools)))
    erase = dataclasses.replace(tools.get("wipe"), name="erase")
    agent = Script(WIPE, ToolCall("erase", "{}"), ToolCall("ask", {"task": "Go."}))

    await run(agent, tools=ToolSet([*tools, erase, dataclasses.replace(asks)]))

    assert ([DENIED, DENIED, "done"], [DENIED], []) == (agent.said, inner.said, ran)


async def test_added_later(run, tools, ran):
    """A tool is in the set from the beginning and governed, or the run does not know it."""
    few = ToolSet([tools.get("look")])
    unknown, known = Script(WIPE), Script(WIPE)

    await run(unknown, tools=few, policy=ALWAYS)
    await run(known, tools=few.with_tool(tools.get("wipe")))

    assert "[denied] unknown tool: 'wipe'" == unknown.said[0]
    assert ([DENIED], []) == (known.said, ran)


@pytest.mark.parametrize("kept", [False, True])
async def test_nested_agent(kept, run, tools, ran):
    """An agent within an agent within an agent is governed by the guard of the run."""
    inner = Script(WIPE, ToolCalls((WIPE, SCRUB)), name="ask")
    middle = Script(SCRUB, ToolCall("ask", {"task": "Go."}), name="ask")
    outer = Script(ToolCall("ask", {"task": "Go."}), WIPE)
    within = ToolSet([*tools, agent_tool(inner, tools=tools)])
    store = {"store": MemoryRunStore(), "run_id": "r"} if kept else {}

    await run(outer, tools=ToolSet([*tools, agent_tool(middle, tools=within)]), **store)

    assert [DENIED] * 3 == inner.said
    assert [DENIED, "done"] == middle.said
    assert (["done", DENIED], []) == (outer.said, ran)


@pytest.mark.parametrize("kept", [False, True])
async def test_nodes(kept, governed_node, ran):
    """`run_graph` has each node governed: the first, the branches of a fork, and the join."""
    nodes = {name: governed_node() for name in ("plan", "left", "right", "review")}
    ways = {"plan": Fork(("left", "right"), "review")}
    store = {"store": MemoryRunStore(), "run_id": "r"} if kept else {}

    result = await run_graph(
        nodes,
        "Go.",
        router=lambda outcome: ways.get(outcome.node),
        start="plan",
        max_transitions=9,
        **store,
    )

    assert [*nodes] == [each.node for each in result.path]
    assert [[DENIED]] * 4 == [node.agent.said for node in nodes.values()]
    assert [] == ran


@pytest.mark.parametrize("executor", [None, inline_executor()])
async def test_kernel(executor, tools, governing, ran):
    """A session's calls go through the guard, in each of its runs."""
    moves = [kernel.Decision("act", "on", tool=name, arguments="{}") for name in ("wipe", "scrub")]
    moves.append(kernel.Decision("finish", "enough", answer="done"))
    stop = [False, True]
    desk = kernel.AgentKernel(
        lambda text: moves.pop(0),
        guard=ToolGuard(**governing),
        tools=tools,
        store=MemorySessionStore(),
        chain=MemoryRunStore(),
        executor=executor,
    )
    await desk.create_session(session_id="s", tenant="t", user_id="ana", goal="Go.")

    await desk.run("s", suspend_when=lambda: stop.pop(0))
    result = await desk.run("s")

    assert (True, []) == (result.succeeded, ran)
    assert [DENIED] * 2 == [step.error for step in result.steps if step.tool]
