"""Runs that wait for people: left by an exception, gone on with in a crew that is built anew."""

import asyncio
import json
import sqlite3
import time
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow, start
from crewai.tools import BaseTool, ToolFailure, tool
from pydantic import BaseModel, Field

from adjudge import (
    AnswerError,
    ApprovalDecision,
    EphemeralLedgerWarning,
    GovernError,
    MemoryLedger,
    pause_approval,
)
from adjudge_crewai import (
    PauseInside,
    RunPaused,
    adjudge_hooks,
    aresume,
    govern,
    governed,
    pending,
    reopened,
    resume,
)

YES, NO = ApprovalDecision(True, "ana"), ApprovalDecision(False, "ana", "no")
ERASE, OTHER = ("erase", '{"name": "a"}'), ("erase", '{"name": "b"}')


def paused_by(run) -> RunPaused:
    """Run until the run waits."""
    with pytest.raises(RunPaused) as caught:
        run()
    return caught.value


def saved(paused: RunPaused) -> dict[str, Any]:
    """The state as another process reads it."""
    return json.loads(json.dumps(paused.state))


def all_of(paused: RunPaused, answer=YES) -> dict[str, ApprovalDecision]:
    """One answer to everything that waits."""
    return {each.id: answer for each in paused.pending}


@pytest.fixture
def crew_of(both, erase):
    """Build the crew anew, as another process does."""

    def make(guard, *tools: Any) -> Crew:
        made = [tool(each) for each in (tools or (erase,))]
        return govern(both.crew(both.agent(tools=made)), guard)

    return make


def test_a_run_waits_and_goes_on(both, crew_of, pausing, ran):
    """A call that a person must be asked about waits, and runs once when the run goes on."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    assert [] == ran
    output = resume(crew_of(pausing()), saved(paused), all_of(paused))
    assert ([("a", False)], "a is done.") == (ran, output.raw)


def test_a_refusal_is_told(both, crew_of, pausing, ran, record):
    """A refused call never runs, and the model is told who refused it and why."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    resume(crew_of(pausing()), saved(paused), all_of(paused, NO))
    assert [] == ran
    assert both.said[0].startswith("[denied] approval refused by ana: no")


def test_what_finished_is_not_run_again(both, crew_of, pausing, ran, record, erase):
    """The run that goes on gives the model what earlier calls gave, without running them."""

    def note(text: str) -> Any:
        """Write a note."""
        ran.append(text)
        return {"text": text, "n": [1, 2.5, None]}

    def fail(text: str) -> str:
        """Fail."""
        ran.append(text)
        raise KeyError(text)

    def lose(text: str) -> ToolFailure:
        """Report a failure."""
        ran.append(text)
        return ToolFailure(message="lost", code="E1")

    def odd(text: str) -> Any:
        """Give what JSON lacks."""
        ran.append(text)
        return (text, {text})

    names = ["note", "lose", "odd", "fail"]
    calls = [(name, json.dumps({"text": name})) for name in names]
    both.script(a=[*calls, ERASE])
    tools = (note, lose, odd, fail, erase)
    paused = paused_by(crew_of(pausing(), *tools).kickoff)
    before, ended = list(ran), list(record.ends)
    resume(crew_of(pausing(), *tools), saved(paused), all_of(paused))
    assert [*before, ("a", False)] == ran
    assert [*ended, "action.completed"] == record.ends
    texts = [request.outputs for request in both.requests]
    told = {key: {each[key] for each in texts if key in each} for key in texts[-1]}
    assert {1} == {len(each) for each in told.values()}


def test_a_result_with_a_schema_is_told_as_before(stage, pausing, erase, ran):
    """A result that CrewAI validates is kept so that the model is told the same text."""

    class Note(BaseModel):
        text: str

    def note(text: str) -> Note:
        """Write a note."""
        ran.append(text)
        return Note(text=text)

    def build():
        made = [tool(note), tool(erase)]
        return govern(stage.crew(stage.agent(tools=made)), pausing())

    stage.script(a=[("note", '{"text": "x"}'), ERASE])
    paused = paused_by(build().kickoff)
    resume(build(), saved(paused), all_of(paused))
    assert ["x", ("a", False)] == ran
    assert ['{"text":"x"}', "erased a"] == stage.said


