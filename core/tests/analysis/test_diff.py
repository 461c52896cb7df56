"""The difference between two policies, each change with a call that shows it."""

from __future__ import annotations

import copy
import random
from collections import Counter

import pytest
from analysis.mutations import mutated
from analysis.recording import ALL, rules
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.policies import layered, policy_dicts
from properties.trying import examples

from adjudge import PolicyCompileError, PolicyLayer, Verdict, allow, compile_policy, deny, evaluate
from adjudge.analysis import diff
from adjudge.analysis._comparing.diff import differing

BASE = rules(
    {"id": "no-delete", "match": {"tool": "delete_file"}, "decision": "deny"},
    {"id": "small", "match": {"tool": "pay", "args.amount.le": 50}, "decision": "allow"},
    {
        "id": "large",
        "match": {"tool": "pay"},
        "decision": "approve_required",
        "approvers": ["finance"],
    },
    {
        "id": "reads",
        "match": {"tool": "read", "args.path.matches": "^/srv/"},
        "decision": "allow",
    },
)


def changed(change):
    """Give `BASE` with something changed in its rules by id."""
    policy = copy.deepcopy(BASE)
    change({rule["id"]: rule for rule in policy["rules"]}, policy)
    return policy


def compared(change):
    """Compare `BASE` with a changed one."""
    return diff(compile_policy(BASE), compile_policy(changed(change)), max_calls=1000)


def test_a_policy_is_proved_to_be_the_same_as_itself():
    """Equal ids prove it, and nothing is tried."""
    found = diff(compile_policy(BASE), compile_policy(copy.deepcopy(BASE)))

    assert (True, True, 0) == (found.same, found.proved, found.tried)


def test_other_names_reasons_and_an_order_that_does_not_matter_prove_it_too():
    """What no decision goes by is no difference: ids, reasons, and rules about other tools."""

    def rename(by_id, policy):
        by_id["no-delete"].update(id="x", reason="because")
        policy["rules"].sort(key=lambda rule: rule["match"]["tool"] == "delete_file")

    found = compared(rename)

    assert found.proved
    assert found.same


def test_a_loosened_rule_has_a_witness_that_both_decide_differently():
    """The call is one that the old policy denied and the new one lets through."""

    def loosen(by_id, policy):
        by_id["no-delete"]["decision"] = "allow"

    change = compared(loosen).differences[0]

    assert ("loosened", Verdict.DENY, Verdict.ALLOW) == (
        change.direction,
        change.old.verdict,
        change.new.verdict,
    )
    assert ("delete_file", {}) == (change.call.tool, dict(change.call.args))
    assert ("no-delete",) == change.old.matched_rules


@pytest.mark.parametrize(
    ("match", "arguments"),
    [
        ({"tool": "pay", "args.amount.lt": 50}, {"amount": 50}),
        ({"tool": "pay", "args.amount.le": 51}, {"amount": 51}),
        ({"tool": "pay", "args.amount.between": [0, 50]}, None),
    ],
)
def test_a_boundary_that_moved_is_found(match, arguments):
    """The values tried are those on which a condition turns, and those just beyond."""

    def move(by_id, policy):
        by_id["small"]["match"] = match

    found = compared(move).differences

    assert found
    if arguments is not None:
        assert arguments in [dict(change.call.args) for change in found if not change.in_error]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"args.to.size": {"le": 5}}, {"args.to.size": {"le": 50}}),
        ({"args.body.size": {"lt": 10_000}}, {"args.body.size": {"lt": 100_000}}),
        (
            {"args.command.matches": r"\A(?:pwd|ls(?: -[la]+)?)\Z"},
            {"args.command.matches": r"\A(?:pwd|ls(?: -[laR]+)?)\Z"},
        ),
    ],
)
def test_a_change_within_a_condition_is_found(before, after):
    """Also of a size beside another test of the same value, and deep inside a pattern."""
    beside = {"tool": "mail", "args.to.each": {".": {"ends_with": "@example.com"}}}
    old, new = (
        compile_policy(rules({"match": {**beside, **match}, "decision": "allow"}))
        for match in (before, after)
    )
    found = diff(old, new, max_calls=2_000)

    assert ("loosened", Verdict.ALLOW) in [
        (change.direction, change.new.verdict) for change in found.differences
    ]


