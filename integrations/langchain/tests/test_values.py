"""Every value that reaches a body is judged under the name by which the body knows it."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, tool
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

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
