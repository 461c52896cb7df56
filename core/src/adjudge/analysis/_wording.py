"""Calls and rules in words, for people and as JSON: short, and with the place of each rule."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from adjudge._record.format import to_json
from adjudge._record.secrets import REDACTED
from adjudge._types import ActionRequest, ToolMetadata
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._model import Rule

__all__ = ["RuleNames", "as_json", "call_in_words", "call_to_json", "cut"]

_PLAIN = ToolMetadata()
_LONGEST = 120
_NOT_KNOWN = '{"$secret": true}'


def call_to_json(request: ActionRequest) -> dict[str, Any]:
    """Give a call as plain JSON, without what is empty or as it usually is."""
    context = request.context
    told: dict[str, Any] = {
        "tool": request.tool,
        "namespace": request.namespace,
        "args": to_json(request.args),
        "given": None if request.given is None else sorted(request.given),
        "injected": to_json(request.injected) or None,
        "declared": _declared(request.declared),
        "principal": {"kind": context.principal.kind, "id": context.principal.id}
        | ({"name": context.principal.name} if context.principal.name is not None else {}),
        "environment": context.environment,
        "workspace": context.workspace if context.workspace != "." else None,
        "step_seq": context.step_seq or None,
        "extra": to_json(context.extra) or None,
        "session": to_json(context.session) or None,
    }
    shown = {name: value for name, value in told.items() if value is not None}
    if request.declared is None:
        shown["declared"] = None
    return shown


def _declared(declared: ToolMetadata | None) -> dict[str, Any] | None:
    if declared is None:
        return None
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name in ToolMetadata.__slots__
        if (value := getattr(declared, name)) != getattr(_PLAIN, name)
    } or None


def call_in_words(request: ActionRequest, *, usual: Iterable[str] = ()) -> str:
    """Write a call as a person would, `pay {"amount": 5}`, and what else holds of it.

    `usual` names what need not be said, as `call_to_json` calls it.
    """
    told = call_to_json(request)
    about = {
        name: value
        for name, value in told.items()
        if name not in ("tool", "args") and name not in usual
    }
    parts = [str(told["tool"]), cut(as_json(told["args"]).replace(_NOT_KNOWN, REDACTED))]
    if about:
        parts.append("with " + ", ".join(f"{name} {_said(value)}" for name, value in about.items()))
    return " ".join(parts)


def _said(value: Any) -> str:
    return "none" if value is None else cut(value if isinstance(value, str) else as_json(value))


def as_json(value: Any) -> str:
    """Write plain JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, longest: int = _LONGEST) -> str:
    """Cut a long text, and say so."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"


class RuleNames:
    """Says what the names are that decisions give: rules with their places, defaults, errors."""

    def __init__(self, policy: PolicyBundle | LayeredPolicyBundle) -> None:
        layers = policy.layers if isinstance(policy, LayeredPolicyBundle) else (("", policy),)
        self._rules: dict[str, Rule] = {
            f"{layer}:{rule.id}" if layer else rule.id: rule
            for layer, bundle in layers
            for rule in bundle.source.rules
        }

    def rule(self, name: str) -> Rule | None:
        """Give the written rule that a decision names, if it is one."""
        return self._rules.get(name)

    def place(self, name: str) -> str:
        """Give `file:line` of a rule, as far as it is known."""
        rule = self._rules.get(name)
        if rule is None:
            return ""
        place = rule.place
        return ":".join(str(part) for part in (place.file, place.line) if part is not None)

    def in_words(self, names: Iterable[str]) -> str:
        """Write what decided."""
        return ", ".join(map(self._one, names)) or "nothing"

    def _one(self, name: str) -> str:
        layer, marked, rest = name.partition("<")
        if not marked:
            place = self.place(name)
            return f"rule {name} ({place})" if place else f"rule {name}"
        what, _, about = rest.rstrip(">").partition(":")
        of_layer = f" of layer {layer.rstrip(':')}" if layer else ""
        if what == "default":
            return f"default {about}{of_layer}"
        if what == "rule_error":
            errored = layer + about.rpartition(":")[0]
            place = self.place(errored)
            return f"rule {errored} in error" + (f" ({place})" if place else "")
        return name

    def to_json(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Give the names with their places as plain JSON."""
        return [
            {"rule": name} | ({"place": place} if (place := self.place(name)) else {})
            for name in names
        ]
