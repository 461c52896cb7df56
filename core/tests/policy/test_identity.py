"""The bundle's id: what is in it and what is not (clause 30)."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest
from asking import policy, rule

from adjudge._types import ActionRequest, Decision, ExecutionContext
from adjudge.policy import (
    PolicyCompileError,
    PolicyLayer,
    allow,
    compile_policy,
    first_layer_wins,
    last_layer_wins,
    versioned,
)

SOURCE: dict[str, Any] = {
    "version": 1,
    "defaults": {"on_no_match": "deny", "on_missing_shadow": "approve_required"},
    "predicates": {"small": {"args.x.lt": 5}},
    "tools": {"work": {"cost": "high"}},
    "rules": [
        {
            "id": "a",
            "description": "why",
            "priority": 1,
            "match": {"all_of": [{"tool": "work"}, "small"]},
            "decision": "approve_required",
            "approvers": ["ann"],
            "timeout_seconds": 60,
            "reason": "ask",
            "obligations": [{"id": "log", "phase": "pre", "params": {"n": 1}}],
        },
        {
            "id": "b",
            "match": {"args.x.gt": {"ref": "args.y"}},
            "decision": "transform",
            "transform": {"path": "args.x", "set": 1},
        },
    ],
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Give the policy with one place changed."""
    copy = json.loads(json.dumps(SOURCE))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return copy  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "other",
    [
        changed("defaults", "on_no_match", to="allow"),
        changed("defaults", "on_missing_shadow", to="deny"),
        changed("predicates", "small", to={"args.x.le": 5}),
        changed("predicates", "small", to={"args.x.lt": 5.0}),
        changed("tools", "work", to={"cost": "low"}),
        changed("tools", "work", to={"cost": "high", "namespace": "mcp"}),
        changed("rules", 0, "id", to="c"),
        changed("rules", 0, "priority", to=2),
        changed("rules", 0, "decision", to="dry_run"),
        changed("rules", 0, "approvers", to=["bob"]),
        changed("rules", 0, "timeout_seconds", to=61),
        changed("rules", 0, "reason", to="ask!"),
        changed("rules", 0, "match", to={"any_of": [{"tool": "work"}, "small"]}),
        changed("rules", 0, "obligations", to=[{"id": "log", "phase": "post", "params": {"n": 1}}]),
        changed(
            "rules", 0, "obligations", to=[{"id": "log", "phase": "pre", "params": {"n": True}}]
        ),
        changed("rules", 1, "match", to={"args.x.gt": {"ref": "args.z"}}),
        changed("rules", 1, "match", to={"args.x.gt": 5}),
        changed("rules", 1, "transform", to={"path": "args.x", "set": True}),
        changed("rules", 1, "transform", to={"path": "args.x", "delete": True}),
        changed("rules", to=[SOURCE["rules"][1], SOURCE["rules"][0]]),
    ],
)
def test_what_can_change_a_decision_changes_the_id(other: dict[str, Any]) -> None:
    """Clause 30: whatever can change a decision changes the id."""
    if other["rules"][0]["decision"] != "approve_required":
        for field in ("approvers", "timeout_seconds"):
            other["rules"][0].pop(field, None)

    assert compile_policy(SOURCE).id != compile_policy(other).id


def test_layout_does_not_change_the_id() -> None:
    """Clause 30: spacing, key order, file names, descriptions and quoting do not count."""
    spaced = json.dumps(SOURCE, indent=8, sort_keys=True)
    ids = {
        compile_policy(SOURCE).id,
        compile_policy(spaced, format="json", file="other.json").id,
        compile_policy(changed("rules", 0, "description", to="because")).id,
        compile_policy(changed("rules", 1, "match", to={'args["x"].gt': {"ref": "args.y"}})).id,
    }

    assert 1 == len(ids)


def test_the_id_of_data_is_the_same_everywhere() -> None:
    """Clause 30: the id of data depends on no process and on no Python version."""
    assert "6341a49cb12df7f374627e4569e04a48" == policy(rule("allow", {"args.x": 1})).id


def one(_request: ActionRequest, _context: ExecutionContext) -> Decision | None:
    """Allow."""
    return allow()


def capped(limit: int) -> Any:
    """Give a rule that closes over a limit."""

    def rule_with_limit(request: ActionRequest, _context: ExecutionContext) -> Decision | None:
        return allow() if request.args["x"] < limit else None

    return rule_with_limit


