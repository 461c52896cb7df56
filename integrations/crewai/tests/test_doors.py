"""No way past the gate on the tool itself, and nothing judged but what the body gets."""

from typing import Any
from unittest import mock

import pytest
from crewai.tools import BaseTool, ToolFailure, tool
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

from adjudge import GovernError
from adjudge_crewai import adjudge_hooks, govern, governed

BIG = {"id": "big", "match": {"tool": "pay", "args.amount.gt": 100}, "decision": "deny"}


@pytest.fixture
def pay(ran):
    """A function with a default that a policy may object to."""

    def pay(to: str, amount: int = 700) -> str:
        """Pay somebody."""
        ran.append((to, amount))
        return "paid"

    return pay


@pytest.fixture
def payer(ran) -> type[BaseTool]:
    """A class of tools with a body of its own."""

    class Payer(BaseTool):
        name: str = "pay"
        description: str = "Pay somebody."

        def _run(self, to: str, amount: int = 700) -> str:
            ran.append((to, amount))
            return "paid"

    return Payer


def paid_by_schema(ran, schema: type[BaseModel]) -> BaseTool:
    """Make a tool of a schema, whose body shows what it gets."""

    class Payer(BaseTool):
        name: str = "pay"
        description: str = "Pay somebody."
        args_schema: type[BaseModel] = schema

        def _run(self, **given: Any) -> str:
            ran.append(given)
            return "paid"

    return Payer()


def denied(answer: object) -> bool:
    """Whether a call was denied."""
    return isinstance(answer, ToolFailure) and answer.message.startswith("[denied] ")


@pytest.mark.parametrize("name", ["run", "arun", "_run", "_arun", "to_structured_tool"])
def test_a_method_replaced_on_a_tool_is_an_error(payer, guard_of, name):
    """A method on the object would be called in place of the governed one, before or after."""
    made = payer()
    object.__setattr__(made, name, lambda **_: "past")
    with pytest.raises(GovernError, match="replaced on the object"):
        govern(made, guard_of())
    governed_tool = govern(payer(), guard_of())
    with pytest.raises(GovernError, match="keeps its"):
        object.__setattr__(governed_tool, name, lambda **_: "past")
    vars(governed_tool)[name] = lambda **_: "past"
    assert "past" != governed_tool.run(to="a")


@pytest.mark.parametrize("way", ["set", "copied", "written"])
def test_a_function_put_in_later_is_behind_the_gate(pay, guard_of, ran, way):
    """Whatever takes the place of a tool's function is judged as that was."""
    made = govern(tool(pay), guard_of(rest="deny"))
    if way == "set":
        made.func = pay
    elif way == "copied":
        made = made.model_copy(update={"func": pay})
    else:
        vars(made)["func"] = pay
    for call in (
        made.run,
        made._run,
        made.func,
        lambda **args: made.to_structured_tool().invoke(args),
    ):
        assert denied(call(to="a"))
    assert [] == ran


def test_what_wraps_a_governed_function_is_not_taken_for_it(pay, guard_of, ran):
    """A wrapper that carries the marks of a governed function, and calls another, is judged."""
    import functools

    made = govern(tool(pay), guard_of(rest="deny"))
    made.func = functools.wraps(made.func)(lambda **args: pay(**args))
    assert denied(made.run(to="a"))
    assert [] == ran


@pytest.mark.parametrize("name", ["_run", "_arun", "run", "to_structured_tool"])
def test_a_body_under_a_governed_class_is_an_error(payer, guard_of, name):
    """A class made of a decorated one has no body of its own that nobody judges."""
    decorated = governed(guard_of(rest="deny"))(payer)
    with pytest.raises(GovernError, match=f"has a {name} of its own"):
        type("Mine", (decorated,), {name: lambda self, to: "past", "__module__": __name__})
    mine = type("Mine", (decorated,), {"__module__": __name__})
    assert denied(mine().run(to="a"))


def test_a_tool_of_a_governed_tools_class_does_not_run(payer, guard_of, ran):
    """What is made of the class of a governed tool has no guard, and says so."""
    made = type(govern(payer(), guard_of()))()
    with pytest.raises(GovernError, match="has no guard"):
        made.run(to="a")
    assert [] == ran


