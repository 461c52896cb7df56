"""The requests of shells, editors and custom tools: what they carry is judged, and is what runs."""

import json

import pytest
from agents import (
    ApplyPatchTool,
    CustomTool,
    LocalShellTool,
    RunHooks,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
)

from adjudge_conformance.wire import ScriptedCall
from adjudge_openai_agents import govern


@pytest.fixture
def got():
    """The requests that reached a body."""
    return []


def shell_call(**action):
    """Make a shell's call."""
    return ScriptedCall("shell", "", item={"type": "shell_call", "action": action})


def local_call(**action):
    """Make the call of a shell of the older kind."""
    item = {"type": "local_shell_call", "action": {"type": "exec", "env": {}, **action}}
    return ScriptedCall("local_shell", "", item=item)


def patch_call(*operations):
    """Make a call that changes several files at once."""
    text = json.dumps({"operations": operations})
    item = {"type": "custom_tool_call", "name": "apply_patch", "input": text}
    return ScriptedCall("apply_patch", "", item=item)


def run(stage, guard, tool, *calls, **options):
    """Run an agent that makes the calls; give what the model was told of each."""
    stage.script("responses", a=list(calls))
    stage.run(govern(stage.agent("a", tools=[tool]), guard), **options)
    return stage.said


def output_items(stage):
    """Give the last request's items that answer a call."""
    items = json.loads(stage.sent[-1])["input"]
    return [item for item in items if str(item.get("type")).endswith("_output")]


def change(**what):
    """Make a rule that rewrites."""
    return {"id": "r", "match": "always", "decision": "transform", "transform": what, "priority": 9}


class TestShell:
    def make(self, got, result="ran"):
        """Make a shell that keeps what it gets."""

        def execute(request):
            got.append(request)
            return result

        return ShellTool(executor=execute)

    def test_what_the_model_left_out_is_absent(self, stage, guard_of, got, record):
        """Clause 3: a limit that nobody set is none to a rule."""
        run(stage, guard_of(), self.make(got), shell_call(commands=["ls"]))

        assert {"commands": ["ls"]} == record.bodies("step.proposed")[0]["args"]
        assert (None, None) == (got[0].data.action.timeout_ms, got[0].data.action.max_output_length)

    def test_limits_are_judged_and_rewritten(self, stage, guard_of, got):
        """Law 5: all that the request carries is."""
        run(
            stage,
            guard_of(change(path="args.timeout_ms", set=5)),
            self.make(got),
            shell_call(commands=["ls"], timeout_ms=900, max_output_length=99),
        )

        action = got[0].data.action
        assert (["ls"], 5, 99) == (action.commands, action.timeout_ms, action.max_output_length)

    def test_a_limit_that_is_taken_away_is_gone(self, stage, guard_of, got):
        """Clause 19: a transform may delete."""
        run(
            stage,
            guard_of(change(path="args.timeout_ms", delete=True)),
            self.make(got),
            shell_call(commands=["ls"], timeout_ms=900),
        )

        assert got[0].data.action.timeout_ms is None

    def test_the_raw_call_goes_where_it_is_not_what_runs(self, stage, guard_of, got):
        """Law 5: an executor finds the commands that were judged, and no others beside them."""
        tool = self.make(got)
        run(stage, guard_of(), tool, shell_call(commands=["ls"]))
        run(
            stage,
            guard_of(change(path="args.commands", set=["ls"])),
            tool,
            shell_call(commands=["rm"]),
        )

        assert got[0].data.raw is not None
        assert (["ls"], None) == (got[1].data.action.commands, got[1].data.raw)

    def test_a_transform_to_what_no_request_has_denies(self, stage, guard_of, got):
        """Clause 19: what cannot be carried out denies."""
        (told,) = run(
            stage,
            guard_of(change(path="args.sudo", set=True)),
            self.make(got),
            shell_call(commands=["ls"]),
        )

        assert told.startswith("[denied] ")
        assert [] == got

    def test_a_denial_is_no_success(self, stage, guard_of, got):
        """The model reads that the command was not executed, and the shell's code for it."""
        run(stage, guard_of(rest="deny"), self.make(got), shell_call(commands=["ls"]))

        (item,) = output_items(stage)
        (output,) = item["output"]
        assert "[denied] not permitted by policy" == output["stdout"]
        assert {"type": "exit", "exit_code": 126} == output["outcome"]

    def test_a_structured_result_is_untouched(self, stage, guard_of, got):
        """Law 1: the tool's own result is what the model sees."""
        outcome = ShellCallOutcome("exit", 3)
        result = ShellResult([ShellCommandOutput("out", "err", outcome)])
        tool = self.make(got, result)

        run(stage, guard_of(), tool, shell_call(commands=["ls"]))

        (item,) = output_items(stage)
        (output,) = item["output"]
        assert ("out", "err", 3) == (
            output["stdout"],
            output["stderr"],
            output["outcome"]["exit_code"],
        )

    def test_the_sdk_cuts_a_denial_as_the_model_asked(self, stage, guard_of, got):
        """A declared gap: the model's own limit on the output holds for denials too."""
        told = run(
            stage,
            guard_of(rest="deny"),
            self.make(got),
            shell_call(commands=["ls"], max_output_length=8),
        )

        assert ["[denied]"] == told


