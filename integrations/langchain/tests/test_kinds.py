"""Every kind of tool that LangChain runs: the same as ungoverned where allowed, and stopped."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain.tools import InjectedState, InjectedStore, InjectedToolCallId, ToolRuntime
from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import AliasChoices, AliasPath, BaseModel, Field
from pydantic.v1 import BaseModel as BaseModelV1

from adjudge_langchain import govern

DENIED = "[denied] not permitted by policy"


class Schema(BaseModel):
    name: str
    hard: bool = Field(default=False, description="For good.")


class OldSchema(BaseModelV1):
    name: str
    hard: bool = False


def _plain(ran: list[Any]) -> BaseTool:
    @tool
    def erase(name: str, hard: bool = False) -> str:
        """Erase a note."""
        ran.append((name, hard))
        return f"erased {name}"

    return erase


def _coroutine(ran: list[Any]) -> BaseTool:
    @tool
    async def erase(name: str, hard: bool = False) -> str:
        """Erase a note."""
        ran.append((name, hard))
        return f"erased {name}"

    return erase


def _both(ran: list[Any]) -> BaseTool:
    def erase(name: str, hard: bool = False) -> str:
        """Erase a note."""
        ran.append((name, hard))
        return f"erased {name}"

    async def aerase(name: str, hard: bool = False) -> str:
        """Erase a note."""
        ran.append((name, hard))
        return f"erased {name}"

    return StructuredTool.from_function(erase, aerase)


def _subclass(ran: list[Any]) -> BaseTool:
    class Erase(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str, hard: bool = False) -> str:
            ran.append((name, hard))
            return f"erased {name}"

    return Erase()


def _subclass_with_schema(ran: list[Any]) -> BaseTool:
    class Erase(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."
        args_schema: type[BaseModel] = Schema

        def _run(
            self,
            name: str,
            hard: bool = False,
            run_manager: CallbackManagerForToolRun | None = None,
        ) -> str:
            assert run_manager is not None
            ran.append((name, hard))
            return f"erased {name}"

    return Erase()


def _subclass_that_enters_its_own_run(ran: list[Any]) -> BaseTool:
    class Erase(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."
        args_schema: type[BaseModel] = Schema

        def _run(self, name: str, hard: bool = False) -> str:
            ran.append((name, hard))
            return f"erased {name}"

        async def _arun(self, name: str, hard: bool = False) -> str:
            return self._run(name, hard=hard)

    return Erase()


def _old_schema(ran: list[Any]) -> BaseTool:
    def erase(name: str, hard: bool = False) -> str:
        ran.append((name, hard))
        return f"erased {name}"

    return StructuredTool(
        name="erase", description="Erase a note.", func=erase, args_schema=OldSchema
    )


def _dict_schema(ran: list[Any]) -> BaseTool:
    def erase(name: str, hard: bool = False) -> str:
        ran.append((name, hard))
        return f"erased {name}"

    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "hard": {"type": "boolean", "default": False}},
        "required": ["name"],
    }
    return StructuredTool(name="erase", description="Erase a note.", func=erase, args_schema=schema)


def _with_config(ran: list[Any]) -> BaseTool:
    @tool
    def erase(name: str, config: RunnableConfig, hard: bool = False) -> str:
        """Erase a note."""
        assert "metadata" in config
        ran.append((name, hard))
        return f"erased {name}"

    return erase


KINDS = [
    _plain,
    _coroutine,
    _both,
    _subclass,
    _subclass_with_schema,
    _subclass_that_enters_its_own_run,
    _old_schema,
    _dict_schema,
    _with_config,
]
each_kind = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__.strip("_"))
in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


def call(made: BaseTool, args: Any, *, in_loop: bool) -> Any:
    """Call a tool as a model does."""
    proposed: Any = {"type": "tool_call", "name": made.name, "id": "c1", "args": args}
    return asyncio.run(made.ainvoke(proposed)) if in_loop else made.invoke(proposed)


def outcome(made: BaseTool, args: Any, *, in_loop: bool) -> Any:
    """Call a tool as a model does, and give what it raises as well."""
    try:
        return call(made, args, in_loop=in_loop)
    except NotImplementedError as error:
        return repr(error)


def runs(make: Any, *, in_loop: bool) -> bool:
    """Whether LangChain can run the tool so: a coroutine cannot be called from plain code."""
    return in_loop or make is not _coroutine


@each_kind
@in_any_style
class TestKinds:
    def test_an_allowed_call_is_the_ungoverned_call(self, make, in_loop, guard_of, record):
        """Law 1: the same schema, the same result, and the body runs once."""
        ran: list[Any] = []
        made = make(ran)
        governed = govern(made, guard_of())

        assert convert_to_openai_tool(made) == convert_to_openai_tool(governed)
        assert made.args == governed.args
        assert isinstance(governed, type(made))
        bare, told = (outcome(each, {"name": "a"}, in_loop=in_loop) for each in (made, governed))
        assert bare == told
        if runs(make, in_loop=in_loop):
            assert ([("a", False)] * 2, ["action.completed"]) == (ran, record.ends)
        else:
            assert ([], ["action.failed"]) == (ran, record.ends)

    def test_a_denied_call_runs_nothing(self, make, in_loop, guard_of, record):
        """A denial is a message of the tool, with the status of an error."""
        ran: list[Any] = []

        told = call(govern(make(ran), guard_of(rest="deny")), {"name": "a"}, in_loop=in_loop)

        assert ToolMessage(DENIED, name="erase", tool_call_id="c1", status="error") == told
        assert [] == ran
        assert ["action.denied"] == record.ends

    def test_defaults_are_judged(self, make, in_loop, guard_of, record):
        """A rule sees the default of what the model left out."""
        soft = {"id": "soft", "match": {"args.hard": False}, "decision": "deny"}
        ran: list[Any] = []

        call(govern(make(ran), guard_of(soft)), {"name": "a"}, in_loop=in_loop)

        assert ([], ["action.denied"]) == (ran, record.ends)

    def test_a_rewritten_call_runs_rewritten(self, make, in_loop, guard_of):
        """What a transform writes is what the body gets."""
        rule = {
            "id": "b",
            "match": {"args.name": "a"},
            "decision": "transform",
            "transform": {"path": "args.name", "set": "b"},
        }
        ran: list[Any] = []

        outcome(govern(make(ran), guard_of(rule)), {"name": "a", "hard": True}, in_loop=in_loop)

        assert ([("b", True)] if runs(make, in_loop=in_loop) else []) == ran


class TestSingleInput:
    @in_any_style
    @pytest.mark.parametrize("sent", [{"__arg1": "a"}, {"anything": "a"}, "a"])
    def test_the_one_argument_has_one_name(self, sent, in_loop, guard_of, ran):
        """Whatever the model calls it, a policy knows the argument of a `Tool` as `__arg1`."""
        rule = {"id": "a", "match": {"args.__arg1": "a"}, "decision": "deny"}
        bare = Tool("erase", lambda name: ran.append(name) or "erased", "Erase a note.")
        made = govern(bare, guard_of(rule))

        assert convert_to_openai_tool(bare) == convert_to_openai_tool(made)
        told = asyncio.run(made.ainvoke(sent)) if in_loop else made.invoke(sent)
        assert (DENIED, []) == (told, ran)
        assert "erased" == made.invoke({"__arg1": "b"})
        assert ["b"] == ran


class TestInjected:
    @in_any_style
    def test_what_is_injected_reaches_the_body_and_no_policy(
        self, stage, guard_of, record, in_loop
    ):
        """State, store, runtime, call id and config are the framework's, and not on record."""
        seen: list[Any] = []

        @tool
        def erase(
            name: str,
            state: Annotated[dict[str, Any], InjectedState],
            store: Annotated[Any, InjectedStore()],
            call_id: Annotated[str, InjectedToolCallId],
            runtime: ToolRuntime,
            config: RunnableConfig,
        ) -> str:
            """Erase a note."""
            seen.append((name, len(state["messages"]), bool(store), call_id, runtime.tool_call_id))
            return "erased"

        stage.script(a=[("erase", '{"name": "a"}')])
        agent = stage.agent([erase], store=InMemoryStore())

        stage.run(govern(agent, guard_of()), in_loop=in_loop)

        (proposed,) = record.bodies("step.proposed")
        assert {"name": "a"} == proposed["args"]
        assert [("a", 2, True, proposed["call_id"], proposed["call_id"])] == seen

    @in_any_style
    @pytest.mark.parametrize(
        "kind", [InjectedState, InjectedStore, InjectedToolArg, InjectedToolCallId]
    )
    def test_a_forged_one_reaches_nobody(self, stage, guard_of, record, in_loop, kind):
        """A model that writes a value for an injected parameter is not heard.

        https://github.com/langchain-ai/langgraph/pull/7391
        """
        seen: list[Any] = []

        @tool
        def erase(name: str, host: Annotated[Any, kind()] = "nobody") -> str:
            """Erase a note."""
            seen.append(host)
            return "erased"

        stage.script(a=[("erase", '{"name": "a", "host": "forged"}')])
        agent = stage.agent([erase], store=InMemoryStore())

        stage.run(govern(agent, guard_of()), in_loop=in_loop)

        assert 1 == len(seen)
        assert "forged" not in seen
        assert [{"name": "a"}] == [body["args"] for body in record.bodies("step.proposed")]

    @in_any_style
    @pytest.mark.parametrize("alias", ["alias", "choice", "path"])
    def test_a_forged_one_under_an_alias_is_denied(self, stage, guard_of, record, in_loop, alias):
        """LangChain takes away what is sent under the injected argument's own name alone."""
        seen: list[Any] = []
        fields: dict[str, dict[str, Any]] = {
            "alias": {"alias": "uid"},
            "choice": {"validation_alias": AliasChoices("other", "uid")},
            "path": {"validation_alias": AliasPath("uid", 0)},
        }

        class WithHost(BaseModel):
            name: str
            host: Annotated[str, InjectedToolArg] = Field(default="nobody", **fields[alias])

        def erase(name: str, host: str = "nobody") -> str:
            seen.append((name, host))
            return "erased"

        async def aerase(name: str, host: str = "nobody") -> str:
            return erase(name, host)

        made = StructuredTool.from_function(
            erase, aerase, description="Erase.", args_schema=WithHost
        )
        stage.script(
            a=[
                ("erase", '{"name": "a", "uid": ["forged"]}'),
                ("erase", '{"name": "b", "other_key": "c"}'),
            ]
        )

        stage.run(govern(stage.agent([made]), guard_of()), in_loop=in_loop)

        assert ["[denied] args.uid stands for a value that is injected", "erased"] == stage.said
        codes = [each["code"] for each in record.bodies("action.denied")]
        assert ([("b", "nobody")], ["refused_arguments"]) == (seen, codes)


