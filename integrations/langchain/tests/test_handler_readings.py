"""What a callback handler makes of arguments that it reads before their tool does."""

from typing import Annotated, Any

import pytest
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException, tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import root_validator

from adjudge import GovernError
from adjudge_langchain import AdjudgeCallbackHandler, ToolCallDenied, govern

SENT_AS_A_CALL = {"type": "tool_call", "name": "act", "id": "1", "args": {"amount": 5}}


class Before(BaseModel):
    amount: int

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, given: Any) -> Any:
        """Take the amount under its old name."""
        return {**given, "amount": given["sum"]}


class Commas(BaseModel):
    amount: int

    @field_validator("amount", mode="before")
    @classmethod
    def plain(cls, given: Any) -> int:
        """Read a number with commas."""
        return int(str(given).replace(",", ""))


class Aliased(BaseModel):
    amount: int = Field(alias="Amount")


class Old(BaseModelV1):
    amount: int

    @root_validator(pre=True)
    def renamed(cls, given: Any) -> Any:
        """Take the amount under its old name."""
        return {**given, "amount": given["sum"]}


class Texts(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    amount: str


class Cents(BaseModel):
    amount: int
    user: Annotated[str, InjectedToolArg]

    @field_validator("amount")
    @classmethod
    def cents(cls, given: int) -> int:
        """Count in cents."""
        return given * 100


def acting(schema: Any, ran: list[Any]) -> StructuredTool:
    """Make a tool that leaves a trace."""

    def act(amount: Any = 900, user: str = "") -> str:
        """Act."""
        ran.append(amount)
        return "done"

    if schema is None:
        return StructuredTool.from_function(act)
    return StructuredTool(name="act", description="Act.", func=act, args_schema=schema)


def call(made: Any, sent: Any, *handlers: Any) -> Any:
    """Call a tool with handlers of callbacks."""
    return made.invoke(sent, {"callbacks": list(handlers)})


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (None, "1"),
        (Before, {"sum": 5}),
        (Commas, {"amount": "1,000"}),
        (Aliased, {"Amount": 5}),
        (Old, {"sum": 5}),
        (Texts, {"amount": 5}),
    ],
    ids=["text", "before", "commas", "alias", "old", "texts"],
)
def test_whatever_the_schema_nothing_runs_unjudged(guard_of, ran, record, schema, sent):
    """Law 3: what the tool takes is judged, and denied like anything else."""
    made = acting(schema, ran)

    with pytest.raises(ToolCallDenied):
        call(made, sent, AdjudgeCallbackHandler(guard_of(rest="deny"), tools=[made]))

    assert ([], ["action.denied"]) == (ran, record.ends)
    assert record.bodies("policy.evaluated")


def test_what_the_schema_rejects_does_not_run(guard_of, ran, record):
    """The schema's own error is raised, for the framework to answer, and the body never runs."""
    made = acting(Aliased, ran)

    with pytest.raises(ValidationError):
        call(made, {"amount": 5}, AdjudgeCallbackHandler(guard_of(), tools=[made]))

    assert [] == ran
    assert ["invalid_arguments"] == [each["code"] for each in record.bodies("action.failed")]


def test_a_namesake_is_denied(guard_of, ran):
    """Another tool of a known name is not read by that one's schema."""

    @tool("act")
    def other(amount: int, name: str = "") -> str:
        """Do something else."""
        ran.append(name)
        return "done"

    with pytest.raises(ToolCallDenied, match="another tool of that name"):
        call(other, {"amount": 1}, AdjudgeCallbackHandler(guard_of(), tools=[acting(None, ran)]))

    assert [] == ran


def test_two_that_look_the_same_cannot_be_known(guard_of, ran):
    """A handler is shown the name and the description of a tool, and no more."""
    with pytest.raises(GovernError, match="tell them apart"):
        AdjudgeCallbackHandler(guard_of(), tools=[acting(Commas, ran), acting(Texts, ran)])


def test_what_validators_make_is_judged(guard_of, ran):
    """Law 5: the body's values are judged, with an injected argument beside them, too."""
    made = acting(Cents, ran)
    rule = {"id": "big", "match": {"args.amount.gt": 1000}, "decision": "deny"}

    with pytest.raises(ToolCallDenied):
        call(
            made,
            {"amount": 50, "user": "ana"},
            AdjudgeCallbackHandler(guard_of(rule), tools=[made]),
        )

    assert [] == ran


