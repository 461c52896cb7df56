"""Strategies for the `match` of a rule, as it is written: every path, operator and nesting."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from properties.vocabulary import (
    NAMESPACES,
    READABLE,
    REFERENCES,
    TOOLS,
    VALUES,
    chance,
    value_of,
)

PATTERNS = ["a", "^a", "a$", "^a$", "^(a|b)$", "[a-b]", "^/srv/", r"\.txt$", r"^a\Z", "(?m)^a$"]
GLOBS = ["/srv/*", "/srv/**", "*", "**", "a", "*.txt", "?", "[a]"]
DIRECTORIES = ["/srv", "/srv/a", "/", "sub"]
HOSTS = [["x.io"], ["*.x.io"], ["x.io", "*.x.io"], ["evil.io"]]
ORDERING = ["gt", "ge", "lt", "le"]
LISTED = ("in", "not_in", "contains_any", "contains_all")
REFERABLE = (*LISTED, *ORDERING, "eq", "ne", "contains", "starts_with", "under")
EQUALITY = ["", "eq", "ne", "in", "not_in", "exists"]
OPERATORS = {
    "number": [*EQUALITY, *ORDERING, *ORDERING, "between", "not_between"],
    "text": [
        *EQUALITY,
        "matches",
        "matches",
        "starts_with",
        "ends_with",
        "contains",
        "contains_any",
        "gt",
        "size",
        "normalized",
        "glob",
    ],
    "path": ["", "in", "exists", "glob", "under", "starts_with", "ends_with", "matches", "size"],
    "url": ["host_in", "host_in", "starts_with", "exists", "eq"],
    "list": ["eq", "contains", "contains_any", "contains_all", "size", "each", "some", "exists"],
    "object": ["eq", "contains", "size", "exists", "contains_any"],
    "orders": ["each", "some", "size", "exists", "each", "some"],
}
FIXED_SHAPES = (
    "given.",
    "declared.",
    "context.principal",
    "context.environment",
    "context.step_seq",
)
ALL_OPERATORS = sorted({operator for known in OPERATORS.values() for operator in known if operator})


def plain(value: Any) -> bool:
    """Tell what may be an operand of `eq` as it stands: no null, no mapping."""
    return value is not None and not isinstance(value, dict)


@st.composite
def operands(draw: st.DrawFn, operator: str, kind: str, foreign: int = 10) -> Any:
    """Draw what stands right of an operator."""
    if kind in REFERENCES and operator in REFERABLE and draw(chance(12)):
        return {"ref": draw(st.sampled_from(REFERENCES["list" if operator in LISTED else kind]))}
    return draw(_literal(operator, kind, foreign))


def _literal(operator: str, kind: str, foreign: int = 10) -> st.SearchStrategy[Any]:
    if operator in FIXED:
        return FIXED[operator]
    member = "text" if kind in ("list", "object", "orders", "path", "url") else kind
    if operator in ("starts_with", "ends_with"):
        texts = VALUES["path" if kind == "path" else "text"]
        return texts | st.lists(texts, min_size=1, max_size=2)
    if operator in ORDERING:
        return VALUES["number" if kind == "number" else "text"]
    if operator in ("between", "not_between"):
        return st.lists(VALUES["number"], min_size=2, max_size=2).map(
            lambda ends: sorted(ends, key=float)
        )
    if operator in ("in", "not_in"):
        members = value_of(kind, foreign).filter(plain)
        return st.lists(members, min_size=1, max_size=3)
    if operator == "contains":
        return VALUES["text"] | VALUES["number"].filter(plain)
    if operator in ("contains_any", "contains_all"):
        return st.lists(VALUES["text"] | VALUES[member], min_size=1, max_size=3)
    if operator == "size":
        return st.integers(0, 3) | st.builds(
            lambda test, size: {test: size}, st.sampled_from(SIZES), st.integers(0, 3)
        )
    if operator in ("each", "some"):
        return elements("orders" if kind == "orders" else "number")
    return _equality(kind, foreign)


SIZES = ["eq", "ne", "gt", "ge", "lt", "le"]
FOLDED = ["a", "A", "ﬁ", "FI", "prod"]
FIXED: dict[str, st.SearchStrategy[Any]] = {
    "exists": st.booleans(),
    "matches": st.sampled_from(PATTERNS),
    "glob": st.sampled_from(GLOBS),
    "under": st.sampled_from(DIRECTORIES),
    "host_in": st.sampled_from(HOSTS),
    "normalized": st.one_of(
        st.builds(lambda text: {"eq": text}, st.sampled_from(FOLDED)),
        st.builds(lambda texts: {"in": texts}, st.lists(st.sampled_from(FOLDED), min_size=1)),
        st.builds(lambda pattern: {"matches": pattern}, st.sampled_from(PATTERNS)),
    ),
}


def _equality(kind: str, foreign: int) -> st.SearchStrategy[Any]:
    written = value_of(kind, foreign).map(
        lambda value: {"literal": value} if isinstance(value, dict) else value
    )
    return st.one_of(written, written, written, written, st.none())


@st.composite
def elements(draw: st.DrawFn, kind: str) -> Any:
    """Draw the predicate of a quantifier, in which `.` is the element."""
    if kind == "orders":
        path, inner = draw(st.sampled_from([(".sku", "text"), (".n", "number")]))
    else:
        path, inner = ".", draw(st.sampled_from(["number", "text"]))
    operator = draw(st.sampled_from(["eq", "in", "exists", *ORDERING, "ne"]))
    predicate = {path: {operator: draw(_literal(operator, inner))}}
    return {"not": predicate} if draw(chance(15)) else predicate


@st.composite
def tool_leaves(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a test of the tool's name, sometimes with the namespace beside it."""
    written: dict[str, Any] = draw(
        st.one_of(
            st.builds(lambda tool: {"tool": tool}, st.sampled_from(TOOLS)),
            st.builds(
                lambda tools: {"tool.in": tools},
                st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2),
            ),
            st.builds(
                lambda text: {"tool.matches": text}, st.sampled_from(["^(read|write)$", "e$"])
            ),
        )
    )
    if draw(chance(15)):
        namespace = draw(st.sampled_from([*NAMESPACES, None]))
        written = {**written, "tool.namespace": namespace}
    return written


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    """Draw one test of one path."""
    path = draw(st.sampled_from(sorted(READABLE)))
    kind = READABLE[path]
    # An operand of another kind is refused there, because nothing at the path could equal it.
    foreign = 0 if path.startswith(FIXED_SHAPES) else 10
    fitting = OPERATORS.get(kind, EQUALITY)
    operator = draw(st.sampled_from(ALL_OPERATORS if draw(chance(6)) else fitting))
    if operator == "":
        return {path: draw(_equality(kind, foreign))}
    operand = draw(operands(operator, kind, foreign))
    if draw(st.booleans()):
        return {f"{path}.{operator}": operand}
    return {path: {operator: operand}}


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


@st.composite
def matches(draw: st.DrawFn, depth: int = 2, predicates: tuple[str, ...] = ()) -> Any:
    """Draw a match: leaves, nested under `all_of`, `any_of` and `not`, or a predicate's name."""
    shape = draw(st.integers(0, 9 if depth else 4))
    if predicates and draw(chance(12)):
        return draw(st.sampled_from(predicates))
    if shape <= 2:
        return draw(leaves())
    if shape == 3:
        return draw(tool_leaves())
    if shape == 4:
        return _joined([draw(tool_leaves()), draw(leaves())])
    inner = matches(depth=depth - 1, predicates=predicates)
    if shape <= 6:
        return {"not": draw(inner)}
    word = "all_of" if shape == 7 else "any_of"
    nested = {word: draw(st.lists(inner, min_size=1, max_size=3))}
    return _joined([draw(tool_leaves()), nested]) if draw(chance(20)) else nested
