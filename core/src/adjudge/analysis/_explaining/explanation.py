"""What `explain` answers: why a call got its verdict, as values that print and serialise."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from adjudge._record.format import to_json
from adjudge._types import Decision
from adjudge.policy._model import Place

__all__ = ["ConditionAnswer", "Explanation", "LayerAnswer", "RuleAnswer"]


@dataclass(frozen=True, slots=True)
class ConditionAnswer:
    """One condition, or a combination of them, with its answer: true, false or error.

    `text` is the path and the operator, or the combining word; `operand` what stands in the policy
    or, of a `ref`, what it read. `seen` is the value found, secrets taken out; `absent` says that
    there was none. `note` is why it is an error, or what else counted.
    """

    text: str
    answer: str
    operand: Any = None
    seen: Any = None
    absent: bool = False
    note: str = ""
    predicate: str = ""
    place: Place | None = None
    parts: tuple[ConditionAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """How one rule stood to the call, in the order asked.

    `answer` is true, false, error, doubtful (a transform that matches as a restriction alone) or
    not asked. `outcome` says in words what came of it. `on_final` is the answer about the rewritten
    arguments, where there are such. `readings` has one tree of conditions, or of a transform whose
    two readings differ (clause 8) the permitting and the restricting one; none of a Python rule.
    """

    rule: str
    verdict: str
    answer: str
    outcome: str
    fault: str = ""
    on_final: str = ""
    place: Place | None = None
    readings: tuple[ConditionAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerAnswer:
    """What one policy, or one layer, said of the call.

    `verdict` is empty where no rule of it matched; `reason` then tells its default. `other_rules`
    counts those that are about other tools and were not asked. `newly_met` are the rules that the
    rewritten arguments met (clause 19).
    """

    name: str
    verdict: str
    reason: str
    default: str
    rules: tuple[RuleAnswer, ...]
    other_rules: int
    newly_met: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a call got its verdict.

    `decision` is `evaluate`'s own; its arguments and those in `args` and `final_args` have their
    secrets taken out. `summary` says it in sentences. `combined_by` names the combiner of layers.
    """

    tool: str
    namespace: str | None
    principal: str
    args: Any
    decision: Decision
    final_args: Any
    layers: tuple[LayerAnswer, ...]
    combined_by: str
    summary: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Give it as plain JSON."""
        plain: dict[str, Any] = to_json(asdict(self))
        return plain
