"""Runs that wait, where it is easy to go wrong: ids that repeat, other agents, other people."""

import asyncio
import contextlib
import dataclasses
import json
from typing import Any

import pytest
from agents import Agent, ApplyPatchTool, ModelBehaviorError, Runner, function_tool
from pausing_desk import ASK, CALL, CONFIG, YES, saved_of

from adjudge import (
    AnswerError,
    ApprovalDecision,
    MemoryLedger,
    PolicyLayer,
    Principal,
    SQLiteLedger,
    ToolGuard,
    compile_policy,
    pause_approval,
)
from adjudge_conformance.wire import ScriptedCall
from adjudge_openai_agents import apending, govern, pending, resume, run_of

REST = {"id": "rest", "match": "always", "decision": "allow"}


def resumed(agent, saved, answers, **options):
    """Resume a run, and give what came of it."""
    return asyncio.run(resume(agent, saved, answers, run_config=CONFIG, **options))


def helped(desk, *tools: Any, guard=None) -> Agent[Any]:
    """Make an agent that asks another, which has the tools."""
    helper = desk.stage.agent("helper", tools=list(tools))
    outer = desk.stage.agent("desk", tools=[helper.as_tool("ask", "Ask the helper.")])
    return govern(outer, guard or desk.guard())


# Who answers, and for whom


def test_one_person_does_not_answer_for_two_approver_sets(desk, tmp_path):
    """Clause 20: an answer that is delivered twice is one person's, and one answer."""

    def build() -> Agent[Any]:
        layers = [
            PolicyLayer(name, {"version": 1, "rules": [{**ASK, "approvers": [name]}]})
            for name in ("security", "finance")
        ]
        ledger = SQLiteLedger(tmp_path / "ledger.db")
        guard = ToolGuard(policy=compile_policy(layers), on_approval=pause_approval(ledger))
        return govern(desk.stage.agent("desk", tools=[desk.pay()]), guard)

    desk.stage.script(desk=[CALL])
    result = desk.stage.run(build())
    saved = saved_of(result)
    [waits] = pending(result)
    for _ in range(2):
        resumed(build(), saved, {waits.id: YES})
    after_ana = list(desk.ran)
    resumed(build(), saved, {waits.id: ApprovalDecision(True, "bo")})

    assert (after_ana, desk.ran) == ([], [("bo", 5)])


def test_another_guards_principal_is_somebody_else(desk):
    """Clause 22: without `context=` it is the guard that says for whom a run goes on."""

    def build(who: str) -> Agent[Any]:
        policy = compile_policy({"version": 1, "rules": [ASK]})
        how = pause_approval(SQLiteLedger(desk.ledger))
        guard = ToolGuard(policy=policy, on_approval=how, principal=Principal("user", who))
        return govern(desk.stage.agent("desk", tools=[desk.pay()]), guard)

    desk.stage.script(desk=[CALL])
    result = desk.stage.run(build("alice"))
    [waits] = pending(result)
    saved = saved_of(result)
    resumed(build("bob"), saved, {waits.id: YES})
    for_bob = list(desk.ran)
    resumed(build("alice"), saved, {waits.id: None})

    assert (for_bob, desk.ran) == ([], [("bo", 5)])


# Which call


def test_an_answer_to_one_call_approves_no_other_of_its_id(desk):
    """Fault X037: a nested call of the same id keeps its own approval, which the SDK asks for."""

    @function_tool
    def pay(to: str, amount: int = 5) -> str:
        """Pay somebody."""
        desk.ran.append(("root", to))
        return "paid"

    inner = desk.pay(needs_approval=True)
    desk.rules = [{**ASK, "match": {"tool": "pay", "args.amount.gt": 100}}]
    big = ScriptedCall("pay", '{"to": "bo", "amount": 500}')
    desk.stage.script(
        desk=[(ScriptedCall("ask", '{"input": "please 1"}'), dataclasses.replace(big, id="same"))],
        helper=[ScriptedCall("pay", '{"to": "eve", "amount": 99}', id="same")],
    )

    def build() -> Agent[Any]:
        helper = desk.stage.agent("helper", tools=[inner])
        asking = helper.as_tool("ask", "Ask the helper.")
        return govern(desk.stage.agent("desk", tools=[pay, asking]), desk.guard())

    result = desk.stage.run(build())
    [waits] = pending(result)
    resumed(build(), saved_of(result), {waits.id: YES})

    assert dict(waits.decision.effective_args) == {"to": "bo", "amount": 500}
    assert desk.ran == [("root", "bo")]