def test_denials_and_previews_are_told_again(both, crew_of, pausing, erase, record, ran):
    """What was denied or previewed before the pause stays so, and is on record once."""

    def note(text: str) -> str:
        """Write a note."""
        return text

    rules = (
        {"id": "x", "match": {"tool": "note", "args.text": "x"}, "decision": "deny"},
        {"id": "y", "match": {"tool": "note", "args.text": "y"}, "decision": "deny"},
    )
    both.script(a=[("note", '{"text": "x"}'), ("note", '{"text": "y"}'), ERASE])
    paused = paused_by(crew_of(pausing(*rules), note, erase).kickoff)
    resume(crew_of(pausing(), note, erase), saved(paused), all_of(paused))
    assert ["action.denied", "action.denied", "action.completed"] == record.ends


def test_the_nth_call_gets_the_nth_result(stage, pausing, ran, erase):
    """Calls that look the same are told apart by their order."""

    def roll(die: str) -> int:
        """Roll a die."""
        ran.append(die)
        return len(ran)

    def build():
        made = [tool(roll), tool(erase)]
        return govern(stage.crew(stage.agent(tools=made)), pausing())

    same = ("roll", '{"die": "d"}')
    stage.script(a=[same, same, ERASE, same])
    paused = paused_by(build().kickoff)
    resume(build(), saved(paused), all_of(paused))
    assert ["d", "d", ("a", False), "d"] == ran
    assert ["1", "2", "erased a", "4"] == stage.said


def test_calls_of_a_turn_wait_together_and_the_rest_runs(stage, pausing, erase, ran):
    """One turn's waiting calls are all asked about, and its other calls run, once."""

    def note(text: str) -> str:
        """Write a note."""
        ran.append(text)
        return text

    def build():
        made = [tool(note), tool(erase)]
        return govern(stage.crew(stage.agent(tools=made)), pausing())

    stage.script(a=[[ERASE, ("note", '{"text": "x"}'), OTHER]])
    paused = paused_by(build().kickoff)
    assert ["x"] == ran
    assert {"a", "b"} == {each.request.args["name"] for each in paused.pending}
    first, second = paused.pending
    again = paused_by(lambda: resume(build(), saved(paused), {first.id: YES}))
    assert [second.id] == [each.id for each in again.pending]
    assert 2 == len(ran)
    resume(build(), saved(again), {second.id: NO})
    assert 2 == len(ran)


def test_a_run_waits_more_than_once(both, crew_of, pausing, ran):
    """A run that waits again goes on again, and nothing that was granted runs twice."""
    both.script(a=[ERASE, OTHER])
    first = paused_by(crew_of(pausing()).kickoff)
    second = paused_by(lambda: resume(crew_of(pausing()), saved(first), all_of(first)))
    assert [("a", False)] == ran
    resume(crew_of(pausing()), saved(second), all_of(second))
    assert [("a", False), ("b", False)] == ran


