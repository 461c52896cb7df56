"""Explains a difference between lynx and Adjudge by the clauses that make it.

lynx's reading is turned into Adjudge's clause by clause, in a fixed order; a clause explains a
difference if reading it changes the outcome. The first reading must be what lynx itself says
and the last what Adjudge itself says: whatever does not fit is `Unexplained`.
"""

from __future__ import annotations

from differential.lynx_leaves import Clauses
from differential.lynx_rules import Read, judge, rule_answer
from differential.outcomes import Outcome, SeedPolicy, our_outcome, outcome_of, their_outcome
from reference import LayeredReference, ReferencePolicy, reference_evaluate
from reference.layering import public
from reference.logic import Truth
from reference.reading import World

from adjudge._types import ActionRequest, Verdict
from adjudge.policy._reading.source import read_policy

# 15 before 7, so that what only became an error through its kind is put down to clause 7.
ORDER = (15, 6, 1, 3, 7, 8, 11, 16, 19)


class Unexplained(AssertionError):
    """A difference, or a reading, that no clause accounts for."""


def explain(policy: SeedPolicy, request: ActionRequest) -> tuple[int, ...]:
    """Give the clauses that make the difference, none where there is none; raises `Unexplained`."""
    ours = our_outcome(policy.ours(), request)
    theirs = their_outcome(policy.theirs(), request)
    world = World(request, frozenset(request.args))
    layers = tuple(Read(layer, read_policy(layer)) for layer in policy.layers)
    read: Clauses = frozenset()
    before = _staged(policy, layers, world, read)
    if before != theirs:
        raise Unexplained(f"lynx says {theirs}, its reading here {before}")
    found: list[int] = []
    for clause in ORDER:
        read = read | {clause}
        after = _staged(policy, layers, world, read)
        if after != before:
            _check(clause, layers, world, read)
            found.append(clause)
        before = after
    whole = _reference(policy, layers, request)
    if whole != before:
        if policy.merge is None:
            raise Unexplained(f"no clause but 20 is left, and there are no layers: {whole}")
        found.append(20)
    if whole != ours:
        raise Unexplained(f"Adjudge says {ours}, the reference evaluator {whole}")
    return tuple(found) if ours != theirs else ()


def _staged(policy: SeedPolicy, layers: tuple[Read, ...], world: World, read: Clauses) -> Outcome:
    judgement = judge(layers, policy.merge, world, read)
    return outcome_of(public(judgement, ()), world.request)


def _reference(policy: SeedPolicy, layers: tuple[Read, ...], request: ActionRequest) -> Outcome:
    named = tuple(
        (f"l{number}", ReferencePolicy(layer.source)) for number, layer in enumerate(layers)
    )
    whole = named[0][1] if policy.merge is None else LayeredReference(named, policy.merge)
    return outcome_of(reference_evaluate(whole, request), request)


def _check(clause: int, layers: tuple[Read, ...], world: World, read: Clauses) -> None:
    """Clause 19 stands for the whole of the rest, so it must be about a transform that was met."""
    if clause != 19:
        return
    for policy in layers:
        for rule in policy.written["rules"]:
            if Verdict(rule["decision"]) is Verdict.TRANSFORM:
                found, _ = rule_answer(rule, policy, world, read)
                if found is not Truth.FALSE:
                    return
    raise Unexplained("clause 19 makes a difference where no transform was met")
