"""`evaluate`: order, defaults, references, metadata, context and purity."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from asking import HERE, answer, call, decide, names, policy, rule

import adjudge.policy
from adjudge._types import (
    ActionRequest,
    Decision,
    ExecutionContext,
    Principal,
    ToolMetadata,
    Verdict,
)
from adjudge.policy import allow, approve_required, deny, dry_run, evaluate, transform

IRREVERSIBLE = ToolMetadata(reversible=False)


def test_the_first_rule_that_matches_decides() -> None:
    """Clause 14: higher priority first, then file order."""
    rules = [
        rule("allow", id="low"),
        rule("deny", id="high", priority=5),
        rule("allow", id="also-high", priority=5),
    ]

    assert ("high",) == names(decide(*rules))
    assert ("low",) == names(decide(rules[0]))


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [({}, "written"), ({"second": 1}, "second"), ({"second": 1, "first": 1}, "first")],
)
def test_python_rules_stand_after_written_ones_of_their_priority(
    priorities: dict[str, int], expected: str
) -> None:
    """Clause 14: of one priority written rules come first, then Python rules in the order given."""

    def first(_request: ActionRequest, _context: ExecutionContext) -> Decision:
        return allow()

    def second(_request: ActionRequest, _context: ExecutionContext) -> Decision:
        return allow()

    bundle = adjudge.policy.compile_policy(
        {"version": 1, "rules": [rule("allow", id="written")]},
        python_rules=(first, second),
        python_rule_priorities=priorities,
    )

    assert (expected,) == evaluate(bundle, call()).matched_rules


def test_a_plain_match_is_one_decision_for_every_request() -> None:
    """Clause 21: what a rule decides is built when it is compiled."""
    bundle = policy(rule("allow", reason="fine"))

    assert evaluate(bundle, call({"x": 1})) is evaluate(bundle, call({"x": 2}))


@pytest.mark.parametrize(
    ("declared", "expected", "name"),
    [
        (ToolMetadata(), "dry_run", "on_no_match"),
        (IRREVERSIBLE, "approve_required", "on_missing_shadow"),
        (ToolMetadata(reversible=False, has_shadow=True), "dry_run", "on_no_match"),
        (None, "dry_run", "on_no_match"),
    ],
)
def test_defaults(declared: ToolMetadata | None, expected: str, name: str) -> None:
    """Clause 17: an irreversible tool without a shadow has a default of its own."""
    bundle = policy(defaults={"on_no_match": "dry_run", "on_missing_shadow": "approve_required"})
    decision = evaluate(bundle, call(declared=declared))

    assert (expected, (f"<default:{name}>",)) == (decision.verdict, decision.matched_rules)


def test_a_tool_without_metadata_gets_the_stricter_default() -> None:
    """Clause 17: nothing known of a tool never means the looser of the two defaults."""
    bundle = policy(defaults={"on_no_match": "allow", "on_missing_shadow": "deny"})

    assert "deny" == evaluate(bundle, call(declared=None)).verdict
    assert "allow" == evaluate(bundle, call(declared=ToolMetadata())).verdict


def test_the_default_says_what_is_missing() -> None:
    """Clause 17: the reason names the tool, in one escaped and bounded piece."""
    assert "no rule allows tool 'work'" == decide().reason
    assert "\u202e" not in decide(tool="a\u202eb").reason
    assert 200 > len(decide(tool="x" * 10_000).reason)


def test_a_default_that_asks_asks_whoever_the_handler_asks() -> None:
    """Clause 17: an ask by default has one approver set, and nobody in it."""
    assert ((),) == decide(declared=IRREVERSIBLE).approver_sets


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"args.x.eq": {"ref": "args.same"}}, "true"),
        ({"args.x.gt": {"ref": "args.low"}}, "true"),
        ({"args.x.in": {"ref": "args.list"}}, "true"),
        ({"args.x.in": {"ref": "args.empty"}}, "false"),
        ({"args.x.in": {"ref": "args.low"}}, "error"),
        ({"args.x.between": {"ref": "args.range"}}, "true"),
        ({"args.x.between": {"ref": "args.backwards"}}, "error"),
        ({"args.x.gt": {"ref": "args.missing"}}, "error"),
        ({"args.x.gt": {"ref": "args.null"}}, "error"),
        ({"args.missing.gt": {"ref": "args.low"}}, "false"),
        ({"args.missing.gt": {"ref": "args.null"}}, "error"),
        ({"args.x.gt": {"ref": "args.list"}}, "error"),
        ({"args.who": {"ref": "context.principal.id"}}, "true"),
        ({"args.who": {"ref": "context.extra.nobody"}}, "error"),
        ({"args.who.starts_with": {"ref": "args.list"}}, "error"),
        ({"args.list.contains_all": {"ref": "args.empty"}}, "error"),
        ({"args.who.host_in": {"ref": "args.x"}}, "error"),
    ],
)
def test_reference(match: dict[str, Any], expected: str) -> None:
    """Clause 9: the operand is resolved first; absent, or of a wrong kind, it is an error."""
    args = {
        "x": 5,
        "same": 5,
        "low": 1,
        "null": None,
        "list": [4, 5],
        "empty": [],
        "range": [1, 9],
        "backwards": [9, 1],
        "who": "u1",
    }

    assert expected == answer(match, args)


@pytest.mark.parametrize(
    "path",
    [
        "context.environment",
        "context.labels",
        "context.history",
        "context.counts.work",
        "context.sums.work",
        "context.user_prompt",
        "context.trusted.tenant",
    ],
)
def test_what_nobody_supplied_is_an_error(path: str) -> None:
    """Clause 9: reading it is an error for `exists` too, under a negation or not."""
    bare = ExecutionContext(Principal("user", "u1"), session={"trusted": {}})
    for match in ({f"{path}.exists": False}, {"not": {f"{path}.exists": True}}):
        for decision in ("allow", "deny"):
            found = answer(match, decision=decision, context=bare)

            assert "error" == found


def test_what_somebody_supplied_is_read() -> None:
    """Clause 27: the request has the place for session values."""
    context = dataclasses.replace(
        HERE, session={"trusted": {"tenant": "t1"}, "counts": {"work": 3}, "labels": ("pii",)}
    )

    assert "true" == answer({"context.trusted.tenant": "t1"}, context=context)
    assert "true" == answer({"context.counts.work.gt": 2}, context=context)
    assert "false" == answer({"context.counts.other.gt": 2}, context=context)
    assert "true" == answer({"context.labels.contains": "pii"}, context=context)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"tool": "work"}, "true"),
        ({"tool.namespace.exists": False}, "true"),
        ({"given.x": True}, "true"),
        ({"given.filled": True}, "false"),
        ({"given.filled": False}, "true"),
        ({"given.other": False}, "true"),
        ({"injected.user.id": 7}, "true"),
        ({"declared.cost": "low"}, "true"),
        ({"declared.scope.contains": "files"}, "true"),
        ({"declared.labels.size": 0}, "true"),
        ({"declared.isolation.exists": False}, "true"),
        ({"declared.has_shadow": False}, "true"),
        ({"context.environment": "prod"}, "true"),
        ({"context.workspace": "."}, "true"),
        ({"context.step_seq": 0}, "true"),
        ({"context.timestamp.starts_with": "1970-01-01T"}, "true"),
        ({"context.principal.kind": "user"}, "true"),
        ({"context.principal.name.exists": False}, "true"),
        ({"context.extra.tenant": "t1"}, "true"),
        ({"context.extra.other": "t1"}, "false"),
    ],
)
def test_path(match: dict[str, Any], expected: str) -> None:
    """The table of paths: each is read from its place in the request."""
    found = answer(
        match,
        {"x": 1, "filled": 2},
        given=frozenset({"x"}),
        injected={"user": {"id": 7}},
        declared=ToolMetadata(scope=("files",)),
        context=dataclasses.replace(HERE, extra={"tenant": "t1"}),
    )

    assert expected == found


def test_a_tool_without_metadata_declares_nothing() -> None:
    """`declared.*` of a tool without metadata is absent."""
    assert "true" == answer({"declared.cost.exists": False}, declared=None)
    assert "false" == answer({"declared.reversible": True}, declared=None)


def test_all_arguments_count_as_given_unless_somebody_says() -> None:
    """`given` None means that the model sent every argument."""
    assert "true" == answer({"given.x": True}, {"x": None})


def test_a_context_replaces_the_request_s_everywhere() -> None:
    """Clause 18: written and Python rules alike see the context that `evaluate` was given."""
    other = ExecutionContext(Principal("service", "s1"), environment="dev")
    seen: list[ExecutionContext] = []

    def look(request: ActionRequest, context: ExecutionContext) -> None:
        seen.extend((request.context, context))

    bundle = policy(rule("allow", {"context.principal.id": "s1"}, priority=-1), python_rules=[look])

    assert "allow" == evaluate(bundle, call(), other).verdict
    assert [other, other] == seen


def test_without_a_context_its_paths_are_errors() -> None:
    """Clause 26: nothing falls back where no context came."""
    reading = {"context.workspace.exists": False}

    assert "error" == answer(reading, context=None)
    assert "true" == answer({"any_of": [reading, {"tool": "work"}]}, context=None)


def test_stated_fields_override_what_a_tool_says() -> None:
    """The fields that `tools:` states hold; the others, and its shadow, are the tool's own."""
    bundle = policy(tools={"work": {"reversible": False, "scope": ["mail"]}})
    found = bundle.metadata_for("work", None, ToolMetadata(cost="high", has_shadow=True))

    assert ToolMetadata(cost="high", reversible=False, scope=("mail",), has_shadow=True) == found
    assert bundle.metadata_for("work", "mcp", None) is None
    assert bundle.metadata_for("other", None, None) is None


