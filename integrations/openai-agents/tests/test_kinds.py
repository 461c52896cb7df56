"""Every kind of tool that has a body here, under every verdict, over the Responses API."""

import asyncio
import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from agents import (
    ApplyPatchOperation,
    ApplyPatchTool,
    CustomTool,
    FunctionTool,
    LocalShellTool,
    RunConfig,
    RunContextWrapper,
    Runner,
    ShellTool,
    function_tool,
)

from adjudge import ApprovalDecision, CallContext, GovernError, Principal
from adjudge_conformance.wire import ScriptedCall
from adjudge_openai_agents import govern

DENIED = "[denied] not here"
EXECUTED = ["step.proposed", "policy.evaluated", "action.completed"]


class Editor:
    """An editor that edits a list."""

    def __init__(self, ran: list[Any]) -> None:
        self._ran = ran

    def create_file(self, operation: ApplyPatchOperation) -> str:
        """Create a file."""
        self._ran.append(("create", operation.path, operation.diff))
        return "ran"

    async def update_file(self, operation: ApplyPatchOperation) -> str:
        """Change a file."""
        self._ran.append(("update", operation.path, operation.diff))
        return "ran"

    def delete_file(self, operation: ApplyPatchOperation) -> None:
        """Delete a file."""
        self._ran.append(("delete", operation.path, operation.diff))


def function(ran):
    """Make a function tool."""

    @function_tool
    def walk(path: str) -> str:
        """Walk somewhere."""
        ran.append(path)
        return "ran"

    return walk


def custom(ran):
    """Make a tool that takes a raw text."""

    async def invoke(_context: Any, text: str) -> str:
        ran.append(text)
        return "ran"

    return CustomTool(name="query", description="Ask the database.", on_invoke_tool=invoke)


def shell(ran):
    """Make a shell."""

    async def execute(request: Any) -> str:
        ran.append(request.data.action.commands)
        return "ran"

    return ShellTool(executor=execute)


def local_shell(ran):
    """Make a shell of the older kind."""

    def execute(request: Any) -> str:
        ran.append(request.data.action.command)
        return "ran"

    return LocalShellTool(executor=execute)


def patch(ran):
    """Make a tool that edits files."""
    return ApplyPatchTool(editor=Editor(ran))


class Kind(NamedTuple):
    """A kind of tool: one call, what is judged, and what is run of it and of its rewriting."""

    make: Callable[[list[Any]], Any]
    name: str
    body: str
    call: ScriptedCall
    args: dict[str, Any]
    ran: Any
    rewriting: dict[str, Any]
    ran_rewritten: Any
    unfit: dict[str, Any]


KINDS = {
    "function": Kind(
        function,
        "walk",
        "on_invoke_tool",
        ScriptedCall("walk", '{"path": "/etc"}'),
        {"path": "/etc"},
        "/etc",
        {"path": "args.path", "set": "/tmp"},
        "/tmp",
        {"path": "args.path", "set": 5},
    ),
    "custom": Kind(
        custom,
        "query",
        "on_invoke_tool",
        ScriptedCall(
            "query", "", item={"type": "custom_tool_call", "name": "query", "input": "drop all"}
        ),
        {"input": "drop all"},
        "drop all",
        {"path": "args.input", "set": "select 1"},
        "select 1",
        {"path": "args.input", "set": 5},
    ),
    "shell": Kind(
        shell,
        "shell",
        "executor",
        ScriptedCall(
            "shell",
            "",
            item={"type": "shell_call", "action": {"commands": ["ls", "rm x"], "timeout_ms": 9}},
        ),
        {"commands": ["ls", "rm x"], "timeout_ms": 9},
        ["ls", "rm x"],
        {"path": "args.commands", "set": ["ls"]},
        ["ls"],
        {"path": "args.commands", "set": "ls"},
    ),
    "local-shell": Kind(
        local_shell,
        "local_shell",
        "executor",
        ScriptedCall(
            "local_shell",
            "",
            item={
                "type": "local_shell_call",
                "action": {"type": "exec", "command": ["rm", "x"], "env": {"A": "b"}},
            },
        ),
        {"command": ["rm", "x"], "env": {"A": "b"}},
        ["rm", "x"],
        {"path": "args.command", "set": ["ls"]},
        ["ls"],
        {"path": "args.env.A", "set": 5},
    ),
    "apply-patch": Kind(
        patch,
        "apply_patch",
        "editor",
        ScriptedCall(
            "apply_patch",
            "",
            item={
                "type": "apply_patch_call",
                "operation": {"type": "update_file", "path": "/etc/hosts", "diff": "+x"},
            },
        ),
        {"type": "update_file", "path": "/etc/hosts", "diff": "+x"},
        ("update", "/etc/hosts", "+x"),
        {"path": "args.path", "set": "/tmp/hosts"},
        ("update", "/tmp/hosts", "+x"),
        {"path": "args.type", "set": "rename_file"},
    ),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request):
    """Each kind in turn."""
    return request.param


