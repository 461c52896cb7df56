"""Runs that wait for people: by the SDK's own pause, and on with the answers in the ledger."""

import asyncio
import contextlib
import dataclasses
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    CustomTool,
    LocalShellTool,
    RunContextWrapper,
    Runner,
    ShellTool,
)
from agents.exceptions import UserError
from agents.mcp import MCPServerStdio
from pausing_desk import ASK, CALL, CONFIG, NO, YES, Desk, saved_of

from adjudge import (
    AnswerError,
    CallContext,
    EphemeralLedgerWarning,
    GovernError,
    MemoryLedger,
    Principal,
    SQLiteLedger,
    ToolGuard,
    Verdict,
    compile_policy,
    pause_approval,
)
from adjudge_conformance.wire import ScriptedCall
from adjudge_openai_agents import HandoffDenied, govern, pending, resume, resume_streamed

ASKED = ["step.proposed", "policy.evaluated", "approval.requested", "approval.pending"]
WENT_ON = ["policy.evaluated", "approval.granted", "action.completed"]
NEVER_ASKS = {"on_no_match": "deny", "on_missing_shadow": "deny"}


# What waits


def test_what_waits_is_shown_with_its_final_arguments(desk):
    """A person sees what would run, why it is asked, and when the asking ends."""
    [waits] = pending(desk.start(CALL))

    assert waits.request.tool == "pay"
    assert dict(waits.decision.effective_args) == {"to": "bo", "amount": 5}
    assert waits.decision.reason == "money"
    assert waits.expires_at is not None
    assert desk.ran == []


def test_the_saved_state_holds_nothing_of_ours(desk):
    """A client that keeps the state can learn no id with which to answer."""
    result = desk.start(CALL)
    [waits] = pending(result)

    assert waits.id not in json.dumps(saved_of(result))


def test_a_run_that_waits_for_nobody_has_nothing_pending(desk):
    """An ended run gives an empty list."""
    desk.rules = []

    assert pending(desk.start(CALL)) == []


def test_a_bundle_that_never_asks_leaves_the_tool_as_it_is(desk, tmp_path):
    """`needs_approval` is installed only where it could say something."""
    desk.rules = [{"id": "no", "match": {"tool": "other"}, "decision": "deny"}]
    policy = compile_policy({"version": 1, "defaults": NEVER_ASKS, "rules": desk.rules})
    guard = ToolGuard(policy=policy, on_approval=pause_approval(SQLiteLedger(tmp_path / "l.db")))
    [tool] = govern([desk.pay()], guard)

    assert tool.needs_approval is False


def test_a_ledger_in_memory_warns(guard_of, desk):
    """Whoever pauses without a durable ledger is told what that means."""
    guard = guard_of(ASK, on_approval=pause_approval(MemoryLedger()))

    with pytest.warns(EphemeralLedgerWarning, match="in memory"):
        govern([desk.pay()], guard)


def test_the_context_is_asked_once_for_a_call(desk):
    """Clause 26: whether a call waits and whether it runs is found out for one answer."""
    asked = []

    def who(context: RunContextWrapper[Any]) -> CallContext:
        asked.append(context.context)
        return CallContext(Principal("user", context.context))

    desk.rules, desk.options = [{**ASK, "match": {"tool": "other"}}], {"context": who}
    desk.start(CALL, context="eve")

    assert (desk.ran, asked) == ([("bo", 5)], ["eve"])


# Going on


def test_an_answer_lets_the_call_run_once(desk, record):
    """Granted, the call goes on where it stood: judged again, run, and recorded."""
    result = desk.start(CALL)
    [waits] = pending(result)
    done = desk.go_on(saved_of(result), {waits.id: YES})

    assert (desk.ran, done.final_output) == ([("bo", 5)], "desk is done.")
    assert record.kinds == ASKED + WENT_ON


def test_a_refusal_is_said_in_our_words(desk):
    """The model is told of a refusal as everywhere, and not in the SDK's words."""
    result = desk.start(CALL)
    [waits] = pending(result)
    desk.go_on(saved_of(result), {waits.id: NO})

    assert desk.stage.said == ["[denied] approval refused by ana: too much"]
    assert desk.ran == []


def test_an_edit_is_what_runs(desk):
    """Clause 23: the SDK has no edit of its own, and needs none."""
    result = desk.start(CALL)
    [waits] = pending(result)
    edit = dataclasses.replace(YES, edited_args={"to": "bo", "amount": 3})
    desk.go_on(saved_of(result), {waits.id: edit})

    assert desk.ran == [("bo", 3)]


