"""One call: its verdicts, kinds of tools, and what the framework makes of the answers."""

import asyncio
from typing import Any

import pytest
from crewai.tools import BaseTool, ToolFailure, tool
from crewai.tools.base_tool import Tool
from pydantic import BaseModel

from adjudge import ApprovalDecision, ToolMetadata
from adjudge_crewai import govern, governed

NO = {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "notes are kept"}
SOFT = {
    "id": "soft",
    "match": {"tool": "erase", "args.hard": True},
    "decision": "transform",
    "transform": {"jsonpath": "$.args.hard", "set": False},
}
HARD = ("erase", '{"name": "a", "hard": true}')
ERASE = ("erase", '{"name": "a"}')


def kinds(erase, ran) -> dict[str, Any]:
    """Every kind of tool that an agent takes, around one function."""

    class Eraser(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str, hard: bool = False) -> str:
            return erase(name, hard)

    class Slow(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        async def _run(self, name: str, hard: bool = False) -> str:
            await asyncio.sleep(0)
            return erase(name, hard)

    async def erase_slowly(name: str, hard: bool = False) -> str:
        """Erase a note."""
        await asyncio.sleep(0)
        return erase(name, hard)

    def erase_by_and_by(name: str, hard: bool = False) -> Any:
        """Erase a note."""
        return erase_slowly(name, hard)

    return {
        "function": tool(erase),
        "coroutine function": tool("erase")(erase_slowly),
        "function that gives a coroutine": tool("erase")(erase_by_and_by),
        "class": Eraser(),
        "class with a coroutine": Slow(),
        "converted": Tool.from_langchain(tool(erase)),
    }


KINDS = [
    "function",
    "coroutine function",
    "function that gives a coroutine",
    "class",
    "class with a coroutine",
    "converted",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tool_runs(both, guard_of, erase, ran, record, kind):
    """An allowed call of each kind of tool runs once, on both paths."""
    both.script(a=[HARD])
    crew = both.crew(both.agent(tools=[kinds(erase, ran)[kind]]))
    govern(crew, guard_of()).kickoff()
    assert [("a", True)] == ran
    assert ["action.completed"] == record.ends


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tool_is_stopped(both, guard_of, erase, ran, record, kind):
    """A denied call of each kind of tool never runs, on both paths."""
    both.script(a=[HARD])
    crew = both.crew(both.agent(tools=[kinds(erase, ran)[kind]]))
    govern(crew, guard_of(NO)).kickoff()
    assert [] == ran
    assert ["action.denied"] == record.ends
    assert both.said[0].startswith("[denied] notes are kept")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tool_is_rewritten(both, guard_of, erase, ran, record, kind):
    """A rewritten call of each kind of tool runs rewritten, on both paths."""
    both.script(a=[HARD])
    crew = both.crew(both.agent(tools=[kinds(erase, ran)[kind]]))
    govern(crew, guard_of(SOFT)).kickoff()
    assert [("a", False)] == ran


def test_a_rewriting_that_the_tool_does_not_take_is_denied(stage, guard_of, erase, ran):
    """A rewriting that CrewAI's validation would drop is none."""
    rule = {"id": "r", "match": {"tool": "erase"}, "decision": "transform"}
    rule["transform"] = {"jsonpath": "$.args.dry", "set": True}
    stage.script(a=[ERASE])
    govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of(rule)).kickoff()
    assert [] == ran
    assert stage.said[0].startswith("[denied] the rewritten arguments do not fit the tool")


def test_a_rewriting_holds_where_the_model_sent_nothing(both, guard_of, ran):
    """Arguments that the model left out are rewritten too, which a hook could not do in ReAct."""

    @tool
    def note(text: str = "x") -> str:
        """Write a note."""
        ran.append(text)
        return text

    rule = {"id": "y", "match": {"tool": "note"}, "decision": "transform"}
    rule["transform"] = {"jsonpath": "$.args.text", "set": "y"}
    both.script(a=[("note", "{}")])
    govern(both.crew(both.agent(tools=[note])), guard_of(rule)).kickoff()
    assert ["y"] == ran


def test_a_denial_is_a_failure_of_the_tool(stage, guard_of, erase):
    """CrewAI knows that a denied tool did not do its work."""
    stage.script(a=[ERASE])
    output = govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of(NO)).kickoff()
    (failure,) = output.tasks_output[0].tool_failures
    assert "[denied] notes are kept" == failure.message


