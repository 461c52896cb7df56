"""`AdjudgeCallbackHandler`: what a pure callback handler enforces, and how it is installed."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, tool
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field

from adjudge import ApprovalDecision, CallContext, GovernError, Principal
from adjudge_langchain import AdjudgeCallbackHandler, ToolCallDenied, denial_for_model, govern

DENIED = "[denied] not permitted by policy"

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


def call(made: Any, handler: Any, args: Any = None, *, in_loop: bool = False) -> Any:
    """Call a tool with a handler of callbacks."""
    sent, config = args or {"name": "a"}, {"callbacks": [handler]}
    if in_loop:
        return asyncio.run(made.ainvoke(sent, config))
    return made.invoke(sent, config)


@in_any_style
class TestVerdicts:
    def test_allow(self, guard_of, erase, ran, record, in_loop):
        """The tool runs as it always does, and the record ends when it has ended."""
        assert "erased a" == call(erase, AdjudgeCallbackHandler(guard_of()), in_loop=in_loop)
        assert [("a", False)] == ran
        assert ["step.proposed", "policy.evaluated", "action.completed"] == record.kinds

    def test_deny(self, guard_of, erase, ran, record, in_loop):
        """A denial is raised, with the text that the model is to get."""
        with pytest.raises(ToolCallDenied) as denied:
            call(erase, AdjudgeCallbackHandler(guard_of(rest="deny")), in_loop=in_loop)

        assert (DENIED, "tool_call_denied") == (denied.value.text, denied.value.code)
        assert ([], ["action.denied"]) == (ran, record.ends)

    @pytest.mark.parametrize("granted", [True, False])
    def test_approve_required(self, guard_of, erase, ran, in_loop, granted):
        """A person is asked while the call waits."""
        guard = guard_of(
            rest="approve_required", on_approval=lambda *_: ApprovalDecision(granted, "ana")
        )
        handler = AdjudgeCallbackHandler(guard)

        if granted:
            call(erase, handler, in_loop=in_loop)
        else:
            with pytest.raises(ToolCallDenied):
                call(erase, handler, in_loop=in_loop)

        assert ([("a", False)] if granted else []) == ran

    def test_transform(self, guard_of, erase, ran, record, in_loop):
        """Nothing can be rewritten in a callback: a denial that says why."""
        rule = {
            "id": "b",
            "match": {"args.name": "a"},
            "decision": "transform",
            "transform": {"path": "args.name", "set": "b"},
        }

        with pytest.raises(ToolCallDenied, match="callback handler cannot change arguments"):
            call(erase, AdjudgeCallbackHandler(guard_of(rule)), in_loop=in_loop)

        assert ([], ["action.denied"]) == (ran, record.ends)

    def test_dry_run(self, guard_of, erase, ran, in_loop):
        """Nothing can stand for a tool's result: a denial that says why."""
        guard = guard_of(rest="dry_run", shadows={"erase": lambda **args: "preview"})

        with pytest.raises(ToolCallDenied, match="callback handler cannot give a preview"):
            call(erase, AdjudgeCallbackHandler(guard), in_loop=in_loop)

        assert [] == ran

    def test_a_body_that_raises(self, guard_of, record, in_loop):
        """The tool's own error is the caller's, and on record."""

        @tool
        def fail(name: str) -> str:
            """Fail."""
            raise KeyError(name)

        with pytest.raises(KeyError):
            call(fail, AdjudgeCallbackHandler(guard_of()), in_loop=in_loop)

        assert ["action.failed"] == record.ends

    def test_a_governed_tool_judges_itself(self, guard_of, erase, ran, record, in_loop):
        """The handler leaves a call to a tool that is under the same guard."""
        guard = guard_of(rest="dry_run", shadows={"erase": lambda **args: "preview"})

        told = call(govern(erase, guard), AdjudgeCallbackHandler(guard), in_loop=in_loop)

        assert told.startswith("[dry_run]")
        assert ([], ["action.previewed"]) == (ran, record.ends)

    def test_a_tool_inside_of_a_governed_one(self, guard_of, erase, ran, in_loop):
        """What a governed body calls with the callbacks is judged on its own."""
        rule = {"id": "erase", "match": {"tool": "erase"}, "decision": "deny"}
        guard = guard_of(rule)

        @tool
        def outer(name: str) -> str:
            """Call another."""
            return str(erase.invoke({"name": name}))

        with pytest.raises(ToolCallDenied):
            call(govern(outer, guard), AdjudgeCallbackHandler(guard), in_loop=in_loop)

        assert [] == ran

    def test_defaults_of_the_tools_that_it_knows(self, guard_of, erase, ran, in_loop):
        """With `tools`, a rule sees what the model left out."""
        rule = {"id": "soft", "match": {"args.hard": False}, "decision": "deny"}
        handler = AdjudgeCallbackHandler(guard_of(rule), tools=[erase])

        with pytest.raises(ToolCallDenied):
            call(erase, handler, in_loop=in_loop)

        assert [] == ran

    def test_a_forged_argument_of_the_tools_that_it_knows(self, guard_of, ran, in_loop):
        """What is sent for an injected argument, under an alias of it, is denied."""

        class WithHost(BaseModel):
            name: str
            host: Annotated[str, InjectedToolArg] = Field(default="nobody", alias="uid")

        def erase(name: str, host: str = "nobody") -> str:
            ran.append(host)
            return "erased"

        made = StructuredTool.from_function(erase, description="Erase.", args_schema=WithHost)
        handler = AdjudgeCallbackHandler(guard_of(), tools=[made])

        with pytest.raises(ToolCallDenied, match="injected"):
            call(made, handler, {"name": "a", "uid": "forged"}, in_loop=in_loop)

        assert [] == ran

    def test_context(self, guard_of, erase, ran, in_loop):
        """`context` says who is calling."""
        rule = {"id": "eve", "match": {"context.principal.id": "erase"}, "decision": "deny"}
        handler = AdjudgeCallbackHandler(
            guard_of(rule), context=lambda run: CallContext(principal=Principal("user", run.tool))
        )

        with pytest.raises(ToolCallDenied):
            call(erase, handler, in_loop=in_loop)

        assert [] == ran

    def test_an_error_that_langchain_would_swallow(self, guard_of, erase, ran, in_loop):
        """A NotImplementedError from within the guard denies as any other does."""

        def failing(run):
            raise NotImplementedError

        handler = AdjudgeCallbackHandler(guard_of(), context=failing)

        with pytest.raises(ToolCallDenied):
            call(erase, handler, in_loop=in_loop)

        assert [] == ran


