"""The paths that are to be resolved before a request is judged, and `under` itself (clause 12)."""

from __future__ import annotations

from typing import Any

import pytest
from asking import call, policy, rule

from adjudge._types import ActionRequest, Decision, ExecutionContext
from adjudge.policy import PolicyLayer, compile_policy, evaluate, transform

UNDER = {"args.path.under": "/srv"}


def test_paths_to_resolve() -> None:
    """Clause 12: the bundle lists the paths and directories whose resolution a request needs."""
    bundle = policy(rule("allow", UNDER), rule("deny", {"args.all.some": {".": {"under": "/etc"}}}))

    assert ("/etc", "/srv", "a", "b", "c") == bundle.paths_to_resolve(
        call({"path": "a", "all": ["b", "c"]})
    )
    assert () == policy(rule("allow")).paths_to_resolve(call({"path": "a"}))


@pytest.mark.parametrize(
    "match", [{"tool": "other", **UNDER}, {"args.x": 1, **UNDER}, {"args.none.under": "/srv"}]
)
def test_paths_that_cannot_matter_are_not_resolved(match: dict[str, Any]) -> None:
    """Clause 12: an `under` that something else settles needs no file system."""
    assert () == policy(rule("allow", match)).paths_to_resolve(call({"path": "a", "x": 2}))


def test_what_a_transform_writes_is_resolved_too() -> None:
    """Clause 19: where `under` reads a rewritten value, that value is listed with the others."""

    def move(_request: ActionRequest, _context: ExecutionContext) -> Decision:
        return transform({"path": "/there"})

    bundle = policy(
        rule("transform", {"args.path": "a"}, transform={"path": "args.path", "append": "/b"}),
        rule("deny", {"not": UNDER}),
        python_rules=[move],
    )

    assert ("/srv", "/there", "a", "a/b") == bundle.paths_to_resolve(call({"path": "a"}))


def test_layers_list_what_each_other_writes() -> None:
    """Clause 20: every layer judges the joint result, so its paths are needed."""
    moves = rule("transform", transform={"path": "args.path", "set": "b"})
    layers = [("a", moves), ("b", rule("deny", UNDER))]
    bundle = compile_policy(
        [PolicyLayer(name, {"version": 1, "rules": [each]}) for name, each in layers]
    )

    assert ("/srv", "a", "b") == bundle.paths_to_resolve(call({"path": "a"}))


@pytest.mark.parametrize(
    ("resolved", "expected"),
    [
        ({"a": "/srv/a", "/srv": "/srv"}, "allow"),
        ({"a": "/srv", "/srv": "/srv"}, "allow"),
        ({"a": "/srvx", "/srv": "/srv"}, "deny"),
        ({"a": "/srv/a"}, "deny"),
        ({"/srv": "/srv"}, "deny"),
    ],
)
def test_under(resolved: dict[str, str], expected: str) -> None:
    """Clause 12: compared by components of the resolved paths; what is unresolved errs."""
    found = evaluate(policy(rule("allow", UNDER)), call({"path": "a"}, resolved=resolved))

    assert expected == found.verdict


def test_a_path_with_nul_is_refused() -> None:
    """Clause 12: a path that holds NUL is an error, and nobody is asked to resolve it."""
    bundle = policy(rule("allow", UNDER))
    request = call({"path": "a\0b"}, resolved={"a\0b": "/srv/a", "/srv": "/srv"})

    assert "<rule_error:allow:NotResolved>" == evaluate(bundle, request).matched_rules[0]
    assert ("/srv",) == bundle.paths_to_resolve(request)
