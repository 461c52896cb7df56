"""Errored rules are floors that do not end the search (clauses 15, 16 and 18)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from asking import call, decide, names, policy, rule

from adjudge._types import Decision, Verdict
from adjudge.policy import evaluate

ARGS = {"text": "t"}
ERRS = {"args.text.gt": 1}
STRICTNESS = ["allow", "transform", "approve_required", "dry_run", "deny"]


@pytest.mark.parametrize("floor", ["deny", "dry_run", "approve_required"])
@pytest.mark.parametrize("below", ["deny", "dry_run", "approve_required", "allow"])
def test_the_stricter_of_floor_and_search(floor: str, below: str) -> None:
    """Clauses 15 and 16: the stricter counts, of the floor and of what the rules below give."""
    decision = decide(rule(floor, ERRS, id="errs"), rule(below, id="below"), args=ARGS)

    assert max(floor, below, key=STRICTNESS.index) == decision.verdict
    assert "<rule_error:errs:WrongKind>" == decision.matched_rules[0]


def test_a_plain_allow_has_no_floor() -> None:
    """Clause 15: where a plain allow errs the search goes on, and only the mark remains."""
    decision = decide(rule("allow", ERRS, id="errs"), rule("allow"), args=ARGS)

    assert ("allow", ("<rule_error:errs:WrongKind>", "allow")) == (
        decision.verdict,
        decision.matched_rules,
    )


def test_an_errored_allow_leaves_the_default() -> None:
    """Clause 15: an allow that errs does not allow, and the reason says why."""
    decision = decide(rule("allow", ERRS, id="errs"), args=ARGS)

    assert "deny" == decision.verdict
    assert "rule 'errs' could not be judged: args.text is a string" in decision.reason


@pytest.mark.parametrize(
    "errs",
    [
        rule("allow", ERRS, obligations=["log"]),
        rule("transform", ERRS, transform={"path": "args.x", "set": 1}),
    ],
)
def test_other_permissions_deny_where_they_err(errs: dict[str, Any]) -> None:
    """Clause 15: the floor of a transform, and of an allow with obligations, is deny."""
    assert "deny" == decide({**errs, "id": "errs"}, rule("allow"), args=ARGS).verdict


def test_every_ask_must_be_met() -> None:
    """Clause 15: where several ask every approver set counts, and the shortest time-out."""
    decision = decide(
        rule("approve_required", ERRS, id="a", approvers=["ann"], timeout_seconds=60),
        rule("approve_required", ERRS, id="b", approvers=["bob"]),
        rule("approve_required", id="c", approvers=["ann"], timeout_seconds=30),
        args=ARGS,
    )

    assert (("ann",), ("bob",)) == tuple(sorted(decision.approver_sets))
    assert 30 == decision.timeout_seconds


def test_a_floor_carries_the_obligations_of_both() -> None:
    """Clause 15: an ask or preview over what lets the body run carries the obligations of both."""
    decision = decide(
        rule("approve_required", ERRS, id="errs", obligations=["a"]),
        rule("allow", obligations=["b"]),
        args=ARGS,
    )

    assert {"a", "b"} == {each.id for each in decision.obligations}
    assert ("allow",) == names(decision)


def test_a_denying_floor_carries_its_own_obligations() -> None:
    """Clause 25: obligations of a rule that lets the body run have no place on a denial."""
    decision = decide(
        rule("deny", ERRS, id="errs", obligations=["a"]),
        rule("allow", obligations=["b"]),
        args=ARGS,
    )

    assert ["a"] == [each.id for each in decision.obligations]


def test_a_looser_floor_adds_nothing() -> None:
    """Clause 15: under a matched denial a floor leaves its mark and nothing else."""
    decision = decide(
        rule("approve_required", ERRS, id="errs", approvers=["ann"], obligations=["a"]),
        rule("deny", reason="no"),
        args=ARGS,
    )

    assert ("deny", (), ()) == (decision.verdict, decision.approver_sets, decision.obligations)


def test_a_floor_over_a_transform_asks_about_the_final_arguments() -> None:
    """Clause 15: over a matched transform the floor applies to the arguments as rewritten."""
    decision = decide(
        rule("approve_required", ERRS, id="errs"),
        rule("transform", transform={"path": "args.x", "set": 1}),
        args=ARGS,
    )

    assert ("approve_required", {"text": "t", "x": 1}) == (
        decision.verdict,
        decision.effective_args,
    )


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.combinations(["deny", "dry_run", "approve_required"], 2))
)
def test_the_strictest_floor(one: str, other: str) -> None:
    """Clause 15: of several floors the strictest holds, in either order."""
    for first, second in ((one, other), (other, one)):
        decision = decide(
            rule(first, ERRS, id="a"), rule(second, ERRS, id="b"), rule("allow"), args=ARGS
        )

        assert max(one, other, key=STRICTNESS.index) == decision.verdict


def raises(_request: object, _context: object) -> None:
    """Fail."""
    raise KeyError("amount")


async def waits(_request: object, _context: object) -> None:
    """Wait."""


def gives_a_coroutine(request: object, context: object) -> object:
    """Hide an async function behind a plain one."""
    return waits(request, context)


def gives_true(_request: object, _context: object) -> bool:
    """Answer with a bool."""
    return True


def gives_an_odd_verdict(_request: object, _context: object) -> Decision:
    """Answer with a verdict that does not exist."""
    return Decision("maybe")  # type: ignore[arg-type]


class Unprintable(Exception):
    """An exception whose own text fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raises_unprintably(_request: object, _context: object) -> None:
    """Fail with an exception that cannot be printed."""
    raise Unprintable