class TestFailure:
    def test_a_call_that_is_cancelled(self, guard_of, record):
        """Law 7: it is on record, though not every release tells a handler of it."""

        @tool
        async def wait(name: str) -> str:
            """Wait."""
            entered.set()
            await asyncio.Event().wait()
            return name

        async def cancelled() -> None:
            sent, config = {"name": "a"}, {"callbacks": [AdjudgeCallbackHandler(guard_of())]}
            running = asyncio.ensure_future(wait.ainvoke(sent, config))
            await entered.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        entered = asyncio.Event()
        asyncio.run(cancelled())

        assert ["action.cancelled"] == record.ends

    def test_of_the_handler_itself(self, guard_of, erase, ran, monkeypatch):
        """Law 4: what breaks before a verdict denies, whatever it raises."""
        guard = guard_of()

        def broken(*args: Any, **options: Any) -> Any:
            raise NotImplementedError

        monkeypatch.setattr(guard, "govern_call_sync", broken)

        with pytest.raises(ToolCallDenied, match="could not be judged"):
            call(erase, AdjudgeCallbackHandler(guard))

        assert [] == ran

    def test_a_namesake_inside_of_a_governed_tool(self, guard_of, erase, ran):
        """A handler leaves to a governed tool its own calls, and not those of a namesake."""
        rule = {"id": "b", "match": {"args.name": "b"}, "decision": "deny"}
        guard = guard_of(rule)

        @tool("erase")
        def outer(name: str) -> str:
            """Erase another."""
            return str(erase.invoke({"name": "b"}))

        with pytest.raises(ToolCallDenied):
            govern(outer, guard).invoke(
                {"name": "a"}, {"callbacks": [AdjudgeCallbackHandler(guard)]}
            )

        assert [] == ran

    def test_a_call_that_another_handler_stops(self, stage, guard_of, record, ran):
        """Law 7: what this one has let through, and another has not, is on record as given up."""

        @tool
        async def erase(name: str) -> str:
            """Erase a note."""
            ran.append(name)
            return "erased"

        stage.script(a=[("erase", '{"name": "a"}')])
        guards = guard_of(), guard_of(rest="deny")
        config = {"callbacks": [AdjudgeCallbackHandler(guard) for guard in guards]}

        with pytest.raises(ToolCallDenied):
            stage.run(stage.agent([erase]), in_loop=True, config=config)

        assert ([], ["action.denied", "action.cancelled"]) == (ran, record.ends)