def test_a_run_that_is_resumed_again_runs_nothing(both, crew_of, pausing, ran, record):
    """The same saved run, resumed a second time, tells its story once more and runs nothing."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    for _ in range(2):
        output = resume(crew_of(pausing()), saved(paused), all_of(paused))
        assert "a is done." == output.raw
    assert [("a", False)] == ran
    assert ["action.completed"] == record.ends


def test_a_call_whose_end_was_lost_is_not_run_again(stage, pausing, ran, erase, record, tmp_path):
    """A call that was begun, and whose process died, is uncertain: denied, and never run again."""

    def note(text: str) -> str:
        """Write a note."""
        ran.append(text)
        return text

    def build():
        made = [tool(note), tool(erase)]
        return govern(stage.crew(stage.agent(tools=made)), pausing())

    stage.script(a=[("note", '{"text": "x"}'), ERASE])
    paused = paused_by(build().kickoff)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
        # The process died between the body and its end in the ledger.
        database.execute(
            "UPDATE adjudge_entries SET state = 'claimed', outcome = NULL, result = NULL"
            " WHERE state = 'finished'"
        )
    database.close()
    resume(build(), saved(paused), all_of(paused))
    assert ["x", ("a", False)] == ran
    told = [text for request in stage.requests for text in request.outputs.values()]
    assert any(text.startswith("[denied] the call was started and") for text in told), told
    assert ["uncertain"] == [each["code"] for each in record.bodies("action.denied")]


def test_a_crew_in_a_tool_waits_with_the_run_around_it(both, pausing, ran, record, erase):
    """A crew that a tool runs leaves the whole run waiting, and goes on inside of it."""

    def build():
        def ask(question: str) -> str:
            """Ask the other crew."""
            ran.append("asked")
            return govern(both.crew(both.agent("b", tools=[tool(erase)])), guard).kickoff().raw

        guard = pausing()
        return govern(both.crew(both.agent(tools=[tool(ask)])), guard)

    both.script(a=[("ask", '{"question": "?"}')], b=[OTHER])
    paused = paused_by(build().kickoff)
    assert ["action.suspended"] == record.ends
    resume(build(), saved(paused), all_of(paused))
    assert ["asked", "asked", ("b", False)] == ran
    assert ["action.suspended", "action.completed", "action.completed"] == record.ends


def test_a_coworker_waits_with_its_boss(both, pausing, erase, ran, record):
    """A delegation leaves the whole run waiting, and is one delegation when it goes on."""

    def build():
        chief = both.agent(allow_delegation=True)
        worker = both.agent("b", tools=[tool(erase)])
        return govern(Crew(agents=[chief, worker], tasks=[both.task(chief)]), pausing())

    work = '{"task": "Erase.", "context": "none", "coworker": "b"}'
    both.script(a=[("delegate_work_to_coworker", work)], b=[ERASE])
    paused = paused_by(build().kickoff)
    resume(build(), saved(paused), all_of(paused))
    assert [("a", False)] == ran
    assert ["action.suspended", "action.completed", "action.completed"] == record.ends


KICKOFFS = {
    "kickoff_async": lambda crew: asyncio.run(crew.kickoff_async()),
    "akickoff": lambda crew: asyncio.run(crew.akickoff()),
    "kickoff_for_each": lambda crew: crew.kickoff_for_each([{"n": "1"}, {"n": "2"}]),
    "kickoff_for_each_async": lambda crew: asyncio.run(crew.kickoff_for_each_async([{"n": "1"}])),
    "akickoff_for_each": lambda crew: asyncio.run(crew.akickoff_for_each([{"n": "1"}])),
}


@pytest.mark.parametrize("way", KICKOFFS)
def test_every_way_to_start_waits_and_goes_on(both, crew_of, pausing, ran, way):
    """However a crew was started, its run is reopened for the same start."""
    both.script(a=[ERASE])
    paused = paused_by(lambda: KICKOFFS[way](crew_of(pausing())))
    while True:
        crew = crew_of(pausing())
        try:
            with reopened(crew, saved(paused), all_of(paused)):
                KICKOFFS[way](crew)
            break
        except RunPaused as again:
            paused = again
    assert [("a", False)] * (2 if way == "kickoff_for_each" else 1) == ran


def test_a_crew_is_resumed_from_a_coroutine(both, crew_of, pausing, ran):
    """`aresume` goes on with `akickoff`."""
    both.script(a=[ERASE])
    paused = paused_by(lambda: asyncio.run(crew_of(pausing()).akickoff()))
    asyncio.run(aresume(crew_of(pausing()), saved(paused), all_of(paused)))
    assert [("a", False)] == ran


def test_an_agent_alone_waits_and_goes_on(both, pausing, erase, ran):
    """An agent without a crew pauses and is resumed as a crew is."""

    def build() -> Agent:
        return govern(both.agent(tools=[tool(erase)]), pausing())

    both.script(a=[ERASE])
    paused = paused_by(lambda: build().kickoff("Go."))
    assert "a is done." == resume(build(), saved(paused), all_of(paused), "Go.").raw
    assert [("a", False)] == ran


def test_a_task_in_a_thread_does_not_hang(stage, pausing, erase, ran):
    """A pause in a task that CrewAI runs in a thread of its own ends the crew's run."""

    def build() -> Crew:
        agent = stage.agent(tools=[tool(erase)])
        return govern(stage.crew(agent, async_execution=True), pausing())

    stage.script(a=[ERASE])
    paused = paused_by(build().kickoff)
    resume(build(), saved(paused), all_of(paused))
    assert [("a", False)] == ran


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_stream_tells_that_the_run_waits(both, crew_of, pausing, ran, kind):
    """Iterating over a streamed run that waits raises what carries the pause."""

    async def awaited(crew):
        async for _ in await crew.akickoff():
            pass

    ways = {"thread": lambda: list(crew.kickoff()), "loop": lambda: asyncio.run(awaited(crew))}
    both.script(a=[ERASE])
    crew = crew_of(pausing())
    crew.stream = True
    with pytest.raises(PauseInside) as caught:
        ways[kind]()
    paused = caught.value.paused
    resume(crew_of(pausing()), saved(paused), all_of(paused))
    assert [("a", False)] == ran


