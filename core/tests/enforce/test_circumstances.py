"""What the record says of a proposed call, so that it can be judged again."""

from __future__ import annotations

import pytest

from adjudge import CallContext, Principal, ToolMetadata, no_redaction
from adjudge._record.format import to_json
from adjudge._values import OpaqueValue
from adjudge.integration import ProposedCall

ALLOW = {"decision": "allow"}
DEFAULTS = {"on_no_match": "allow", "on_missing_shadow": "allow"}
BESIDE = ("given", "injected", "workspace", "extra", "session")


async def proposed(bench, govern, call, *rules, context=None, **settings):
    """Govern a call, and give what the record says of its proposal."""
    guard = bench.guard(*rules or (ALLOW,), **settings)
    await govern(guard, call, lambda _: "ran", context=context)
    return to_json(bench.body("step.proposed"))


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (None, None),
        (ToolMetadata(), {}),
        (
            ToolMetadata(cost="high", scope=("a", "b")),
            {"cost": "high", "scope": ["a", "b"]},
        ),
        (ToolMetadata(reversible=False, has_shadow=True), {"reversible": False}),
    ],
)
async def test_what_a_tool_says_of_itself_is_on_record(bench, govern, declared, said):
    """Null is no metadata; else only what differs from a plain tool, and a shadow only if any."""
    body = await proposed(bench, govern, ProposedCall("f", {}, declared=declared))

    assert said == body["declared"]


async def test_a_shadow_of_the_guard_counts(bench, govern):
    """`has_shadow` is what a policy sees: whether a preview could really run."""
    call = ProposedCall("f", {}, declared=ToolMetadata())
    body = await proposed(bench, govern, call, shadows={"f": dict})

    assert {"has_shadow": True} == body["declared"]


async def test_what_a_policy_says_of_a_tool_is_not_what_the_tool_says(bench, govern):
    """The record has the tool's own metadata, so that another policy can add its own to it."""
    from adjudge import compile_policy

    policy = compile_policy(
        {"version": 1, "tools": {"f": {"cost": "high"}}, "defaults": DEFAULTS, "rules": []}
    )
    call = ProposedCall("f", {}, declared=ToolMetadata(reversible=False))
    body = await proposed(bench, govern, call, policy=policy)

    assert {"reversible": False} == body["declared"]


async def test_what_is_as_by_default_is_left_out(bench, govern):
    """Of an ordinary call only `declared` is said."""
    body = await proposed(bench, govern, ProposedCall("f", {"a": 1}))

    assert "declared" in body
    assert not body.keys() & set(BESIDE)


async def test_where_and_with_what_a_call_was_proposed_is_on_record(bench, govern):
    """Given names, injected values, workspace, extra and session are there where they are any."""

    def who():
        return CallContext(
            Principal("user", "ana"),
            "prod",
            "/srv",
            extra={"risk": 3},
            session={"user_prompt": "p"},
        )

    call = ProposedCall("f", {"a": 1, "b": 2}, given=frozenset({"a"}), injected={"tenant": "t"})
    body = await proposed(bench, govern, call, context=who)

    assert {
        "given": {"a": True},
        "injected": {"tenant": "t"},
        "workspace": "/srv",
        "extra": {"risk": 3},
        "session": {"user_prompt": "p"},
    } == {name: body[name] for name in BESIDE}


async def test_an_empty_session_is_none_that_is_missing(bench, govern):
    """Clause 9: nobody having supplied a session is an error in a rule, an empty one is not."""

    def who():
        return CallContext(Principal("user", "ana"), session={})

    body = await proposed(bench, govern, ProposedCall("f", {}), context=who)

    assert {} == body["session"]


async def test_secrets_beside_the_arguments_are_taken_out(bench, govern):
    """Injected values, extra and session are redacted as the arguments are, at any depth."""

    def who():
        return CallContext(
            Principal("user", "ana"),
            extra={"deep": [{"api_key": "S3CRET-1"}]},
            session={"user_prompt": "my password=S3CRET-2"},
        )

    injected = {"client": {"token": "S3CRET-3"}, "key": OpaqueValue(), "note": "Bearer S3CRET-4"}
    body = await proposed(bench, govern, ProposedCall("f", {}, injected=injected), context=who)

    assert "S3CRET" not in str(body)
    assert {"$secret": True} == body["injected"]["key"]


async def test_names_of_arguments_are_no_secrets(bench, govern):
    """Two names, of which one looks secret, are no name and its value."""
    call = ProposedCall(
        "f", {"password": "x", "user": "u", "c": 1}, given=frozenset({"password", "user"})
    )
    body = await proposed(bench, govern, call)

    assert {"password": True, "user": True} == body["given"]


UNDER = {"match": {"args.path": {"under": "/srv"}}, "decision": "allow"}


async def judged(bench, govern, tmp_path, args, rule=UNDER, **settings):
    """Govern a call in a workspace, and give what the record says of its judgment."""
    guard = bench.guard(rule, workspace=str(tmp_path), **settings)
    await govern(guard, ProposedCall("f", args, declared=ToolMetadata()), lambda _: "ran")
    return to_json(bench.body("policy.evaluated"))


async def test_resolved_paths_are_on_record(bench, govern, tmp_path):
    """Clause 12: `under` was decided on the path without symlinks, and the record has it."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    body = await judged(bench, govern, tmp_path, {"path": "link/a.txt"})

    real = str((tmp_path / "real" / "a.txt").resolve())
    assert {"link/a.txt": real, "/srv": "/srv"} == body["resolved"]


async def test_without_paths_to_resolve_none_are_said(bench, govern, tmp_path):
    """`resolved` is left out where there are none."""
    assert "resolved" not in await judged(bench, govern, tmp_path, {"path": 7})


@pytest.mark.parametrize("name", ["secret_path", "path"])
async def test_the_path_of_a_secret_argument_is_not_said(bench, govern, tmp_path, name):
    """What is taken out of the arguments does not come back as the key of a resolved path."""

    def without_path(body):
        args = body.get("args")
        return {**body, "args": {}} if isinstance(args, dict) else body

    redact = without_path if name == "path" else None
    rule = {"match": {f"args.{name}": {"under": "/srv"}}, "decision": "allow"}
    body = await judged(bench, govern, tmp_path, {name: "K3Y/x"}, rule, redact=redact)

    assert "K3Y" not in str(body)
    assert "matched_rules" in body


async def test_an_alike_judgment_has_its_own_paths(bench, govern, tmp_path):
    """The body of a judgment that is kept for the next call has no paths in it."""
    guard = bench.guard(
        {"match": {"any_of": [{"args.path": {"under": "/"}}, {"args.n": 1}]}, "decision": "allow"},
        workspace=str(tmp_path),
        redact=no_redaction,
    )
    said = []
    for args in ({"n": 1}, {"path": "a"}, {"n": 1}, {"path": "b"}):
        call = ProposedCall("f", args, declared=ToolMetadata())
        await govern(guard, call, lambda _: "ran")
        said.append(list(bench.body("policy.evaluated").get("resolved", ())))

    assert [[], ["/", "a"], [], ["/", "b"]] == said


async def test_a_call_of_which_the_model_sent_nothing_says_so(bench, govern):
    """No names are not all names."""
    body = await proposed(bench, govern, ProposedCall("f", {"a": 1}, given=frozenset()))

    assert {} == body["given"]
