"""The decisions of LangChain's human-in-the-loop middleware, as answers to what a policy asks.

A user interface that speaks its format can show what a governed run waits for and send back what it
always sends. Nothing is granted by that alone: the answers go through `resume`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from adjudge import AnswerError, ApprovalDecision
from adjudge_langchain._runs import pending_mark

__all__ = ["hitl_answers"]


def hitl_answers(
    interrupts: Iterable[Interrupt], decisions: Mapping[str, Any], *, approver: str
) -> dict[str, ApprovalDecision]:
    """Read what a user interface sends back, and give the answers for `resume`.

    `interrupts` are those of the paused run (`result["__interrupt__"]`). `decisions` is either
    `{"decisions": [...]}`, in the order of the interrupts that are ours, or a mapping from their
    ids. A decision is `approve`, `edit`, `reject` or `respond` (a refusal with the person's words),
    or `{"approved": True or False}`. `approver` says who answered, which the format does not.
    Raises `AnswerError` for what is no decision.
    """
    asked = {each.id: each.value for each in interrupts if pending_mark(each.value)}
    given = _by_interrupt(decisions, list(asked))
    answers = {}
    for interrupt_id, decision in given.items():
        if interrupt_id not in asked:
            raise AnswerError(f"No call of this run waits under the interrupt {interrupt_id!r}.")
        value = asked[interrupt_id]
        answers[str(pending_mark(value))] = _answer(decision, value["name"], approver)
    return answers


def _by_interrupt(decisions: Mapping[str, Any], ids: list[str]) -> Mapping[str, Any]:
    listed = decisions.get("decisions") if set(decisions) == {"decisions"} else None
    if listed is None:
        return decisions
    if not isinstance(listed, Sequence) or isinstance(listed, str) or len(listed) != len(ids):
        raise AnswerError(f"There must be one decision for each of the {len(ids)} waiting calls.")
    return dict(zip(ids, listed, strict=True))


def _answer(decision: object, tool: str, approver: str) -> ApprovalDecision:
    if not isinstance(decision, Mapping):
        raise AnswerError(f"{decision!r} is no decision; give a mapping with a 'type'.")
    kind, message = decision.get("type"), decision.get("message", "")
    if kind is None and type(decision.get("approved")) is bool:
        return ApprovalDecision(decision["approved"], approver, str(message))
    if kind == "approve":
        return ApprovalDecision(True, approver)
    if kind in ("reject", "respond"):
        return ApprovalDecision(False, approver, str(message))
    if kind == "edit":
        action = decision.get("edited_action")
        edited = action if isinstance(action, Mapping) else {}
        args = edited.get("args")
        if not isinstance(args, Mapping) or edited.get("name", tool) != tool:
            raise AnswerError(
                f"An edit gives other arguments for {tool!r}: write {{'type': 'edit', "
                f"'edited_action': {{'name': {tool!r}, 'args': {{...}}}}}}."
            )
        return ApprovalDecision(True, approver, edited_args=args)
    raise AnswerError(f"{kind!r} is no kind of decision; say approve, edit, reject or respond.")