class TestLocalShell:
    def make(self, got):
        """Make a shell that keeps what it gets."""

        def execute(request):
            got.append(request.data.action)
            return "ran"

        return LocalShellTool(executor=execute)

    def test_all_that_it_carries_is_judged(self, stage, guard_of, got, record):
        """Who runs the command, where and with which environment matters as the command does."""
        action = {
            "command": ["ls"],
            "env": {"PATH": "/bin"},
            "timeout_ms": 9,
            "user": "root",
            "working_directory": "/etc",
        }
        rule = {"id": "r", "match": {"args.user": "root"}, "decision": "deny", "reason": "no root"}

        assert ["[denied] no root"] == run(
            stage, guard_of(rule), self.make(got), local_call(**action)
        )
        assert action == record.bodies("step.proposed")[0]["args"]

    @pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")  # the SDK's
    def test_a_command_that_is_no_list_is_judged_as_it_is(self, stage, guard_of, got):
        """Law 5: the client checks no types, so a rule gets what the executor would get."""
        rule = {
            "id": "r",
            "match": {"args.command": {"contains": "rm"}},
            "decision": "deny",
            "reason": "not here",
        }

        assert ["[denied] not here"] == run(
            stage, guard_of(rule), self.make(got), local_call(command="rm x")
        )

    def test_a_field_that_is_taken_away_is_gone(self, stage, guard_of, got):
        """Clause 19: a transform may delete, and leaves the rest."""
        run(
            stage,
            guard_of(change(path="args.user", delete=True)),
            self.make(got),
            local_call(command=["ls"], user="root"),
        )

        assert (None, ["ls"], "exec") == (got[0].user, got[0].command, got[0].type)

    def test_what_a_later_release_adds_is_judged(self, stage, guard_of, got, record):
        """Law 5: a field that this version does not know runs only as it was judged."""
        tool = self.make(got)
        call = local_call(command=["rm"], niceness=3)

        run(stage, guard_of(change(path="args.command", set=["ls"])), tool, call)

        assert 3 == record.bodies("step.proposed")[0]["args"]["niceness"]
        assert (["ls"], 3) == (got[0].command, got[0].niceness)


class Editor:
    """An editor that keeps what it gets."""

    def __init__(self, got) -> None:
        self._got = got

    def create_file(self, operation):
        """Create a file."""
        self._got.append(operation)
        return f"created {operation.path}"

    def update_file(self, operation):
        """Change a file."""
        self._got.append(operation)
        return f"updated {operation.path}"

    def delete_file(self, operation):
        """Delete a file."""
        self._got.append(operation)
        return f"deleted {operation.path}"


NEW = {"type": "create_file", "path": "/tmp/a", "diff": "+a"}
OLD = {"type": "delete_file", "path": "/etc/b"}
MOVED = {"type": "update_file", "path": "/tmp/c", "diff": "+c", "move_to": "/etc/c"}


