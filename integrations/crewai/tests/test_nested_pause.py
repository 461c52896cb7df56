"""Pauses inside of bodies, and what application code is given again."""

import asyncio

import pytest
from crewai.tools import tool

from adjudge import ApprovalDecision
from adjudge_crewai import RunPaused, govern, resume

ERASE = ("erase", '{"name": "a"}')


def paused_by(run) -> RunPaused:
    """Run until the run waits."""
    with pytest.raises(RunPaused) as caught:
        run()
    return caught.value


def test_a_crews_pause_that_a_body_swallows_comes_out_at_the_end(both, pausing, erase, ran):
    """A tool that takes the pause of a whole crew for an answer does not make it unheard of."""

    def ask(question: str) -> str:
        """Ask the other crew."""
        try:
            return inner.kickoff().raw
        except BaseException:
            return "never mind"

    both.script(a=[("ask", '{"question": "?"}')], b=[ERASE])
    guard = pausing()
    inner = govern(both.crew(both.agent("b", tools=[tool(erase)])), guard)
    paused = paused_by(govern(both.crew(both.agent(tools=[tool(ask)])), guard).kickoff)
    assert ["erase"] == [each.request.tool for each in paused.pending]
    assert [] == ran


@pytest.mark.parametrize("exact", [True, False])
def test_application_code_is_given_the_same_value_or_none(both, pausing, erase, ran, exact):
    """What a body called itself comes back as it was, or is denied; it is never another type."""

    def pair(text: str):
        """Give a pair."""
        ran.append(text)
        return [text, text] if exact else (text, text)

    got = []

    def both_of(text: str) -> str:
        """Make a pair and erase it."""
        got.append(inner.run(text=text))
        return eraser.run(name=text)

    def build():
        return govern(both.crew(both.agent(tools=[tool(both_of)])), guard)

    both.script(a=[("both_of", '{"text": "x"}')])
    guard = pausing()
    inner, eraser = govern(tool(pair), guard), govern(tool(erase), guard)
    paused = paused_by(build().kickoff)
    answers = {each.id: ApprovalDecision(True, "ana") for each in paused.pending}
    resume(build(), paused.state, answers)
    assert ["x", ("x", False)] == ran
    if exact:
        assert [["x", "x"]] * 2 == got
    else:
        assert ("x", "x") == got[0]
        assert got[1].message.startswith("[denied] ")


@pytest.mark.parametrize("inside", ["crew", "tool"])
@pytest.mark.parametrize("error", [None, ValueError("lost")])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_what_a_body_swallowed_runs_once_it_is_approved(
    both, pausing, erase, ran, inside, error, kind
):
    """A body that went on without what it waits for is begun again, not kept as done."""

    def answered() -> str:
        try:
            return inner.kickoff().raw if inside == "crew" else eraser.run(name="a")
        except BaseException:
            if error is not None:
                raise error from None
            return "never mind"

    def ask(question: str) -> str:
        """Ask the other crew."""
        return answered()

    async def ask_later(question: str) -> str:
        """Ask the other crew."""
        return await asyncio.to_thread(answered)

    def build():
        asking = tool("ask")(ask if kind == "def" else ask_later)
        return govern(both.crew(both.agent(tools=[asking])), guard)

    both.script(a=[("ask", '{"question": "?"}')], b=[ERASE])
    guard = pausing()
    eraser = govern(tool(erase), guard)
    inner = govern(both.crew(both.agent("b", tools=[tool(erase)])), guard)
    paused = paused_by(build().kickoff)
    assert "never mind" not in both.said
    assert [] == ran
    inner = govern(both.crew(both.agent("b", tools=[tool(erase)])), guard)
    resume(
        build(), paused.state, {each.id: ApprovalDecision(True, "ana") for each in paused.pending}
    )
    assert [("a", False)] == ran
    assert "never mind" not in both.said


def test_the_pause_of_another_guards_run_is_the_bodys_to_keep(both, pausing, guard_of, erase, ran):
    """A body that keeps the pause of a run under another guard has its own answer to it."""

    def ask(question: str) -> str:
        """Ask the other crew."""
        try:
            return inner.kickoff().raw
        except RunPaused as paused:
            return f"{len(paused.pending)} waits"

    both.script(a=[("ask", '{"question": "?"}')], b=[ERASE])
    inner = govern(both.crew(both.agent("b", tools=[tool(erase)])), pausing())
    govern(both.crew(both.agent(tools=[tool(ask)])), pausing()).kickoff()
    assert ["1 waits"] == both.said