@pytest.fixture
def ran():
    """Where the bodies leave their trace."""
    return []


def rule(kind, decision, **more):
    """Make a rule for the one call of a kind."""
    return {"id": "r", "match": {"tool": kind.name}, "decision": decision, **more}


def run(stage, kind, ran, guard, **options):
    """Let an agent make the one call under a guard; give what the model was told of it."""
    stage.script("responses", a=[kind.call])
    stage.run(govern(stage.agent("a", tools=[kind.make(ran)]), guard, **options))
    return stage.said


class TestVerdicts:
    def test_allow_runs_it_once(self, kind, stage, guard_of, ran, record):
        """The body runs, the model sees the tool's own result, and the record has the call."""
        assert ["ran"] == run(stage, kind, ran, guard_of())
        assert [kind.ran] == ran
        assert EXECUTED == record.kinds
        proposed = record.bodies("step.proposed")[0]
        assert (kind.name, kind.args) == (proposed["tool"], proposed["args"])
        assert stage.ids == [proposed["call_id"]]

    def test_deny_stops_it(self, kind, stage, guard_of, ran, record):
        """The body never runs, and the model sees the reason, in the shape of the kind."""
        assert [DENIED] == run(
            stage, kind, ran, guard_of(rule(kind, "deny", reason="not here"), rest="allow")
        )
        assert [] == ran
        assert "action.denied" == record.kinds[-1]

    def test_dry_run_shows_the_shadow(self, kind, stage, guard_of, ran):
        """The body never runs, its shadow does, with the arguments judged."""
        shadows = {kind.name: lambda **args: args}

        (told,) = run(stage, kind, ran, guard_of(rule(kind, "dry_run"), shadows=shadows))

        assert told.startswith("[dry_run] not executed; preview: {")
        assert all(f'"{name}"' in told for name in kind.args)
        assert [] == ran

    def test_dry_run_without_a_shadow_denies(self, kind, stage, guard_of, ran):
        """Nothing is previewed by chance."""
        (told,) = run(stage, kind, ran, guard_of(rule(kind, "dry_run")))

        assert told.startswith("[denied] ")
        assert [] == ran

    @pytest.mark.parametrize("granted", [True, False])
    def test_approval_is_asked_for(self, kind, stage, guard_of, ran, granted):
        """A handler's yes runs the body once; its no is a denial."""
        asked = []

        async def answer(request: Any) -> ApprovalDecision:
            asked.append(request.request.args)
            return ApprovalDecision(granted=granted, approver="ana")

        guard = guard_of(rule(kind, "approve_required"), on_approval=answer)

        (told,) = run(stage, kind, ran, guard)

        assert [kind.args] == asked
        assert (granted, [kind.ran] if granted else []) == (told == "ran", ran)

    def test_a_transform_rewrites_what_runs(self, kind, stage, guard_of, ran):
        """Law 5: the body gets the rewritten arguments and no others."""
        guard = guard_of(rule(kind, "transform", transform=kind.rewriting))

        assert ["ran"] == run(stage, kind, ran, guard)
        assert [kind.ran_rewritten] == ran

    def test_a_transform_that_no_request_can_carry_denies(self, kind, stage, guard_of, ran):
        """Clause 19: what the kind cannot carry is no reason to run something else."""
        guard = guard_of(rule(kind, "transform", transform=kind.unfit))

        (told,) = run(stage, kind, ran, guard)

        assert told.startswith("[denied] ")
        assert [] == ran

    def test_a_rule_reads_its_arguments(self, kind, stage, guard_of, ran):
        """What the model asked for is what a policy sees."""
        (name, value), *_ = kind.args.items()
        held = {"match": {"tool": kind.name, f"args.{name}": {"eq": value}}}
        guard = guard_of({**rule(kind, "deny", reason="not here"), **held}, rest="allow")

        assert [DENIED] == run(stage, kind, ran, guard)

    def test_it_is_denied_by_default(self, kind, stage, guard_of, ran):
        """A tool of which the policy says nothing does not run."""
        (told,) = run(stage, kind, ran, guard_of(rest="deny"))

        assert told.startswith("[denied] ")
        assert [] == ran


