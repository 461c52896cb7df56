"""Sandbox agents: what their capabilities bring along for a run is governed as any tool."""

import asyncio

import pytest
from agents import RunConfig, Runner
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.capabilities import Filesystem, Shell
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

from adjudge import ApprovalDecision, SQLiteLedger, pause_approval
from adjudge_conformance.wire import ScriptedCall
from adjudge_openai_agents import govern, pending, resume

TEXT = "*** Begin Patch\n*** Add File: note.txt\n+hello\n*** End Patch"
PATCH = ScriptedCall(
    "apply_patch", "", item={"type": "custom_tool_call", "name": "apply_patch", "input": TEXT}
)


def config():
    """Say that the sandbox is on this machine."""
    client = UnixLocalSandboxClient()
    return RunConfig(tracing_disabled=True, sandbox=SandboxRunConfig(client=client))


def governed(stage, guard, configure=None):
    """Make an agent with a shell and an editor, governed."""
    files = Filesystem(configure_tools=configure)
    agent = SandboxAgent(name="a", model=stage.model("a"), capabilities=[Shell(), files])
    return govern(agent, guard)


def run(stage, guard, *calls, configure=None):
    """Run an agent that makes the calls; give what came of it."""
    stage.script("responses", a=list(calls))
    agent = governed(stage, guard, configure)
    return asyncio.run(Runner.run(agent, "Go.", run_config=config()))


def command(text):
    """Make the call of a shell."""
    return ("exec_command", f'{{"cmd": "{text}"}}')


def test_commands_are_judged_each(stage, guard_of):
    """Law 3: a rule reads the command; what it denies never reaches the sandbox."""
    rule = {
        "id": "no-rm",
        "match": {"tool": "exec_command", "args.cmd": {"starts_with": "rm "}},
        "decision": "deny",
        "reason": "not here",
    }

    run(
        stage,
        guard_of(rule),
        command("echo hello > note.txt"),
        command("rm note.txt"),
        command("cat note.txt"),
    )

    made, denied, left = stage.said
    assert "exited with code 0" in made
    assert "[denied] not here" == denied
    assert "hello" in left


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_patches_are_judged(stage, guard_of, decision):
    """Law 3: so is what the model writes for the editor of the sandbox."""
    rule = {
        "id": "r",
        "match": {"tool": "apply_patch", "args.input": {"contains": "note.txt"}},
        "decision": decision,
        "reason": "not here",
    }

    run(stage, guard_of(rule), PATCH, command("ls"))

    told, left = stage.said
    assert (decision == "deny") == (told == "[denied] not here")
    assert (decision == "allow") == ("note.txt" in left)


@pytest.mark.parametrize("granted", [True, False])
def test_a_patch_waits_for_a_person(stage, guard_of, tmp_path, granted):
    """The text that a person is asked about is what is applied, in a run that was resumed."""
    rule = {"id": "r", "match": {"tool": "apply_patch"}, "decision": "approve_required"}

    def guard():
        return guard_of(rule, on_approval=pause_approval(SQLiteLedger(tmp_path / "ledger.db")))

    paused = run(stage, guard(), PATCH, command("ls"))
    (waiting,) = pending(paused)
    answer = {waiting.id: ApprovalDecision(granted, "ana")}
    saved = paused.to_state().to_json()
    asyncio.run(resume(governed(stage, guard()), saved, answer, run_config=config()))

    assert {"input": TEXT} == waiting.request.args
    assert granted == ("note.txt" in stage.said[1])


def test_an_approval_of_the_editors_own_is_kept(stage, guard_of):
    """The SDK asks that setting about each change, and so it does governed."""
    asked = []

    def needed(_context, operation, _call_id):
        asked.append(operation.path)
        return True

    def configure(tools):
        tools.apply_patch.needs_approval = needed

    waiting = run(stage, guard_of(), PATCH, configure=configure)

    assert (["note.txt"], 1) == (asked, len(waiting.interruptions))
