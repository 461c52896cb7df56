"""Replay: the calls of a recorded log, judged again by another policy."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from analysis.recording import ALL, OPEN, arguments, record, rules, says_little
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.policies import policy_dicts
from properties.trying import examples

from adjudge import (
    ApprovalDecision,
    CallContext,
    LayeredPolicyBundle,
    Outcome,
    PolicyLayer,
    Principal,
    RecordError,
    ToolMetadata,
    Verdict,
    compile_policy,
    deny,
)
from adjudge._values import OpaqueValue, canonical_json
from adjudge.analysis import read_log, replay

PAY = rules(
    {"id": "small", "match": {"tool": "pay", "args.amount.le": 50}, "decision": "allow"},
    {"id": "large", "match": {"tool": "pay"}, "decision": "approve_required", "approvers": ["fin"]},
)
PAYMENTS = [("pay", {"amount": amount}) for amount in (1, 40, 60, 900)]


def limited_to(amount):
    """Give `PAY` with another limit."""
    changed = json.loads(json.dumps(PAY))
    changed["rules"][0]["match"]["args.amount.le"] = amount
    return changed


@pytest.fixture
def log(tmp_path):
    """Record calls into a file of this test, and open it."""

    def make(policy, calls, **options):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        record(path, policy, calls, **options)
        return read_log(path)

    return make


def only(calls):
    """Give the one call of a log."""
    (call,) = calls
    return call


@pytest.mark.parametrize("chained", [True, False])
def test_a_call_is_read_back_as_it_was_judged(log, chained):
    """Tool, arguments, who asked and where, verdict, rules and the end are those of the call."""
    values = {"text": "é\n", "n": 1, "x": 1.0, "d": Decimal("1.10"), "$odd": [None, {"$$k": True}]}
    call = only(
        log(
            ALL,
            [("a.tool", values)],
            chained=chained,
            redact=OPEN,
            principal=Principal("agent", "a1", "A"),
            environment="prod",
        )
    )

    assert canonical_json(values) == canonical_json(call.request.args)
    assert ("a.tool", Principal("agent", "a1", "A"), "prod") == (
        call.request.tool,
        call.request.context.principal,
        call.request.context.environment,
    )
    assert (Verdict.ALLOW, ("all",), Outcome.COMPLETED) == (call.verdict, call.rules, call.outcome)
    assert 1 == call.place.line


def test_what_was_redacted_is_unknown(log):
    """A redacted value stands as an opaque one, with its place, and nothing is guessed."""
    call = only(log(ALL, [("x", {"api_key": "k", "url": "https://u:p@h/", "n": 1})]))

    assert isinstance(call.request.args["api_key"], OpaqueValue)
    assert isinstance(call.request.args["url"], OpaqueValue)
    assert {("args", "api_key"), ("args", "url")} <= set(call.unknown)
    assert 1 == call.request.args["n"]


def test_the_same_policy_changes_nothing(log):
    """What was decided is decided again, approvals and rewriting included."""
    policy = rules(
        {
            "match": {"tool": "find", "args.limit.gt": 5},
            "decision": "transform",
            "transform": {"path": "args.limit", "set": 5},
        },
        *PAY["rules"],
        {"match": {"tool": "find"}, "decision": "allow"},
        defaults={"on_no_match": "deny", "on_missing_shadow": "deny"},
    )
    calls = [*PAYMENTS, ("find", {"limit": 9}), ("find", {"limit": 2}), ("rm", {})]
    result = replay(log(policy, calls), compile_policy(policy))

    assert (7, 7, (), ()) == (result.judged, result.same, result.changes, result.untold)


def test_changes_are_grouped_by_tool_verdicts_and_rules_with_examples(log):
    """Calls that change alike are one group, with its count and its first calls."""
    calls = [*PAYMENTS, ("pay", {"amount": 70}), ("pay", {"amount": 80})]
    result = replay(log(PAY, calls), compile_policy(limited_to(75)), examples=1)
    change = only(result.changes)

    assert ("pay", "verdict", "loosened", 2) == (
        change.tool,
        change.what,
        change.direction,
        change.count,
    )
    assert (Verdict.APPROVE_REQUIRED, ("large",)) == (change.old_verdict, change.old_rules)
    assert (Verdict.ALLOW, ("small",)) == (change.new_verdict, change.new_rules)
    assert [60] == [call.request.args["amount"] for call, _ in change.examples]
    assert (2, 4) == (result.changed, result.same)


def test_what_is_loosened_comes_first(log):
    """A policy that lets more through is what its author must see."""
    new = rules(
        {"match": {"tool": "pay", "args.amount.lt": 10}, "decision": "deny"},
        {"match": {"tool": "pay"}, "decision": "allow"},
    )
    result = replay(log(PAY, PAYMENTS), compile_policy(new))

    assert ["loosened", "tightened"] == [change.direction for change in result.changes]


def test_other_arguments_and_other_approvers_are_changes(log):
    """The verdict alone does not say what runs, and who is asked."""
    cap = {"match": {"args.n.gt": 5}, "decision": "transform"}
    ask = {"match": {"tool": "ask"}, "decision": "approve_required"}
    all_else = ALL["rules"][0]

    def policy(number, approvers):
        return rules(
            {**cap, "transform": {"path": "args.n", "set": number}},
            {**ask, "approvers": approvers},
            all_else,
        )

    made = log(policy(5, ["a"]), [("find", {"n": 9}), ("ask", {"n": 1})])
    result = replay(made, compile_policy(policy(4, ["b"])))

    assert {"arguments", "approvers"} == {change.what for change in result.changes}
    assert {"changed"} == {change.direction for change in result.changes}


@pytest.mark.parametrize(
    ("match", "path"),
    [
        ({"args.token.matches": "^a"}, "args.token"),
        ({"declared.cost": "high"}, "declared.cost"),
        ({"injected.tenant": "t"}, "injected.tenant"),
        ({"context.extra.risk.gt": 1}, "context.extra.risk"),
        ({"context.counts.pay.gt": 1}, "context.counts.pay"),
        ({"given.amount": True}, "given.amount"),
        ({"args.amount.lt": {"ref": "context.extra.limit"}}, "context.extra.limit"),
        ({"args.file": {"under": "/srv"}}, "resolved"),
        ({"not": {"args.token.in": ["a"]}}, "args.token"),
    ],
)
def test_a_verdict_that_hangs_on_what_is_not_recorded_cannot_be_told(log, match, path):
    """Where a rule reads an unknown value and nothing else settles it, that is said."""
    calls = [("pay", {"amount": 5, "token": "t", "file": "a"})]
    made = log(ALL, calls, redact=says_little)
    new = rules({"id": "no", "match": {"tool": "pay", **match}, "decision": "deny"}, *ALL["rules"])
    untold = only(replay(made, compile_policy(new)).untold)

    assert ("rule no", path, 1) == (untold.why.rule, untold.why.path, untold.count)


@pytest.mark.parametrize(
    "match",
    [
        {"args.amount.gt": 100, "args.token.matches": "^a"},
        {"any_of": [{"args.amount.gt": 1}, {"declared.cost": "high"}]},
        {"args.token.exists": True},
    ],
)
def test_an_unknown_value_that_something_else_settles_is_no_hindrance(log, match):
    """Clause 6: a condition that is false, or true in any_of, settles it; so does presence."""
    made = log(ALL, [("pay", {"amount": 5, "token": "t"})])
    new = rules({"match": {"tool": "pay", **match}, "decision": "deny"}, *ALL["rules"])
    result = replay(made, compile_policy(new))

    assert () == result.untold
    assert 1 == result.changed + result.same


def test_an_open_rule_that_changes_nothing_is_no_hindrance(log):
    """A doubtful denial above a denial is a denial."""
    made = log(rules({"match": {"tool": "other"}, "decision": "deny"}), [("pay", {"token": "t"})])
    new = rules(
        {"match": {"args.token.matches": "a"}, "decision": "deny"},
        defaults={"on_no_match": "deny", "on_missing_shadow": "deny"},
    )

    assert 1 == replay(made, compile_policy(new)).same


def test_rewritten_arguments_are_asked_about_what_is_unknown_as_well(log):
    """A denial that the rewriting brings within reach of a secret cannot be told."""

    def policy(number):
        return rules(
            {
                "match": {"args.n.gt": 5},
                "decision": "transform",
                "transform": {"path": "args.n", "set": number},
            },
            {"id": "no", "match": {"args.n": 1, "args.token.matches": "a"}, "decision": "deny"},
            *ALL["rules"],
        )

    made = log(policy(2), [("x", {"n": 9, "token": "t"})])

    assert 1 == replay(made, compile_policy(policy(2))).same
    assert "rule no" == only(replay(made, compile_policy(policy(1))).untold).why.rule


def test_a_default_that_hangs_on_the_tool_cannot_be_told(log):
    """Clause 17: an irreversible tool without a preview, or an unknown one, has its own default."""
    result = replay(log(PAY, [("rm", {})], redact=says_little), compile_policy(PAY))

    assert ("the default", "declared") == only(result.untold).why


def test_what_is_not_recorded_can_be_assumed_to_be_plain(log):
    """`assume_plain` takes a tool that said nothing of itself for a plain one, secrets never."""
    new = rules(
        {"match": {"declared.cost": "high"}, "decision": "deny"},
        {"match": {"tool": "s", "args.token": "t"}, "decision": "deny"},
        *ALL["rules"],
    )
    result = replay(
        log(ALL, [("x", {}), ("s", {"token": "t"})], redact=says_little),
        compile_policy(new),
        assume_plain=True,
    )

    assert (1, 1) == (result.same, result.cannot_be_told)


def test_paths_are_worked_out_by_their_text_where_a_workspace_is_given(log):
    """`under` can be replayed although the record has no resolved paths."""
    made = log(ALL, [("read", {"path": p}) for p in ("a.txt", "../b.txt", "/srv/c")])
    new = rules({"match": {"args.path": {"under": "/srv"}}, "decision": "allow"})
    result = replay(made, compile_policy(new), workspace="/srv", assume_plain=True)

    assert (2, 1) == (result.same, result.changed)


def test_layers_are_replayed_and_their_rules_named(log):
    """A layered policy answers as one, open rules of a layer included."""
    layers = compile_policy(
        [
            PolicyLayer("base", ALL),
            PolicyLayer("site", rules({"match": {"args.token.matches": "x"}, "decision": "deny"})),
        ]
    )
    assert isinstance(layers, LayeredPolicyBundle)
    result = replay(log(ALL, [("a", {"n": 1}), ("b", {"token": "t"})]), layers)

    assert 1 == result.same
    assert "rule site:r0" == only(result.untold).why.rule


def test_a_python_rule_answers_only_where_everything_is_known(log):
    """Nobody knows what a Python rule reads."""

    def no_big(request, context):
        return deny("big") if request.args.get("n", 0) > 5 else None

    policy = compile_policy(ALL, python_rules=(no_big,), python_rule_priorities={"no_big": 1})
    made = log(ALL, [("a", {"n": 1}), ("a", {"n": 9})], redact=says_little)

    assert 2 == replay(made, policy).cannot_be_told
    assert 1 == replay(made, policy, assume_plain=True).changed


def test_an_edit_is_judged_again_as_well(log):
    """What a person made of a call was judged on its own, and is replayed on its own."""
    granted = ApprovalDecision(True, "fin", edited_args={"amount": 30})

    async def approve(request):
        return granted

    result = replay(
        log(PAY, [("pay", {"amount": 900})], on_approval=approve), compile_policy(limited_to(20))
    )

    assert (2, 1) == (result.judged, result.same)
    change = only(result.changes)
    call, _ = change.examples[0]
    assert call.edited
    assert {"amount": 30} == dict(call.request.args)


def test_calls_that_no_policy_judged_are_counted_by_their_code(log):
    """Arguments that were refused at the door have no verdict to compare."""
    result = replay(log(ALL, [("x", {"n": float("nan")}), ("x", {})]), compile_policy(ALL))

    assert (1, {"refused_arguments": 1}) == (result.judged, dict(result.unjudged))


def test_a_call_may_begin_in_one_file_and_end_in_another(tmp_path):
    """Events are paired across files, in the order of the files."""
    path = tmp_path / "all.jsonl"
    record(path, ALL, [("x", {"n": 1})])
    lines = path.read_bytes().splitlines(keepends=True)
    (tmp_path / "1").write_bytes(b"".join(lines[:1]))
    (tmp_path / "2").write_bytes(b"".join(lines[1:]))

    assert Outcome.COMPLETED is only(read_log(tmp_path / "1", tmp_path / "2")).outcome
    assert None is only(read_log(tmp_path / "1")).verdict


def test_a_guard_started_anew_under_one_name_does_not_mix_up_calls(tmp_path):
    """The same correlation id and number again is another call."""
    path = tmp_path / "x.jsonl"
    for number in (1, 2):
        record(path, ALL, [("x", {"n": number})], correlation_id="same")

    assert [1, 2] == [call.request.args["n"] for call in read_log(path)]


def test_a_broken_chain_is_refused_unless_it_is_allowed(tmp_path):
    """A record that was tampered with answers nothing, until somebody asks for it."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {"n": 1})], chained=True)
    path.write_bytes(path.read_bytes().replace(b'"n":1', b'"n":2'))

    with pytest.raises(RecordError, match=r"x\.jsonl:1: the chain"):
        read_log(path)
    assert 2 == only(read_log(path, allow_broken=True)).request.args["n"]


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[1]",
        "{}",
        '{"a":1,"a":2}',
        '{"body":{"x":NaN}}',
        '{"correlation_id":"a","bundle_id":"b","seq":"1","kind":"k","timestamp":"t","body":{}}',
        "\xff",
    ],
)
def test_a_line_that_is_no_event_is_an_error_with_its_place(tmp_path, line):
    """Another file than a log is refused, and passed over only where that was asked for."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {})])
    path.write_bytes(path.read_bytes() + line.encode("latin-1") + b"\n")

    with pytest.raises(RecordError, match=r"x\.jsonl:4: "):
        list(read_log(path))
    log = read_log(path, allow_broken=True)
    assert 1 == len(list(log))
    assert 1 == log.files[0].skipped


@pytest.mark.parametrize("chained", [True, False])
def test_a_last_line_that_a_crash_cut_is_passed_over(tmp_path, chained):
    """What comes before it was written whole."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {})], chained=chained)
    path.write_bytes(path.read_bytes() + b'{"body":{"ar')

    assert Outcome.COMPLETED is only(read_log(path)).outcome


