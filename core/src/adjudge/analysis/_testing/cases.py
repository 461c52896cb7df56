"""Test cases of a policy: plain frozen values, as read from a test file or made in Python.

A case gives one call with its context and states what the policy must say of it. Nothing here reads
text or asks a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge._types import ActionRequest, Verdict
from adjudge._values import EMPTY
from adjudge.analysis._call_reading import AvailableTool
from adjudge.policy._model import Place

__all__ = ["Expectation", "Merge", "PolicyCase", "PolicyTests", "spot"]

Merge = Literal["strict_overrides_loose", "first_layer_wins", "last_layer_wins"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a decision must be; what is None is left open.

    `rule` must be among the rules that decided, `rules` are all of them (errors included),
    `default` is `on_no_match` or `on_missing_shadow`. `args` are the arguments that would run, be
    previewed or be asked about. `approvers` and `obligations` are names in any order.
    """

    verdict: Verdict
    rule: str | None = None
    default: Literal["on_no_match", "on_missing_shadow"] | None = None
    rules: tuple[str, ...] | None = None
    args: Mapping[str, Any] | None = None
    reason: str | None = None
    approvers: tuple[str, ...] | None = None
    obligations: tuple[str, ...] | None = None
    place: Place = field(default=Place("expect"))


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One call, and what must be decided about it.

    `request.resolved` holds what the file states of paths; the others are worked out from their
    text. A path in `unresolvable` is one that the file system could not resolve.
    """

    name: str
    request: ActionRequest
    expect: Expectation
    unresolvable: frozenset[str] = frozenset()
    place: Place = field(default=Place(""))


@dataclass(frozen=True, slots=True)
class PolicyTests:
    """The cases of one file; `policy` or `layers` are the policies that it names, as written.

    `tools` are those that there are, by name; None where the file does not say.
    """

    cases: tuple[PolicyCase, ...]
    file: str | None = None
    policy: str | None = None
    layers: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    merge: Merge = "strict_overrides_loose"
    tools: Mapping[str, AvailableTool] | None = None


def spot(place: Place | None) -> str:
    """Write where something stands: file and line, or the path within what has no lines."""
    if place is None:
        return "the policy"
    if place.line is not None:
        return f"{place.file or 'policy'}:{place.line}"
    return " ".join(part for part in (place.file, place.path) if part) or "the policy"