@pytest.mark.parametrize("verdict", ["deny", "dry_run"])
def test_what_is_no_result_is_no_final_answer(both, guard_of, erase, verdict):
    """Neither a denial nor a preview of a tool whose result ends the task ends it."""
    both.script(a=[ERASE])
    rule = {"id": "r", "match": {"tool": "erase"}, "decision": verdict}
    guard = guard_of(rule, shadows={"erase": lambda **args: args})
    made = tool(result_as_answer=True)(erase)
    output = govern(both.crew(both.agent(tools=[made])), guard).kickoff()
    assert "a is done." == output.raw


def test_a_result_that_is_the_answer_stays_it(both, guard_of, erase):
    """An allowed tool whose result ends the task ends it."""
    both.script(a=[ERASE])
    made = tool(result_as_answer=True)(erase)
    output = govern(both.crew(both.agent(tools=[made])), guard_of()).kickoff()
    assert "erased a" == output.raw


def test_a_preview_is_not_held_to_the_schema_of_results(stage, guard_of):
    """A preview of a tool with a result schema reaches the model as it is, without a warning."""

    class Erased(BaseModel):
        name: str

    @tool
    def erase(name: str) -> Erased:
        """Erase a note."""
        return Erased(name=name)

    rule = {"id": "r", "match": {"tool": "erase"}, "decision": "dry_run"}
    stage.script(a=[ERASE])
    guard = guard_of(rule, shadows={"erase": lambda name: name})
    govern(stage.crew(stage.agent(tools=[erase])), guard).kickoff()
    assert ['[dry_run] not executed; preview: "a"'] == stage.said


def test_values_are_judged_as_the_body_gets_them(stage, guard_of, ran):
    """What CrewAI's validation makes of the arguments is what is judged."""

    @tool
    def pay(amount: float) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    rule = {"id": "much", "match": {"tool": "pay", "args.amount.gt": 5}, "decision": "deny"}
    stage.script(a=[("pay", '{"amount": "7"}'), ("pay", '{"amount": "3"}')])
    govern(stage.crew(stage.agent(tools=[pay])), guard_of(rule)).kickoff()
    assert [3.0] == ran


def test_what_the_model_sent_is_told_from_defaults(both, guard_of, erase, ran):
    """`given` names the arguments that the model wrote, on both paths."""
    rule = {"id": "given", "match": {"tool": "erase", "given.hard": False}, "decision": "deny"}
    both.script(a=[ERASE, HARD])
    govern(both.crew(both.agent(tools=[tool(erase)])), guard_of(rule)).kickoff()
    assert [("a", True)] == ran


def test_a_hook_that_changes_arguments_is_judged(both, guard_of, erase, ran):
    """What a hook of the application makes of the arguments is what is judged."""
    from crewai.hooks import register_before_tool_call_hook, unregister_before_tool_call_hook

    def spoil(ctx) -> None:
        ctx.tool_input["name"] = "b"

    rule = {"id": "b", "match": {"tool": "erase", "args.name": "b"}, "decision": "deny"}
    both.script(a=[ERASE])
    crew = govern(both.crew(both.agent(tools=[tool(erase)])), guard_of(rule))
    register_before_tool_call_hook(spoil)
    try:
        crew.kickoff()
    finally:
        unregister_before_tool_call_hook(spoil)
    assert [] == ran


def test_a_tools_failure_is_what_it_is_ungoverned(stage, guard_of, record):
    """A body that reports a failure reports it."""

    @tool
    def erase(name: str) -> Any:
        """Erase a note."""
        return ToolFailure(message="locked", code="E1")

    stage.script(a=[ERASE])
    output = govern(stage.crew(stage.agent(tools=[erase])), guard_of()).kickoff()
    assert ["locked (code: E1)"] == stage.said
    assert "E1" == output.tasks_output[0].tool_failures[0].failure.code
    assert ["action.completed"] == record.ends


def test_each_try_of_the_text_path_is_an_attempt_of_its_own(both, guard_of, record, ran):
    """A body that raises is judged anew each time that CrewAI tries it again."""

    @tool
    def erase(name: str) -> str:
        """Erase a note."""
        ran.append(name)
        raise ValueError("locked")

    both.script(a=[ERASE])
    govern(both.crew(both.agent(tools=[erase])), guard_of()).kickoff()
    tries = 6 if both.api == "react" else 1
    assert tries == len(ran)
    assert list(range(1, tries + 1)) == [e["attempt"] for e in record.bodies("action.failed")]


