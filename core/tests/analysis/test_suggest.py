"""A least-privilege policy from a recorded log: no wider than asked, and it reproduces the log."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from decimal import Decimal

import pytest
from analysis.recording import ALL, OPEN, arguments, record, rules
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.trying import examples

from adjudge import Principal, Verdict, compile_policy, evaluate
from adjudge._values import canonical_json
from adjudge.analysis import NothingToSuggest, read_log, replay, suggest
from adjudge.analysis._recorded.writing import as_json_text, as_yaml_text
from adjudge.testing import make_request

SOMEBODY = Principal("user", "anonymous")
MIXED = rules(
    {"match": {"tool": "delete"}, "decision": "deny"},
    {
        "match": {"tool": "pay", "args.amount.gt": 50},
        "decision": "approve_required",
        "approvers": ["finance", "boss"],
    },
    {"match": {"tool": "update"}, "decision": "dry_run"},
    {
        "match": {"tool": "find", "args.limit.gt": 5},
        "decision": "transform",
        "transform": {"path": "args.limit", "set": 5},
    },
    *ALL["rules"],
)


@pytest.fixture
def log(tmp_path):
    """Record calls into a file of this test, and open it."""
    numbers = itertools.count()

    def make(calls, policy=ALL, **options):
        path = tmp_path / f"{next(numbers)}.jsonl"
        record(path, policy, calls, **options)
        return read_log(path)

    return make


def verdict(found, tool, args, **about):
    """Give what a suggested policy says of a call."""
    about.setdefault("principal", SOMEBODY)
    return evaluate(found.bundle, make_request(tool, args, **about)).verdict


def test_exactly_what_was_seen_is_let_through(log):
    """No other value, no further argument, no other tool."""
    found = suggest(log([("pay", {"to": "ada", "n": 1}), ("pay", {"to": "bob", "n": 2})]))

    assert Verdict.ALLOW is verdict(found, "pay", {"to": "ada", "n": 1})
    assert Verdict.ALLOW is verdict(found, "pay", {"to": "bob", "n": 2})
    for tool, args in [
        ("pay", {"to": "ada", "n": 2}),
        ("pay", {"to": "ada", "n": True}),
        ("pay", {"to": "ada"}),
        ("pay", {"to": "eve", "n": 1}),
        ("payx", {"to": "ada", "n": 1}),
        ("read", {}),
    ]:
        assert Verdict.DENY is verdict(found, tool, args)


def test_an_argument_that_some_calls_had_is_absent_where_it_was(log):
    """The call without it does not let it through with any value."""
    found = suggest(log([("x", {"a": 1}), ("x", {"a": 1, "b": 2})]))

    assert Verdict.ALLOW is verdict(found, "x", {"a": 1})
    assert Verdict.ALLOW is verdict(found, "x", {"a": 1, "b": 2})
    assert Verdict.DENY is verdict(found, "x", {"a": 1, "b": 3})


def test_who_asked_and_where_is_part_of_what_was_seen(log):
    """Another principal, kind of principal or environment is not let through."""
    found = suggest(log([("x", {"a": 1})], environment="dev"))

    assert Verdict.ALLOW is verdict(found, "x", {"a": 1}, environment="dev")
    assert Verdict.DENY is verdict(found, "x", {"a": 1}, environment="prod")
    assert Verdict.DENY is verdict(found, "x", {"a": 1}, environment="dev", namespace="mcp")
    for other in (Principal("user", "eve"), Principal("agent", "anonymous")):
        assert Verdict.DENY is verdict(found, "x", {"a": 1}, environment="dev", principal=other)


def test_every_verdict_is_reproduced(log):
    """Allowed, asked, previewed, rewritten and denied calls come out as they are recorded."""
    calls = [
        ("pay", {"amount": 5}),
        ("pay", {"amount": 60}),
        ("update", {"id": 1}),
        ("find", {"limit": 9, "q": "a"}),
        ("find", {"limit": 2, "q": "a"}),
        ("delete", {"id": 1}),
    ]
    made = log(calls, MIXED)
    found = suggest(made)

    assert (6, (), {"denied": 1}) == (found.reproduced, found.otherwise, dict(found.left_out))
    result = replay(made, found.bundle)
    assert (6, ()) == (result.same, result.changes)


def test_each_rule_says_what_it_was_made_of(log):
    """The evidence is how often, and where first."""
    made = log([("x", {"a": 1}), ("x", {"a": 2})])
    (rule,) = suggest(made).policy["rules"]
    (path,) = (file.path for file in made.files)

    assert f"seen 2 times, first at {path}:1, {path}:4" == rule["description"]


def test_secrets_never_become_conditions(log):
    """Not what was redacted, nor what should have been; that it is left open is said."""
    calls = [("x", {"api_key": "hunter2hunter2", "n": 1})]
    for redact in (None, OPEN):
        found = suggest(log(calls, redact=redact))

        assert "hunter2" not in json.dumps(found.policy)
        assert any("args.api_key" in note for note in found.notes)
        assert Verdict.ALLOW is verdict(found, "x", {"api_key": "other", "n": 1})
        assert Verdict.DENY is verdict(found, "x", {"n": 1})
        assert () == found.otherwise


def test_what_was_allowed_and_failed_is_left_out_unless_it_is_asked_for(log):
    """A call that did not complete is no evidence that it should."""
    made = log([("x", {"n": 1}), ("x", {"fail": True})])
    found = suggest(made)
    wider = suggest(made, include_failed=True)

    assert {"allowed and not completed": 1} == dict(found.left_out)
    assert Verdict.DENY is verdict(found, "x", {"fail": True})
    assert Verdict.ALLOW is verdict(wider, "x", {"fail": True})
    assert () == found.otherwise == wider.otherwise


def test_the_strictest_holds_where_the_log_decides_one_call_in_several_ways(log):
    """What was once denied is not let through because it once was not."""
    made = log([("x", {"n": 1})])
    denied = log([("x", {"n": 1})], rules({"match": "always", "decision": "deny"}))
    found = suggest([*made, *denied, *log([("y", {})])])

    assert Verdict.DENY is verdict(found, "x", {"n": 1})
    assert () == found.otherwise


@pytest.mark.parametrize(
    ("values", "inside", "outside"),
    [
        ([1, 9], 5, 10),
        ([1.5, Decimal("2.1")], 2, 3),
        (["https://x.io/a", "http://x.io/b"], "https://x.io/c", "https://y.io/a"),
        (["docs/a.txt", "docs/b.txt"], "docs/c.txt", "docs/../c.txt"),
        ([f"order-{n}" for n in range(20)], "order-99", "other"),
        (["a", "b"], "a", "c"),
        ([True], True, False),
    ],
)
def test_values_are_widened_to_what_they_have_in_common(log, values, inside, outside):
    """Ranges, hosts, directories and long common prefixes; few other words stay themselves."""
    made = log([("x", {"v": value}) for value in values])
    found = suggest(made, generalise="values", workspace="/w")
    resolved = {path: f"/w/{path}" for path in ("docs/c.txt",)} | {
        "docs/../c.txt": "/w/c.txt",
        "/w/docs": "/w/docs",
    }

    assert Verdict.ALLOW is verdict(found, "x", {"v": inside}, resolved=resolved)
    assert Verdict.DENY is verdict(found, "x", {"v": outside}, resolved=resolved)
    assert () == found.otherwise


def test_shape_lets_through_any_value_of_the_arguments_that_were_there(log):
    """And still no other tool, nor a call that lacks an argument."""
    found = suggest(log([("x", {"a": 1}), ("x", {"a": "s"})]), generalise="shape")

    assert Verdict.ALLOW is verdict(found, "x", {"a": [7]}, principal=Principal("agent", "z"))
    assert Verdict.DENY is verdict(found, "x", {})
    assert Verdict.DENY is verdict(found, "y", {"a": 1})


def test_an_argument_that_may_be_left_out_is_no_condition_at_shape(log):
    """There or not there is no test, and no rule has one that is always true."""
    found = suggest(log([("x", {"a": 1}), ("x", {"a": 1, "b": 1})]), generalise="shape")

    assert {"tool": "x", "args.a": {"exists": True}} == found.policy["rules"][0]["match"]


def test_a_rewritten_call_with_a_secret_in_it_is_reproduced(log):
    """What is not known is not written, and does not hinder the check."""
    found = suggest(log([("find", {"limit": 9, "token": "t"})], MIXED))

    assert (1, ()) == (found.reproduced, found.otherwise)
    assert {"path": "args.limit", "set": 5} == found.policy["rules"][0]["transform"]


def test_a_level_can_be_set_for_a_tool_and_for_an_argument(log):
    """The argument's word holds before the tool's, and the tool's before the general one."""
    calls = [("x", {"a": 1, "b": 1}), ("x", {"a": 1, "b": 5}), ("y", {"a": 1}), ("y", {"a": 5})]
    found = suggest(log(calls), levels={"x:b": "values", "y": "shape"})

    assert Verdict.ALLOW is verdict(found, "x", {"a": 1, "b": 3})
    assert Verdict.DENY is verdict(found, "x", {"a": 2, "b": 3})
    assert Verdict.ALLOW is verdict(found, "y", {"a": 99})