def test_a_call_is_bound_to_the_agent_that_proposed_it(desk):
    """A saved state that names another agent runs no body of that one's tool of the same name."""

    def tool_of(where: str) -> Any:
        @function_tool(name_override="wipe")
        def wipe(path: str) -> str:
            """Wipe a path."""
            desk.ran.append((where, path))
            return "wiped"

        return wipe

    desk.rules = [{**ASK, "match": {"tool": "wipe"}}]
    wipe = ("wipe", '{"path": "/"}')
    desk.stage.script(desk=[("transfer_to_sandbox", "{}")], sandbox=[wipe], prod=[wipe])

    def build() -> Agent[Any]:
        sandbox = desk.stage.agent("sandbox", tools=[tool_of("sandbox")])
        prod = desk.stage.agent("prod", tools=[tool_of("prod")])
        return govern(desk.stage.agent("desk", handoffs=[sandbox, prod]), desk.guard())

    result = desk.stage.run(build())
    [waits] = pending(result)
    saved = saved_of(result)
    tampered = json.loads(json.dumps(saved).replace('"name": "sandbox"', '"name": "prod"'))
    with contextlib.suppress(ModelBehaviorError):  # where the SDK notices, it ends the run
        resumed(build(), tampered, {waits.id: YES})
    after_tampering = list(desk.ran)
    resumed(build(), saved, {waits.id: None})

    assert (after_tampering, desk.ran) == ([], [("sandbox", "/")])


class Deleting:
    """An editor that puts down what it deletes."""

    def __init__(self, ran: list[Any]) -> None:
        self._ran = ran

    def delete_file(self, operation: Any) -> None:
        """Delete a file."""
        self._ran.append(operation.path)


def patching() -> ScriptedCall:
    """Make a call that deletes a file."""
    operation = {"type": "delete_file", "path": "a.txt"}
    item = {"type": "apply_patch_call", "status": "completed", "operation": operation}
    return ScriptedCall("apply_patch", "", item=item)


def test_the_same_edit_of_files_twice_is_two_calls(desk):
    """Each is asked about and each goes on, though the SDK tells an editor no call id."""
    desk.rules = [{**ASK, "match": {"tool": "apply_patch"}}]
    desk.tools = [ApplyPatchTool(editor=Deleting(desk.ran))]
    desk.stage.script("responses", desk=[(patching(), patching())])
    result = desk.stage.run(desk.agent())
    first, second = pending(result)
    result = desk.go_on(saved_of(result), {second.id: YES})
    half, rest = list(desk.ran), [each.id for each in pending(result)]
    desk.go_on(saved_of(result), {first.id: YES})

    assert (half, rest) == (["a.txt"], [first.id])
    assert desk.ran == ["a.txt", "a.txt"]


def test_text_with_a_key_twice_ends_the_call_that_waited(desk, record):
    """Clause 2: the SDK shows its own reading of it, and the body's door refuses the text."""
    result = desk.start(("pay", '{"to": "bo", "to": "eve"}'))
    [waits] = pending(result)
    desk.go_on(saved_of(result), {waits.id: YES})

    assert desk.ran == []
    denied = next(event for event in record.events if event.kind == "action.denied")
    assert (denied.seq, denied.body["code"]) == (record.events[0].seq, "refused_arguments")


# Agents in agents. Each asks in its own words: 0.20 takes equal calls of two runs for one.


def test_a_nested_agent_whose_tool_is_denied_meanwhile_is_let_go(desk):
    """The model is told of the denial, and nothing waits for ever."""
    desk.stage.script(desk=[("ask", '{"input": "please 2"}')], helper=[CALL])
    result = desk.stage.run(helped(desk, desk.pay()))
    [waits] = pending(result)
    desk.rules = [{"id": "no", "match": {"tool": "ask"}, "decision": "deny", "reason": "no more"}]
    done = resumed(helped(desk, desk.pay()), saved_of(result), {waits.id: YES})

    assert (done.final_output, done.interruptions) == ("desk is done.", [])
    assert (desk.ran, desk.stage.said) == ([], ["[denied] no more"])