@pytest.mark.filterwarnings("ignore:function callbacks:UserWarning")
def test_a_callback_that_calls_a_tool_makes_a_call_of_its_own(both, guard_of, erase, ran, record):
    """What calls a tool after the model's call is no other attempt at that call."""
    both.script(a=[ERASE])
    crew = both.crew(
        both.agent(tools=[tool(erase)]), callback=lambda _: crew.agents[0].tools[0]._run(name="b")
    )
    govern(crew, guard_of()).kickoff()
    assert [("a", False), ("b", False)] == ran
    proposed = record.bodies("step.proposed")
    assert [(1, "a"), (1, "b")] == [(each["attempt"], each["args"]["name"]) for each in proposed]


def test_direct_calls_of_a_governed_tool_are_judged(guard_of, erase, ran):
    """A governed tool is governed whoever calls it, and in whatever way."""
    made = govern(tool(erase), guard_of(NO))
    told = [
        made.run(name="a"),
        made.run("a"),
        made._run(name="a"),
        made.func("a", hard=True),
        made.to_structured_tool().invoke({"name": "a"}),
        made.to_structured_tool().invoke('{"name": "a"}'),
        asyncio.run(made.to_structured_tool().ainvoke({"name": "a"})),
        Tool.from_langchain(made).run(name="a"),
        made.model_copy().run(name="a"),
    ]
    assert [] == ran
    assert {"[denied] notes are kept"} == {each.message for each in told}


def test_values_that_change_after_they_were_judged_do_not_run(guard_of, ran, record):
    """What was judged is what runs: a value that somebody changes meanwhile stops the call."""
    names = ["a"]

    @tool
    def erase(names: list[str]) -> str:
        """Erase notes."""
        ran.append(names)
        return "erased"

    def ask(request):
        names.append("b")
        return ApprovalDecision(True, "ana")

    rule = {"id": "r", "match": {"tool": "erase"}, "decision": "approve_required"}
    told = govern(erase, guard_of(rule, on_approval=ask))._run(names=names)
    assert "[denied] the arguments changed after they were judged" == told.message
    assert [] == ran
    assert ["action.failed"] == record.ends


def test_a_coroutine_tool_is_judged_where_it_is_awaited(guard_of, ran):
    """`arun` is governed like `run`."""

    class Eraser(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str) -> str:
            raise NotImplementedError

        async def _arun(self, name: str) -> str:
            ran.append(name)
            return "erased"

    rule = {"id": "a", "match": {"tool": "erase", "args.name": "a"}, "decision": "deny"}
    made = govern(Eraser(), guard_of(rule))
    assert "[denied] not permitted by policy" == asyncio.run(made.arun(name="a")).message
    assert "erased" == asyncio.run(made.arun(name="b"))
    assert ["b"] == ran


def test_the_decorator_takes_every_kind(guard_of, erase, ran):
    """`governed` decorates functions, tools, tool classes and instances."""
    no = governed(guard_of(NO))

    @no
    class Eraser(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str) -> str:
            return erase(name)

    class Plain(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str) -> str:
            return erase(name)

    made = [no(erase), no(tool(erase)), no(Plain()), Eraser()]
    assert ["[denied] notes are kept"] * 4 == [each.run(name="a").message for each in made]
    assert [] == ran
    assert "Eraser" == Eraser.__name__


def test_the_decorator_says_what_a_tool_declares(guard_of, erase, ran):
    """A shadow previews the tool, and metadata is what the policy reads."""
    rule = {"id": "r", "match": {"declared.cost": "high"}, "decision": "dry_run"}
    made = governed(
        guard_of(rule), shadow=lambda name, hard: name, metadata=ToolMetadata(cost="high")
    )(erase)
    assert '[dry_run] not executed; preview: "a"' == made.run(name="a")
    assert [] == ran


def test_a_policy_knows_a_tool_by_the_models_name_for_it(stage, guard_of, record):
    """A tool with a title is known by the name that CrewAI makes of it for the model."""

    @tool("Erase a Note")
    def erase(name: str) -> str:
        """Erase a note."""
        return "erased"

    stage.script(a=[("erase_a_note", '{"name": "a"}')])
    govern(stage.crew(stage.agent(tools=[erase])), guard_of()).kickoff()
    assert ["erase_a_note"] == [each["tool"] for each in record.bodies("step.proposed")]


def test_a_schema_stays_what_it_is_for_the_model(stage, guard_of, erase, ran):
    """A governed tool looks to the model, and to Python, as it did."""
    for made in kinds(erase, ran).values():
        held = govern(made, guard_of())
        assert type(made).__name__ == type(held).__name__
        assert isinstance(held, type(made))
        dumped = {"exclude": {"func"}, "mode": "json"}
        assert made.model_dump(**dumped) == held.model_dump(**dumped)
        assert made.formatted_description == held.formatted_description
