"""Graphs that wait for people: in another process, and what grants nothing."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from desk_process import Desk
from graph_desk import GO, GRANTED, ONE, REFUSED, answers_to, builder_of, graph_of, run, told
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from adjudge import AnswerError, GovernError, SQLiteLedger, pause_approval
from adjudge_langgraph import apending, aresume, govern, hitl_answers, pending, resume

PROCESS = Path(__file__).with_name("desk_process.py")
TWO: Any = {"configurable": {"thread_id": "2"}}
PAY = ("pay", {"amount": 1})

in_either_layout = pytest.mark.parametrize("fan_out", [False, True], ids=["one-task", "fan-out"])


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The folders of runs that another process has started, by layout."""
    folders = {}
    for layout in ("one-task", "fan-out"):
        folders[layout] = tmp_path_factory.mktemp(layout)
        command = [sys.executable, str(PROCESS), str(folders[layout]), layout]
        subprocess.run(command, check=True, timeout=120)
    return folders


@pytest.fixture(params=["one-task", "fan-out"])
def desk(request, started, tmp_path):
    """Such a run, to go on with here."""
    return Desk(Path(shutil.copytree(started[request.param], tmp_path / "run")))


class TestInAnotherProcess:
    def test_a_grant_and_a_refusal(self, desk):
        """Each answer reaches its call in another process; the sibling ran in the first alone."""
        assert [1] == desk.answer("granted", 2)
        assert [] == desk.answer("refused", 1)

        assert [("note", "x"), ("pay", 2)] == desk.bodies
        assert [False, True] == [process == os.getpid() for _, _, process in desk.ran]

    @pytest.mark.parametrize(("answer", "runs"), [("edited", [("pay", 7)]), ("edited-too-far", [])])
    def test_an_edit(self, desk, answer, runs):
        """An edit runs as it was edited, and is judged first."""
        desk.answer(answer, 1)

        assert [("note", "x"), *runs] == desk.bodies

    def test_the_same_answer_again(self, desk):
        """An answer that was used, or comes after another one, changes nothing."""
        desk.answer("granted", 1, 2)
        desk.answer("granted", 1, 2)
        desk.answer("refused", 1)

        assert [("note", "x"), ("pay", 1), ("pay", 2)] == desk.bodies

    def test_the_graphs_own_resumption(self, desk):
        """What the graph alone is resumed with runs nothing, and takes nothing from the answer."""
        assert [1, 2] == desk.resume_natively()
        assert [("note", "x")] == desk.bodies
        assert [] == desk.answer("granted", 1, 2)

        assert [("note", "x"), ("pay", 1), ("pay", 2)] == desk.bodies

    def test_a_restored_file_of_checkpoints(self, desk):
        """A saved state that is put back and resumed once more runs nothing more."""
        file = desk.folder / "checkpoints.sqlite"
        before = file.read_bytes()
        desk.answer("granted", 1, 2)

        file.write_bytes(before)
        desk.answer("granted", 1, 2)

        assert [("note", "x"), ("pay", 1), ("pay", 2)] == desk.bodies

    def test_a_ledger_that_is_gone(self, desk):
        """Whoever does not see the ledger can grant nothing."""
        (desk.folder / "ledger.sqlite").unlink()

        with pytest.raises(AnswerError):
            desk.answer("granted", 1)

        assert [("note", "x")] == desk.bodies