def test_progress_is_told_until_the_end(tmp_path):
    """The last word is that everything has been read."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {})])
    told = []
    list(read_log(path, path, progress=lambda *read: told.append(read)))
    size = path.stat().st_size

    assert (2 * size, 2 * size) == told[-1]


calls = st.lists(st.tuples(st.sampled_from(["read", "write"]), arguments()), max_size=6)


@settings(max_examples=examples(60))
@given(policy_dicts(), calls)
def test_any_policy_is_replayed_on_its_own_log_without_a_change(tmp_path_factory, policy, made):
    """What can be told of a call under the policy that judged it is what was recorded."""
    path = tmp_path_factory.mktemp("log") / "x.jsonl"
    record(path, policy, [("warm-up", {}), *made], environment="prod", redact=OPEN)
    result = replay(read_log(path), compile_policy(policy))

    assert () == result.changes


def test_arguments_that_nest_beyond_reading_are_unknown(tmp_path):
    """A log may hold anything, and what is not understood is not guessed."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {"deep": 1})])
    deep = b'{"a":' * 600 + b"1" + b"}" * 600
    path.write_bytes(path.read_bytes().replace(b'"deep":1', b'"deep":' + deep))

    assert ("args",) in only(read_log(path)).unknown


def test_a_record_that_says_what_the_tool_declares_says_all(tmp_path):
    """Then nothing but the time to the millisecond is unknown, and what was not said is plain."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {"a": 1, "b": 2})])
    proposed, *rest = path.read_text().splitlines()
    event = json.loads(proposed)
    event["body"] |= {
        "declared": {"cost": "high", "scope": ["read"]},
        "given": {"a": True},
        "injected": {"tenant": "t"},
        "extra": {"risk": 3},
    }
    path.write_text("\n".join([json.dumps(event), *rest, ""]))
    call = only(read_log(path))

    assert (("context", "timestamp"),) == call.unknown
    assert ToolMetadata(cost="high", scope=("read",)) == call.request.declared
    assert frozenset({"a"}) == call.request.given
    assert ({"tenant": "t"}, {"risk": 3}) == (call.request.injected, call.request.context.extra)


@pytest.mark.parametrize(
    ("match", "changed"),
    [
        ({"declared.cost": "high"}, 1),
        ({"declared.scope.contains": "read"}, 1),
        ({"declared.labels.contains": "read"}, 0),
        ({"injected.tenant": "t"}, 1),
        ({"injected.tenant": "u"}, 0),
        ({"context.extra.risk.gt": 1}, 1),
        ({"args.amount.lt": {"ref": "context.extra.limit"}}, 1),
        ({"args.amount.gt": {"ref": "context.extra.limit"}}, 0),
        ({"context.counts.pay.gt": 1}, 1),
        ({"context.workspace": "/w"}, 1),
        ({"given.amount": False}, 0),
    ],
)
def test_what_a_call_was_judged_by_is_told_without_options(log, match, changed):
    """A record says what tool, framework and caller had to say, so that any rule can read it."""

    def who():
        return CallContext(
            Principal("user", "ana"),
            workspace="/w",
            extra={"risk": 3, "limit": 10},
            session={"counts": {"pay": 2}},
        )

    made = log(
        ALL,
        [("pay", {"amount": 5})],
        declared=ToolMetadata(cost="high", scope=("read", "write")),
        injected={"tenant": "t"},
        context=who,
    )
    new = rules({"id": "no", "match": match, "decision": "deny"}, *ALL["rules"])
    result = replay(made, compile_policy(new))

    assert () == result.untold
    assert changed == result.changed


def test_resolved_paths_are_told_without_a_workspace(log, tmp_path):
    """Paths that were resolved for one policy are there for another, symlinks followed."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    within = {"match": {"args.path": {"under": str(inside)}}}
    old = rules({**within, "decision": "allow"}, {"match": "always", "decision": "deny"})
    new = rules({**within, "decision": "dry_run"}, {"match": "always", "decision": "deny"})
    calls = [("read", {"path": path}) for path in ("a", "$a", "link/b")]
    result = replay(log(old, calls, workspace=str(inside)), compile_policy(new))

    assert (1, 2, 0) == (result.same, result.changed, result.cannot_be_told)


