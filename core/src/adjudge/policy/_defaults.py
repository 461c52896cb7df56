"""What holds where no rule matches (clause 17).

Each decision names its tool, so it is made when it is first asked for and then kept. What is kept
is bounded, for the names of tools can be invented.
"""

from __future__ import annotations

from collections.abc import Callable

from adjudge._types import Decision, ToolMetadata, Verdict
from adjudge.policy._model import Defaults
from adjudge.policy._verdicts import STRICTNESS

__all__ = ["default_of"]

_MAX_NAME = 80
_MOST_KEPT = 1024
_UNDECLARED = "says nothing about itself"
_IRREVERSIBLE = "is irreversible and has no shadow to preview it"


def default_of(defaults: Defaults) -> Callable[[str, ToolMetadata | None], Decision]:
    """Give the function that decides about a tool, from what it declares of itself."""
    by_shadow, by_default = defaults.on_missing_shadow, defaults.on_no_match
    undeclared = _UNDECLARED if STRICTNESS[by_shadow] > STRICTNESS[by_default] else None

    kept: dict[str | None, dict[str, Decision]] = {None: {}, undeclared: {}, _IRREVERSIBLE: {}}

    def default(tool: str, declared: ToolMetadata | None) -> Decision:
        if declared is None:
            why = undeclared
        else:
            why = None if declared.reversible or declared.has_shadow else _IRREVERSIBLE
        return kept[why].get(tool) or made(tool, why)

    def made(tool: str, why: str | None) -> Decision:
        if why is not None:
            reason = f"no rule decides about tool {_shown(tool)}, which {why}"
            decision = _default(by_shadow, reason, "on_missing_shadow")
        else:
            says = "allows" if by_default is Verdict.DENY else "decides about"
            decision = _default(by_default, f"no rule {says} tool {_shown(tool)}", "on_no_match")
        known = kept[why]
        if len(known) >= _MOST_KEPT:
            known.clear()
        if type(tool) is str and len(tool) <= _MAX_NAME:
            known[tool] = decision
        return decision

    return default


def _shown(name: object) -> str:
    """Quote a tool's name for a reason: escaped, and cut where it is long."""
    text = str(name)
    return repr(text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "...")


def _default(verdict: Verdict, reason: str, name: str) -> Decision:
    asks = verdict is Verdict.APPROVE_REQUIRED
    return Decision(verdict, reason, (f"<default:{name}>",), ((),) if asks else ())
