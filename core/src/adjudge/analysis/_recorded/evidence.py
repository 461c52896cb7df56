"""What the calls of a log are evidence for: the same thing, grouped, with where it was seen.

A group is one tool, one verdict and, where people were asked or arguments rewritten, the same
people and the same rewriting. Secrets are taken out once more on the way in, for the log may have
been written without redaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge._record.redaction import default_redactor
from adjudge._record.secrets import REDACTED
from adjudge._types import Outcome, Verdict
from adjudge._values import FrozenDict, FrozenList, OpaqueValue, canonical_json
from adjudge.analysis._recorded.boxes import Box, has_unknown, seen
from adjudge.analysis._recorded.recorded import Place, RecordedCall
from adjudge.policy._verdicts import STRICTNESS

__all__ = ["Evidence", "Group"]

_MOST_PLACES = 3


@dataclass(slots=True)
class Group:
    """Calls for one rule, each as a box of its own, equal ones once."""

    tool: str
    namespace: str | None
    verdict: Verdict
    approvers: tuple[str, ...]
    edits: list[dict[str, Any]]
    count: int = 0
    places: list[Place] = field(default_factory=list)
    calls: dict[str, Box] = field(default_factory=dict)

    def add(self, key: str, call: Box, place: Place) -> None:
        """Take up one call."""
        self.count += 1
        self.calls.setdefault(key, call)
        if len(self.places) < _MOST_PLACES:
            self.places.append(place)


class Evidence:
    """What a log shows, gathered call by call."""

    def __init__(self, *, include_failed: bool = False) -> None:
        self.groups: dict[str, Group] = {}
        self.arguments: dict[str, dict[str, None]] = {}
        """The arguments that any call of a tool had."""
        self.unknown: dict[str, set[str]] = {}
        """The arguments of a tool of which some value is not known."""
        self.strictest: dict[str, Verdict] = {}
        """The strictest verdict on each call, where the log has several on the same one."""
        self.without_environment = False
        self.without_principal = False
        self._include_failed = include_failed
        self._redact = default_redactor(digests=False)

    def take(self, call: RecordedCall) -> str | None:
        """Take up a call; where it is evidence for no rule, say why."""
        args = self._without_secrets(call.request.args)
        box = self._box(call, args)
        key = self._key(call, box)
        if call.verdict is not None:
            before = self.strictest.get(key, call.verdict)
            self.strictest[key] = max(before, call.verdict, key=STRICTNESS.__getitem__)
        why = self._why_not(call)
        if why is not None:
            return why
        assert call.verdict is not None
        edits = _edits(args, call.final_args) if call.verdict is Verdict.TRANSFORM else []
        if edits is None:
            return "rewritten to values that are not known"
        approvers = call.asked[0] if call.verdict is Verdict.APPROVE_REQUIRED and call.asked else ()
        tool, namespace = call.request.tool, call.request.namespace
        name = canonical_json([tool, namespace, call.verdict, approvers, edits])
        group = self.groups.setdefault(name, Group(tool, namespace, call.verdict, approvers, edits))
        group.add(key, box, call.place)
        return None

    def expected(self, call: RecordedCall) -> Verdict | None:
        """Give the verdict to expect where it is not the recorded one, or None.

        That is a denial of what was left out, and the strictest of those that the log has on it.
        """
        if self._why_not(call) is not None:
            return Verdict.DENY
        box = self._box(call, self._without_secrets(call.request.args))
        strictest = self.strictest[self._key(call, box)]
        return strictest if strictest is not call.verdict else None

    def _why_not(self, call: RecordedCall) -> str | None:
        verdict = call.verdict
        if verdict is None:
            return "never judged"
        if verdict is Verdict.DENY:
            return "denied"
        if ("args",) in call.unknown:
            return "arguments that are not in the record"
        if verdict is Verdict.APPROVE_REQUIRED and len(set(call.asked)) > 1:
            return "several approver sets, which one policy cannot ask for"
        if verdict is not Verdict.TRANSFORM and call.final_args is not None:
            return "rewritten and not simply allowed"
        ran = (Outcome.COMPLETED, Outcome.FAILED) if self._include_failed else (Outcome.COMPLETED,)
        if verdict in (Verdict.ALLOW, Verdict.TRANSFORM) and call.outcome not in ran:
            return "allowed and not completed"
        return None

    def _box(self, call: RecordedCall, args: Mapping[str, Any]) -> Box:
        known = self.arguments.setdefault(call.request.tool, {})
        for name, value in args.items():
            known.setdefault(name)
            if has_unknown(value):
                self.unknown.setdefault(call.request.tool, set()).add(name)
        return {**self._who(call), **{f"args {name}": seen(value) for name, value in args.items()}}

    def _who(self, call: RecordedCall) -> Box:
        context = call.request.context
        who = {
            "context.environment": context.environment,
            "context.principal.kind": context.principal.kind,
            "context.principal.id": context.principal.id,
        }
        if any(path[:2] == ("context", "principal") for path in call.unknown):
            who = {"context.environment": context.environment}
            self.without_principal = True
        if context.environment is None:
            # A rule cannot ask for an environment that nobody supplied: reading it is an error.
            del who["context.environment"]
            self.without_environment = True
        return {path: seen(value) for path, value in who.items()}

    def _key(self, call: RecordedCall, box: Box) -> str:
        spans = " ".join(f"{path} {span.key}" for path, span in sorted(box.items()))
        return f"{call.request.tool} {call.request.namespace} {spans}"

    def _without_secrets(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        redacted = self._redact({"args": args})["args"]
        opened = _opened(redacted)
        return opened if isinstance(opened, Mapping) else args


def _opened(value: Any) -> Any:
    """Give a redacted value with an `OpaqueValue` for each text that lost something."""
    if isinstance(value, str):
        return OpaqueValue() if REDACTED in value else value
    if isinstance(value, Mapping):
        return FrozenDict({key: _opened(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return FrozenList(map(_opened, value))
    return value


def _edits(args: Mapping[str, Any], final: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """Give edits that make the final arguments of those proposed; None where they are not known."""
    final = args if final is None else final
    edits: list[dict[str, Any]] = []
    for name, value in final.items():
        if has_unknown(value):
            if not has_unknown(args.get(name)):
                return None
        elif name not in args or canonical_json(args[name]) != canonical_json(value):
            edits.append({"name": name, "set": value})
    edits += [{"name": name, "delete": True} for name in args if name not in final]
    if not edits:
        # The rule rewrote what was so already; it has to write something to be a transform.
        known = [name for name, value in final.items() if not has_unknown(value)]
        edits = [{"name": name, "set": final[name]} for name in known[:1]]
    return edits or None
