"""Who is calling: said once, by the crew, the agent, the tool or the block, and never dropped."""

import asyncio
from contextvars import ContextVar

import pytest
from crewai.tools import BaseTool, tool

from adjudge import CallContext, GovernError, Principal
from adjudge_crewai import adjudge_hooks, govern, governed

ERASE = ("erase", '{"name": "a"}')
ANA = {"id": "ana", "match": {"tool": "erase", "context.principal.id": "ana"}, "decision": "allow"}


def ana(_):
    """Say that Ana calls."""
    return CallContext(principal=Principal("user", "ana"))


def bob(_):
    """Say that Bob calls."""
    return CallContext(principal=Principal("user", "bob"))


@pytest.mark.parametrize("kind", ["function", "class", "decorated"])
def test_a_governed_tool_is_told_later_who_is_calling(guard_of, erase, ran, kind):
    """The same guard with a context binds the tool again; the first copy stays as it is."""

    class Eraser(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str) -> str:
            return erase(name)

    guard = guard_of(ANA, rest="deny")
    kinds = {"function": tool(erase), "class": Eraser(), "decorated": governed(guard)(Eraser)()}
    first = govern(kinds[kind], guard)
    second = govern(first, guard, context=ana)
    first.run(name="x")
    assert [] == ran
    assert "erased a" == second.run(name="a")
    assert second is govern(second, guard)
    assert second is govern(second, guard, context=ana)


def test_a_governed_crew_is_told_later_who_is_calling(both, guard_of, erase, ran):
    """The same guard with a context binds a crew again, with its agents and tools."""
    both.script(a=[ERASE])
    guard = guard_of(ANA, rest="deny")
    crew = govern(both.crew(both.agent(tools=[tool(erase)])), guard)
    govern(crew, guard, context=ana).kickoff()
    crew.agents[0].kickoff("Go.")
    assert [("a", False)] * 2 == ran


@pytest.mark.parametrize("what", ["crew", "agent", "tool", "list"])
def test_two_contexts_are_an_error(stage, guard_of, erase, what):
    """A second answer to who is calling is not dropped without a word."""
    stage.script(a=[])
    agent = stage.agent(tools=[tool(erase)])
    made = {"tool": tool(erase), "list": [tool(erase)], "agent": agent, "crew": stage.crew(agent)}
    guard = guard_of()
    held = govern(made[what], guard, context=ana)
    with pytest.raises(GovernError, match="another context="):
        govern(held, guard, context=bob)


def test_a_tool_of_another_caller_is_an_error_in_a_crew(stage, guard_of, erase):
    """A crew whose context would not hold for one of its tools is refused."""
    stage.script(a=[])
    guard = guard_of()
    made = governed(guard, context=bob)(erase)
    with pytest.raises(GovernError, match="another context="):
        govern(stage.crew(stage.agent(tools=[made])), guard, context=ana)


def test_a_decorated_tool_in_a_crew_knows_the_crews_caller(both, guard_of, erase, ran):
    """A tool that was told nothing is called by whoever the crew says."""
    both.script(a=[ERASE])
    guard = guard_of(ANA, rest="deny")
    made = governed(guard)(erase)
    govern(both.crew(both.agent(tools=[made])), guard, context=ana).kickoff()
    assert [("a", False)] == ran


def test_a_block_says_who_calls_a_crew_that_was_told_nothing(both, guard_of, erase, ran):
    """`adjudge_hooks` around a governed crew says who is calling there."""
    both.script(a=[ERASE])
    guard = guard_of(ANA, rest="deny")
    crew = govern(both.crew(both.agent(tools=[tool(erase)])), guard)
    crew.kickoff()
    assert [] == ran
    with adjudge_hooks(guard, context=ana):
        crew.kickoff()
    assert [("a", False)] == ran


def test_crews_at_once_have_callers_of_their_own(stage, guard_of, ran):
    """Crews that run at once under one guard do not see each other's callers."""
    who: ContextVar[str] = ContextVar("who")

    def note(text: str) -> str:
        """Write a note."""
        ran.append((text, who.get()))
        return text

    def asked(_):
        return CallContext(principal=Principal("user", who.get()))

    guard = guard_of()
    users = [f"u{n}" for n in range(4)]
    stage.script(**{user: [("note", f'{{"text": "{user}"}}')] * 2 for user in users})

    async def one(user: str) -> None:
        who.set(user)
        crew = stage.crew(stage.agent(user, tools=[tool(note)]))
        await govern(crew, guard, context=asked).akickoff()

    async def everybody() -> None:
        await asyncio.gather(*(asyncio.create_task(one(user)) for user in users))

    asyncio.run(everybody())
    assert sorted((user, user) for user in users for _ in range(2)) == sorted(ran)


@pytest.mark.parametrize("outer", ["block", "crew"])
def test_the_innermost_says_who_is_calling(both, guard_of, erase, ran, outer):
    """A block inside of a block or a crew, with a context of its own, is under that alone."""
    guard = guard_of({**ANA, "id": "ask", "match": {"tool": "ask"}}, ANA, rest="deny")

    def ask(question: str) -> str:
        """Ask the other crew."""
        with adjudge_hooks(guard, context=bob):
            return both.crew(both.agent("b", tools=[tool(erase)])).kickoff().raw

    both.script(a=[("ask", '{"question": "?"}')], b=[ERASE])
    if outer == "crew":
        govern(both.crew(both.agent(tools=[tool(ask)])), guard, context=ana).kickoff()
    else:
        with adjudge_hooks(guard, context=ana):
            ask("?")
    assert "b is done." in both.said or outer == "block"
    assert [] == ran


def test_a_stream_that_leaves_its_block_knows_who_is_calling(both, guard_of, erase, ran):
    """A governed crew that was told in a block who calls knows it when its stream is read."""
    both.script(a=[ERASE])
    guard = guard_of(ANA, rest="deny")
    crew = govern(both.crew(both.agent(tools=[tool(erase)]), fields={"stream": True}), guard)
    with adjudge_hooks(guard, context=ana):
        stream = crew.kickoff()
    list(stream)
    assert [("a", False)] == ran
