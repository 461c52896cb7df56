"""A policy as it was read, before it is compiled: plain frozen values, no behaviour.

The reader (`_reading`) makes a `PolicySource` from YAML, JSON, TOML or a dict; the compiler
(`_compile`) and the reference evaluator in the tests both start from it. `ne`, `not_in` and
`not_between` are already `Not` over `eq`, `in` and `between`; named predicates are already put in
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adjudge._types import Obligation, Verdict

__all__ = [
    "Always",
    "AllOf",
    "AnyOf",
    "Defaults",
    "Edit",
    "Leaf",
    "Match",
    "Not",
    "Path",
    "Place",
    "PolicySource",
    "Ref",
    "Rule",
    "ToolDeclaration",
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: its path within the policy; line and column count from 1."""

    path: str
    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """What a leaf reads.

    `root` is `tool`, `tool.namespace`, `args`, `given`, `injected`, `declared`, `context` or `.`
    (the element inside a quantifier, `size` or `normalized`); `steps` are keys and list indexes;
    `text` is as written.
    """

    root: str
    steps: tuple[str | int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Ref:
    """An operand read from the request (clause 9)."""

    path: Path


@dataclass(frozen=True, slots=True)
class Always:
    """True of everything: `match: always`."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One positive test of one path.

    `operand` is a frozen JSON value, a `Ref`, or for `size`, `each`, `some` and `normalized` a
    `Match` whose paths have the root `.`. For `matches` it is the pattern's text, for `between` a
    list of two, for `exists` a bool.
    """

    path: Path
    operator: str
    operand: Any
    place: Place


@dataclass(frozen=True, slots=True)
class AllOf:
    """True where every part is (Kleene)."""

    parts: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True where at least one part is (Kleene)."""

    parts: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True where the part is false (Kleene)."""

    part: Match


Match = Always | Leaf | AllOf | AnyOf | Not


@dataclass(frozen=True, slots=True)
class Edit:
    """One step of a transform.

    `path` leads from the arguments' object to what is set, appended to or deleted. An empty path
    with `set` replaces the whole object.
    """

    kind: Literal["set", "append", "delete"]
    path: tuple[str | int, ...]
    value: Any
    place: Place


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as written; `order` is its position in the file."""

    id: str
    priority: int
    order: int
    description: str
    match: Match
    verdict: Verdict
    reason: str
    approvers: tuple[str, ...]
    timeout_seconds: float | None
    edits: tuple[Edit, ...]
    obligations: tuple[Obligation, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Defaults:
    """What applies where no rule matches (clause 17)."""

    on_missing_shadow: Verdict = Verdict.APPROVE_REQUIRED
    on_no_match: Verdict = Verdict.DENY


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """One entry of `tools:`.

    Only what it states is in `fields` (cost, reversible, scope, blast_radius_hint, isolation,
    labels), so that it overrides what the tool says of itself.
    """

    name: str
    namespace: str | None
    fields: Mapping[str, Any]
    place: Place


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A whole policy as read."""

    version: int
    defaults: Defaults
    rules: tuple[Rule, ...]
    tools: Mapping[str, ToolDeclaration]
    predicates: Mapping[str, Match]
    file: str | None = None
