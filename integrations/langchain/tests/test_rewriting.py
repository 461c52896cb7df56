"""A rewriting runs as it was written, whatever names the schema knows, or it does not run."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from langchain_core.tools import StructuredTool, tool
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import Field as FieldV1

from adjudge import ApprovalDecision
from adjudge_langchain import govern


class Aliased(BaseModel):
    amount: int = Field(900, alias="Amount")
    order: int = 0


class ByEitherName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    amount: int = Field(900, alias="Amount")
    order: int = 0


class Choices(BaseModel):
    amount: int = Field(900, validation_alias=AliasChoices("amt", "Amount"))
    order: int = 0


class Old(BaseModelV1):
    amount: int = FieldV1(900, alias="Amount")
    order: int = 0


class Legacy(BaseModel):
    amount: int = 900
    order: int = 0

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, given: Any) -> Any:
        """Take the amount under its old name."""
        return {**given, "amount": given["Amount"]} if "Amount" in given else given


ALL = pytest.mark.parametrize("schema", [Aliased, ByEitherName, Choices, Old, Legacy])
CAP = {
    "id": "cap",
    "match": {"args.amount.gt": 500},
    "decision": "transform",
    "transform": {"path": "args.amount", "set": 100},
}


def paying(schema: Any, ran: list[Any]) -> StructuredTool:
    """Make a tool that pays an amount."""

    def pay(amount: int = 0, order: int = 0) -> str:
        ran.append(amount)
        return "paid"

    return StructuredTool(name="pay", description="Pay.", func=pay, args_schema=schema)


@ALL
@pytest.mark.parametrize("sent", [{"Amount": 700}, {}])
def test_a_transform(guard_of, ran, schema, sent):
    """What a policy sets is what the body gets, sent under an alias or left out."""
    govern(paying(schema, ran), guard_of(CAP)).invoke(sent)

    assert [100] == ran


@ALL
def test_an_edit(guard_of, ran, schema):
    """What a person writes is what the body gets."""
    answer = ApprovalDecision(True, "ana", edited_args={"amount": 10, "order": 0})
    guard = guard_of(rest="approve_required", on_approval=lambda *_: answer)

    govern(paying(schema, ran), guard).invoke({"Amount": 700})

    assert [10] == ran


@ALL
def test_a_deletion(guard_of, ran, schema):
    """What a policy takes out is not filled in again with what was sent."""
    taken = {"path": "args.amount", "delete": True}
    rule = {"id": "t", "match": "always", "decision": "transform", "transform": taken}

    govern(paying(schema, ran), guard_of(rule)).invoke({"Amount": 700})

    assert [900] == ran


def test_inside_of_a_model(guard_of, ran):
    """An alias further down is no way out either."""

    class Outer(BaseModel):
        inner: Aliased

    def pay(inner: Any) -> str:
        ran.append(inner.amount)
        return "paid"

    made = StructuredTool(name="pay", description="Pay.", func=pay, args_schema=Outer)
    rule = {**CAP, "match": "always", "transform": {"path": "args.inner.amount", "set": 100}}

    govern(made, guard_of(rule)).invoke({"inner": {"Amount": 700}})

    assert [100] == ran


def test_one_that_the_tool_does_not_take(guard_of, ran, record):
    """Where a validator puts another value in its place, the call is denied."""

    class Stubborn(BaseModel):
        amount: int = 900

        @field_validator("amount")
        @classmethod
        def always(cls, _: int) -> int:
            return 700

    told = govern(paying(Stubborn, ran), guard_of(CAP)).invoke({"amount": 700})

    assert "does not take it as rewritten" in told
    assert ([], ["action.denied"]) == (ran, record.ends)


def test_a_schema_that_forbids_other_names(guard_of, ran):
    """What LangChain hands over beside the arguments is none of the schema's."""

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        amount: int

    govern(paying(Strict, ran), guard_of(CAP)).invoke({"amount": 700})

    assert [100] == ran