def test_an_edit_that_the_policy_denies_does_not_run(desk):
    """Clause 23: an edit is a new call, and judged as one."""
    desk.rules = [
        {"id": "cap", "match": {"tool": "pay", "args.amount.gt": 9}, "decision": "deny"},
        ASK,
    ]
    result = desk.start(CALL)
    [waits] = pending(result)
    edit = dataclasses.replace(YES, edited_args={"to": "bo", "amount": 10})
    desk.go_on(saved_of(result), {waits.id: edit})

    assert desk.ran == []


def test_a_policy_that_changed_meanwhile_counts(desk):
    """Clause 24: what is denied by now stays undone, whatever was answered."""
    result = desk.start(CALL)
    [waits] = pending(result)
    desk.rules = [{**ASK, "decision": "deny", "reason": "no more"}]
    desk.go_on(saved_of(result), {waits.id: YES})

    assert (desk.ran, desk.stage.said) == ([], ["[denied] no more"])


@pytest.mark.parametrize("form", ["state", "dict", "text", "bytes"])
def test_a_state_is_taken_in_each_of_its_forms(desk, form):
    """A `RunState`, `to_json()`, `to_string()` and its bytes are all the same run."""
    result = desk.start(CALL)
    [waits] = pending(result)
    state = result.to_state()
    forms = {
        "state": state,
        "dict": state.to_json(),
        "text": state.to_string(),
        "bytes": state.to_string().encode(),
    }
    agent = desk.made if form == "state" else desk.agent()
    asyncio.run(resume(agent, forms[form], {waits.id: YES}, run_config=CONFIG))

    assert desk.ran == [("bo", 5)]


def test_a_resumed_run_can_be_streamed(desk):
    """`resume_streamed` gives the SDK's own events."""
    result = desk.start(CALL)
    [waits] = pending(result)

    async def stream() -> list[str]:
        going = await resume_streamed(
            desk.agent(), saved_of(result), {waits.id: YES}, run_config=CONFIG
        )
        return [event.type async for event in going.stream_events()]

    assert "run_item_stream_event" in asyncio.run(stream())
    assert desk.ran == [("bo", 5)]


def test_calls_are_answered_one_after_the_other(desk):
    """What is answered goes on; what is not is pending still, under the same id."""
    both = (ScriptedCall("pay", '{"to": "bo"}'), ScriptedCall("pay", '{"to": "al"}'))
    result = desk.start(both)
    first, second = pending(result)
    result = desk.go_on(saved_of(result), {second.id: YES})
    rest = pending(result)
    ran = list(desk.ran)
    desk.go_on(saved_of(result), {rest[0].id: YES})

    assert [each.id for each in rest] == [first.id]
    assert (ran, desk.ran) == ([("al", 5)], [("al", 5), ("bo", 5)])


# What grants nothing


def test_the_sdks_own_approval_alone_grants_nothing(desk):
    """Law 4: only an answer of our own type, kept in the ledger, lets the call run."""
    result = desk.start(CALL)
    desk.approve_natively(result)

    assert desk.ran == []
    assert desk.stage.said[0].startswith("[denied] ")


def test_a_standing_approval_of_the_sdk_grants_nothing(desk):
    """Fault B036: an approval of all calls of a tool is none of what the policy asks about."""
    result = desk.start(CALL, ("pay", '{"to": "al"}'))
    [waits] = pending(result)
    state = result.to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    asyncio.run(resume(desk.made, state, {waits.id: YES}, run_config=CONFIG))

    assert desk.ran == [("bo", 5)]


def test_a_state_that_is_resumed_twice_runs_nothing_twice(desk, record):
    """Law 6: the second time the model is told that the call has ended."""
    result = desk.start(CALL)
    [waits] = pending(result)
    saved = saved_of(result)
    desk.go_on(saved, {waits.id: YES})
    desk.go_on(saved, {waits.id: YES})

    assert desk.ran == [("bo", 5)]
    assert record.bodies("action.denied")[0]["code"] == "approval_spent"


def test_a_state_that_is_resumed_twice_at_once_runs_nothing_twice(desk):
    """Law 6: of two that go on at once, one has the claim."""
    result = desk.start(CALL)
    [waits] = pending(result)
    saved = saved_of(result)

    async def both() -> None:
        answers = {waits.id: YES}
        await asyncio.gather(
            *(resume(desk.agent(), saved, answers, run_config=CONFIG) for _ in range(2))
        )

    asyncio.run(both())

    assert desk.ran == [("bo", 5)]


