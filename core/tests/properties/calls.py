"""Strategies for requests: arguments that rules mention, absent, null, of a wrong kind, nested."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from properties.vocabulary import (
    ARGUMENTS,
    ENVIRONMENTS,
    KINDS,
    NAMESPACES,
    PATHS,
    TOOLS,
    VALUES,
    chance,
    pool,
    value_of,
)

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata
from adjudge._values import freeze

# What a guard would have found for the paths; `sub/x.txt` is a link out of the workspace.
RESOLVED = {
    **{path: path for path in PATHS},
    "/": "/",
    "sub": "/srv/sub",
    "sub/x.txt": "/etc/x.txt",
}


MISSING = object()


def _choices(kind: str) -> list[Any]:
    """List what one argument may be: mostly of its kind, else missing, null or of another kind."""
    usual = [freeze(value) for value in pool(kind)]
    foreign = [freeze(value) for other in KINDS for value in pool(other)[:2] if other != kind]
    share = len(usual)
    return [MISSING] * (share // 2) + usual * 3 + [None] * (share // 4) + foreign[: share // 2]


CHOICES = {name: _choices(kind) for name, kind in ARGUMENTS.items()}


@st.composite
def arguments(draw: st.DrawFn) -> Any:
    """Draw the arguments of one call."""
    found = {}
    for name, choices in CHOICES.items():
        value = choices[draw(st.integers(0, len(choices) - 1))]
        if value is not MISSING:
            found[name] = value
    return freeze(found)


# Half the tools are plainly reversible; one in eight has no metadata at all.
METADATA = [
    ToolMetadata(),
    ToolMetadata(cost="high", scope=("a",), has_shadow=True),
    ToolMetadata(scope=("a", "b"), blast_radius_hint=1),
    ToolMetadata(cost="medium", blast_radius_hint=100),
    ToolMetadata(reversible=False),
    ToolMetadata(reversible=False, has_shadow=True, scope=("b",)),
    ToolMetadata(reversible=False, cost="high", blast_radius_hint=5),
    None,
]
PRINCIPALS = [
    Principal("user", "u1"),
    Principal("agent", "a1", "a"),
    Principal("service", "s1", "b"),
]
SESSIONS = [None, freeze({"labels": ["a"]}), freeze({})]


@st.composite
def contexts(draw: st.DrawFn) -> ExecutionContext:
    """Draw the call's context; environment and session are sometimes not supplied."""
    extra: dict[str, Any] = {}
    if draw(chance(70)):
        extra = {"limit": draw(value_of("number")), "tags": draw(value_of("list"))}
    return ExecutionContext(
        principal=draw(st.sampled_from(PRINCIPALS)),
        environment=draw(st.sampled_from([*ENVIRONMENTS, *ENVIRONMENTS, None])),
        workspace="/srv",
        step_seq=draw(st.sampled_from([0, 1, 5])),
        extra=freeze(extra),
        session=draw(st.sampled_from(SESSIONS)),
    )


@st.composite
def requests(draw: st.DrawFn) -> ActionRequest:
    """Draw one request."""
    args = draw(arguments())
    given = None if draw(chance(70)) else frozenset(list(args)[::2])
    return ActionRequest(
        tool=draw(st.sampled_from(TOOLS)),
        args=args,
        declared=draw(st.sampled_from(METADATA)),
        context=draw(contexts()),
        namespace=draw(st.sampled_from([None, None, None, *NAMESPACES])),
        given=given,
        injected=freeze({"tenant": draw(VALUES["text"])} if draw(chance(70)) else {}),
        resolved=RESOLVED if draw(chance(90)) else {},
    )