@in_either_layout
class TestWhatGrantsNothing:
    def test_answers_of_another_thread(self, pausing, pay, ran, fan_out):
        """An answer is for the call of its own thread alone."""
        graph = graph_of([pay], pausing(), PAY, fan_out=fan_out)
        run(graph)
        run(graph, config=TWO)

        with pytest.raises(AnswerError, match="its own calls"):
            resume(graph, TWO, answers_to(graph))

        assert [] == ran

    def test_an_earlier_checkpoint(self, pausing, pay, ran, fan_out):
        """Time travel to where the run waited finds the answer used."""
        graph = graph_of([pay], pausing(), PAY, fan_out=fan_out)
        run(graph)
        given, waited = answers_to(graph), graph.get_state(ONE).config
        resume(graph, ONE, given)

        resume(graph, waited, given)
        graph.invoke(None, waited)

        assert [("pay", 1)] == ran

    def test_a_fork(self, pausing, pay, ran, fan_out):
        """A run that is forked before the call proposes it anew, and asks anew."""
        graph = graph_of([pay], pausing(), PAY, fan_out=fan_out)
        run(graph)
        given = answers_to(graph)
        resume(graph, ONE, given)
        start = next(each for each in graph.get_state_history(ONE) if each.next == ("model",))

        graph.invoke(None, start.config)

        assert [("pay", 1)] == ran
        assert given.keys().isdisjoint(answers_to(graph))

    def test_a_changed_state(self, pausing, pay, ran, fan_out):
        """What `update_state` makes of a call is another call, which asks anew."""
        graph = graph_of([pay], pausing(), PAY, fan_out=fan_out)
        run(graph)
        given = answers_to(graph)
        message = graph.get_state(ONE).values["messages"][-1]
        call = {**message.tool_calls[0], "args": {"amount": 999_999}}
        changed = message.model_copy(update={"tool_calls": [call]})
        graph.update_state(ONE, {"messages": [changed]}, as_node="model")

        graph.invoke(None, ONE)
        resume(graph, ONE, given)

        assert [] == ran
        assert [999_999] == [each.request.args["amount"] for each in pending(graph, ONE)]

    def test_new_input(self, pausing, pay, ran, fan_out):
        """What the user says in between abandons the call; its answer is for nothing else."""
        graph = graph_of([pay], pausing(), PAY, fan_out=fan_out)
        run(graph)
        given = answers_to(graph)

        run(graph, {"messages": [HumanMessage("Never mind.")]})
        resume(graph, ONE, given)

        assert [] == ran

    def test_a_policy_that_has_changed(self, guard_of, pausing, pay, ran, fan_out, tmp_path):
        """The policy is judged again: what it denies by now is not run by an earlier grant."""
        saver = InMemorySaver()
        graph = graph_of([pay], pausing(), PAY, fan_out=fan_out, saver=saver)
        run(graph)
        given = answers_to(graph)
        stricter = {"id": "no", "match": {"tool": "pay"}, "decision": "deny"}

        graph = graph_of([pay], pausing(stricter), PAY, fan_out=fan_out, saver=saver)
        state = resume(graph, ONE, given)

        assert [] == ran
        assert told(state)[0].startswith("[denied]")


