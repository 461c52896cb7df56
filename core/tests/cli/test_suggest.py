"""`adjudge suggest`."""

from __future__ import annotations

import asyncio
import json

import pytest

from adjudge import ToolGuard, ToolMetadata, compile_policy, hash_chained_sink, load_policy_file
from adjudge.integration import ProposedCall

POLICY = {
    "version": 1,
    "rules": [
        {"id": "no", "match": {"tool": "delete"}, "decision": "deny"},
        {"id": "all", "match": "always", "decision": "allow"},
    ],
}


@pytest.fixture
def log(tmp_path):
    """A log of three payments and a denial."""

    async def body(effective):
        return "done"

    async def govern_all():
        for tool, args in [("pay", {"n": n}) for n in (1, 2, 9)] + [("delete", {"id": 1})]:
            await guard.govern_call(ProposedCall(tool, args, declared=ToolMetadata()), execute=body)

    guard = ToolGuard(
        policy=compile_policy(POLICY), sinks=[hash_chained_sink(tmp_path / "audit.jsonl")]
    )
    asyncio.run(govern_all())
    return tmp_path


@pytest.mark.parametrize("name", ["p.json", pytest.param("p.yaml", marks=pytest.mark.needs_yaml)])
def test_the_policy_is_written_and_said_to_reproduce_the_log(adjudge, log, name):
    """The file compiles, and what was made of what is said."""
    done = adjudge("suggest", "audit.jsonl", "--output", name)
    (rule,) = load_policy_file(log / name).source.rules

    assert (0, "") == (done.returncode, done.stderr)
    assert "allow-pay" == rule.id
    assert "left out: 1 call, denied" in done.stdout
    assert "replayed: 4 calls come out as recorded" in done.stdout


def test_a_suggested_policy_replays_without_a_change(adjudge, log):
    """What suggest says of itself is what replay says of it."""
    adjudge("suggest", "audit.jsonl", "--output", "p.json")

    assert 0 == adjudge("replay", "audit.jsonl", "--policy", "p.json").returncode


def test_without_a_file_the_policy_is_standard_output_alone(adjudge, log):
    """What is said of it goes to standard error, so that it can be redirected."""
    done = adjudge("suggest", "audit.jsonl", "--generalise", "values")
    (rule,) = compile_policy(done.stdout).source.rules

    assert 0 == done.returncode
    assert "allow-pay" == rule.id
    assert "between" in done.stdout
    assert "replayed" in done.stderr


def test_levels_are_set_for_tools_and_arguments(adjudge, log):
    """TOOL=LEVEL and TOOL:ARGUMENT=LEVEL."""
    for option in ("pay=values", "pay:n=values"):
        assert "between" in adjudge("suggest", "audit.jsonl", "--generalise", option).stdout


def test_json_has_the_policy_and_the_evidence(adjudge, log):
    """And the same exit code."""
    done = adjudge("suggest", "audit.jsonl", "--json")
    told = json.loads(done.stdout)

    assert 0 == done.returncode
    assert compile_policy(told["policy"]).id == told["bundle_id"]
    assert (3, 4, []) == (told["used"], told["reproduced"], told["otherwise"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.jsonl"],
        ["empty.jsonl"],
        ["audit.jsonl", "--generalise", "wide"],
        ["audit.jsonl", "--output", "policy.txt"],
        ["audit.jsonl", "--output", "no/such/folder.json"],
    ],
)
def test_bad_usage_and_nothing_to_suggest_are_two(adjudge, log, arguments):
    """Nothing is written then."""
    (log / "empty.jsonl").write_text("")
    done = adjudge("suggest", *arguments)

    assert 2 == done.returncode
    assert "" != done.stderr
    assert {"audit.jsonl", "empty.jsonl"} == {path.name for path in log.iterdir()}