@pytest.mark.parametrize(
    "match", [{"injected.token": "t"}, {"declared.scope.contains": "x"}, {"args.path.under": "/"}]
)
def test_what_was_taken_out_of_the_record_stays_unknown(log, match):
    """A secret beside the arguments is no value, nor a resolved path under a secret's name."""
    made = log(
        rules({"match": {"args.path": {"under": "/"}}, "decision": "allow"}),
        [("read", {"path": "tokens/a"})],
        declared=ToolMetadata(scope=("password", "x")),
        injected={"token": "t"},
    )
    new = rules({"match": match, "decision": "deny"}, *ALL["rules"])

    assert 1 == replay(made, compile_policy(new)).cannot_be_told


def test_a_rotated_record_is_read_as_a_whole_and_once(tmp_path):
    """One path brings its numbered files, in the order of the chain, however they are given."""
    path = tmp_path / "x.jsonl"
    record(path, ALL, [("x", {"n": number}) for number in range(3)], rotate_bytes=1)
    numbered = sorted(tmp_path.glob("x.0*.jsonl"))
    whole = [call.request.args["n"] for call in read_log(path)]

    assert len(numbered) > 2
    assert [0, 1, 2] == whole
    assert whole == [call.request.args["n"] for call in read_log(*numbered, path, path)]
    with pytest.raises(RecordError, match="goes on from"):
        read_log(numbered[1])