class TestTransparency:
    def test_a_run_in_which_all_is_allowed_is_the_run_ungoverned(self, kind, stage, guard_of, ran):
        """Law 1: the same bytes to the model, and the same result."""

        def outcome(governing) -> tuple[Any, ...]:
            stage.script("responses", a=[kind.call])
            agent = stage.agent("a", tools=[kind.make(ran)])
            result = stage.run(governing(agent))
            return stage.sent, result.final_output, [item.type for item in result.new_items]

        ungoverned = outcome(lambda agent: agent)

        assert ungoverned == outcome(lambda agent: govern(agent, guard_of()))
        assert [kind.ran] * 2 == ran

    def test_a_failing_body_fails_as_ungoverned(self, kind, stage, guard_of, record):
        """Law 1: the model, or the caller, hears of it as before, and the record has it."""

        class Broken(list):
            def append(self, _item: Any) -> None:
                raise RuntimeError("broken")

        def outcome(governing) -> Any:
            stage.script("responses", a=[kind.call])
            agent = governing(stage.agent("a", tools=[kind.make(Broken())]))
            try:
                stage.run(agent)
            except RuntimeError as error:
                return str(error)
            return stage.sent

        ungoverned = outcome(lambda agent: agent)

        assert ungoverned == outcome(lambda agent: govern(agent, guard_of()))
        assert "action.failed" == record.kinds[-1]

    def test_a_streamed_run_is_governed(self, kind, stage, guard_of, ran):
        """So it is where the answers are streamed."""
        stage.script("responses", a=[kind.call])
        guard = guard_of(rule(kind, "deny", reason="not here"))

        stage.run_streamed(govern(stage.agent("a", tools=[kind.make(ran)]), guard))

        assert ([DENIED], []) == (stage.said, ran)


class TestContext:
    def test_the_caller_is_asked_for(self, kind, stage, guard_of, ran):
        """Clause 26: `context=` gets the SDK's run context of the call."""
        seen = []

        def who(context: RunContextWrapper[Any]) -> CallContext:
            seen.append(context.context)
            return CallContext(Principal("user", context.context))

        guard = guard_of(
            {"id": "ana", "match": {"context.principal.id": "ana"}, "decision": "allow"},
            rest="deny",
        )
        stage.script("responses", a=[kind.call])
        stage.run(
            govern(stage.agent("a", tools=[kind.make(ran)]), guard, context=who), context="ana"
        )

        assert (["ana"], ["ran"], [kind.ran]) == (seen, stage.said, ran)

    def test_a_context_that_fails_denies(self, kind, stage, guard_of, ran):
        """Law 4: nobody runs anything for somebody unknown."""

        def who(_context: Any) -> CallContext:
            raise LookupError

        (told,) = run(stage, kind, ran, guard_of(), context=who)

        assert told.startswith("[denied] ")
        assert [] == ran