def test_evaluate_judges_by_the_stated_fields() -> None:
    """A policy's own word on a tool decides which default applies to it."""
    bundle = policy(tools={"work": {"reversible": False}})

    assert ("<default:on_missing_shadow>",) == evaluate(bundle, call()).matched_rules


def test_a_declared_namespace_alone_is_no_metadata() -> None:
    """Saying where a tool comes from says nothing about what it does."""
    bundle = policy(tools={"work": {"namespace": "mcp"}})

    assert bundle.metadata_for("work", "mcp", None) is None
    assert ("mcp", None) == (bundle.namespace_for("work"), bundle.namespace_for("other"))


@pytest.mark.parametrize("nonsense", [None, 5, "policy"])
def test_evaluate_never_raises(nonsense: Any) -> None:
    """Law 8: what is no policy, or no request, is a denial with its cause."""
    for decision in (evaluate(nonsense, call()), evaluate(policy(), nonsense)):
        assert "deny" == decision.verdict
        assert decision.matched_rules[0].startswith("<rule_error:evaluate:")


def test_what_no_rule_reads_does_not_matter() -> None:
    """Clause 29: arguments are frozen at the guard's door; `evaluate` takes them as they are."""
    allows = rule("allow", {"args.x": 1})

    assert Verdict.ALLOW is decide(allows, args={"x": 1, "unread": object()}).verdict