def test_a_namespace_that_is_declared_otherwise_is_found():
    """Clause 13: `tool: x` in a rule that allows means the namespace that tools: declares."""
    allowed = rules({"match": {"tool": "wire"}, "decision": "allow"})
    old, new = (
        compile_policy({**allowed, "tools": {"wire": {"namespace": namespace}}})
        for namespace in ("bank", "elsewhere")
    )

    assert {("loosened", "elsewhere"), ("tightened", "bank")} == {
        (change.direction, change.call.namespace)
        for change in diff(old, new, max_calls=2_000).differences
    }


@pytest.mark.parametrize(
    "match",
    [
        {"args.path.matches": "/srv/"},
        {"args.path.matches": r"^/srv/[a-z]+$"},
        {"args.path.starts_with": "/srv"},
        {"args.path.glob": "/srv/*"},
        {"args.path.under": "/srv"},
        {"args.path.matches": "^/srv/", "declared.reversible": True},
        {"args.path.matches": "^/srv/", "context.environment": "prod"},
        {"args.path.matches": "^/srv/", "context.principal.kind": "agent"},
        {"args.path.matches": "^/srv/", "given.path": True},
        {"args.path.matches": "^/srv/", "args.tags.each": {".": {"in": ["a", "b"]}}},
        {"args.path.matches": "^/srv/", "args.name.size": {"le": 8}},
        {"args.path.matches": "^/srv/", "args.url.host_in": ["*.x.io"]},
        {"args.path.matches": "^/srv/", "args.path.ne": {"ref": "args.other"}},
        {"args.path.matches": "^/srv/", "tool.namespace": "fs"},
    ],
)
def test_every_kind_of_condition_is_tried(match):
    """A rule whose condition was changed or narrowed is seen to decide otherwise."""

    def narrow(by_id, policy):
        by_id["reads"]["match"] = {"tool": "read", **match}

    assert not compared(narrow).same


def test_a_rule_below_others_is_reached():
    """A call that meets the changed rule misses those before it."""
    above = [{"match": {"args.n.lt": n}, "decision": "deny"} for n in range(5)]

    def policy(verdict):
        return compile_policy(rules(*above, {"match": {"args.n.le": 5}, "decision": verdict}))

    assert not diff(policy("allow"), policy("dry_run"), max_calls=1000).same


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"approvers": ["boss"]}, "approvers"),
        ({"timeout_seconds": 5}, "timeout_seconds"),
        ({"obligations": ["log"]}, "obligations"),
    ],
)
def test_what_else_enforcement_goes_by_is_compared(change, what):
    """Approvers, time-outs and obligations are part of a decision."""
    differences = compared(lambda by_id, policy: by_id["large"].update(change)).differences
    (found,) = (each for each in differences if not each.in_error)

    assert ((what,), "changed") == (found.what, found.direction)


def test_other_rewritten_arguments_are_a_difference():
    """Two transforms with one verdict are not the same."""

    def policy(number):
        edit = {"path": "args.limit", "set": number}
        return compile_policy(
            rules({"match": {"tool": "find"}, "decision": "transform", "transform": edit})
        )

    (found,) = diff(policy(5), policy(6), max_calls=500).differences

    assert ("arguments",) == found.what
    assert ({"limit": 5}, {"limit": 6}) == (found.old.effective_args, found.new.effective_args)


def test_a_tool_of_which_the_rules_say_the_same_is_not_looked_at():
    """Of the tools about which nothing changed it is proved that nothing differs."""

    def loosen(by_id, policy):
        by_id["small"]["match"]["args.amount.le"] = 60

    assert ("pay",) == compared(loosen).tools


def test_defaults_and_the_tools_section_are_compared():
    """What holds where no rule matches is part of what a policy says."""
    open_ended = {**BASE, "defaults": {"on_no_match": "allow"}}
    stated = {**BASE, "tools": {"format": {"reversible": False}}}
    base = compile_policy(BASE)

    assert (
        "loosened" == diff(base, compile_policy(open_ended), max_calls=800).differences[0].direction
    )
    assert ("format",) == diff(base, compile_policy(stated), max_calls=400).tools
    assert not diff(base, compile_policy(stated), max_calls=1000).same