def test_a_generalisation_that_would_let_through_what_was_denied_is_taken_back(log):
    """A range around a denied value is no range that the log supports."""
    policy = rules({"match": {"args.n": 5}, "decision": "deny"}, *ALL["rules"])
    calls = [("x", {"n": n}) for n in (1, 5, 9)] + [("y", {"n": n}) for n in (1, 9)]
    found = suggest(log(calls, policy), generalise="values")

    assert ("x",) == found.narrowed
    assert Verdict.DENY is verdict(found, "x", {"n": 1}, principal=Principal("user", "eve"))
    assert Verdict.DENY is verdict(found, "x", {"n": 5})
    assert Verdict.DENY is verdict(found, "x", {"n": 2})
    assert Verdict.ALLOW is verdict(found, "y", {"n": 2})
    assert () == found.otherwise


def test_asks_and_previews_come_before_what_a_wider_rule_allows(log):
    """A generalised rule does not take the place of a person."""
    calls = [("pay", {"amount": n, "to": t}) for n in (5, 60) for t in ("a", "b")]
    found = suggest(log(calls, MIXED), levels={"pay:to": "shape"})

    assert Verdict.APPROVE_REQUIRED is verdict(found, "pay", {"amount": 60, "to": "z"})
    assert Verdict.ALLOW is verdict(found, "pay", {"amount": 5, "to": "z"})
    assert () == found.otherwise