def test_a_run_that_a_body_starts_by_itself_is_a_run_of_its_own(desk):
    """What it waits for is pending in its own result, and goes on from there."""
    desk.stage.script(desk=[("ask", "{}")], helper=[CALL])
    guard = desk.guard()
    helper = govern(desk.stage.agent("helper", tools=[desk.pay()]), guard)

    @function_tool
    async def ask() -> str:
        """Ask the helper, and answer for it."""
        paused = await Runner.run(helper, "Go.", run_config=CONFIG)
        answers = {each.id: YES for each in pending(paused)}
        done = await resume(helper, saved_of(paused), answers, run_config=CONFIG)
        return str(done.final_output)

    desk.stage.run(govern(desk.stage.agent("desk", tools=[ask]), guard))

    assert desk.ran == [("bo", 5)]


def test_a_nested_tools_own_approval_lets_the_same_execution_go_on(desk, record):
    """Law 6: with the run's id, the agent that was asked is one execution, answers or none."""
    desk.rules = []
    desk.stage.script(desk=[("ask", '{"input": "please 3"}')], helper=[CALL])
    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": [REST, ASK]}),
        on_approval=pause_approval(SQLiteLedger(desk.ledger)),
        sinks=[record],
    )
    agent = helped(desk, desk.pay(needs_approval=True), guard=guard)
    result = desk.stage.run(agent)
    state = result.to_state()
    state.approve(state.get_interruptions()[0])
    resumed(agent, state, {}, run=run_of(result))

    assert desk.ran == [("bo", 5)]
    kinds = [event.kind for event in record.events if event.body["tool"] == "ask"]
    assert kinds.count("step.proposed") == 1
    assert kinds[-2:] == ["policy.evaluated", "action.completed"]


def test_an_agent_that_is_left_alone_holds_up_nobody(desk):
    """With `recursive=False` a nested agent's own approvals are nobody else's affair."""
    inner = desk.pay(needs_approval=True, name_override="free")
    desk.stage.script(
        desk=[(ScriptedCall("ask", '{"input": "please 4"}'), ScriptedCall(*CALL))],
        helper=[("free", '{"to": "al"}')],
    )

    def build() -> Agent[Any]:
        helper = desk.stage.agent("helper", tools=[inner])
        tools = [desk.pay(), helper.as_tool("ask", "Ask the helper.")]
        return govern(desk.stage.agent("desk", tools=tools), desk.guard(), recursive=False)

    result = desk.stage.run(build())
    [waits] = pending(result)
    resumed(build(), saved_of(result), {waits.id: YES})

    assert desk.ran == [("bo", 5)]


# Asking what waits


class AsyncLedger(MemoryLedger):
    """A ledger that must be awaited, and says that it is durable."""

    durable = True

    async def of_run(self, run: str) -> Any:
        """Give the entries of a run."""
        return super().of_run(run)


def test_what_waits_can_be_awaited(desk, guard_of):
    """In a running loop an async ledger is awaited, and never waited for."""
    guard = guard_of(ASK, on_approval=pause_approval(AsyncLedger()))
    desk.stage.script(desk=[CALL])
    agent = govern(desk.stage.agent("desk", tools=[desk.pay()]), guard)

    async def look() -> list[Any]:
        result = await Runner.run(agent, "Go.", run_config=CONFIG)
        with pytest.raises(AnswerError, match="apending"):
            pending(result)
        return await apending(result)

    [waits] = asyncio.run(look())

    assert waits.request.tool == "pay"


def test_a_run_that_pauses_again_in_the_same_process_shows_what_waits_now(desk):
    """The second pause of one state is as plain as the first."""
    result = desk.start(CALL, ("pay", '{"to": "al"}'))
    [first] = pending(result)
    result = resumed(desk.made, result.to_state(), {first.id: YES})
    [second] = pending(result)
    resumed(desk.made, result.to_state(), {second.id: YES})

    assert desk.ran == [("bo", 5), ("al", 5)]