def test_a_witness_is_as_small_as_it_can_be():
    """What a call can do without to show the change is left out of it."""
    narrow = {"tool": "x", "args.a": 1, "args.b.in": ["long text", "s"], "args.c.gt": 5}
    old = compile_policy(rules({"match": narrow, "decision": "allow"}))
    new = compile_policy(rules({"match": narrow, "decision": "deny"}, ALL["rules"][0]))
    plain = next(d for d in diff(old, new, max_calls=3000).differences if d.direction == "loosened")

    assert {} == dict(plain.call.args)


def test_the_limit_holds_and_what_it_left_out_is_said():
    """Policies that differ in many tools are compared as far as asked for."""
    tools = [{"match": {"tool": f"t{n}"}, "decision": "allow"} for n in range(30)]
    denied = [{**rule, "decision": "deny"} for rule in tools]
    found = diff(compile_policy(rules(*tools)), compile_policy(rules(*denied)), max_calls=1000)

    assert found.tried <= 1200
    assert 28 == found.not_tried
    assert not found.proved


def test_layers_and_python_rules_are_compared():
    """Whatever can be compiled can be compared; what cannot be read is named."""

    def no_big(request, context):
        return deny("big") if request.args.get("amount") == 50 else None

    def yes_big(request, context):
        return allow() if request.args.get("amount") == 50 else None

    def policy(rule):
        return compile_policy([PolicyLayer("a", BASE, (rule,), {rule.__name__: 5})])

    found = diff(policy(no_big), policy(yes_big), max_calls=3000)

    assert not found.same
    assert ("no_big", "yes_big") == found.opaque


def test_progress_is_told_for_each_tool():
    """Its last word is that all have been looked at."""
    told = []
    loose = changed(lambda by_id, policy: by_id["small"].update(decision="deny"))
    diff(
        compile_policy(BASE),
        compile_policy(loose),
        max_calls=500,
        progress=lambda *n: told.append(n),
    )

    assert (1, 1) == told[-1]


several = st.lists(requests(), min_size=25, max_size=25)


@settings(max_examples=examples(25))
@given(policy_dicts(), st.integers(0, 10**6), several)
def test_every_witness_differs_and_a_proof_holds(policy, seed, calls):
    """Each witness is decided differently by the engine; what is proved equal is equal."""
    try:
        old, new = compile_policy(policy), compile_policy(mutated(policy, random.Random(seed)))
    except PolicyCompileError:
        assume(False)
    found = diff(old, new, max_calls=800)

    for change in found.differences:
        assert change.old == evaluate(old, change.call)
        assert change.new == evaluate(new, change.call)
        assert differing(change.old, change.new) == change.what
    if found.proved:
        for call in calls:
            assert () == differing(evaluate(old, call), evaluate(new, call))


@settings(max_examples=examples(10))
@given(layered(), layered())
def test_layered_witnesses_differ_as_well(one, other):
    """So it is for layers, under every combiner."""
    old, new = one.compiled(), other.compiled()

    for change in diff(old, new, max_calls=400).differences:
        assert differing(evaluate(old, change.call), evaluate(new, change.call))


def test_most_changes_that_random_calls_show_are_found():
    """Of the changed policies that random calls tell from the original, 95 % are told at least."""
    seen = Counter()

    @settings(max_examples=45)
    @given(policy_dicts(), st.integers(0, 10**6), several)
    def look(policy, seed, calls):
        try:
            old = compile_policy(policy)
            new = compile_policy(mutated(policy, random.Random(seed)))
        except PolicyCompileError:
            return
        if any(differing(evaluate(old, call), evaluate(new, call)) for call in calls):
            seen["shown"] += 1
            seen["found"] += not diff(old, new, max_calls=1500).same

    look()

    assert seen["shown"] >= 10
    assert seen["found"] >= 0.95 * seen["shown"]
