"""Function tools out of a `ToolSet`."""

import itertools
from typing import Annotated

import pytest
from agents import FunctionTool, RunContextWrapper, function_tool
from pydantic import BeforeValidator, Field

from adjudge import GovernError, ToolGuard, ToolSet, compile_policy, tool
from adjudge_openai_agents import govern, governed_function_tools


@tool(reversible=False, scope=("money",))
def pay(to: str, amount: int = 10) -> str:
    """Pay somebody.

    Args:
        to: The payee.
        amount: How much.
    """
    return f"paid {amount} to {to}"


@pay.shadow
def would_pay(to: str, amount: int = 10) -> dict[str, object]:
    """Say what paying would do."""
    return {"to": to, "amount": amount}


@tool()
async def label(marks: dict[str, str]) -> str:
    """Label things."""
    return str(marks)


TOOLS = ToolSet([pay, label])


def policy(*rules):
    """Compile rules."""
    return compile_policy({"version": 1, "rules": list(rules)})


def run(stage, tools, text):
    """Run an agent that pays once."""
    stage.script(a=[("pay", text)])
    stage.run(stage.agent("a", tools=tools))
    return stage.said


def test_the_model_is_told_each_functions_own_parameters():
    """The schemas are those that the SDK gives the functions themselves."""
    paying, labelling = governed_function_tools(TOOLS, policy=policy())

    assert isinstance(paying, FunctionTool)
    assert function_tool(pay).params_json_schema == paying.params_json_schema
    assert "The payee." == paying.params_json_schema["properties"]["to"]["description"]
    assert (
        function_tool(label, strict_mode=False).params_json_schema == labelling.params_json_schema
    )


def test_its_name_and_description_are_the_sets():
    """The set says what a tool is called."""
    paying, _ = governed_function_tools(TOOLS, policy=policy())

    assert ("pay", TOOLS.get("pay").description) == (paying.name, paying.description)


def test_rules_see_what_a_tool_declares(stage):
    """Metadata is the set's own."""
    rule = {"id": "m", "match": {"declared.reversible": False}, "decision": "deny", "reason": "no"}

    tools = governed_function_tools(TOOLS, policy=policy(rule))

    assert ["[denied] no"] == run(stage, tools, '{"to": "bo"}')


def test_a_preview_comes_from_the_tools_own_shadow(stage):
    """dry_run runs the shadow, never the body."""
    rule = {"id": "look", "match": {"tool": "pay"}, "decision": "dry_run"}

    tools = governed_function_tools(TOOLS, policy=policy(rule))

    assert ['[dry_run] not executed; preview: {"to": "bo", "amount": 3}'] == run(
        stage, tools, '{"to": "bo", "amount": "3"}'
    )


def test_an_allowed_call_runs(stage):
    """The function gets validated arguments."""
    rule = {"id": "ok", "match": {"tool": "pay", "args.amount.lt": 5}, "decision": "allow"}

    tools = governed_function_tools(TOOLS, policy=policy(rule))

    assert ["paid 3 to bo"] == run(stage, tools, '{"to": "bo", "amount": "3"}')


def test_a_guard_of_ones_own_can_be_shared(stage):
    """The same guard may hold an agent and its tools."""
    guard = ToolGuard(policy=policy({"id": "ok", "match": "always", "decision": "allow"}))
    tools = governed_function_tools(TOOLS, guard=guard)
    stage.script(a=[("pay", '{"to": "bo"}')])

    stage.run(govern(stage.agent("a", tools=tools), guard))

    assert ["paid 10 to bo"] == stage.said


def test_a_function_may_take_the_run_context(stage):
    """What the SDK injects is none of the parameters."""

    def who(context: RunContextWrapper[object], greeting: str) -> str:
        """Greet."""
        return f"{greeting} {context.context}"

    allow = policy({"id": "ok", "match": "always", "decision": "allow"})
    tools = governed_function_tools(ToolSet([tool()(who)]), policy=allow)
    stage.script(a=[("who", '{"greeting": "hi"}')])

    stage.run(stage.agent("a", tools=tools), context="ana")

    assert ["hi ana"] == stage.said


@pytest.mark.parametrize("style", ["def", "async def", "object"])
def test_a_validator_that_answers_otherwise_changes_nothing(stage, style):
    """Law 5: the function runs with the very values that were judged, validated once."""
    ran = []
    counter, factory = itertools.count(), itertools.count()
    Shifty = Annotated[int, BeforeValidator(lambda value: value + next(counter))]
    Fresh = Annotated[int, Field(default_factory=lambda: next(factory))]

    def plain(amount: Shifty, number: Fresh) -> str:
        """Move an amount."""
        ran.append((amount, number))
        return "moved"

    async def coroutine(amount: Shifty, number: Fresh) -> str:
        """Move an amount."""
        return plain(amount, number)

    class Callable:
        """Move an amount."""

        async def __call__(self, amount: Shifty, number: Fresh) -> str:
            return plain(amount, number)

    functions = {"def": plain, "async def": coroutine, "object": Callable()}
    rule = {"id": "nothing", "match": {"args.amount.le": 0, "args.number": 0}, "decision": "allow"}
    tools = governed_function_tools(
        ToolSet([tool(name="move")(functions[style])]), policy=policy(rule)
    )
    stage.script(a=[("move", '{"amount": 0}')])

    stage.run(stage.agent("a", tools=tools))

    assert ["moved"] == stage.said
    assert [(0, 0)] == ran


def test_no_second_reading_runs_what_the_first_rejected(stage, record):
    """Law 5: where a validator rejects and then accepts, the body runs only if it was judged."""
    ran = []
    answers = itertools.cycle(["no", 1])
    Moody = Annotated[int, BeforeValidator(lambda _: next(answers))]

    def take(amount: Moody) -> str:
        """Take an amount."""
        ran.append(amount)
        return "taken"

    tools = governed_function_tools(
        ToolSet([tool()(take)]),
        policy=policy({"match": "always", "decision": "allow"}),
        sinks=(record,),
    )
    # Releases validate a different number of times; one call more starts with the other answer.
    stage.script(a=[("take", '{"amount": 1}'), ("take", '{"amount": 1}')])

    stage.run(stage.agent("a", tools=tools))

    assert len(record.bodies("policy.evaluated")) == len(ran)


def test_a_rewritten_argument_reaches_the_function(stage):
    """Law 5: a transform's values are validated, judged and run."""
    rule = {
        "id": "cap",
        "match": {"tool": "pay"},
        "decision": "transform",
        "transform": {"path": "args.amount", "set": 5},
    }

    tools = governed_function_tools(TOOLS, policy=policy(rule))

    assert ["paid 5 to bo"] == run(stage, tools, '{"to": "bo", "amount": 900}')


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": policy(), "guard": ToolGuard(policy=policy())},
        {"guard": ToolGuard(policy=policy()), "environment": "test"},
    ],
    ids=["neither", "both", "options-with-a-guard"],
)
def test_a_guard_or_a_policy_is_needed(options):
    """Either, and only one: options of a guard go with the policy."""
    with pytest.raises(GovernError):
        governed_function_tools(TOOLS, **options)
