"""What lint found: one sentence about one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adjudge.policy._model import Place

__all__ = ["FINDING_CODES", "Finding", "of_layer"]

FINDING_CODES: Mapping[str, str] = {
    "contradiction": "conditions that no call meets together",
    "never_true": "a condition that no call meets",
    "always_true": "a condition that is never false",
    "shadowed": "a rule that never decides, because one before it always does",
    "unreachable": "a rule that never decides, because those before it always do",
    "shadowed_in_own_namespace": "a rule that decides about foreign tools of its name alone",
    "loose_match": "a permission by a part of a text that somebody else can complete",
    "absent_argument": "a rule that says nothing, or too much, of a call without the argument",
    "unknown_tool": "a tool that is not in the tool list",
    "missing_tool": "a tool of the list that no rule speaks of",
    "unused_predicate": "a predicate that no rule uses",
    "timestamp": "a decision by a time that the caller supplied",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that lint found.

    `code` is one of `FINDING_CODES`. `rule` is the rule's id, with its layer before a colon where
    there are layers; None where the finding is about no one rule. `related` are other rules that
    the sentence names. `place` is where to look.
    """

    code: str
    message: str
    rule: str | None = None
    place: Place | None = None
    related: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The place as text: `file:line:column`, or the path within the policy."""
        if self.place is None:
            return ""
        file, line, column = self.place.file, self.place.line, self.place.column
        if line is None:
            return f"{file}: {self.place.path}" if file else self.place.path
        known = [file or "", str(line), *([] if column is None else [str(column)])]
        return ":".join(known).removeprefix(":")


def of_layer(layer: str, message: str) -> str:
    """Begin a sentence that is about no one rule with its layer, where there is one."""
    return f'In layer "{layer}": {message}' if layer else message
