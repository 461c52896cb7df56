"""What lint proves holds of whatever is generated: no claim is ever broken by a call."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from properties.calls import _request
from properties.matches import leaves, matches
from properties.policies import VERDICTS, Layers, Policy, layered, policies
from properties.trying import examples

from adjudge._types import ActionRequest
from adjudge.analysis import lint
from adjudge.analysis._linting.conditions import ANY, ERROR, FALSE, TRUE
from adjudge.analysis._linting.formulas import Formulas
from adjudge.analysis._linting.prover import Prover
from adjudge.analysis._parts import part_of
from adjudge.policy import compile_policy, evaluate
from adjudge.policy._faults import Fault
from adjudge.policy._match import Reading, compile_match
from adjudge.policy._model import Match
from adjudge.policy._reading.source import read_policy

NEVER_DECIDES = ("shadowed", "unreachable")
CALLS = 60


def calls_of(seed: int) -> list[ActionRequest]:
    """Make many calls of one number, which is much faster than to draw each."""
    drawn = random.Random(seed)
    return [_request(drawn.randbytes(24)) for _ in range(CALLS)]


seeds = st.integers(0, 10_000)


def read(match: Any) -> Match:
    """Read a match as the policy reader does."""
    return read_policy({"version": 1, "rules": [{"id": "r", "match": match}]}).rules[0].match


def answer(match: Match, reading: Reading, call: ActionRequest) -> int:
    """Give the engine's answer about a call."""
    given_answer = compile_match(match, reading)(call, None)
    if isinstance(given_answer, Fault):
        return ERROR
    return TRUE if given_answer else FALSE


@st.composite
def conjunctions(draw: st.DrawFn) -> Any:
    """Draw a few tests, often of one path, that may exclude one another."""
    drawn = draw(st.lists(leaves() | matches(depth=1), min_size=1, max_size=4))
    return {"all_of": drawn}


@settings(max_examples=examples(200))
@given(conjunctions() | matches(), st.booleans(), seeds)
def test_an_answer_that_is_refuted_is_never_given(match: Any, permitting: bool, seed: int) -> None:
    """Clauses 6 to 13: what is proved impossible of a match, its engine never answers."""
    read_match, reading = read(match), Reading(permitting, {"read": "files"})
    part, prover = part_of(read_match, reading), Prover()
    formulas = Formulas(reading.namespaces)
    refuted = [
        mask
        for mask in (TRUE, FALSE, ERROR, ANY & ~TRUE, ANY & ~FALSE)
        if prover.refutes(formulas.said(part, mask))
    ]
    event(f"refuted: {refuted}")
    for call in calls_of(seed):
        given_answer = answer(read_match, reading, call)
        note(f"{call}")
        assert [] == [mask for mask in refuted if mask & given_answer]


@settings(max_examples=examples(200))
@given(conjunctions(), conjunctions(), st.booleans(), st.booleans(), seeds)
def test_a_match_that_is_implied_is_met(
    one: Any, other: Any, narrower_permits: bool, wider_permits: bool, seed: int
) -> None:
    """What is proved to follow from a match holds wherever that match does."""
    narrow, wide = read({"all_of": [one, other]}), read(other)
    readings = Reading(narrower_permits, {}), Reading(wider_permits, {})
    implied: dict[str, bool] = {}
    for call in calls_of(seed):
        formulas = Formulas({}, call.tool)
        if call.tool not in implied:
            implied[call.tool] = Prover().refutes(
                formulas.of_tool(),
                formulas.said(part_of(narrow, readings[0]), TRUE),
                formulas.said(part_of(wide, readings[1]), ANY & ~TRUE),
            )
            event(f"implied: {implied[call.tool]}")
        if implied[call.tool] and answer(narrow, readings[0], call) == TRUE:
            note(f"{call}")
            assert TRUE == answer(wide, readings[1], call)


@st.composite
def crowded(draw: st.DrawFn) -> Policy:
    """Draw a policy with rules that are narrower, wider or equal to others of it."""
    drawn = draw(policies(most=4))
    rules = list(drawn.source["rules"])
    for number in range(draw(st.integers(1, 3))):
        match = draw(st.sampled_from([rule["match"] for rule in rules]))
        if draw(st.booleans()):
            match = {"all_of": [match, draw(leaves())]} if match != "always" else draw(leaves())
        verdict = draw(st.sampled_from([each for each in VERDICTS if each != "transform"]))
        rule = {"id": f"more{number}", "match": match, "decision": verdict}
        rules.insert(draw(st.integers(0, len(rules))), rule)
    return Policy({**drawn.source, "rules": rules}, drawn.coded)


@settings(max_examples=examples(150))
@given(crowded(), seeds)
def test_a_rule_that_never_decides_does_not(policy: Policy, seed: int) -> None:
    """Clauses 14, 15 and 19: also after a rewrite, beside errors and beside Python rules."""
    bundle = policy.compiled()
    silent = {each.rule for each in lint(bundle) if each.code in NEVER_DECIDES}
    silent |= {each.rule for each in lint(bundle) if "this rule never matches" in each.message}
    event(f"rules that never decide: {min(len(silent), 3)}")
    for call in calls_of(seed):
        note(f"{call}")
        assert set() == silent & set(evaluate(bundle, call).matched_rules)


@settings(max_examples=examples(80))
@given(st.lists(crowded(), min_size=1, max_size=3), seeds)
def test_in_layers_it_does_not_either(policies: list[Policy], seed: int) -> None:
    """Clause 20: whatever the other layers rewrite."""
    bundle = Layers(tuple(policies)).compiled()
    silent = {each.rule for each in lint(bundle) if each.code in NEVER_DECIDES}
    event(f"rules that never decide: {min(len(silent), 3)}")
    for call in calls_of(seed):
        note(f"{call}")
        assert set() == silent & set(evaluate(bundle, call).matched_rules)


@settings(max_examples=examples(100))
@given(policies() | layered())
def test_lint_raises_nothing_and_changes_nothing(policy: Policy | Layers) -> None:
    """Any policy that compiles can be linted, with the same findings each time."""
    bundle = policy.compiled()

    assert lint(bundle) == lint(bundle)


def test_generated_matches_are_read() -> None:
    """The helper reads what `compile_policy` reads."""
    assert compile_policy({"rules": [{"match": {"args.x": 1}}]}).source.rules[0].match == read(
        {"args.x": 1}
    )