def test_the_first_answer_counts(desk):
    """A refusal is no grant's to take back."""
    result = desk.start(CALL)
    [waits] = pending(result)
    saved = saved_of(result)
    guard = desk.guard()
    guard.reopen_sync({waits.id: NO})
    desk.go_on(saved, {waits.id: YES})

    assert desk.ran == []


def test_an_answer_is_no_answer_to_another_run(desk):
    """An answer with another run's state is an error, and starts nothing."""
    first = desk.start(ScriptedCall(*CALL, id="other"))
    second = desk.start(CALL)
    [waits] = pending(second)

    with pytest.raises(AnswerError, match="no call that waits"):
        desk.go_on(saved_of(first), {waits.id: YES})
    assert [each.id for each in pending(second)] == [waits.id]
    assert desk.ran == []


def test_an_answer_to_a_call_of_the_same_id_grants_nothing_to_another(desk):
    """Fault X037: a provider's id that repeats lets no run use another's approval."""
    first = desk.start(CALL)
    [waits] = pending(desk.start(("pay", '{"to": "al"}')))
    desk.go_on(saved_of(first), {waits.id: YES})

    assert desk.ran == []


def test_a_state_goes_on_with_the_agents_that_it_holds(desk):
    """A `RunState` names its own agents; one with others is refused before an answer is kept."""
    result = desk.start(CALL)
    [waits] = pending(result)

    with pytest.raises(GovernError, match="to_json"):
        asyncio.run(resume(desk.agent(), result.to_state(), {waits.id: YES}))
    assert [each.id for each in pending(result)] == [waits.id]


def test_an_answer_to_nothing_is_an_error(desk):
    """An id that the ledger does not know is said to be one."""
    result = desk.start(CALL)

    with pytest.raises(AnswerError, match="No call waits under 'x'"):
        desk.go_on(saved_of(result), {"x": YES})


@pytest.mark.parametrize("answer", [True, "yes", 1, {"granted": True}])
def test_only_a_decision_is_an_answer(desk, answer):
    """Law 4: whatever else looks like a yes is an error, and starts nothing."""
    result = desk.start(CALL)
    [waits] = pending(result)

    with pytest.raises(AnswerError, match="ApprovalDecision"):
        desk.go_on(saved_of(result), {waits.id: answer})


def test_an_answer_that_the_ledger_has_need_not_be_given_again(desk):
    """Answered elsewhere, the call goes on; one that is not goes on waiting."""
    result = desk.start(CALL)
    [waits] = pending(result)
    still = desk.go_on(saved_of(result), {waits.id: None})
    waited = [each.id for each in pending(still)]
    desk.guard().reopen_sync({waits.id: YES})
    desk.go_on(saved_of(result), {waits.id: None})

    assert (waited, desk.ran) == ([waits.id], [("bo", 5)])


@pytest.mark.parametrize("saved", ["", "{", b"\xff", "{}", [], 5, {}])
def test_what_is_no_state_is_refused(desk, saved):
    """Nonsense for a saved run is an error that says what to give, and no answer is kept."""
    result = desk.start(CALL)
    [waits] = pending(result)

    with pytest.raises(AnswerError, match="saved state"):
        desk.go_on(saved, {waits.id: YES})
    assert [each.id for each in pending(result)] == [waits.id]


@pytest.mark.parametrize("answers", [{}, [], "x", None, [("x", YES)]])
def test_what_are_no_answers_is_refused(desk, answers):
    """Answers come by the ids of what is pending, at least one."""
    result = desk.start(CALL)

    with pytest.raises(AnswerError):
        desk.go_on(saved_of(result), answers)


def test_nonsense_waits_for_nobody():
    """What is no result of a run is said to be none."""
    with pytest.raises(AnswerError, match="int"):
        pending(5)


def test_somebody_elses_run_goes_on_for_nobody(desk):
    """Clause 22: the call was asked about for one principal, and runs for no other."""

    def who(context: RunContextWrapper[Any]) -> CallContext:
        return CallContext(Principal("user", context.context))

    desk.options = {"context": who}
    result = desk.start(CALL, context="eve")
    [waits] = pending(result)
    saved = saved_of(result)
    desk.go_on(saved, {waits.id: YES}, context="mallory")
    ran = list(desk.ran)
    desk.go_on(saved, {waits.id: None}, context="eve")  # whose grant nobody else has used up

    assert (ran, desk.ran) == ([], [("bo", 5)])


