"""`govern` and `AdjudgeMiddleware`: what they take, what they refuse, and where they stand."""

import asyncio
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import START, StateGraph

from adjudge import (
    CallContext,
    EphemeralLedgerWarning,
    GovernError,
    MemoryLedger,
    Principal,
    pause_approval,
)
from adjudge_langchain import AdjudgeMiddleware, govern

DENIED = "[denied] not permitted by policy"
SEARCH = {"type": "web_search"}

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


class TestTargets:
    def test_a_tool_is_copied(self, guard_of, erase, ran):
        """The original is left as it was, and its raw function is outside."""
        governed = govern(erase, guard_of(rest="deny"))

        assert DENIED == governed.invoke({"name": "a"})
        assert "erased b" == erase.invoke({"name": "b"})
        assert [("b", False)] == ran

    @pytest.mark.parametrize("kind", [list, tuple])
    def test_a_list_is_copied(self, guard_of, erase, kind):
        """Each tool of a list comes back governed, in the same order."""
        governed = govern(kind([erase, erase]), guard_of(rest="deny"))

        assert kind is type(governed)
        assert [DENIED] * 2 == [each.invoke({"name": "a"}) for each in governed]

    def test_an_agent_is_governed_in_place(self, stage, guard_of, erase, ran):
        """Whoever holds the agent already holds the governed one."""
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = stage.agent([erase])

        assert agent is govern(agent, guard_of(rest="deny"))
        stage.run(agent)
        assert ([DENIED], []) == (stage.said, ran)

    def test_the_same_guard_again_changes_nothing(self, stage, guard_of, erase, record):
        """Each call is judged once."""
        guard = guard_of()
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = govern(govern(stage.agent([govern(erase, guard)]), guard), guard)

        stage.run(agent)

        assert ["action.completed"] == record.ends

    def test_a_middleware_beside_govern(self, stage, guard_of, erase, record):
        """Both with the same guard judge each call once."""
        guard = guard_of()
        stage.script(a=[("erase", '{"name": "a"}')])
        agent = stage.agent([erase], middleware=[AdjudgeMiddleware(guard)])

        stage.run(govern(agent, guard))

        assert ["action.completed"] == record.ends

    def test_another_guard_is_an_error(self, stage, guard_of, erase):
        """A tool and an agent have one guard, and a refused `govern` changes nothing."""
        stage.script(a=[])
        governed = govern(erase, guard_of())
        for target in (governed, stage.agent([erase, governed]), [erase, governed]):
            with pytest.raises(GovernError, match="another guard"):
                govern(target, guard_of())

    def test_another_guard_in_a_run(self, stage, guard_of, erase, ran):
        """A middleware that meets another guard's tool lets nothing run."""
        stage.script(a=[("erase", '{"name": "a"}')])
        governed = govern(erase, guard_of())
        agent = stage.agent([governed], middleware=[AdjudgeMiddleware(guard_of())])

        with pytest.raises(GovernError, match="another guard"):
            stage.run(agent)
        assert [] == ran

    @pytest.mark.parametrize("target", [print, "tools", object(), {"erase": 1}])
    def test_what_is_no_target(self, guard_of, target):
        """What has no place to stand is refused."""
        with pytest.raises(GovernError, match="cannot be governed"):
            govern(target, guard_of())

    def test_an_agent_without_tools(self, stage, guard_of):
        """An agent that can call nothing is not what was meant."""
        stage.script(a=[])

        with pytest.raises(GovernError, match="no tool to govern"):
            govern(stage.agent(), guard_of())

    def test_a_graph_that_is_no_agent(self, guard_of, erase):
        """A graph of one's own is for adjudge-langgraph."""
        from langgraph.graph import MessagesState
        from langgraph.prebuilt import ToolNode

        builder = StateGraph(MessagesState).add_node("tools", ToolNode([erase]))
        graph = builder.add_edge(START, "tools").compile()

        with pytest.raises(GovernError, match="adjudge-langgraph"):
            govern(graph, guard_of())

    @pytest.mark.parametrize(
        "settings", [{"hosted": "no"}, {"ungoverned": "web"}, {"context": 3}, {"guard": object()}]
    )
    def test_what_cannot_be_a_setting(self, guard_of, erase, settings):
        """Settings are checked when they are given."""
        given = {"guard": guard_of(), **settings}
        with pytest.raises(GovernError):
            govern(erase, **given)
        with pytest.raises(GovernError):
            AdjudgeMiddleware(**given)

    def test_a_ledger_in_memory_warns(self, guard_of, erase):
        """A pause that does not outlive the process is worth a word."""
        guard = guard_of(on_approval=pause_approval(MemoryLedger()))

        with pytest.warns(EphemeralLedgerWarning):
            govern(erase, guard)

    @pytest.mark.parametrize(
        "name", ["run", "arun", "invoke", "ainvoke", "batch", "astream", "transform", "__call__"]
    )
    def test_a_tool_with_a_door_of_its_own(self, guard_of, name):
        """A class that overrides how it is invoked could go past the guard."""

        def own(self, *args: Any, **kwargs: Any) -> Any:
            return "past"

        class Own(BaseTool):
            name: str = "own"
            description: str = "Own."

            def _run(self) -> str:
                return "ran"

        setattr(Own, name, own)
        with pytest.raises(GovernError, match=name):
            govern(Own(), guard_of())

    @pytest.mark.parametrize("name", ["_run", "invoke"])
    def test_a_tool_with_a_replaced_door(self, guard_of, erase, name):
        """What is put on the object itself would hide the governed one."""
        erase.__dict__[name] = lambda *args, **kwargs: "past"

        with pytest.raises(GovernError, match=name):
            govern(erase, guard_of())