def test_a_field_that_bodies_never_get(guard_of, ran):
    """A rewriting adds nothing that LangChain leaves out."""

    class Hiding(BaseModel):
        amount: int
        hidden: str = Field("h", exclude=True)

    def pay(**given: Any) -> str:
        ran.append(given)
        return "paid"

    made = StructuredTool(name="pay", description="Pay.", func=pay, args_schema=Hiding)

    govern(made, guard_of(CAP)).invoke({"amount": 700})

    assert [{"amount": 100}] == ran


def test_what_a_validator_read_elsewhere_was_given(guard_of, ran):
    """A value that is no default was sent, under whatever name."""
    rule = {"id": "default", "match": {"given.amount": False}, "decision": "allow"}

    govern(paying(Legacy, ran), guard_of(rule, rest="deny")).invoke({"Amount": 700})

    assert [] == ran


@pytest.mark.parametrize(
    ("kind", "sent", "written", "body_gets"),
    [
        (set[str], ["z"], ["b", "a"], {"a", "b"}),
        (datetime, "2020-01-01", "2026-01-01T10:00:00Z", datetime.fromisoformat("2026-01-01T10Z")),
        (UUID, str(UUID(int=1)), str(UUID(int=171)).upper(), UUID(int=171)),
        (Path, "/a", "/tmp/b/", Path("/tmp/b")),
        (bool, True, "false", False),
    ],
    ids=["set", "datetime", "uuid", "path", "bool"],
)
def test_a_value_that_the_schema_writes_otherwise(guard_of, ran, kind, sent, written, body_gets):
    """Law 2: it is the value that was written, in the body's own kind."""

    def act(value: Any) -> str:
        ran.append(value)
        return "done"

    schema = create_model("Schema", value=(kind, ...))
    made = StructuredTool(name="act", description="Act.", func=act, args_schema=schema)
    put = {"path": "args.value", "set": written}
    rule = {"id": "put", "match": "always", "decision": "transform", "transform": put}

    govern(made, guard_of(rule)).invoke({"value": sent})

    assert [body_gets] == ran


def test_beside_a_default_that_its_own_schema_rejects(guard_of, ran):
    """An argument that nobody sent and nobody rewrote is not read again."""

    @tool
    def pay(amount: int, note: str = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
        """Pay."""
        ran.append((amount, note))
        return "paid"

    govern(pay, guard_of(CAP)).invoke({"amount": 700})

    assert [(100, None)] == ran


def test_of_a_bare_value(guard_of, ran):
    """What the body fills in stays with the body, whatever the schema's own default."""

    class Schema(BaseModel):
        order: str = ""
        amount: int = 25

    def pay(order: str, amount: int = 900) -> str:
        ran.append((order, amount))
        return "paid"

    made = StructuredTool(name="pay", description="Pay.", func=pay, args_schema=Schema)
    put = {"path": "args.order", "set": "8"}
    rule = {"id": "put", "match": "always", "decision": "transform", "transform": put}

    govern(made, guard_of(rule)).invoke("7")

    assert [("8", 900)] == ran


def test_beside_a_secret(guard_of, ran, record):
    """A secret in what is rewritten would be lost: the call is denied."""

    class Inner(BaseModel):
        token: Annotated[Any, BeforeValidator(lambda given: SecretStr(str(given)))]
        amount: int

    class Outer(BaseModel):
        inner: Inner

    def pay(inner: Any) -> str:
        ran.append(inner)
        return "paid"

    made = StructuredTool(name="pay", description="Pay.", func=pay, args_schema=Outer)
    rule = {**CAP, "match": "always", "transform": {"path": "args.inner.amount", "set": 100}}

    told = govern(made, guard_of(rule)).invoke({"inner": {"token": "s", "amount": 700}})

    assert "holds a secret" in told
    assert ([], ["action.denied"]) == (ran, record.ends)