def test_a_flow_waits_and_goes_on(stage, pausing, erase, ran):
    """A flow whose crew pauses is started again in the reopened run."""

    class Notes(Flow):
        @start()
        def begin(self):
            crew = govern(stage.crew(stage.agent(tools=[tool(erase)])), guard)
            return crew.kickoff().raw

    stage.script(a=[ERASE])
    guard = pausing()
    with pytest.raises(RunPaused) as caught, adjudge_hooks(guard):
        Notes().kickoff()
    paused = caught.value
    guard = pausing()
    with reopened(guard, saved(paused), all_of(paused)):
        assert "a is done." == Notes().kickoff()
    assert [("a", False)] == ran


def test_a_pause_that_something_swallows_comes_out_at_the_end(stage, pausing, erase, ran):
    """What takes a pause for an answer does not make the run go on as if nobody had to be asked."""

    def ask(question: str) -> str:
        """Ask the other crew."""
        try:
            return inner.run(name="a")
        except BaseException:
            return "never mind"

    stage.script(a=[("ask", '{"question": "?"}')])
    guard = pausing()
    inner = govern(tool(erase), guard)
    paused = paused_by(govern(stage.crew(stage.agent(tools=[tool(ask)])), guard).kickoff)
    assert ["erase"] == [each.request.tool for each in paused.pending]
    assert [] == ran


def test_a_tool_outside_of_a_governed_run_cannot_wait(both, pausing, erase, ran):
    """A governed tool in a crew that is not governed is denied what only a person may grant."""
    both.script(a=[ERASE])
    made = governed(pausing())(erase)
    both.crew(both.agent(tools=[made])).kickoff()
    assert [] == ran
    assert both.said[0].startswith("[denied] approval is required")


def test_pending_says_what_waits(both, crew_of, pausing):
    """`pending` reads from the ledger what a saved run waits for."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    for target in (crew_of(pausing()), pausing()):
        (found,) = pending(target, saved(paused))
        assert (paused.pending[0].id, {"name": "a"}) == (found.id, dict(found.request.args))
    assert [{"name": "a"}] != [call["args"] for call in paused.state["calls"]]
    assert [{"name": "a", "hard": False}] == [call["args"] for call in paused.state["calls"]]


def test_a_saved_run_that_was_changed_is_refused(both, crew_of, pausing, ran):
    """Whoever answers has seen the arguments that run, or nothing runs."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    for change in (("args", {"name": "c", "hard": False}), ("tool", "note"), ("id", "x")):
        state = saved(paused)
        state["calls"][0] |= [change]
        with pytest.raises(AnswerError):
            resume(crew_of(pausing()), state, all_of(paused))
    assert [] == ran
    resume(crew_of(pausing()), saved(paused), all_of(paused))
    assert [("a", False)] == ran


def test_answers_that_are_none_are_refused(both, crew_of, pausing, ran):
    """Stale, foreign and missing answers grant nothing."""
    both.script(a=[ERASE])
    paused, other = (paused_by(crew_of(pausing()).kickoff) for _ in range(2))
    for answers in ({"x": YES}, all_of(other), {each.id: True for each in paused.pending}):
        with pytest.raises(AnswerError):
            resume(crew_of(pausing()), saved(paused), answers)
    with pytest.raises(AnswerError):
        resume(crew_of(pausing()), {}, all_of(paused))
    with pytest.raises(GovernError):
        resume(both.crew(both.agent()), saved(paused), all_of(paused))
    assert [] == ran