def test_a_preview_comes_before_a_rule_that_a_secret_leaves_open(log):
    """A value that is not known widens the rule that allows, which may not take its place."""
    preview = {"match": {"args.url": "/dry"}, "decision": "dry_run"}
    secret = "/a?key=sk-live-abcdef0123456789abcdef"
    found = suggest(
        log([("x", {"url": secret}), ("x", {"url": "/dry"})], rules(preview, ALL["rules"][0]))
    )

    assert Verdict.DRY_RUN is verdict(found, "x", {"url": "/dry"})
    assert Verdict.ALLOW is verdict(found, "x", {"url": "/b"})


def test_a_log_without_evidence_is_an_error(log):
    """Nothing to suggest is no policy."""
    with pytest.raises(NothingToSuggest, match="no call"):
        suggest(log([("x", {})], rules({"match": "always", "decision": "deny"})))


ODD = [
    "",
    "no",
    "1e3",
    "12:30",
    "~",
    "a\nb\u2028c\x00\x7f",
    "é ☃ \U0001f600 \ufeff",
    '"\\"',
    "# no comment",
    10**30,
    -0.0,
    1e300,
    5e-324,
    Decimal("1.10"),
    Decimal(2),
    [1, None, {"k": []}],
    {"ref": "args.x"},
    {},
    [],
    [[]],
    True,
]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_every_value_can_be_a_condition(log, value):
    """Whatever JSON can say is let through again, and only that."""
    made = log([("x", {"v": value}), ("x", {"v": "other"})], redact=OPEN)
    found = suggest(made)

    assert (2, ()) == (found.reproduced, found.otherwise)
    assert Verdict.DENY is verdict(found, "x", {"v": "something else"})


@pytest.mark.parametrize("name", ["size", "a.b", "", "é", 'q"', "a b", "gt", "x\ny", "[0]", "$x"])
def test_every_argument_and_tool_can_be_named(log, name):
    """Keys that are words of the language, and keys that are none, are quoted as they must be."""
    made = log([("x", {name: 1}), (name or "tool*", {"a": 1})], redact=OPEN)

    assert (2, ()) == ((found := suggest(made)).reproduced, found.otherwise)
    assert Verdict.DENY is verdict(found, "x", {name: 2})


@pytest.mark.needs_yaml
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_what_is_written_reads_back_to_the_same_policy(log, value):
    """The text in YAML and the text in JSON compile to the bundle that was checked."""
    found = suggest(log([("x", {"v": value, "a b": value}), ("x*", {"v": [value]})], redact=OPEN))
    yaml = as_yaml_text(found.policy, ["a comment\n\x1bof two lines", *found.notes])

    assert found.bundle.id == compile_policy(yaml, format="yaml").id
    assert found.bundle.id == compile_policy(as_json_text(found.policy), format="json").id


calls = st.lists(st.tuples(st.sampled_from(["pay", "find", "update"]), arguments()), max_size=8)


@settings(max_examples=examples(40))
@given(calls, arguments())
def test_any_log_is_reproduced_and_nothing_else_is_let_through(tmp_path_factory, made, other):
    """At level exact the calls that are let through are those that were, whatever they were."""
    path = tmp_path_factory.mktemp("log") / "x.jsonl"
    record(path, ALL, [("warm-up", {}), *made], environment="prod", redact=OPEN)
    found = suggest(read_log(path))
    seen = {canonical_json(_present(args)) for tool, args in made if tool == "pay"}

    assert () == found.otherwise
    expected = Verdict.ALLOW if canonical_json(_present(other)) in seen else Verdict.DENY
    if expected is Verdict.ALLOW or set(other) <= {n for t, a in made if t == "pay" for n in a}:
        assert expected is verdict(found, "pay", other, environment="prod")


def _present(args):
    """Give arguments in which null is absence, and equal numbers are written alike."""
    return {name: _alike(value) for name, value in args.items() if value is not None}


def _alike(value):
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return {"number": str(Decimal(value).normalize())}
    if isinstance(value, Mapping):
        return {key: _alike(item) for key, item in value.items()}
    return list(map(_alike, value)) if isinstance(value, list) else value
