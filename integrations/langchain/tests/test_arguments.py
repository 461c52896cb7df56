"""What is judged is what runs: values, objects, and what becomes of them on the way."""

import asyncio
import itertools
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.errors import ParentCommand
from langgraph.types import Command
from pydantic import BaseModel, Field, SecretStr, field_validator

from adjudge import ApprovalDecision
from adjudge_langchain import govern

DENIED = "[denied] not permitted by policy"

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


def call(made: Any, args: Any, *, in_loop: bool = False) -> Any:
    """Call a tool with arguments alone."""
    return asyncio.run(made.ainvoke(args)) if in_loop else made.invoke(args)


def rewriting(name: str, value: Any, **match: Any) -> dict[str, Any]:
    """Make a rule that sets an argument."""
    return {
        "id": "set",
        "match": match or "always",
        "decision": "transform",
        "transform": {"path": f"args.{name}", "set": value},
    }


class TestRefused:
    @in_any_style
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
    def test_before_they_are_validated(self, guard_of, ran, record, value, in_loop):
        """Clause 2: what has no JSON meaning is denied, also where the schema would reject it."""

        @tool
        def take(number: int) -> str:
            """Take."""
            ran.append(number)
            return "taken"

        told = call(govern(take, guard_of()), {"number": value}, in_loop=in_loop)

        assert told.startswith("[denied]")
        assert ["refused_arguments"] == [each["code"] for each in record.bodies("action.denied")]


class TestOnTheWay:
    @pytest.mark.parametrize("sent", ["a", "b"])
    def test_other_values_for_the_own_run(self, guard_of, ran, sent):
        """Law 5: an `_arun` that enters its `_run` with other values is judged again."""

        class Erase(BaseTool):
            name: str = "erase"
            description: str = "Erase a note."

            def _run(self, name: str) -> str:
                ran.append(name)
                return "erased"

            async def _arun(self, name: str) -> str:
                return self._run("b")

        rule = {"id": "b", "match": {"args.name": "b"}, "decision": "deny"}

        assert call(govern(Erase(), guard_of(rule)), {"name": sent}, in_loop=True) == DENIED
        assert [] == ran

    @in_any_style
    def test_values_that_somebody_changes_meanwhile(self, guard_of, ran, in_loop):
        """Values that are not those that were judged do not run."""
        options = {"amount": 5}

        def pay(options: dict[str, int]) -> str:
            ran.append(options)
            return "paid"

        def asked(*_: Any) -> ApprovalDecision:
            options["amount"] = 1_000_000
            return ApprovalDecision(True, "ana")

        schema = {"type": "object", "properties": {"options": {"type": "object"}}}
        made = StructuredTool(name="pay", description="Pay.", func=pay, args_schema=schema)
        governed = govern(made, guard_of(rest="approve_required", on_approval=asked))

        told = call(governed, {"options": options}, in_loop=in_loop)

        assert "changed after they were judged" in told
        assert [] == ran

    @in_any_style
    def test_the_objects_that_were_judged(self, guard_of, ran, in_loop):
        """What nobody rewrote is validated once: validators need not be idempotent."""
        numbers = itertools.count(1)

        class Schema(BaseModel):
            name: str
            hard: bool = False

            @field_validator("name")
            @classmethod
            def numbered(cls, name: str) -> str:
                return f"{name}{next(numbers)}"

        def erase(name: str, hard: bool = False) -> str:
            ran.append((name, hard))
            return "erased"

        made = StructuredTool(name="erase", description="E.", func=erase, args_schema=Schema)

        call(govern(made, guard_of(rewriting("hard", True))), {"name": "a"}, in_loop=in_loop)

        assert [("a1", True)] == ran

    @in_any_style
    @pytest.mark.parametrize(
        "schema", [None, {"type": "object", "properties": {"name": {"type": "string"}}}]
    )
    def test_a_rewriting_that_does_not_fit(self, guard_of, ran, record, schema, in_loop):
        """What a policy writes and the tool does not take is denied."""

        def erase(name: str) -> str:
            """Erase."""
            ran.append(name)
            return "erased"

        made = tool(erase) if schema is None else tool(erase, args_schema=schema)

        call(govern(made, guard_of(rewriting("name", 5))), {"name": "a"}, in_loop=in_loop)

        assert ([], ["action.denied"]) == (ran, record.ends)

    @in_any_style
    def test_objects_and_secrets(self, guard_of, ran, in_loop):
        """A body gets its objects; a policy sees their JSON, and of a secret nothing."""

        class Note(BaseModel):
            name: str

        @tool
        def erase(note: Note, key: SecretStr) -> str:
            """Erase."""
            ran.append((type(note), key.get_secret_value()))
            return "erased"

        rule = {"id": "a", "match": {"args.note.name": "a"}, "decision": "allow"}
        made = govern(erase, guard_of(rule, rest="deny"))

        told = call(made, {"note": {"name": "a"}, "key": "k"}, in_loop=in_loop)

        assert ("erased", [(Note, "k")]) == (told, ran)

    @in_any_style
    def test_what_was_given(self, guard_of, erase, ran, in_loop):
        """A rule can tell an argument that was sent from a default."""
        rule = {"id": "given", "match": {"given.hard": True}, "decision": "deny"}
        made = govern(erase, guard_of(rule))

        call(made, {"name": "a"}, in_loop=in_loop)
        call(made, {"name": "b", "hard": False}, in_loop=in_loop)

        assert [("a", False)] == ran

    @in_any_style
    @pytest.mark.parametrize("kind", ["alias", "validation_alias"])
    def test_what_was_given_under_an_alias(self, guard_of, ran, kind, in_loop):
        """An argument that the model calls otherwise was sent all the same."""
        called: dict[str, Any] = {kind: "forGood"}

        class Schema(BaseModel):
            name: str
            hard: bool = Field(default=False, **called)

        def erase(name: str, hard: bool = False) -> str:
            ran.append((name, hard))
            return "erased"

        rule = {"id": "given", "match": {"given.hard": True}, "decision": "deny"}
        bare = StructuredTool(name="erase", description="E.", func=erase, args_schema=Schema)
        made = govern(bare, guard_of(rule))

        call(made, {"name": "a"}, in_loop=in_loop)
        call(made, {"name": "b", "forGood": False}, in_loop=in_loop)

        assert [("a", False)] == ran


class TestEnds:
    @in_any_style
    def test_a_body_that_sends_the_graph_elsewhere(self, guard_of, record, in_loop):
        """A command to the graph around is a result, and passes as it was raised."""
        signal = ParentCommand(Command(graph=Command.PARENT, goto="elsewhere"))

        def leave() -> str:
            """Leave."""
            raise signal

        async def aleave() -> str:
            """Leave."""
            raise signal

        made = StructuredTool.from_function(leave, aleave)
        with pytest.raises(ParentCommand) as raised:
            call(govern(made, guard_of()), {}, in_loop=in_loop)

        assert signal is raised.value
        assert ["action.completed"] == record.ends

    @in_any_style
    def test_calls_that_no_id_tells_apart(self, guard_of, record, in_loop):
        """Law 6: a repeat is numbered only where it can be told from a new call."""

        @tool
        def fail(name: str) -> str:
            """Fail."""
            raise KeyError(name)

        made = govern(fail, guard_of())
        for _ in range(2):
            with pytest.raises(KeyError):
                call(made, {"name": "a"}, in_loop=in_loop)

        assert [1, 1] == [body["attempt"] for body in record.bodies("step.proposed")]