@in_any_style
class TestContext:
    def test_says_who_is_calling(self, stage, guard_of, erase, record, in_loop):
        """`context` finds the caller in the run's own context."""
        rule = {"id": "eve", "match": {"context.principal.id": "eve"}, "decision": "deny"}
        seen = []

        def who(run):
            seen.append((run.tool, run.config["configurable"]["thread_id"]))
            return CallContext(principal=Principal("user", run.context))

        stage.script(a=[("erase", '{"name": "a"}')])
        agent = govern(stage.agent([erase]), guard_of(rule), context=who)

        stage.run(
            agent, in_loop=in_loop, context="eve", config={"configurable": {"thread_id": "7"}}
        )

        assert [DENIED] == stage.said
        assert [("erase", "7")] == seen

    def test_that_fails_denies(self, guard_of, erase, ran, record, in_loop):
        """Law 4: where nobody can say who is calling, nothing runs."""
        made = govern(erase, guard_of(), context=lambda run: run.context.user)

        told = asyncio.run(made.ainvoke({"name": "a"})) if in_loop else made.invoke({"name": "a"})

        assert told.startswith("[denied]")
        assert [] == ran
        assert ["context_failed"] == [each["code"] for each in record.bodies("action.denied")]


def test_another_context_of_the_same_guard(stage, guard_of, erase):
    """Who is calling is not dropped in silence: a governed tool keeps the context that it has."""
    guard = guard_of()

    def who(run):
        return CallContext(principal=Principal("user", "eve"))

    (made,) = govern([erase], guard)
    stage.script(a=[("erase", '{"name": "a"}')])

    with pytest.raises(GovernError, match="another context"):
        govern(stage.agent([made]), guard, context=who)
    with pytest.raises(GovernError, match="another context"):
        stage.run(stage.agent([made], middleware=[AdjudgeMiddleware(guard, context=who)]))


def test_the_same_context_again(guard_of, erase):
    """The same one, or none, changes nothing."""
    guard = guard_of()

    def who(run):
        return CallContext(principal=Principal("user", "eve"))

    made = govern(erase, guard, context=who)

    assert govern(made, guard, context=who) is made is govern(made, guard)


class Offering(AgentMiddleware):
    """Adds the provider's search to each request."""

    def __init__(self, **overrides: Any) -> None:
        super().__init__()
        self.overrides = overrides

    def wrap_model_call(self, request, handler):
        """Add it."""
        return handler(self._with(request))

    async def awrap_model_call(self, request, handler):
        """Add it."""
        return await handler(self._with(request))

    def _with(self, request):
        return request.override(**(self.overrides or {"tools": [*request.tools, SEARCH]}))