def asks_for_no_time(_request: object, _context: object) -> Decision:
    """Ask, and leave no time to answer."""
    return Decision(Verdict.APPROVE_REQUIRED, timeout_seconds=0)


def transforms_to_nothing(_request: object, _context: object) -> Decision:
    """Answer with a transform that says no arguments."""
    return Decision(Verdict.TRANSFORM)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (raises, "KeyError"),
        (gives_a_coroutine, "NotADecision"),
        (gives_true, "NotADecision"),
        (gives_an_odd_verdict, "BadDecision"),
        (transforms_to_nothing, "BadDecision"),
        (asks_for_no_time, "BadDecision"),
        (raises_unprintably, "Unprintable"),
    ],
)
def test_a_python_rule_that_errs_denies(function: Any, kind: str) -> None:
    """Clause 18: whatever is neither None nor a Decision is an error, and its floor is deny."""
    decision = evaluate(policy(rule("allow"), python_rules=[function]), call())
    above = evaluate(policy(rule("allow", priority=-1), python_rules=[function]), call())

    assert "allow" == decision.verdict
    assert ("deny", f"<rule_error:{function.__name__}:{kind}>") == (
        above.verdict,
        above.matched_rules[0],
    )


def test_a_base_exception_passes_through() -> None:
    """Clause 18: what is no Exception is nobody's error, and nothing is decided."""

    def stops(_request: object, _context: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(policy(python_rules=[stops]), call())


def test_a_test_that_raises_is_an_error_of_its_rule() -> None:
    """Law 4: an exception inside a matcher is the rule's floor, and the search goes on."""

    class Broken(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            raise RuntimeError("lost")

    decision = decide(rule("dry_run", {"args.x": 1}, id="errs"), rule("allow"), args=Broken(x=1))

    assert ("dry_run", "<rule_error:errs:RuntimeError>") == (
        decision.verdict,
        decision.matched_rules[0],
    )


def test_an_ask_by_a_python_rule_is_one_set() -> None:
    """An ask without approvers is one set, of whoever the handler asks."""

    def asks(_request: object, _context: object) -> Decision:
        return Decision(Verdict.APPROVE_REQUIRED)

    assert ((),) == evaluate(policy(python_rules=[asks]), call()).approver_sets
