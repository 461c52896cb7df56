"""Strategies for requests: arguments that rules mention, absent, null, of a wrong kind, nested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from properties.vocabulary import (
    ARGUMENTS,
    ENVIRONMENTS,
    KINDS,
    LISTS,
    NAMESPACES,
    NUMBERS,
    PATHS,
    TEXTS,
    TOOLS,
    pool,
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


ENVIRONMENT = [*ENVIRONMENTS, *ENVIRONMENTS, None]
NAMESPACE = [None, None, None, *NAMESPACES]
MOSTLY = [True, True, True, False]


class Choices:
    """Makes one choice for each byte; drawing them at once is much faster than one by one."""

    def __init__(self, drawn: bytes) -> None:
        self._drawn = iter(drawn)

    def of(self, several: Sequence[Any]) -> Any:
        """Choose one of several."""
        return several[next(self._drawn) % len(several)]


def _context(choose: Choices) -> ExecutionContext:
    limit, tags = choose.of(NUMBERS), choose.of(LISTS)
    return ExecutionContext(
        principal=choose.of(PRINCIPALS),
        environment=choose.of(ENVIRONMENT),
        workspace="/srv",
        step_seq=choose.of([0, 1, 5]),
        extra=freeze({"limit": limit, "tags": tags} if choose.of(MOSTLY) else {}),
        session=choose.of(SESSIONS),
    )


def _request(drawn: bytes) -> ActionRequest:
    choose = Choices(drawn)
    chosen = {name: choose.of(choices) for name, choices in CHOICES.items()}
    args = freeze({name: value for name, value in chosen.items() if value is not MISSING})
    tenant = {"tenant": choose.of(TEXTS)}
    return ActionRequest(
        tool=choose.of(TOOLS),
        args=args,
        declared=choose.of(METADATA),
        context=_context(choose),
        namespace=choose.of(NAMESPACE),
        given=None if choose.of(MOSTLY) else frozenset(list(args)[::2]),
        injected=freeze(tenant if choose.of(MOSTLY) else {}),
        resolved=RESOLVED if choose.of([*MOSTLY, *MOSTLY, True]) else {},
    )


def requests() -> st.SearchStrategy[ActionRequest]:
    """Draw one request."""
    return st.binary(min_size=24, max_size=24).map(_request)