class TestGoverning:
    def test_it_comes_back_as_a_copy(self, kind, guard_of, ran):
        """The original is left as it was, and the copy has its class."""
        tool = kind.make(ran)
        before = dict(vars(tool))

        governed = govern(tool, guard_of())

        assert before == vars(tool)
        assert type(tool) is type(governed)
        assert getattr(tool, kind.body) is not getattr(governed, kind.body)

    def test_the_same_guard_again_changes_nothing(self, kind, guard_of, ran):
        """Governing twice is governing once."""
        guard = guard_of()
        governed = govern(kind.make(ran), guard)

        assert governed is govern(governed, guard)

    def test_another_guard_is_an_error(self, kind, guard_of, ran):
        """A tool has one guard."""
        with pytest.raises(GovernError):
            govern(govern(kind.make(ran), guard_of()), guard_of())

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
    def test_copies_are_governed(self, kind, stage, guard_of, ran, duplicate):
        """A copy of a governed tool leads to no body of its own."""
        stage.script("responses", a=[kind.call])
        governed = govern(kind.make(ran), guard_of(rule(kind, "deny", reason="not here")))

        stage.run(stage.agent("a", tools=[duplicate(governed)]))

        assert ([DENIED], []) == (stage.said, ran)

    @pytest.mark.parametrize("name", sorted(KINDS.keys() - {"local-shell"}))
    def test_a_renamed_one_is_refused(self, name, guard_of, ran):
        """Fault kind 5: a policy judges the name that the model calls, and no former one."""
        guard = guard_of()
        governed = govern(KINDS[name].make(ran), guard)
        governed.name = "other"

        with pytest.raises(GovernError, match="renamed"):
            govern(governed, guard)

    def test_one_added_later_is_governed(self, kind, stage, guard_of, ran):
        """Law 3: the SDK asks for the tools before each turn."""
        stage.script("responses", a=[kind.call])
        agent = govern(stage.agent("a"), guard_of(rule(kind, "deny", reason="not here")))
        agent.tools.append(kind.make(ran))

        stage.run(agent)

        assert ([DENIED], []) == (stage.said, ran)

    @pytest.mark.parametrize(("rest", "said"), [("allow", "ran"), ("deny", "[denied] ")])
    @pytest.mark.parametrize("name", sorted(KINDS.keys() - {"local-shell"}))
    def test_an_approval_of_its_own_opens_no_way_round(
        self, name, stage, guard_of, ran, rest, said
    ):
        """Law 3: the run waits as the tool says, and whoever approves, the policy has its say."""
        kind = KINDS[name]
        tool = kind.make(ran)
        tool.needs_approval = True
        stage.script("responses", a=[kind.call])
        agent = govern(stage.agent("a", tools=[tool]), guard_of(rest=rest))
        waiting = stage.run(agent)
        before = list(ran)
        state = waiting.to_state()
        for item in waiting.interruptions:
            state.approve(item)

        asyncio.run(Runner.run(agent, state, run_config=RunConfig(tracing_disabled=True)))

        assert ([], 1) == (before, len(waiting.interruptions))
        assert stage.said[0].startswith(said)
        assert ([kind.ran] if rest == "allow" else []) == ran

    def test_a_local_shell_has_neither_a_name_nor_a_pause_of_its_own(self, ran):
        """The SDK gives that kind one name, and no approval."""
        assert ["executor"] == [field.name for field in dataclasses.fields(local_shell(ran))]


def test_two_calls_in_one_turn_are_judged_each(stage, guard_of, ran):
    """A denial leaves its neighbours alone, whatever their kinds."""
    tools = [each.make(ran) for each in KINDS.values()]
    stage.script("responses", a=[tuple(each.call for each in KINDS.values())])
    guard = guard_of(rule(KINDS["shell"], "deny", reason="not here"))

    stage.run(govern(stage.agent("a", tools=tools), guard))

    assert ["ran", "ran", DENIED, "ran", "ran"] == stage.said
    assert 4 == len(ran)


def test_direct_calls_are_governed(guard_of, ran):
    """Law 3: an application that calls a governed body by itself meets the guard."""
    guard = guard_of(rest="deny")
    editor = govern(patch(ran), guard).editor
    operation = ApplyPatchOperation(type="create_file", path="/tmp/a", diff="+x")

    for method in (editor.create_file, editor.update_file, editor.delete_file):
        result = asyncio.run(method(operation))
        assert ("failed", "[denied] ") == (result.status, result.output[:9])
    assert [] == ran
    assert isinstance(govern(function(ran), guard), FunctionTool)