def test_a_run_goes_on_with_what_was_answered_elsewhere(both, crew_of, pausing, ran):
    """Without answers a run waits again, unless the ledger has them by now."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    again = paused_by(lambda: resume(crew_of(pausing()), saved(paused), {}))
    assert (saved(paused), []) == (saved(again), ran)
    pausing().reopen_sync(all_of(paused))
    resume(crew_of(pausing()), saved(paused), dict.fromkeys(all_of(paused)))
    assert [("a", False)] == ran


def test_a_call_that_nobody_answered_is_on_record_once(both, crew_of, pausing, record):
    """A run that waits again asks nobody anew."""
    both.script(a=[ERASE])
    paused = paused_by(crew_of(pausing()).kickoff)
    before = [event.kind for event in record.events]
    paused_by(lambda: resume(crew_of(pausing()), saved(paused), {}))
    assert before == [event.kind for event in record.events]


def test_a_default_that_is_new_each_time_is_no_new_call(stage, pausing, erase, ran, record):
    """A call is found again by what the model sent, whatever else its body gets."""

    class Stamped(BaseModel):
        text: str
        at: float = Field(default_factory=time.perf_counter)

    class Note(BaseTool):
        name: str = "note"
        description: str = "Write a note."
        args_schema: type[BaseModel] = Stamped

        def _run(self, text: str, at: float) -> str:
            ran.append(text)
            return text

    def build():
        return govern(stage.crew(stage.agent(tools=[Note(), tool(erase)])), pausing())

    stage.script(a=[("note", '{"text": "x"}'), ERASE])
    paused = paused_by(build().kickoff)
    resume(build(), saved(paused), all_of(paused))
    assert ["x", ("a", False)] == ran


def test_a_refused_text_is_refused_again(stage, pausing, erase, ran, record):
    """A text that can be read in two ways runs nothing, before or after a pause."""

    def build() -> Crew:
        return govern(stage.crew(stage.agent(tools=[tool(erase)])), pausing())

    stage.script(a=[("erase", '{"name": "a", "name": "b"}'), ERASE])
    paused = paused_by(build().kickoff)
    resume(build(), saved(paused), all_of(paused))
    assert [("a", False)] == ran
    assert {"refused_arguments"} == {each["code"] for each in record.bodies("action.denied")}


def test_pauses_leave_no_event_of_crewais_open(both, crew_of, pausing, record):
    """A process may see any number of runs pause, and CrewAI's count of open events stays."""
    from crewai.events.event_context import get_current_parent_id

    both.script(a=[ERASE])
    before = get_current_parent_id()
    paused_by(crew_of(pausing()).kickoff)
    assert before == get_current_parent_id()


def test_a_pause_in_memory_is_warned_of(stage, guard_of):
    """A ledger in memory outlives no process, and `govern` says so."""
    stage.script(a=[])
    guard = guard_of(on_approval=pause_approval(MemoryLedger()))
    crew = stage.crew(stage.agent())
    with pytest.warns(EphemeralLedgerWarning):
        govern(crew, guard)


def test_two_tasks_of_one_crew_go_on(both, pausing, erase, ran):
    """Equal calls of two tasks are told apart by their task."""

    def build() -> Crew:
        agents = [both.agent(name, tools=[tool(erase)]) for name in ("a", "b")]
        tasks = [
            Task(description=f"Go, {agent.role}.", expected_output="A word.", agent=agent)
            for agent in agents
        ]
        return govern(Crew(agents=agents, tasks=tasks), pausing())

    both.script(a=[ERASE], b=[ERASE])
    first = paused_by(build().kickoff)
    second = paused_by(lambda: resume(build(), saved(first), all_of(first)))
    resume(build(), saved(second), all_of(second))
    assert [("a", False), ("a", False)] == ran


@pytest.mark.parametrize("kind", ["kickoff", "akickoff"])
def test_a_stream_goes_on_in_its_run(both, pausing, ran, erase, kind):
    """Clause 6: a streamed run that is resumed is the run that paused; nothing runs again."""
    notes = []

    def note(text: str) -> str:
        """Write a note."""
        notes.append(text)
        return text

    async def read(start):
        stream = await start()
        async for _ in stream:
            pass

    def build():
        fields = {"stream": True}
        return govern(both.crew(both.agent(tools=[tool(note), tool(erase)]), fields=fields), guard)

    both.script(a=[("note", '{"text": "x"}'), ERASE])
    guard = pausing()
    crew = build()
    ways = {
        "kickoff": lambda: list(crew.kickoff()),
        "akickoff": lambda: asyncio.run(read(crew.akickoff)),
    }
    with pytest.raises(PauseInside) as caught:
        ways[kind]()
    state, answers = saved(caught.value.paused), all_of(caught.value.paused)
    if kind == "kickoff":
        list(resume(build(), state, answers))
    else:
        asyncio.run(read(lambda: aresume(build(), state, answers)))
    assert ["x"] == notes
    assert [("a", False)] == ran


def test_streams_of_one_block_are_calls_of_one_run(stage, pausing, ran):
    """The same call of a second crew is another one, also where both are read after the block."""

    def note(text: str) -> str:
        """Write a note."""
        ran.append(text)
        return text

    guard = pausing()
    stage.script(a=[("note", '{"text": "x"}')])
    crews = [
        govern(stage.crew(stage.agent(tools=[tool(note)]), fields={"stream": True}), guard)
        for _ in range(2)
    ]
    with adjudge_hooks(guard):
        streams = [crew.kickoff() for crew in crews]
    for stream in streams:
        list(stream)
    assert ["x", "x"] == ran
