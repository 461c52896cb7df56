"""`adjudge replay`."""

from __future__ import annotations

import asyncio
import json

import pytest

from adjudge import (
    ToolGuard,
    ToolMetadata,
    compile_policy,
    hash_chained_sink,
    jsonl_sink,
    multi_sink,
)
from adjudge.integration import ProposedCall
from adjudge.testing import scripted_approval

OLD = {
    "version": 1,
    "rules": [
        {"id": "small", "match": {"tool": "pay", "args.n.le": 50}, "decision": "allow"},
        {
            "id": "large",
            "match": {"tool": "pay"},
            "decision": "approve_required",
            "approvers": ["finance"],
        },
    ],
}
NEW = json.loads(json.dumps(OLD).replace("50", "70"))
READS_SECRETS = {
    "version": 1,
    "rules": [
        {"id": "no", "match": {"args.token.matches": "^a"}, "decision": "deny"},
        *OLD["rules"],
    ],
}


@pytest.fixture
def files(tmp_path):
    """A log, chained and plain, and policies."""

    async def body(effective):
        return "done"

    async def govern_all():
        for number in (5, 60, 900):
            call = ProposedCall("pay", {"n": number, "token": "t\x1b[2J"}, declared=ToolMetadata())
            await guard.govern_call(call, execute=body)

    sinks = [
        multi_sink(
            hash_chained_sink(tmp_path / "audit.jsonl"), jsonl_sink(tmp_path / "plain.jsonl")
        )
    ]
    guard = ToolGuard(
        policy=compile_policy(OLD), sinks=sinks, on_approval=scripted_approval([True] * 3)
    )
    asyncio.run(govern_all())
    for name, policy in (("old", OLD), ("new", NEW), ("secrets", READS_SECRETS), ("bad", {"a": 1})):
        (tmp_path / f"{name}.json").write_text(json.dumps(policy))
    return tmp_path


def test_a_policy_that_changes_nothing_is_zero(adjudge, files):
    """The chain is said to have been verified, and how many calls were judged again."""
    done = adjudge("replay", "audit.jsonl", "--policy", "old.json")

    assert (0, "") == (done.returncode, done.stderr)
    assert "audit.jsonl: chain intact, " in done.stdout
    assert "3 calls judged again by old.json: 3 as recorded, 0 changed" in done.stdout


def test_a_change_is_one_and_shows_the_call_and_the_rules(adjudge, files):
    """Old and new verdict, both rules, an example and its place in the log."""
    done = adjudge("replay", "plain.jsonl", "--policy", "new.json")

    assert 1 == done.returncode
    assert "plain.jsonl: not chained" in done.stdout
    assert "- loosened  approve_required -> allow  pay  1 call" in done.stdout
    assert "was: large" in done.stdout
    assert "now: rule small" in done.stdout
    assert 'plain.jsonl:4  pay {"n": 60, "token": [redacted]}' in done.stdout


def test_what_cannot_be_told_is_one_too(adjudge, files):
    """It is not known that nothing changes, and the reason is said."""
    done = adjudge("replay", "audit.jsonl", "--policy", "secrets.json")

    assert 1 == done.returncode
    assert "? cannot be told  pay  3 calls: rule no reads args.token" in done.stdout


@pytest.mark.parametrize("policy", ["old.json", "new.json", "secrets.json"])
def test_json_gives_the_same_code_and_the_same_figures(adjudge, files, policy):
    """--json changes the form, never the answer."""
    plain = adjudge("replay", "audit.jsonl", "--policy", policy)
    structured = adjudge("replay", "audit.jsonl", "--policy", policy, "--json")
    told = json.loads(structured.stdout)

    assert plain.returncode == structured.returncode
    assert 3 == told["judged"] == told["same"] + told["changed"] + told["cannot_be_told"]
    assert (plain.returncode == 0) is (told["changes"] == [] == told["untold"])


@pytest.mark.parametrize(
    ("log", "policy"),
    [
        ("audit.jsonl", "bad.json"),
        ("audit.jsonl", "missing.json"),
        ("missing.jsonl", "old.json"),
        ("old.json", "old.json"),
        ("empty.jsonl", "old.json"),
        (".", "old.json"),
    ],
)
def test_bad_input_and_nothing_to_replay_are_two(adjudge, files, log, policy):
    """A file that is no log, an empty one, a policy that does not compile."""
    (files / "empty.jsonl").write_text("")
    done = adjudge("replay", log, "--policy", policy)

    assert 2 == done.returncode
    assert "" != done.stderr


def test_a_broken_chain_is_two_unless_it_is_allowed(adjudge, files):
    """And then the output says so."""
    path = files / "audit.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"n":60', b'"n":61'))
    refused = adjudge("replay", "audit.jsonl", "--policy", "old.json")
    allowed = adjudge("replay", "audit.jsonl", "--policy", "old.json", "--allow-broken")

    assert 2 == refused.returncode
    assert "chain" in refused.stderr
    assert 0 == allowed.returncode
    assert "CHAIN BROKEN" in allowed.stdout


@pytest.mark.parametrize("log", ["audit.jsonl", "plain.jsonl"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_torn_end_is_said_and_is_one(adjudge, files, log, as_json):
    """What a crash cut short may have been a call, and nobody can tell what becomes of it."""
    path = files / log
    path.write_bytes(path.read_bytes() + b'{"body":{"ar')
    done = adjudge("replay", log, "--policy", "old.json", *(["--json"] if as_json else []))

    assert 1 == done.returncode
    if as_json:
        assert 12 == json.loads(done.stdout)["files"][0]["torn_bytes"]
    else:
        assert "TORN END: the last line was cut short after 12 bytes" in done.stdout


@pytest.mark.parametrize("verdict", ['"alow"', "7", "null", "[1]", "{}"])
def test_a_judgment_with_a_verdict_that_is_none_is_two(adjudge, files, verdict):
    """A call of which it is not known what was decided cannot come out as recorded."""
    path = files / "plain.jsonl"
    path.write_text(path.read_text().replace('"verdict":"allow"', f'"verdict":{verdict}', 1))
    done = adjudge("replay", "plain.jsonl", "--policy", "old.json")

    assert (2, "") == (done.returncode, done.stdout)
    assert "plain.jsonl:2: this judgment has the verdict" in done.stderr


def test_control_characters_of_a_log_do_not_reach_the_terminal(adjudge, files):
    """Arguments and names are escaped."""
    path = files / "plain.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"pay"', b'"p\\u001b[2Jy"'))
    done = adjudge("replay", "plain.jsonl", "--policy", "old.json", "--assume-plain")

    assert 1 == done.returncode
    assert "\x1b" not in done.stdout