class TestEditor:
    def test_each_change_of_a_call_is_judged_on_its_own(self, stage, guard_of, got, record):
        """A denial is one change's failure: the model reads it between the others' results."""
        rule = {
            "id": "r",
            "match": {"args.type": "delete_file"},
            "decision": "deny",
            "reason": "no deleting",
        }

        (told,) = run(
            stage, guard_of(rule), ApplyPatchTool(editor=Editor(got)), patch_call(NEW, OLD, NEW)
        )

        assert "created /tmp/a\n[denied] no deleting\ncreated /tmp/a" == told
        assert ["create_file", "create_file"] == [operation.type for operation in got]
        assert "failed" == output_items(stage)[0]["status"]
        assert stage.ids * 3 == [body["call_id"] for body in record.bodies("step.proposed")]

    def test_where_a_file_is_moved_to_is_judged(self, stage, guard_of, got):
        """Fault kind 3: the path that a change writes to is not only the one that it reads."""
        rule = {
            "id": "r",
            "match": {"args.move_to": {"glob": "/etc/**"}},
            "decision": "deny",
            "reason": "not there",
        }

        assert ["[denied] not there"] == run(
            stage, guard_of(rule), ApplyPatchTool(editor=Editor(got)), patch_call(MOVED)
        )
        assert [] == got

    def test_a_change_of_another_type_is_made_as_that(self, stage, guard_of, got):
        """Law 5: a transform to another operation runs the editor's method for it."""
        run(
            stage,
            guard_of(change(path="args.type", set="update_file")),
            ApplyPatchTool(editor=Editor(got)),
            patch_call(NEW),
        )

        assert ["updated /tmp/a"] == stage.said
        assert "update_file" == got[0].type

    def test_an_editor_gets_its_context(self, stage, guard_of, got):
        """Law 1: the operation has the run's context, as ungoverned."""
        tool = ApplyPatchTool(editor=Editor(got))

        run(stage, guard_of(), tool, patch_call(NEW), context="ana")

        assert "ana" == got[0].ctx_wrapper.context

    def test_the_operation_is_as_ungoverned(self, stage, guard_of, got):
        """Law 1: an allowed change reaches the editor as the SDK makes it."""
        tool = ApplyPatchTool(editor=Editor(got))
        for governing in (lambda agent: agent, lambda agent: govern(agent, guard_of())):
            stage.script("responses", a=[patch_call(NEW, MOVED, OLD)])
            stage.run(governing(stage.agent("a", tools=[tool])))
        for operation in got:
            operation.ctx_wrapper = None

        assert got[:3] == got[3:]


class TestCustomTool:
    def test_a_body_that_reads_its_context_reads_what_runs(self, stage, guard_of, got):
        """Law 5: there is no second place with the text that was rewritten."""

        async def invoke(context, text):
            got.append((context.tool_arguments, text))
            return "ran"

        tool = CustomTool(name="query", description="", on_invoke_tool=invoke)
        item = {"type": "custom_tool_call", "name": "query", "input": "drop all"}

        run(
            stage,
            guard_of(change(path="args.input", set="select 1")),
            tool,
            ScriptedCall("query", "", item=item),
        )

        assert [("select 1", "select 1")] == got

    def test_a_body_that_is_a_plain_function_runs(self, stage, guard_of):
        """The SDK takes both, and so does the guard."""
        tool = CustomTool(
            name="query", description="", on_invoke_tool=lambda _context, text: f"asked {text}"
        )
        item = {"type": "custom_tool_call", "name": "query", "input": "select 1"}

        assert ["asked select 1"] == run(
            stage, guard_of(), tool, ScriptedCall("query", "", item=item)
        )

    def test_hooks_see_the_governed_tool_and_its_answer(self, stage, guard_of):
        """Law 1: a run's hooks fire around a denial as around any answer."""
        seen = []

        class Hooks(RunHooks):
            async def on_tool_start(self, context, agent, tool):
                seen.append(tool.name)

            async def on_tool_end(self, context, agent, tool, result):
                seen.append(result)

        tool = CustomTool(name="query", description="", on_invoke_tool=lambda _c, _t: "ran")
        item = {"type": "custom_tool_call", "name": "query", "input": "drop all"}

        run(
            stage,
            guard_of(rest="deny"),
            tool,
            ScriptedCall("query", "", item=item),
            hooks=Hooks(),
        )

        assert ["query", "[denied] not permitted by policy"] == seen