def rewritten_rule(source: str, **names: Any) -> Any:
    """Give the function `judge` that a source text defines."""
    space = {"__name__": "written", "allow": allow, **names}
    exec(source, space)  # the text is this test's own
    return space["judge"]


def identity(*rules: Any, **more: Any) -> str:
    """Give the id of a policy with these Python rules."""
    return compile_policy({"version": 1}, python_rules=rules, **more).id


JUDGE = "def judge(request, context):\n    return allow() if request.args['x'] < {} else None\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rewritten_rule(JUDGE.format(1)), rewritten_rule(JUDGE.format(2))),
        (rewritten_rule(JUDGE.format("1")), rewritten_rule(JUDGE.format("True"))),
        (
            rewritten_rule(JUDGE.format("(lambda: 1)()")),
            rewritten_rule(JUDGE.format("(lambda: 2)()")),
        ),
        (
            rewritten_rule(JUDGE.format("LIMIT"), LIMIT=1),
            rewritten_rule(JUDGE.format("LIMIT"), LIMIT=2),
        ),
        (
            rewritten_rule("def f():\n    return 1\n" + JUDGE.format("f()")),
            rewritten_rule("def f():\n    return 2\n" + JUDGE.format("f()")),
        ),
        (
            rewritten_rule("def judge(request, context, most=1):\n    return None\n"),
            rewritten_rule("def judge(request, context, most=2):\n    return None\n"),
        ),
        (capped(1), capped(2)),
        (versioned(one, "1"), versioned(one, "2")),
        (one, versioned(one, "1")),
    ],
    ids=[
        "code",
        "kind",
        "nested",
        "global",
        "function",
        "default",
        "closure",
        "version",
        "versioned",
    ],
)
def test_a_python_rule_s_behaviour_is_in_the_id(before: Any, after: Any) -> None:
    """Clause 30: code, defaults, closures, and the module's constants and functions count."""
    assert identity(before) != identity(after)


def test_a_python_rule_s_layout_is_not_in_the_id() -> None:
    """Clause 30: line numbers and comments do not count."""
    moved = "# a comment\n\n\n" + JUDGE.format(1)

    assert identity(rewritten_rule(JUDGE.format(1))) == identity(rewritten_rule(moved))


def test_a_python_rule_s_priority_is_in_the_id() -> None:
    """Clause 30: its place in the order can change a decision."""
    assert identity(one) != identity(one, python_rule_priorities={"one": 1})


def test_a_rule_that_calls_itself_has_an_id() -> None:
    """Clause 30: a function that names itself is digested once."""
    again = "def judge(request, context):\n    return judge(request, context)\n"

    assert identity(rewritten_rule(again))


class Limiter:
    """A rule with state."""

    def __call__(self, _request: ActionRequest, _context: ExecutionContext) -> Decision | None:
        """Abstain."""
        return None

    def method(self, _request: ActionRequest, _context: ExecutionContext) -> Decision | None:
        """Abstain."""
        return None


@pytest.mark.parametrize(
    "rule_without_code",
    [Limiter(), Limiter().method, functools.partial(one), capped(Limiter())],  # type: ignore[arg-type]
)
def test_what_cannot_be_digested_needs_a_version(rule_without_code: Any) -> None:
    """Clause 30: without code to digest a rule is refused, and a version makes it acceptable."""
    with pytest.raises(PolicyCompileError) as error:
        identity(rule_without_code)

    assert "versioned(" in str(error.value)
    assert identity(versioned(rule_without_code, "1")) != identity(
        versioned(rule_without_code, "2")
    )


def test_layers_and_combiner_are_in_the_id() -> None:
    """Clause 30: names and order of layers, their ids, and the combiner count."""
    a, b = PolicyLayer("a", {"version": 1}), PolicyLayer("b", {"version": 1})
    ids = [
        compile_policy([a, b]).id,
        compile_policy([b, a]).id,
        compile_policy([a]).id,
        compile_policy([a, PolicyLayer("b", SOURCE)]).id,
        compile_policy([a, b], merge=first_layer_wins).id,
        compile_policy([a, b], merge=last_layer_wins).id,
    ]

    assert len(ids) == len(set(ids))
    assert ids[0] == compile_policy([a, b]).id


def test_the_id_is_the_same_in_another_process() -> None:
    """Clause 30: a digest leans on no hash that is salted by process."""
    program = (
        "import json,sys; from adjudge.policy import compile_policy; "
        "print(compile_policy(json.load(sys.stdin)).id)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(SOURCE),
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert compile_policy(SOURCE).id == found.stdout.strip()