class TestGoingOn:
    def test_on_an_event_loop(self, pausing, note, pay, ran, tmp_path):
        """The twins work with a checkpointer for coroutines."""
        builder = builder_of(ToolNode([note, pay]), ("note", {"text": "x"}), PAY)

        async def within() -> Any:
            file = str(tmp_path / "checkpoints.sqlite")
            async with AsyncSqliteSaver.from_conn_string(file) as saver:
                graph = govern(builder.compile(checkpointer=saver), pausing())
                await graph.ainvoke(GO, ONE)
                (asked,) = await apending(graph, ONE)
                return await aresume(graph, ONE, {asked.id: GRANTED})

        state = asyncio.run(within())

        assert ["noted x", "paid 1"] == told(state)
        assert [("note", "x"), ("pay", 1)] == ran

    def test_in_subgraphs(self, pausing, note, pay, ran):
        """What waits in a subgraph of a subgraph is found, answered and run there."""
        inner = builder_of(ToolNode([note, pay]), ("note", {"text": "x"}), PAY).compile()
        middle = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
        outer = StateGraph(MessagesState).add_node("middle", middle.compile())
        outer.add_edge(START, "middle")
        graph = govern(outer.compile(checkpointer=InMemorySaver()), pausing())
        run(graph)

        (asked,) = pending(graph, ONE)
        resume(graph, ONE, {asked.id: GRANTED})

        assert [("note", "x"), ("pay", 1)] == ran

    @in_either_layout
    def test_past_what_was_left_behind(self, guard_of, ran, tmp_path, fan_out):
        """What somebody gave a subgraph's call natively reaches no body that waits itself."""

        @tool
        def ask(of: str) -> str:
            """Ask."""
            ran.append(interrupt(f"which {of}?"))
            return str(ran[-1])

        rule = {"id": "ask", "match": {"tool": "ask"}, "decision": "approve_required"}
        guard = guard_of(rule, on_approval=pause_approval(SQLiteLedger(tmp_path / "ledger")))
        inner = builder_of(ToolNode([ask]), ("ask", {"of": "a"}), fan_out=fan_out).compile()
        outer = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
        graph = govern(outer.compile(checkpointer=InMemorySaver()), guard)
        run(graph)

        run(graph, Command(resume="stray"))
        state = resume(graph, ONE, answers_to(graph))

        assert [] == ran
        assert {"which a?"} == {each.value for each in state["__interrupt__"]}

    def test_in_agents_that_tools_ask(self, pausing, note, pay, ran, record):
        """Two helpers in one message wait at once, and each answer reaches its own."""
        guard = pausing()

        def helper_of(amount: int) -> Any:
            calls = [("note", {"text": str(amount)}), ("pay", {"amount": amount})]
            return govern(builder_of(ToolNode([note, pay]), *calls).compile(), guard)

        helpers = {"one": helper_of(1), "two": helper_of(2)}

        @tool
        def ask(name: str) -> str:
            """Ask a helper."""
            state = helpers[name].invoke({"messages": [HumanMessage("Go.")]})
            return " and ".join(told(state))

        graph = graph_of([ask], guard, ("ask", {"name": "one"}), ("ask", {"name": "two"}))
        run(graph)
        ids = {each.request.args["amount"]: each.id for each in pending(graph, ONE)}

        resume(graph, ONE, {ids[2]: GRANTED})
        state = resume(graph, ONE, {ids[1]: REFUSED})

        assert [("note", "1"), ("note", "2"), ("pay", 2)] == sorted(ran)
        assert "noted 2 and paid 2" == told(state)[1]
        assert told(state)[0].startswith("noted 1 and [denied]")

    def test_with_the_decisions_of_a_user_interface(self, pausing, pay, ran):
        """What speaks the format of the human-in-the-loop middleware can answer."""
        calls = [("pay", {"amount": 1}), ("pay", {"amount": 2})]
        graph = graph_of([pay], pausing(), *calls)
        asked = run(graph)["__interrupt__"]

        decisions = {"decisions": [{"type": "reject"}, {"type": "approve"}]}
        resume(graph, ONE, hitl_answers(asked, decisions, approver="ana"))

        assert [("pay", asked[1].value["args"]["amount"])] == ran

    def test_a_guard_is_found_or_given(self, guard_of, pausing, pay):
        """What is pending is known by the graph's guard, or a given one, not another."""
        graph = builder_of(ToolNode([pay]), PAY).compile(checkpointer=InMemorySaver())
        run(graph)

        with pytest.raises(GovernError, match="not governed"):
            pending(graph, ONE)
        assert [] == pending(graph, ONE, guard=pausing())
        govern(graph, guard_of())
        with pytest.raises(GovernError, match="another guard"):
            pending(graph, ONE, guard=pausing())

    @pytest.mark.parametrize("answers", [{"x": GRANTED}, {"x": True}, GRANTED])
    def test_what_is_no_answer(self, pausing, pay, answers):
        """What no call waits for, and what is no decision, is an error."""
        graph = graph_of([pay], pausing(), PAY)
        run(graph)

        with pytest.raises(AnswerError):
            resume(graph, ONE, answers)

    def test_a_pause_at_the_node(self, pausing, note, pay, ran):
        """LangGraph's own pause before a node says nothing about its calls."""
        builder = builder_of(ToolNode([note, pay]), ("note", {"text": "x"}), PAY)
        compiled = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
        graph = govern(compiled, pausing())
        run(graph)

        run(graph, None)
        assert [("note", "x")] == ran
        run(graph, Command(resume=True))

        assert [("note", "x")] == ran
