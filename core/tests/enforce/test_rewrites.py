"""What was judged is what runs, also where defaults come back and paths lead elsewhere."""

from datetime import date
from enum import Enum
from pathlib import PurePath

import pytest

from adjudge._enforcement.tools import tool
from adjudge._types import Outcome
from adjudge.policy import compile_policy, transform


async def test_a_default_that_comes_back_is_judged(bench, check):
    """Law 5: where a transform deletes an argument, the default that the body sees is judged."""
    guard = bench.guard(
        {
            "match": {"args.amount.gt": 100},
            "decision": "transform",
            "transform": {"path": "args.amount", "delete": True},
        },
        {"match": {"args.amount": 5}, "decision": "deny", "reason": "not five"},
        {"decision": "allow"},
    )

    call = await check(guard, "pay", {"to": "x", "amount": 500})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


async def test_a_default_that_comes_back_runs_where_it_is_allowed(bench, check):
    """The body's own default is in the record and in the decision."""
    guard = bench.guard(
        {
            "match": {"args.amount.gt": 100},
            "decision": "transform",
            "transform": {"path": "args.amount", "delete": True},
        },
        {"decision": "allow"},
    )

    call = await check(guard, "pay", {"to": "x", "amount": 500})

    assert bench.ran == [{"to": "x", "amount": 5}]
    assert call.decision.effective_args == {"to": "x", "amount": 5}
    assert bench.body("policy.evaluated")["effective_args"] == {"to": "x", "amount": 5}


async def test_a_rewrite_that_never_settles_denies(bench, check):
    """A transform that would change the completed arguments again denies."""
    policy = compile_policy(
        {"version": 1, "rules": []},
        python_rules=[
            lambda request: transform(
                {"to": "x", **({"amount": 6} if request.args["amount"] == 5 else {})}
            )
        ],
    )
    guard = bench.guard(policy=policy)

    call = await check(guard, "pay", {"to": "x", "amount": 9})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


@pytest.mark.parametrize("rewritten", [{"amount": 1}, {"to": "x", "typo": 1}])
async def test_a_rewrite_that_does_not_fit_the_tool_denies(bench, check, rewritten):
    """Clause 19: what fails the tool's schema denies, with the usual events."""
    policy = compile_policy(
        {"version": 1, "rules": []}, python_rules=[lambda _: transform(rewritten)]
    )
    guard = bench.guard(policy=policy)

    call = await check(guard, "pay", {"to": "x"})

    assert call.outcome is Outcome.DENIED
    assert bench.kinds == ["step.proposed", "policy.evaluated", "action.denied"]
    assert bench.ran == []


async def test_defaults_of_the_signature_are_judged(bench, check):
    """Fault kind 2: a default is judged as if it had been sent, and `given` tells it apart."""
    guard = bench.guard({"match": {"args.amount": 5, "given.amount": False}, "decision": "allow"})

    filled = await check(guard, "pay", {"to": "x"})
    sent = await check(guard, "pay", {"to": "x", "amount": 5})

    assert filled.outcome is Outcome.COMPLETED
    assert sent.outcome is Outcome.DENIED


async def test_a_default_that_is_no_json_stays_the_functions_own(bench, check):
    """No rule can read it, and the body gets the very object."""
    marker = object()

    @tool()
    async def lists(where=marker):
        bench.ran.append(where)

    plain = bench.guard({"decision": "allow"}, tools=[lists])
    ruled = bench.guard(
        {"match": {"args.where": "x"}, "decision": "deny"}, {"decision": "allow"}, tools=[lists]
    )

    ran = await check(plain, "lists", {})
    denied = await check(ruled, "lists", {})

    assert (ran.outcome, bench.ran) == (Outcome.COMPLETED, [marker])
    assert denied.outcome is Outcome.DENIED


@pytest.fixture
def reader(bench, tmp_path):
    """A tool that reads a file, in a workspace with a way out of it."""

    @tool()
    async def read(path: str):
        bench.ran.append(path)

    (tmp_path / "data").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "data" / "way_out").symlink_to(tmp_path / "secret")

    def guard(*rules):
        return bench.guard(*rules, tools=[read], workspace=str(tmp_path))

    return guard


