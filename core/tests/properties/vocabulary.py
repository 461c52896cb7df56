"""The small world that generated policies and requests share, so that rules are met often.

Every path has a pool of values; operands and arguments are drawn from the same pools, and now and
then from a foreign one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

NUMBERS: list[Any] = [0, 1, 1.0, 5, 5.5, 100, -3, Decimal(1), Decimal("5.50")]
TEXTS: list[Any] = ["a", "b", "A", "ab", "a\n", "", "prod", "ﬁ", "fi"]
PATHS: list[Any] = ["/srv/a", "/srv/a/b.txt", "/etc/passwd", "/srv", "sub/x.txt"]
URLS: list[Any] = ["https://x.io/a", "http://api.x.io", "https://evil.io", "ftp://x.io", "x.io"]
BOOLS: list[Any] = [True, False]
LISTS: list[Any] = [
    [],
    [1],
    ["a"],
    ["a", "b"],
    [1, "a"],
    [True],
    [None],
    [1, None],
    [[1]],
    [5, 5.5],
]
OBJECTS: list[Any] = [{}, {"k": 1}, {"k": "a"}, {"a": 1, "b": "x"}, {"k": None}, {"k": {"n": 5}}]
ORDERS: list[Any] = [
    [],
    [{"sku": "a", "n": 1}],
    [{"sku": "b", "n": 5}, {"sku": "a", "n": 1}],
    [{"sku": "a"}],
    [{"sku": None, "n": 100}],
    [{"sku": 5, "n": "a"}],
]

KINDS: dict[str, list[Any]] = {
    "number": NUMBERS,
    "text": TEXTS,
    "path": PATHS,
    "url": URLS,
    "bool": BOOLS,
    "list": LISTS,
    "object": OBJECTS,
    "orders": ORDERS,
}

# The arguments of the generated calls, and the kind that each usually has.
ARGUMENTS = {
    "amount": "number",
    "limit": "number",
    "mode": "text",
    "file": "path",
    "url": "url",
    "force": "bool",
    "tags": "list",
    "meta": "object",
    "orders": "orders",
}

# What a rule may read, and the kind that it expects there.
READABLE = {
    **{f"args.{name}": kind for name, kind in ARGUMENTS.items()},
    "args.meta.k": "number",
    "args.meta.k.n": "number",
    "args.orders[0].sku": "text",
    "args.orders[0].n": "number",
    'args["mode"]': "text",
    "args.tags[0]": "number",
    "args.size": "number",
    "given.amount": "bool",
    "given.mode": "bool",
    "injected.tenant": "text",
    "declared.cost": "cost",
    "declared.reversible": "bool",
    "declared.scope": "list",
    "declared.has_shadow": "bool",
    "declared.blast_radius_hint": "number",
    "context.environment": "environment",
    "context.step_seq": "number",
    "context.extra.limit": "number",
    "context.extra.tags": "list",
    "context.principal.kind": "principal",
    "context.principal.name": "text",
    "context.labels": "list",
}
REFERENCES = {
    "number": ["args.limit", "args.amount", "context.extra.limit", "context.step_seq"],
    "text": ["args.mode", "injected.tenant", "context.environment", "context.principal.name"],
    "list": ["args.tags", "context.extra.tags", "declared.scope"],
    "path": ["args.file", "context.workspace"],
}
TOOLS = ["read", "write", "delete"]
NAMESPACES = ["gh", "fs"]
ENVIRONMENTS: list[Any] = ["prod", "dev"]
EXTRA_KINDS = {
    "cost": ["low", "medium", "high"],
    "environment": ENVIRONMENTS,
    "principal": ["user", "agent", "service"],
}


def pool(kind: str) -> list[Any]:
    """Give the values that a kind is drawn from."""
    return KINDS[kind] if kind in KINDS else EXTRA_KINDS[kind]


def chance(percent: int) -> st.SearchStrategy[bool]:
    """Draw true about so often; false is the simpler answer."""
    return st.integers(0, 99).map(lambda drawn: drawn >= 100 - percent)


# Pools overlap in Python's equality (1, 1.0, True), so each is drawn by position.
VALUES = {
    kind: st.sampled_from(range(len(pool(kind)))).map(pool(kind).__getitem__)
    for kind in (*KINDS, *EXTRA_KINDS)
}
ANY_VALUE = st.sampled_from(
    [(kind, place) for kind in KINDS for place in range(len(pool(kind)))]
).map(lambda drawn: pool(drawn[0])[drawn[1]])


@st.composite
def value_of(draw: st.DrawFn, kind: str, foreign: int = 10) -> Any:
    """Draw a value of a kind, or in so many cases of a hundred one of any other."""
    return draw(ANY_VALUE if foreign and draw(chance(foreign)) else VALUES[kind])
