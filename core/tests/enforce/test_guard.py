"""Making a guard, and what it says of itself."""

from pathlib import Path

import pytest

from adjudge._enforcement.guard import ToolGuard
from adjudge._ledger.entries import MemoryLedger
from adjudge._types import CallContext, Outcome, Principal
from adjudge.errors import GovernError
from adjudge.policy import compile_policy

POLICY = compile_policy({"version": 1, "rules": []})


@pytest.mark.parametrize(
    ("settings", "instead"),
    [
        ({"policy": "version: 1"}, "compile_policy("),
        ({"policy": {"version": 1, "rules": []}}, "compile_policy("),
        ({"policy": [POLICY]}, "compile_policy("),
        ({"policy": Path("policy.yaml")}, "load_policy_file("),
        ({"policy": None}, "load_policy_file"),
        ({"tools": [len]}, "ToolSet.from_functions("),
        ({"principal": "ana"}, "Principal("),
        ({"principal": None}, "Principal("),
        ({"environment": 3}, "give a string"),
        ({"workspace": Path()}, "give str("),
        ({"workspace": None}, "give a string"),
        ({"correlation_id": 7}, "give a string"),
        ({"on_approval": "ana"}, "pause_approval("),
        ({"ledger": "ledger.db"}, "SQLiteLedger("),
        ({"executor": "inline"}, "inline_executor("),
        ({"obligations": ["notify"]}, "ids to handlers"),
        ({"obligations": {"notify": "mail"}}, "obligations['notify']"),
        ({"shadows": {"pay": 3}}, "shadows['pay']"),
        ({"cancel": False}, "CancelToken("),
        ({"redact": False}, "no_redaction"),
        ({"sinks": "audit.jsonl"}, "jsonl_sink("),
        ({"sinks": print}, "jsonl_sink("),
    ],
    ids=str,
)
def test_what_cannot_guard_is_refused_when_it_is_made(settings, instead):
    """Fault kind 1: a slip in the configuration is an error at once, and says what to write."""
    with pytest.raises(GovernError) as raised:
        ToolGuard(**{"policy": POLICY, **settings})

    assert "cannot_govern" == raised.value.code
    assert next(iter(settings)) in str(raised.value)
    assert instead in str(raised.value)


def test_a_guard_says_what_it_was_made_of():
    """Policy, ledger, tools and the id of its record can be read."""
    ledger = MemoryLedger()
    guard = ToolGuard(policy=POLICY, ledger=ledger, correlation_id="run-7")

    assert (guard.policy, guard.ledger, guard.correlation_id) == (POLICY, ledger, "run-7")
    assert guard.may_ask is POLICY.may_ask
    assert len(guard.tools) == 0


def test_two_guards_have_two_ids():
    """Without an id given, each guard makes its own."""
    assert ToolGuard(policy=POLICY).correlation_id != ToolGuard(policy=POLICY).correlation_id


async def test_the_guards_own_principal_and_environment_hold_at_check(bench, check):
    """Clause 26: without `context=` the guard's own hold; `extra` comes with the call."""
    guard = bench.guard(
        {
            "match": {
                "context.principal.id": "eve",
                "context.environment": "prod",
                "context.extra.tier": 2,
            },
            "decision": "allow",
        },
        principal=Principal("service", "eve"),
        environment="prod",
    )

    with_extra = await check(guard, "note", {"text": "x"}, extra={"tier": 2})
    without = await check(guard, "note", {"text": "x"})

    assert (with_extra.allowed, without.allowed) == (True, False)


async def test_an_environment_that_nobody_supplied_is_an_error_in_a_rule(bench, check):
    """Clause 9: None is not absence, so a deny on the environment denies."""
    guard = bench.guard(
        {"match": {"context.environment": "prod"}, "decision": "deny"}, {"decision": "allow"}
    )

    assert (await check(guard, "note", {"text": "x"})).allowed is False


@pytest.mark.parametrize("extra", [{"x": object()}, ["x"]], ids=["no-json", "no-object"])
async def test_an_extra_that_is_no_json_denies(bench, check, extra):
    """What a rule could not read is refused."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", {"text": "x"}, extra=extra)

    assert call.result.code == "context_failed"
    assert bench.ran == []


async def test_an_exception_that_cannot_say_what_it_is_stays_itself(bench, govern):
    """Law 1: a body's exception is raised again even if its text cannot be had."""
    from adjudge._arguments.proposal import ProposedCall

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("mute")

    error = Mute()

    def body(_):
        raise error

    guard = bench.guard({"decision": "allow"})
    with pytest.raises(Mute) as raised:
        await govern(guard, ProposedCall("f", {}), body)

    assert raised.value is error
    assert bench.terminals == ["action.failed"]


@pytest.mark.parametrize("name", [["note"], {}, None, 5], ids=str)
async def test_a_name_that_is_no_text_is_an_unknown_tool(bench, check, name):
    """Law 4: a caller without types gets a denial, on record, and no exception."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, name, {"text": "x"})

    assert "unknown_tool" == call.result.code
    assert ["action.denied"] == bench.terminals


@pytest.mark.parametrize("door", ["check", "check_sync"])
async def test_check_is_told_who_is_calling(bench, door):
    """Clause 26: `context=` says who, per call, and its extra beats the call's own."""
    guard = bench.guard(
        {
            "match": {
                "context.principal.id": "eve",
                "context.extra.tenant": "hers",
                "context.extra.case": 7,
            },
            "decision": "allow",
        }
    )

    def who():
        return CallContext(Principal("user", "eve"), extra={"tenant": "hers"})

    async def check(**options):
        call = getattr(guard, door)("note", {"text": "a"}, **options)
        return await call if door == "check" else call

    extra = {"tenant": "theirs", "case": 7}

    assert Outcome.COMPLETED is (await check(extra=extra, context=who)).outcome
    assert Outcome.DENIED is (await check(extra=extra)).outcome
    assert "context_failed" == (await check(context=lambda: None)).result.code
    assert [{"text": "a"}] == bench.ran