UNDER_DATA = {"match": {"args.path.under": "data"}, "decision": "allow"}


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("data/a.txt", Outcome.COMPLETED),
        ("data/../data/a.txt", Outcome.COMPLETED),
        ("data", Outcome.COMPLETED),
        ("data/../secret/a.txt", Outcome.DENIED),
        ("data/way_out/a.txt", Outcome.DENIED),
        ("/etc/passwd", Outcome.DENIED),
        ("database/a.txt", Outcome.DENIED),
        ("data/a\0.txt", Outcome.DENIED),
    ],
)
async def test_the_guard_resolves_what_under_reads(bench, check, reader, path, outcome):
    """Clause 12: paths are resolved against the workspace, symbolic links and all."""
    guard = reader(UNDER_DATA)

    call = await check(guard, "read", {"path": path})

    assert call.outcome is outcome
    assert len(bench.ran) == (outcome is Outcome.COMPLETED)


@pytest.mark.parametrize(
    ("path", "outcome"), [("data/a.txt", Outcome.COMPLETED), ("data/way_out/a", Outcome.DENIED)]
)
async def test_a_rewritten_path_is_resolved_and_judged(bench, check, reader, path, outcome):
    """Clause 19: where `under` reads a rewritten value, it is resolved and judged again."""
    guard = reader(
        {"decision": "transform", "transform": {"path": "args.path", "set": path}},
        {"match": {"not": {"args.path.under": "data"}}, "decision": "deny"},
    )

    call = await check(guard, "read", {"path": "data/x"})

    assert call.outcome is outcome
    assert bench.ran == ([path] if outcome is Outcome.COMPLETED else [])


async def test_a_path_that_a_python_rule_writes_is_resolved_and_judged(
    bench, check, reader, tmp_path
):
    """What no bundle can foresee is resolved when it is seen."""

    def divert(_):
        return transform({"path": "data/way_out/a"})

    policy = compile_policy(
        {
            "version": 1,
            "rules": [
                {"id": "out", "match": {"not": {"args.path.under": "data"}}, "decision": "deny"}
            ],
        },
        python_rules=[divert],
        python_rule_priorities={"divert": 1000},
    )

    @tool()
    async def read(path: str):
        bench.ran.append(path)

    guard = bench.guard(policy=policy, tools=[read], workspace=str(tmp_path))

    call = await check(guard, "read", {"path": "data/a"})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


class Speed(Enum):
    SLOW = "slow"


async def test_a_default_of_a_richer_type_is_judged_as_json_and_stays_what_it_is(bench, check):
    """Law 1: the body gets the Enum, path, date and tuple that its signature has."""
    defaults = (Speed.SLOW, PurePath("/x"), date(2026, 1, 2), (1, ("a",)))

    @tool()
    async def rich(speed=defaults[0], path=defaults[1], day=defaults[2], pair=defaults[3]):
        bench.ran.append((speed, path, day, pair))

    rule = {"args.speed": "slow", "args.path": "/x", "args.day": "2026-01-02", "args.pair.size": 2}
    guard = bench.guard({"match": rule, "decision": "allow"}, tools=[rich])

    await check(guard, "rich", {})
    await check(guard, "rich", {"speed": "slow"})

    assert [defaults, ("slow", *defaults[1:])] == bench.ran


async def test_a_default_that_a_body_can_change_is_not_handed_on(bench, check):
    """Law 5: a mutable default is judged, and given afresh, as it was when the tool was defined."""

    @tool()
    async def grows(held=([],)):
        bench.ran.append(held)
        held[0].append(1)

    guard = bench.guard({"match": {"args.held": [[]]}, "decision": "allow"}, tools=[grows])

    await check(guard, "grows", {})
    await check(guard, "grows", {})

    assert [[[1]], [[1]]] == bench.ran


async def test_a_rewritten_default_of_a_richer_type_reaches_the_body(bench, check):
    """Law 5: what a transform put in place of a default runs, and not the default."""
    default = PurePath("/x")

    @tool()
    async def opens(path=default):
        bench.ran.append(path)

    guard = bench.guard(
        {
            "match": "always",
            "decision": "transform",
            "transform": {"path": "args.path", "set": "/safe"},
        },
        tools=[opens],
    )

    await check(guard, "opens", {})

    assert ["/safe"] == bench.ran