def test_a_bare_value_meets_the_body_s_defaults(guard_of, ran):
    """What the body fills in by itself is judged, too."""

    @tool
    def pay(order: str, amount: int = 900) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    rule = {"id": "big", "match": {"args.amount.gt": 500}, "decision": "deny"}

    with pytest.raises(ToolCallDenied):
        call(pay, "7", AdjudgeCallbackHandler(guard_of(rule), tools=[pay]))

    assert [] == ran


@pytest.mark.parametrize("schema", [{"type": "object", "properties": {}}, None])
def test_other_defaults_of_the_body(guard_of, ran, schema):
    """They are judged where LangChain reads nothing: with a dict as schema, or none."""

    class Act(BaseTool):
        name: str = "act"
        description: str = "Act."

        def _run(self, amount: int = 900) -> str:
            ran.append(amount)
            return "done"

    made = Act(args_schema=schema)
    rule = {"id": "big", "match": {"args.amount.gt": 500}, "decision": "deny"}

    with pytest.raises(ToolCallDenied):
        call(made, {}, AdjudgeCallbackHandler(guard_of(rule), tools=[made]))

    assert [] == ran


def test_an_instance_is_shown_as_its_text(guard_of, ran):
    """What it holds cannot be judged, so it does not run."""

    class Amounts(BaseModel):
        amount: int

    made = acting(Amounts, ran)

    with pytest.raises(ToolCallDenied, match="give a dict"):
        call(made, Amounts(amount=5), AdjudgeCallbackHandler(guard_of(), tools=[made]))

    assert [] == ran


def test_a_namesake_that_a_validator_calls(guard_of, ran):
    """A governed tool judges itself, and no other tool that runs meanwhile."""
    rule = {"id": "big", "match": {"args.amount.gt": 500}, "decision": "deny"}
    guard = guard_of(rule)
    handler = AdjudgeCallbackHandler(guard)
    inner = acting(None, ran)

    class Calling(BaseModel):
        amount: int

        @field_validator("amount")
        @classmethod
        def checked(cls, given: int) -> int:
            """Have a tool of the same name look at it."""
            call(inner, {"amount": 5000}, handler)
            return given

    with pytest.raises(ToolCallDenied):
        call(govern(acting(Calling, ran), guard), {"amount": 1}, handler)

    assert [] == ran


def test_handlers_that_know_different_tools_both_judge(guard_of, ran):
    """One that knows less does not stand in for one that knows more."""
    made = acting(None, ran)
    rule = {"id": "big", "match": {"args.amount.gt": 500}, "decision": "deny"}
    guard = guard_of(rule)
    plain, knowing = AdjudgeCallbackHandler(guard), AdjudgeCallbackHandler(guard, tools=[made])

    assert plain != knowing
    with pytest.raises(ToolCallDenied):
        call(made.model_copy(update={"callbacks": [knowing]}), {}, plain)

    assert [] == ran


def test_an_error_that_the_tool_answers_with_is_a_failure(guard_of, record):
    """A body's error is one on record also where the tool makes an answer of it."""

    @tool
    def act(amount: int) -> str:
        """Act."""
        raise ToolException("no")

    act.handle_tool_error = True

    call(act, SENT_AS_A_CALL, AdjudgeCallbackHandler(guard_of()))

    assert ["action.failed"] == record.ends


def test_repeats_are_numbered(stage, guard_of, ran, record):
    """Law 6: what raised and is called again is another attempt."""

    @tool
    def act(amount: int) -> str:
        """Act."""
        ran.append(amount)
        if len(ran) < 2:
            raise ConnectionError("down")
        return "done"

    stage.script(a=[("act", '{"amount": 1}')])
    agent = stage.agent([act], middleware=[ToolRetryMiddleware(initial_delay=0.01)])

    stage.run(agent, config={"callbacks": [AdjudgeCallbackHandler(guard_of())]})

    assert [1, 2] == [each["attempt"] for each in record.bodies("step.proposed")]


@pytest.mark.parametrize("error", [ValueError("quota"), RuntimeError("quota")])
def test_a_call_that_another_handler_stops(guard_of, ran, record, error):
    """Law 7: a governed call that never comes to its arguments is on record as that."""

    class Stopping(BaseCallbackHandler):
        raise_error = True

        def on_tool_start(self, *args: Any, **options: Any) -> None:
            raise error

    with pytest.raises(type(error)):
        call(govern(acting(None, ran), guard_of()), {"amount": 1}, Stopping())

    (denied,) = record.bodies("action.denied")
    assert "stopped before its arguments were read" in denied["reason"]