def test_an_agent_that_is_not_governed_is_not_resumed(desk):
    """Without a guard there is nothing that could take the answer."""
    result = desk.start(CALL)
    [waits] = pending(result)
    bare = desk.stage.agent("desk", tools=[desk.pay()])

    with pytest.raises(GovernError, match="not governed"):
        asyncio.run(resume(bare, saved_of(result), {waits.id: YES}))


# The tool's own setting, and what the SDK holds back


def test_a_tools_own_approval_is_the_sdks_affair(desk):
    """Where the policy allows a call, the SDK's own approval of it is enough."""
    desk.rules, desk.tools = [], [desk.pay(needs_approval=True)]
    result = desk.start(CALL)
    desk.approve_natively(result)

    assert (pending(result), len(result.interruptions)) == ([], 1)
    assert desk.ran == [("bo", 5)]


def test_a_policy_denies_what_the_sdk_approved(desk):
    """A tool's own approval opens no way round the policy."""
    desk.rules = [{**ASK, "decision": "deny", "reason": "no"}]
    desk.tools = [desk.pay(needs_approval=True)]
    result = desk.start(CALL)
    desk.approve_natively(result)

    assert (desk.ran, desk.stage.said) == ([], ["[denied] no"])


def test_a_tools_own_question_is_still_put(desk):
    """A setting that is a function is asked with what it would be asked ungoverned."""
    asked = []

    async def own(context: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
        asked.append(args)
        return False

    desk.rules, desk.tools = [], [desk.pay(needs_approval=own)]
    desk.start(("pay", '{"to": "bo", "amount": 5}'))

    assert (asked, desk.ran) == ([{"to": "bo", "amount": 5}], [("bo", 5)])


@pytest.mark.parametrize("text", ["{", "[1]", '"bo"'])
def test_arguments_that_cannot_be_read_cannot_be_approved(desk, record, text):
    """What the SDK holds back unread is shown as denied, and ends as invalid, whatever is said."""
    result = desk.start(("pay", text))
    [held] = pending(result)
    desk.go_on(saved_of(result), {held.id: YES})

    assert held.decision.verdict is Verdict.DENY
    assert desk.ran == []
    assert record.bodies("action.failed")[0]["code"] == "invalid_arguments"


# Other kinds, and agents in agents


def _waits_and_goes_on(desk: Desk, call: ScriptedCall) -> None:
    desk.stage.script("responses", desk=[call])
    result = desk.stage.run(desk.agent())
    [waits] = pending(result)
    assert desk.ran == []
    desk.go_on(saved_of(result), {waits.id: YES})


def test_a_custom_tool_waits_and_goes_on(desk):
    """The raw text of a custom tool is what a person is asked about, and what runs."""

    async def invoke(_context: Any, text: str) -> str:
        desk.ran.append(text)
        return "ran"

    desk.rules = [{**ASK, "match": {"tool": "query"}}]
    desk.tools = [CustomTool(name="query", description="Ask.", on_invoke_tool=invoke)]
    item = {"type": "custom_tool_call", "name": "query", "input": "select 1"}
    _waits_and_goes_on(desk, ScriptedCall("query", "", item=item))

    assert desk.ran == ["select 1"]


def test_a_shell_waits_and_goes_on(desk):
    """The commands of a shell are what a person is asked about, and what runs."""

    async def execute(request: Any) -> str:
        desk.ran.append(request.data.action.commands)
        return "ran"

    desk.rules = [{**ASK, "match": {"tool": "shell"}}]
    desk.tools = [ShellTool(executor=execute)]
    item = {"type": "shell_call", "action": {"commands": ["ls"], "timeout_ms": 9}}
    _waits_and_goes_on(desk, ScriptedCall("shell", "", item=item))

    assert desk.ran == [["ls"]]


def _with_helper(desk: Desk) -> Agent[Any]:
    helper = desk.stage.agent("helper", tools=[desk.pay()])
    outer = desk.stage.agent("desk", tools=[helper.as_tool("ask", "Ask the helper.")])
    return govern(outer, desk.guard())


def test_a_nested_call_waits_and_its_agent_goes_on(desk, record):
    """Law 6: the agent that was asked is one execution, before the pause and after it."""
    desk.stage.script(desk=[("ask", '{"input": "kindly 1"}')], helper=[CALL])
    result = desk.stage.run(_with_helper(desk))
    [waits] = pending(result)
    answers = {waits.id: YES}
    done = asyncio.run(resume(_with_helper(desk), saved_of(result), answers, run_config=CONFIG))

    assert (desk.ran, done.final_output) == ([("bo", 5)], "desk is done.")
    kinds = [event.kind for event in record.events if event.body["tool"] == "ask"]
    assert kinds == [
        "step.proposed",
        "policy.evaluated",
        "action.suspended",
        "policy.evaluated",
        "action.completed",
    ]


def test_two_agents_whose_call_ids_repeat_are_the_sdks_to_refuse(desk):
    """Fault X037: what the SDK cannot tell apart it does not let go on, and nothing runs."""
    ask = ScriptedCall("ask", '{"input": "kindly 2"}')
    desk.stage.script(desk=[(ask, ask)], helper=[CALL])
    result = desk.stage.run(_with_helper(desk))
    first, second = pending(result)
    with pytest.raises(UserError, match="Use unique call IDs"):
        asyncio.run(resume(_with_helper(desk), saved_of(result), {first.id: YES, second.id: NO}))

    assert first.call_id == second.call_id
    assert desk.ran == []


def test_an_edit_of_files_waits_and_goes_on(desk):
    """The operation of a patch is what a person is asked about, and what the editor gets."""

    class Editor:
        def create_file(self, operation: Any) -> None:
            desk.ran.append((operation.path, operation.diff))

    desk.rules = [{**ASK, "match": {"tool": "apply_patch"}}]
    desk.tools = [ApplyPatchTool(editor=Editor())]
    operation = {"type": "create_file", "path": "a.md", "diff": "+hello"}
    item = {"type": "apply_patch_call", "status": "completed", "operation": operation}
    _waits_and_goes_on(desk, ScriptedCall("apply_patch", "", item=item))

    assert desk.ran == [("a.md", "+hello")]


def test_a_local_shell_that_would_have_to_wait_is_denied(desk, record):
    """The SDK cannot pause before a local shell, so nobody is asked and nothing runs."""

    def execute(request: Any) -> str:
        desk.ran.append(request)
        return "ran"

    desk.rules = [{**ASK, "match": {"tool": "local_shell"}}]
    desk.tools = [LocalShellTool(executor=execute)]
    action = {"type": "exec", "command": ["ls"], "env": {}}
    item = {"type": "local_shell_call", "status": "completed", "action": action}
    desk.stage.script("responses", desk=[ScriptedCall("local_shell", "", item=item)])
    desk.stage.run(desk.agent())

    assert desk.ran == []
    assert record.bodies("action.denied")[0]["code"] == "cannot_pause"


def test_a_tool_of_a_server_waits_and_goes_on(desk, tmp_path):
    """A tool of a local MCP server is made anew each turn, and waits like any other."""
    desk.rules = [{**ASK, "match": {"tool": "erase", "tool.namespace": "notes"}}]
    note = tmp_path / "note.txt"
    program = str(Path(__file__).with_name("mcp_notes.py"))
    params = {"command": sys.executable, "args": [program, str(note)]}
    desk.stage.script(desk=[("erase", '{"name": "a"}')])

    async def both() -> bool:
        async with MCPServerStdio(params, name="notes") as server:
            first = govern(desk.stage.agent("desk", mcp_servers=[server]), desk.guard())
            result = await Runner.run(first, "Go.", run_config=CONFIG)
            [waits] = pending(result)
            written_before = note.exists()
            second = govern(desk.stage.agent("desk", mcp_servers=[server]), desk.guard())
            await resume(second, saved_of(result), {waits.id: YES}, run_config=CONFIG)
            return written_before

    assert asyncio.run(both()) is False
    assert note.read_text() == "erase a False\n"


def test_a_handoff_that_would_have_to_wait_is_denied(desk):
    """The SDK cannot pause before a handoff, so nobody is asked and the agent does not change."""
    desk.rules = [{**ASK, "match": {"tool": "transfer_to_other"}}]
    desk.stage.script(desk=[("transfer_to_other", "{}")], other=[])
    other = desk.stage.agent("other")
    agent = govern(desk.stage.agent("desk", handoffs=[other]), desk.guard())

    with pytest.raises(HandoffDenied) as denied:
        desk.stage.run(agent)
    assert denied.value.call.result.code == "cannot_pause"


def test_a_question_that_is_put_twice_is_one_question(desk):
    """The SDK may ask again whether a call waits: it is the same call, under the same id."""

    async def ask_twice() -> list[bool]:
        [tool] = govern([desk.pay()], desk.guard())
        context = RunContextWrapper(None)
        return [await tool.needs_approval(context, {"to": "bo"}, "c1") for _ in range(2)]

    assert asyncio.run(ask_twice()) == [True, True]
    with contextlib.closing(sqlite3.connect(desk.ledger)) as database:
        assert database.execute("SELECT count(*) FROM adjudge_entries").fetchone() == (1,)