class TestInstallation:
    @pytest.mark.parametrize("name", ["raise_error", "run_inline", "ignore_agent"])
    def test_cannot_be_set_to_fail_open(self, guard_of, name):
        """The settings by which LangChain swallows a denial cannot be changed."""
        handler = AdjudgeCallbackHandler(guard_of())
        wanted = name != "ignore_agent"

        with pytest.raises(GovernError, match=name):
            setattr(handler, name, not wanted)

        setattr(handler, name, wanted)
        assert wanted is getattr(handler, name)

    @pytest.mark.parametrize("name", ["on_tool_start", "on_tool_end", "on_tool_error"])
    def test_cannot_have_others_put_in_the_place_of_its_own(self, guard_of, name):
        """What is set on the object would run in the place of the method."""
        with pytest.raises(GovernError, match=name):
            setattr(AdjudgeCallbackHandler(guard_of()), name, lambda *_, **__: None)

    def test_cannot_be_asynchronous(self):
        """LangChain logs and drops what an asynchronous handler raises in a sync call."""
        with pytest.raises(GovernError, match="AsyncCallbackHandler"):

            class Async(AdjudgeCallbackHandler, AsyncCallbackHandler):
                pass

    @pytest.mark.parametrize("name", ["raise_error", "run_inline", "ignore_agent", "on_tool_start"])
    @pytest.mark.parametrize("mixed_in", [True, False])
    def test_cannot_be_redefined(self, name, mixed_in):
        """A subclass does not loosen it by accident, nor does what it is mixed with."""
        loose = {name: False}
        bases = (type("Mixin", (), loose),) if mixed_in else ()

        with pytest.raises(GovernError, match=name):
            type("Loose", (*bases, AdjudgeCallbackHandler), {} if mixed_in else loose)

    def test_beside_the_callbacks_of_another_class(self, guard_of, erase, ran):
        """A subclass may listen to what else happens, and stops calls all the same."""

        class Listening(AdjudgeCallbackHandler):
            def on_chain_start(self, *args: Any, **options: Any) -> None:
                raise AssertionError("no chain is run here")

        with pytest.raises(ToolCallDenied):
            call(erase, Listening(guard_of(rest="deny")))

        assert [] == ran

    def test_twice_is_once(self, guard_of, erase, record):
        """Two handlers of one guard, inherited and local, judge a call once."""
        guard = guard_of()
        made = erase.model_copy(update={"callbacks": [AdjudgeCallbackHandler(guard)]})

        call(made, AdjudgeCallbackHandler(guard))

        assert ["action.completed"] == record.ends


class TestInAGraph:
    def test_a_denial_ends_the_run(self, stage, guard_of, erase, ran):
        """Without anything that tells the model, a denial is the run's error."""
        stage.script(a=[("erase", '{"name": "a"}')])
        handler = AdjudgeCallbackHandler(guard_of(rest="deny"))

        with pytest.raises(ToolCallDenied):
            stage.run(stage.agent([erase]), config={"callbacks": [handler]})

        assert [] == ran

    @in_any_style
    def test_a_denial_is_told_by_middleware(self, stage, guard_of, erase, ran, in_loop):
        """With ToolErrorMiddleware the model reads the denial, and the run goes on."""
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = stage.agent([erase], middleware=[ToolErrorMiddleware(denial_for_model)])
        handler = AdjudgeCallbackHandler(guard_of(rest="deny"))

        stage.run(agent, in_loop=in_loop, config={"callbacks": [handler]})

        assert ([DENIED], []) == (stage.said, ran)

    @in_any_style
    def test_an_agent_inside_of_a_body(self, stage, guard_of, erase, ran, in_loop):
        """The callbacks of a run reach the tools of an agent that one of its bodies runs."""
        rule = {"id": "erase", "match": {"tool": "erase"}, "decision": "deny"}
        stage.script(a=[("ask", '{"question": "?"}')], b=[("erase", '{"name": "a"}')])
        inner, given = stage.agent([erase], "b"), {"messages": [("user", "?")]}

        def ask(question: str) -> str:
            """Ask."""
            return str(inner.invoke(given))

        async def aask(question: str) -> str:
            """Ask."""
            return str(await inner.ainvoke(given))

        agent = stage.agent([StructuredTool.from_function(ask, aask)])
        config = {"callbacks": [AdjudgeCallbackHandler(guard_of(rule))]}

        with pytest.raises(ToolCallDenied):
            stage.run(agent, in_loop=in_loop, config=config)

        assert [] == ran

    def test_a_denial_is_told_by_a_tool_node(self, guard_of, erase, ran):
        """A node of one's own is given `denial_for_model` for its errors."""
        from langgraph.graph import START, MessagesState, StateGraph

        node = ToolNode([erase], handle_tool_errors=denial_for_model)
        builder = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
        sent: Any = [{"type": "tool_call", "name": "erase", "id": "1", "args": {"name": "a"}}]
        handler = AdjudgeCallbackHandler(guard_of(rest="deny"))

        state = builder.compile().invoke(
            {"messages": [AIMessage("", tool_calls=sent)]}, {"callbacks": [handler]}
        )

        assert (DENIED, []) == (state["messages"][-1].content, ran)
