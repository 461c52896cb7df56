"""Pauses inside of bodies, and what application code is given again."""

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
