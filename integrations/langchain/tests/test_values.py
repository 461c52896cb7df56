"""Every value that reaches a body is judged under the name by which the body knows it."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, tool
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from pydantic.v1 import BaseModel as BaseModelV1

from adjudge_langchain import govern

DENIED = "[denied] not permitted by policy"
BIG = {"id": "big", "match": {"args.amount.gt": 500}, "decision": "deny"}
DICT = {"type": "object", "properties": {"a": {"type": "integer"}}}


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1


class Named(BaseModel):
    a: int = 1
    callbacks: str = ""


class TestTheNamesOfLangChain:
    @pytest.mark.parametrize("schema", [DICT, Open, Named], ids=["dict", "open", "field"])
    def test_are_judged_where_a_model_uses_them(self, guard_of, ran, record, schema):
        """What is no manager of LangChain's own is an argument like any other."""

        def act(**given: Any) -> str:
            ran.append(given)
            return "done"

        made = StructuredTool(name="act", description="Act.", func=act, args_schema=schema)
        rule = {"id": "no", "match": {"args.callbacks": "evil"}, "decision": "deny"}

        assert DENIED == govern(made, guard_of(rule)).invoke({"a": 2, "callbacks": "evil"})
        assert [] == ran
        assert "evil" == record.bodies("step.proposed")[0]["args"]["callbacks"]

    @pytest.mark.parametrize("name", ["callbacks", "run_manager"])
    def test_in_a_tool_without_a_schema(self, guard_of, ran, name):
        """So it is where the body takes whatever comes."""

        class Act(BaseTool):
            name: str = "act"
            description: str = "Act."

            def _run(self, **given: Any) -> str:
                ran.append(given)
                return "done"

        rule = {"id": "no", "match": {f"args.{name}": "evil"}, "decision": "deny"}

        assert DENIED == govern(Act(), guard_of(rule)).invoke({name: "evil"})
        assert [] == ran


class TestABareValue:
    @pytest.mark.parametrize("kind", ["function", "subclass", "tool"])
    @pytest.mark.parametrize("by", ["invoke", "run", "ainvoke", "_run"])
    def test_meets_the_body_s_defaults(self, guard_of, ran, kind, by):
        """What the body fills in by itself is judged, too."""
        made = govern(_paying(kind, ran), guard_of(BIG))

        if by == "ainvoke":
            told = asyncio.run(made.ainvoke("7"))
        elif by == "_run" and kind != "subclass":
            told = made._run("7", config={})
        else:
            told = getattr(made, by)("7")

        assert (DENIED, []) == (told, ran)

    def test_whose_name_is_another_to_the_body(self, guard_of, ran, record):
        """A value that would be judged as one argument and run as another is denied."""

        class Swapped(BaseModel):
            note: str = ""
            target: str = ""

        def wipe(target: str = "", note: str = "") -> str:
            ran.append(target)
            return "wiped"

        made = StructuredTool(name="wipe", description="W.", func=wipe, args_schema=Swapped)

        assert "name the argument" in govern(made, guard_of()).invoke("prod")
        assert ([], ["action.denied"]) == (ran, record.ends)

    def test_for_what_is_injected(self, guard_of, ran, record):
        """Clause 2: a text is no way to what a model may not send."""

        @tool
        def act(user: Annotated[str, InjectedToolArg], note: str = "") -> str:
            """Act."""
            ran.append(user)
            return "done"

        assert "which is injected" in govern(act, guard_of()).invoke("admin")
        assert ([], ["action.denied"]) == (ran, record.ends)

    def test_of_a_tool_that_knows_two_names(self, guard_of, ran):
        """The one value of a `Tool` is judged under its name, which must be the body's."""

        def pay(order: str, amount: int = 900) -> str:
            ran.append((order, amount))
            return "paid"

        names = {"type": "object", "properties": {"order": {}, "amount": {}}}
        made = govern(Tool("pay", pay, "Pay.", args_schema=names), guard_of(BIG))

        assert "name the argument" in made.invoke({"amount": 3})
        assert [] == ran