def test_evaluate_changes_nothing() -> None:
    """Law 8: the request is the same after judging it, a rewrite included."""
    args = {"a": {"b": [1]}}
    request = call(args)
    evaluate(policy(rule("transform", transform={"path": "args.a.b", "append": 2})), request)

    assert {"a": {"b": [1]}} == args
    assert request.args is args


def test_the_engine_imports_nothing_that_could_look_around() -> None:
    """Law 8: the modules that judge import no clock, file, network, process or chance."""
    judging = "_evaluate _judge _layers _match _operators _subjects _transform _verdicts _compile"
    outside = {
        "os",
        "io",
        "time",
        "random",
        "socket",
        "pathlib",
        "subprocess",
        "asyncio",
        "secrets",
    }
    folder = Path(adjudge.policy.__file__).parent
    for module in judging.split():
        tree = ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))
        imported = {
            name.partition(".")[0]
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }

        assert set() == imported & outside


def test_constructors() -> None:
    """The constructors give the verdict of their name, with the fields that it can carry."""
    assert Decision(Verdict.ALLOW, "fine", ("r",)) == allow("fine", ("r",))
    assert Decision(Verdict.DENY, "no") == deny("no")
    assert Decision(Verdict.DRY_RUN) == dry_run()
    assert Decision(
        Verdict.APPROVE_REQUIRED, approver_sets=(("ann",),), timeout_seconds=60
    ) == approve_required(("ann",), 60)
    assert Decision(Verdict.TRANSFORM, effective_args={"x": [1]}) == transform({"x": [1]})


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), True, "60"])
def test_an_ask_has_a_positive_time_out(timeout: Any) -> None:
    """Clause 22: a time-out that is no positive number is refused where it is written."""
    with pytest.raises(ValueError):
        approve_required(timeout_seconds=timeout)


def test_approvers_are_names_and_not_letters() -> None:
    """One name where a tuple of names belongs is refused."""
    with pytest.raises(ValueError):
        approve_required("ann")


def test_metadata_that_is_merged_already_stays_as_it_is() -> None:
    """What a guard has merged is merged no second time, whichever of the two comes first."""
    bundle = policy(rule("allow"), tools={"work": {"cost": "high"}})
    own, other = ToolMetadata(reversible=False), ToolMetadata(reversible=True)

    merged = bundle.metadata_for("work", None, own)

    assert merged is bundle.metadata_for("work", None, merged)
    assert ToolMetadata(cost="high", reversible=True) == bundle.metadata_for("work", None, other)
    assert ToolMetadata(cost="high", reversible=False) == bundle.metadata_for("work", None, own)
    assert ToolMetadata(cost="high") == bundle.metadata_for("work", None, None)