class TestHosted:
    def test_is_refused_where_it_is_visible(self, stage, guard_of, erase):
        """A tool at the provider is seen when the agent is governed."""
        stage.script(a=[])

        with pytest.raises(GovernError, match="web_search"):
            govern(stage.agent([erase, SEARCH]), guard_of())

    @pytest.mark.parametrize("by", ["govern", "middleware"])
    @in_any_style
    @pytest.mark.parametrize("overrides", [{}, {"model_settings": {"tools": [SEARCH]}}])
    def test_is_refused_in_a_request(self, stage, guard_of, erase, in_loop, by, overrides):
        """Whatever other middleware offers, it does not get to the model."""
        stage.script(a=[])
        agent = governed(stage, guard_of(), erase, by, Offering(**overrides))

        with pytest.raises(GovernError, match="web_search"):
            stage.run(agent, in_loop=in_loop)

        assert [] == stage.requests

    @pytest.mark.parametrize("by", ["govern", "middleware"])
    @pytest.mark.parametrize(
        "settings", [{"web_search_options": {}}, {"mcp_servers": [{"url": "https://m"}]}]
    )
    def test_is_refused_in_the_settings(self, stage, guard_of, erase, by, settings):
        """Settings by which a provider searches or calls servers are tools there, too."""
        stage.script(a=[])
        agent = governed(stage, guard_of(), erase, by, Offering(model_settings=settings))

        with pytest.raises(GovernError, match=next(iter(settings))):
            stage.run(agent)

    @pytest.mark.parametrize("by", ["govern", "middleware"])
    def test_is_refused_on_a_bound_model(self, stage, guard_of, erase, by):
        """What a middleware's model was bound to is sent, and looked at."""
        stage.script(a=[])
        bound = stage.model().bind(tools=[SEARCH])
        agent = governed(stage, guard_of(), erase, by, Offering(model=bound, tools=[]))

        with pytest.raises(GovernError, match="web_search"):
            stage.run(agent)

    def test_is_left_out_of_a_bound_model(self, stage, guard_of, erase):
        """With hosted='strip' the binding goes without it."""
        stage.script("responses", a=[])
        bound = stage.model().bind(tools=[SEARCH])
        offering = Offering(model=bound, tools=[])

        stage.run(governed(stage, guard_of(), erase, "govern", offering, hosted="strip"))

        assert [[]] == stage.offered

    def test_is_an_object_of_a_provider(self, stage, guard_of, erase):
        """What is neither a tool nor a schema is known to the provider alone."""

        class Search:
            google_search: Any = None

        stage.script(a=[])

        agent = governed(stage, guard_of(), erase, "govern", Offering(tools=[erase, Search()]))

        with pytest.raises(GovernError, match="Search"):
            stage.run(agent)

    @pytest.mark.parametrize("by", ["govern", "middleware"])
    @in_any_style
    def test_is_left_out(self, stage, guard_of, erase, in_loop, by):
        """With hosted='strip' the request goes without it."""
        stage.script("responses", a=[])
        agent = governed(stage, guard_of(), erase, by, Offering(), hosted="strip")

        stage.run(agent, in_loop=in_loop)

        assert [["erase"]] == stage.offered

    @pytest.mark.parametrize("by", ["govern", "middleware"])
    @pytest.mark.parametrize("settings", [{"hosted": "allow"}, {"ungoverned": ["web_search"]}])
    def test_is_let_through(self, stage, guard_of, erase, by, settings):
        """Who lists it lets it run ungoverned."""
        stage.script("responses", a=[])
        agent = governed(stage, guard_of(), erase, by, Offering(), **settings)

        stage.run(agent)

        assert [["erase", "web_search"]] == stage.offered

    def test_a_middleware_cannot_stand_outside_of_another(self, stage, guard_of, erase):
        """What is listed after the guard could offer what it does not see."""
        stage.script(a=[])
        agent = stage.agent([erase], middleware=[AdjudgeMiddleware(guard_of()), Offering()])

        with pytest.raises(GovernError, match="list it last"):
            stage.run(agent)

    def test_a_handler_that_says_it_is_the_node_s(self, stage, guard_of, erase, ran):
        """What a wrapper claims of itself does not make it the innermost one."""
        guard = guard_of()

        class Claiming(AgentMiddleware):
            def wrap_tool_call(self, request, handler):
                def inner(given):
                    return handler(given.override(tool=erase))

                inner.__module__ = handler.__module__
                return AdjudgeMiddleware(guard).wrap_tool_call(request, inner)

        stage.script(a=[("erase", '{"name": "a"}')])

        with pytest.raises(GovernError, match="list it last"):
            stage.run(stage.agent([erase], middleware=[Claiming()]))

        assert [] == ran

    def test_a_function_schema_is_no_tool_of_the_provider(self, stage, guard_of, erase):
        """A plain schema comes back as a call, which no tool answers to."""
        schema = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        stage.script(a=[])

        stage.run(govern(stage.agent([erase, schema]), guard_of()))

        assert [["erase", "f"]] == stage.offered


def governed(stage, guard, erase, by, *middleware, **settings):
    """Make an agent that is governed one way or the other."""
    if by == "govern":
        return govern(stage.agent([erase], middleware=list(middleware)), guard, **settings)
    last = AdjudgeMiddleware(guard, **settings)
    return stage.agent([erase], middleware=[*middleware, last])


class TestInvalidArguments:
    @in_any_style
    @pytest.mark.parametrize("handled", [False, "Try again."])
    def test_are_on_record(self, guard_of, ran, record, in_loop, handled):
        """Arguments that the schema rejects get LangChain's own answer, and no verdict."""

        def erase(name: str) -> str:
            ran.append(name)
            return "erased"

        made = StructuredTool.from_function(
            erase, description="Erase.", handle_validation_error=handled
        )
        governed_one = govern(made, guard_of())

        answers = []
        for each in (made, governed_one):
            try:
                sent = {"nome": "a"}
                answers.append(asyncio.run(each.ainvoke(sent)) if in_loop else each.invoke(sent))
            except ValueError as error:
                answers.append(str(error))

        assert answers[0] == answers[1]
        assert ["step.proposed", "action.failed"] == record.kinds
        assert ["invalid_arguments"] == [each["code"] for each in record.bodies("action.failed")]
