"""The tools for authors of policies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adjudge import ApprovalDecision, ToolGuard, ToolMetadata, ToolSet, Verdict, tool
from adjudge.errors import ArgumentsRefused
from adjudge.testing import RecordingSink, assert_verdict, make_request, scripted_approval

POLICY = {
    "version": 1,
    "rules": [
        {"id": "small", "match": {"tool": "pay", "args.amount.le": 50}, "decision": "allow"},
        {
            "id": "large",
            "match": {"tool": "pay", "args.amount.gt": 50},
            "decision": "approve_required",
        },
        {
            "id": "narrow",
            "match": {"tool": "search"},
            "decision": "transform",
            "transform": {"path": "args.limit", "set": 20},
        },
        {
            "id": "inside",
            "match": {"tool": "read", "args.path.under": "/workspace"},
            "decision": "allow",
        },
    ],
}


def test_a_verdict_that_holds_gives_the_decision():
    """assert_verdict gives the decision, for whatever else is to be said of it."""
    decision = assert_verdict(POLICY, "pay", {"amount": 5}, "allow", rule="small")

    assert Verdict.ALLOW is decision.verdict


@pytest.mark.parametrize(
    "claim",
    [
        {"verdict": "deny"},
        {"verdict": "allow", "rule": "large"},
        {"verdict": "allow", "effective_args": {"amount": 6}},
        {"verdict": "allow", "effective_args": {"amount": 5.0}},
    ],
)
def test_a_verdict_that_does_not_hold_fails_with_the_whole_decision(claim):
    """The message says what was decided, by which rule."""
    with pytest.raises(AssertionError, match="Rules that decided: small"):
        assert_verdict(POLICY, "pay", {"amount": 5}, **claim)


def test_a_verdict_that_does_not_exist_is_a_mistake_of_the_test():
    """A misspelt verdict is not taken for one that differs."""
    with pytest.raises(ValueError, match="alow"):
        assert_verdict(POLICY, "pay", {"amount": 5}, "alow")


def test_effective_args_are_those_after_the_transform():
    """A transform is asserted on its result."""
    assert_verdict(
        POLICY, "search", {"q": "x"}, "transform", effective_args={"q": "x", "limit": 20}
    )


def test_paths_are_worked_out_from_their_text():
    """`under` is decided without a file system, and as stated where a resolution is given."""
    assert_verdict(POLICY, "read", {"path": "a.txt"}, "allow", rule="inside")
    assert_verdict(POLICY, "read", {"path": "../etc/passwd"}, "deny")
    assert_verdict(
        POLICY,
        "read",
        {"path": "link"},
        "deny",
        resolved={"link": "/etc", "/workspace": "/workspace"},
    )


def test_the_context_of_a_call_can_be_stated():
    """Who asks, where, and what the tool declares are arguments of the question."""
    policy = {
        "rules": [
            {"id": "prod", "match": {"context.environment": "prod"}, "decision": "deny"},
            {"id": "all", "match": "always", "decision": "allow"},
        ]
    }
    assert_verdict(policy, "x", {}, "deny", rule="prod", environment="prod")
    assert_verdict(policy, "x", {}, "allow", environment="dev", declared=ToolMetadata(cost="high"))


def test_arguments_that_are_no_json_are_refused():
    """make_request holds its arguments to what a guard would accept."""
    with pytest.raises(ArgumentsRefused):
        make_request("pay", {"amount": float("nan")})


@tool()
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


async def test_a_script_answers_and_the_sink_keeps_what_happened():
    """A guard can be tried whole: scripted answers, recorded events."""
    sink, approval = RecordingSink(), scripted_approval([True, False])
    guard = ToolGuard(policy=_compiled(), tools=ToolSet([pay]), on_approval=approval, sinks=[sink])
    granted = await guard.check("pay", {"amount": 60})
    refused = await guard.check("pay", {"amount": 70})

    assert "paid 60" == granted.result.value
    assert not refused.allowed
    assert [60, 70] == [request.request.args["amount"] for request in approval.requests]
    assert () == approval.unused
    assert ("action.completed", "action.denied") == tuple(
        kind for kind in sink.kinds if kind.startswith("action.")
    )
    assert 2 == len(sink.of_kind("step.proposed"))
    sink.clear()
    assert () == sink.events


@pytest.mark.parametrize("answers", [[], [RuntimeError("the line is dead")]])
async def test_an_answer_too_few_or_an_exception_denies(answers):
    """Law 4: a script that ends or fails grants nothing."""
    guard = ToolGuard(
        policy=_compiled(), tools=ToolSet([pay]), on_approval=scripted_approval(answers)
    )

    assert not (await guard.check("pay", {"amount": 60})).allowed


async def test_a_decision_is_given_as_it_is():
    """A script can answer with an ApprovalDecision of its own."""
    decision = ApprovalDecision(False, "ada", "no budget")
    approval = scripted_approval([decision])
    guard = ToolGuard(policy=_compiled(), tools=ToolSet([pay]), on_approval=approval)

    assert "no budget" in (await guard.check("pay", {"amount": 60})).text


def test_importing_adjudge_imports_neither_the_command_nor_the_test_tools():
    """What only some need, only they load."""
    script = (
        "import sys, adjudge;"
        "print([name for name in sys.modules if name in ('argparse', 'yaml', 'sqlite3')"
        " or name.startswith(('adjudge.cli', 'adjudge.testing'))])"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout

    assert "adjudge.cli" not in out
    assert "adjudge.testing" not in out
    assert "yaml" not in out


def _compiled():
    from adjudge import compile_policy

    return compile_policy(POLICY)