def test_a_way_of_its_own_to_executors_is_an_error(payer, guard_of, ran):
    """A class that gives executors another function than the governed body is refused."""

    class Other(payer):
        def to_structured_tool(self) -> CrewStructuredTool:
            made = super().to_structured_tool()
            made.func = self.past
            return made

        def past(self, to: str, amount: int) -> str:
            ran.append(to)
            return "past"

    with pytest.raises(GovernError, match="to_structured_tool of its own"):
        govern(Other(), guard_of())


def test_a_copy_of_a_governed_tool_is_the_same_call(pay, guard_of, ran, record):
    """A copy keeps the guard, and what its schema rejects is on record once."""
    made = govern(tool(pay), guard_of(rest="deny")).model_copy()
    assert denied(made.run(to="a"))
    with pytest.raises(ValueError):
        made.run(to=["a"])
    assert ["action.denied", "action.failed"] == record.ends
    assert [] == ran


@pytest.mark.parametrize("way", ["updated", "set"])
@pytest.mark.parametrize("kind", ["function", "class"])
def test_a_copy_under_another_name_is_judged_by_that(pay, payer, guard_of, ran, kind, way):
    """A copy that the model knows by another name does not run by the rules of the first."""
    rule = {"id": "pay", "match": {"tool": "pay"}, "decision": "allow"}
    made = govern(tool(pay) if kind == "function" else payer(), guard_of(rule, rest="deny"))
    if way == "updated":
        copy = made.model_copy(update={"name": "refund"})
    else:
        copy = made.model_copy()
        copy.name = "refund"
    assert denied(copy.run(to="a"))
    assert denied(copy.to_structured_tool().invoke({"to": "a"}))
    assert [] == ran
    assert "paid" == made.run(to="a")


def test_a_tool_made_of_a_governed_function_keeps_its_guard(both, pay, guard_of, ran):
    """Neither a block nor another guard takes the place of the guard before the function."""
    guard = guard_of(rest="deny")
    made = Tool.from_langchain(govern(tool(pay), guard))
    both.script(a=[("pay", '{"to": "a"}')])
    with adjudge_hooks(guard):
        both.crew(both.agent(tools=[made])).kickoff()
    assert denied(made.run(to="a"))
    assert denied(govern(made, guard_of()).run(to="a"))
    assert [] == ran


def test_a_body_is_the_one_that_its_class_has_by_then(payer, guard_of, ran):
    """A body that a test of the application puts into the class runs in place of the real one."""
    made = govern(payer(), guard_of())

    def patched(self, to: str, amount: int = 1) -> str:
        return "patched"

    with mock.patch.object(payer, "_run", patched):
        assert "patched" == made.run(to="a")
        assert "patched" == govern(payer(), guard_of()).run(to="a")
    assert [] == ran


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_a_body_may_be_bound_otherwise(guard_of, kind):
    """A body that is a static method or one of its class runs as it would ungoverned."""

    class Payer(BaseTool):
        name: str = "pay"
        description: str = "Pay somebody."
        _run = (
            staticmethod(lambda to: to) if kind is staticmethod else classmethod(lambda _, to: to)
        )

    assert "a" == Payer().run(to="a") == govern(Payer(), guard_of()).run(to="a")


def test_a_body_may_take_more_values_than_it_gets(guard_of):
    """A body with `*args` that nothing is left for is called as it would be ungoverned."""

    class Payer(BaseTool):
        name: str = "pay"
        description: str = "Pay somebody."

        def _run(self, to: str, *args: Any, **kwargs: Any) -> str:
            return to

    governed_tool = govern(Payer(), guard_of())
    assert "a" == governed_tool.run("a")
    with pytest.raises(TypeError, match="has no name"):
        governed_tool.run("a", "b")


def test_a_default_of_the_body_is_judged(pay, payer, guard_of, ran):
    """However a tool is called, what its body fills in is judged like what it was given."""
    for made in (govern(tool(pay), guard_of(BIG)), govern(payer(), guard_of(BIG))):
        ways = [made.run, made._run] + ([made.func] if hasattr(made, "func") else [])
        for call in ways:
            assert denied(call("a"))
            assert denied(call(to="a"))
            assert "paid" == call("a", 5)
    assert {("a", 5)} == set(ran)