class TestDefaultsOfTheBody:
    """Where no schema fills them in, or a schema leaves them open, they are judged, too."""

    @pytest.mark.parametrize(
        "schema",
        [DICT, {**DICT, "properties": {"amount": {"type": "integer", "default": 1}}}, Open],
        ids=["dict", "other default", "open"],
    )
    def test_of_a_function(self, guard_of, ran, schema):
        """The body's own default is what runs, whatever a dict says."""

        def pay(a: int = 0, amount: int = 900) -> str:
            ran.append(amount)
            return "paid"

        made = StructuredTool(name="pay", description="P.", func=pay, args_schema=schema)

        assert (DENIED, []) == (govern(made, guard_of(BIG)).invoke({"a": 1}), ran)

    def test_of_the_coroutine(self, guard_of, ran):
        """On an event loop those of the `_arun` count."""

        class Pay(BaseTool):
            name: str = "pay"
            description: str = "Pay."

            def _run(self, order: str, amount: int = 25) -> str:
                raise NotImplementedError

            async def _arun(self, order: str, amount: int = 900) -> str:
                ran.append(amount)
                return "paid"

        told = asyncio.run(govern(Pay(), guard_of(BIG)).ainvoke({"order": "7"}))

        assert (DENIED, []) == (told, ran)

    def test_without_a_json_meaning(self, guard_of, ran):
        """Law 1: a default that no policy could look at is no reason to deny."""

        def look(query: str, client: object = object()) -> str:
            ran.append(query)
            return "found"

        made = Tool(name="look", description="Look.", func=look)

        assert "found" == govern(made, guard_of()).invoke("x")


class WithConfig(BaseTool):
    name: str = "act"
    description: str = "Act."
    ran: list[Any]

    def _run(self, a: int = 0, config: RunnableConfig | None = None) -> str:
        self.ran.append(config)
        return "done"


class WithTwo(WithConfig):
    def _run(self, a: RunnableConfig, config: RunnableConfig = DICT) -> str:
        self.ran.append(config)
        return "done"


@pytest.mark.parametrize("kind", [WithConfig, WithTwo])
def test_a_config_that_langchain_does_not_hand_over(guard_of, ran, kind):
    """Only the one that it fills in is none of the model's."""
    rule = {"id": "no", "match": {"args.config": "evil"}, "decision": "deny"}

    assert DENIED == govern(kind(ran=ran), guard_of(rule)).invoke({"config": "evil"})
    assert [] == ran


class Paid(BaseModel):
    order: str = ""
    amount: int = 25


class PaidV1(BaseModelV1):
    order: str = ""
    amount: int = 25


@pytest.mark.parametrize("schema", [Paid, PaidV1])
class TestAnInstance:
    """LangChain takes an instance of the schema in place of arguments."""

    def test_is_sent_as_far_as_it_is_set(self, guard_of, ran, schema):
        """What was set is given, and what was not is a default."""
        rule = {"id": "default", "match": {"given.amount": False}, "decision": "allow"}
        made = govern(_paid(schema, ran), guard_of(rule, rest="deny"))

        assert DENIED == made.invoke(schema(order="7", amount=700))
        assert "paid" == made.invoke(schema(order="7"))
        assert [("7", 25)] == ran

    def test_is_rewritten(self, guard_of, ran, schema):
        """A transform sets one argument and leaves the others."""
        cap = {"path": "args.amount", "set": 100}
        rule = {"id": "c", "match": {"args.amount.gt": 500}, "decision": "transform"}

        govern(_paid(schema, ran), guard_of({**rule, "transform": cap})).invoke(
            schema(order="7", amount=700)
        )

        assert [("7", 100)] == ran


def _paid(schema: Any, ran: list[Any]) -> StructuredTool:
    def pay(order: str, amount: int) -> str:
        ran.append((order, amount))
        return "paid"

    return StructuredTool(name="pay", description="Pay.", func=pay, args_schema=schema)


class ByPath(BaseModel):
    meta: dict[str, str] = {}
    user: Annotated[str, InjectedToolArg] = Field(
        "nobody", validation_alias=AliasPath("meta", "user")
    )


class ByChoice(BaseModel):
    note: str = ""
    user: Annotated[str, InjectedToolArg] = Field(
        "nobody", validation_alias=AliasChoices("user", "note")
    )


@pytest.mark.parametrize(
    ("schema", "sent"),
    [(ByPath, {"meta": {"user": "admin"}}), (ByChoice, {"note": "admin"})],
    ids=["path", "choice"],
)
def test_an_injected_value_under_another_field_s_name(guard_of, ran, record, schema, sent):
    """A field's name that is also an alias of what is injected forges it, and is denied."""

    def act(user: str, **_: Any) -> str:
        ran.append(user)
        return "done"

    made = StructuredTool(name="act", description="Act.", func=act, args_schema=schema)

    govern(made, guard_of()).invoke(sent)

    assert [] == ran
    assert ["refused_arguments"] == [each["code"] for each in record.bodies("action.denied")]


def _paying(kind: str, ran: list[Any]) -> BaseTool:
    def pay(order: str, amount: float = 900.0) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    class Pay(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, order: str, amount: float = 900.0) -> str:
            return pay(order, amount)

    if kind == "subclass":
        return Pay()
    return tool(pay) if kind == "function" else Tool(name="pay", description="Pay.", func=pay)