class TestResults:
    @in_any_style
    def test_an_artifact(self, guard_of, in_loop):
        """A tool with an artifact keeps it; its denial has none."""

        @tool(response_format="content_and_artifact")
        def read(name: str) -> tuple[str, Any]:
            """Read a note."""
            return f"read {name}", {"raw": name}

        rule = {"id": "b", "match": {"args.name": "b"}, "decision": "deny"}
        made = govern(read, guard_of(rule))

        allowed = call(made, {"name": "a"}, in_loop=in_loop)
        denied = call(made, {"name": "b"}, in_loop=in_loop)

        assert ("read a", {"raw": "a"}) == (allowed.content, allowed.artifact)
        assert (DENIED, None) == (denied.content, denied.artifact)

    @in_any_style
    def test_a_command(self, stage, guard_of, in_loop):
        """A tool that answers with a command to the graph still does; its denial is a message."""

        @tool
        def note(name: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Note."""
            return Command(
                update={"messages": [ToolMessage(f"noted {name}", tool_call_id=call_id)]}
            )

        rule = {"id": "b", "match": {"args.name": "b"}, "decision": "deny"}
        stage.script(a=[[("note", '{"name": "a"}'), ("note", '{"name": "b"}')]])

        stage.run(govern(stage.agent([note]), guard_of(rule)), in_loop=in_loop)

        assert ["noted a", DENIED] == stage.said

    @in_any_style
    @pytest.mark.parametrize("rest", ["allow", "deny"])
    def test_a_tool_whose_answer_is_final(self, stage, guard_of, ran, rest, in_loop):
        """With `return_direct` a denial is the agent's answer, as any result of the tool is."""

        @tool(return_direct=True)
        def erase(name: str) -> str:
            """Erase a note."""
            ran.append(name)
            return "erased"

        stage.script(a=[("erase", '{"name": "a"}')])

        state = stage.run(govern(stage.agent([erase]), guard_of(rest=rest)), in_loop=in_loop)

        expected = ("erased", ["a"]) if rest == "allow" else (DENIED, [])
        assert expected == (state["messages"][-1].content, ran)