@pytest.mark.parametrize("positional", [True, False])
def test_a_default_of_the_body_is_not_given(pay, guard_of, positional):
    """`given` tells what the caller wrote from what the body fills in."""
    rule = {"id": "g", "match": {"tool": "pay", "given.amount": True}, "decision": "deny"}
    made = govern(tool(pay), guard_of(rule))
    assert "paid" == (made.run("a") if positional else made.run(to="a"))
    assert denied(made.run("a", 700) if positional else made.run(to="a", amount=700))


ALIASES = {
    "alias": Field(25, alias="sum"),
    "validation_alias": Field(25, validation_alias="sum"),
    "choices": Field(25, validation_alias=AliasChoices("total", "sum")),
    "path": Field(25, validation_alias=AliasPath("sum", 0)),
}


@pytest.mark.parametrize("kind", ALIASES)
def test_what_came_under_an_alias_was_given(guard_of, ran, kind):
    """An argument that the model sent under its alias does not pass for a default."""
    schema = type(
        "Pay", (BaseModel,), {"__annotations__": {"amount": int}, "amount": ALIASES[kind]}
    )
    rule = {"id": "g", "match": {"tool": "pay", "given.amount": False}, "decision": "allow"}
    made = govern(paid_by_schema(ran, schema), guard_of(rule, rest="deny"))
    assert denied(made.run(sum=[700] if kind == "path" else 700))
    assert "paid" == made.run()
    assert [{"amount": 25}] == ran


@pytest.mark.parametrize("by_name", [True, False])
def test_a_name_that_validation_ignores_was_not_given(guard_of, ran, by_name):
    """A default does not pass for given where the model sent the field's name, not its alias."""

    class Pay(BaseModel):
        model_config = ConfigDict(populate_by_name=by_name)

        amount: int = Field(25, alias="sum")

    rule = {"id": "g", "match": {"tool": "pay", "given.amount": True}, "decision": "allow"}
    made = govern(paid_by_schema(ran, Pay), guard_of(rule, rest="deny"))
    assert by_name is not denied(made.run(amount=700))
    assert ([{"amount": 700}] if by_name else []) == ran


class Limits(BaseModel):
    """Arguments inside of one."""

    upper: int = Field(999, alias="max")


class Limited(BaseModel):
    """Arguments with aliases at every depth."""

    limits: list[Limits] = Field(alias="between")
    amount: int = Field(alias="sum")


@pytest.mark.parametrize("path", ["$.args.amount", "$.args.limits[0].upper"])
@pytest.mark.parametrize("way", ["run", "invoke"])
def test_a_rewriting_under_an_alias_reaches_the_body(guard_of, ran, path, way):
    """What a policy writes is what runs, whatever the model calls the argument."""
    rule = {
        "id": "cap",
        "match": {"tool": "pay"},
        "decision": "transform",
        "transform": {"jsonpath": path, "set": 100},
    }
    made = govern(paid_by_schema(ran, Limited), guard_of(rule))
    sent = {"between": [{"max": 700}], "sum": 700}
    answer = made.run(**sent) if way == "run" else made.to_structured_tool().invoke(sent)
    assert "paid" == answer
    expected = {"limits": [{"upper": 700}], "amount": 700}
    if path.endswith("amount"):
        expected["amount"] = 100
    else:
        expected["limits"] = [{"upper": 100}]
    assert [expected] == ran


def test_a_rewriting_that_validation_would_drop_is_denied(guard_of, ran):
    """A name that the schema ignores, at any depth, must not leave its default in place."""
    rule = {
        "id": "cap",
        "match": {"tool": "pay"},
        "decision": "transform",
        "transform": {"jsonpath": "$.args.limits", "set": [{"uper": 100}]},
    }
    made = govern(paid_by_schema(ran, Limited), guard_of(rule))
    assert denied(made.run(between=[{"max": 700}], sum=1))
    assert [] == ran
