"""What a journal says has happened: read once, then asked step by step.

The same reading serves a run that goes on and whoever looks at one. It is a pure function of the
records and raises `JournalError` for those that no run of ours wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge import AdjudgeError, StepRecord
from adjudge_runtime._values import AgentAction, FinalAnswer, ToolCall, ToolCalls, Usage

__all__ = ["JournalError", "Kept", "Past", "PastStep", "read_past"]


class JournalError(AdjudgeError, ValueError):
    """A journal that no run of ours can have written."""

    code = "journal"


@dataclass(frozen=True, slots=True)
class Kept:
    """What came of one call, as the journal keeps it.

    `usage` and `denials` are those of agents inside of its body.
    """

    tool: str
    verdict: str
    outcome: str
    ok: bool
    message: str
    error: str | None = None
    code: str = ""
    duration_ms: float = 0.0
    uncertain_retry: bool = False
    usage: Usage | None = None
    denials: int = 0

    @property
    def all_denials(self) -> int:
        """How many calls were denied, this one included."""
        return self.denials + (self.outcome == "denied")


@dataclass(slots=True)
class PastStep:
    """One model call of a run, and what became of the calls that it proposed, by their place."""

    action: AgentAction
    results: dict[int, Kept] = field(default_factory=dict)
    intents: set[int] = field(default_factory=set)
    pending: dict[int, str] = field(default_factory=dict)

    def is_uncertain(self, index: int) -> bool:
        """Whether the body of a call began and nobody knows how it ended."""
        return index in self.intents and index not in self.results


@dataclass(slots=True)
class Past:
    """All that happened in a run before now."""

    run_id: str = ""
    records: int = 0
    next_seq: int = 0
    attempts: int = 0
    task: str = ""
    bundle_id: str = ""
    ledger_run: str | None = None
    steps: list[PastStep] = field(default_factory=list)
    lost: Usage | None = None
    """What was used by model calls that came to nothing."""
    final_answer: str | None = None
    is_finished: bool = False


def read_past(records: Sequence[StepRecord]) -> Past:
    """Read the records of one run, in their order."""
    past = Past()
    for record in records:
        if past.records and record.run_id != past.run_id:
            raise JournalError(
                f"Record {record.seq} is of the run {record.run_id!r} and not of {past.run_id!r}; "
                "give the records of one run."
            )
        if record.seq != past.next_seq:
            raise JournalError(
                f"Record {record.seq} stands where {past.next_seq} is due; give the whole journal, "
                "in order."
            )
        past.run_id = record.run_id
        past.records += 1
        past.next_seq = record.seq + 1
        try:
            _READERS.get(record.kind, _unknown)(past, record.body)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise JournalError(
                f"Record {record.seq} ({record.kind}) is none that a run writes: "
                f"{type(error).__name__}: {error}"
            ) from None
    return past


def _started(past: Past, body: Mapping[str, Any]) -> None:
    past.task = str(body["task"])
    _begun(past, body)


def _begun(past: Past, body: Mapping[str, Any]) -> None:
    past.attempts += 1
    past.bundle_id = str(body["bundle_id"])
    if "run" in body:
        past.ledger_run = str(body["run"])


def _decided(past: Past, body: Mapping[str, Any]) -> None:
    if body["step"] != len(past.steps):
        raise ValueError(f"the step is {body['step']}, and {len(past.steps)} is the next")
    past.steps.append(PastStep(_action(body)))


def _lost(past: Past, body: Mapping[str, Any]) -> None:
    usage = Usage(**body["usage"])
    past.lost = usage if past.lost is None else past.lost + usage


def _action(body: Mapping[str, Any]) -> AgentAction:
    usage = _usage(body.get("usage"))
    kind = body["type"]
    if kind == "final_answer":
        return FinalAnswer(body["text"], usage)
    if kind == "tool_call":
        return ToolCall(body["tool"], body["args"], body["call_id"], usage)
    if kind == "tool_calls":
        calls = tuple(ToolCall(one["tool"], one["args"], one["call_id"]) for one in body["calls"])
        return ToolCalls(calls, usage, body["text"])
    raise ValueError(f"the type is {kind!r}")


def _usage(body: Mapping[str, Any] | None) -> Usage | None:
    return None if body is None else Usage(**body)


def _intended(past: Past, body: Mapping[str, Any]) -> None:
    past.steps[body["step"]].intents.add(_index(body))


def _left_pending(past: Past, body: Mapping[str, Any]) -> None:
    past.steps[body["step"]].pending[_index(body)] = str(body["pending"])


def _came_to(past: Past, body: Mapping[str, Any]) -> None:
    past.steps[body["step"]].results[_index(body)] = Kept(
        tool=body["tool"],
        verdict=body["verdict"],
        outcome=body["outcome"],
        ok=body["ok"],
        message=body["message"],
        error=body.get("error"),
        code=body.get("code", ""),
        duration_ms=body["duration_ms"],
        uncertain_retry=body.get("uncertain_retry", False),
        usage=_usage(body.get("usage")),
        denials=_count(body, "denials"),
    )


def _finished(past: Past, body: Mapping[str, Any]) -> None:
    past.final_answer = str(body["final_answer"])
    past.is_finished = True


def _unknown(past: Past, body: Mapping[str, Any]) -> None:
    raise ValueError("its kind is unknown")


def _index(body: Mapping[str, Any]) -> int:
    return _count(body, "call")


def _count(body: Mapping[str, Any], name: str) -> int:
    count = body.get(name, 0)
    if type(count) is not int:
        raise TypeError(f"{name} is {count!r}")
    return count


_READERS = {
    "run.started": _started,
    "run.resumed": _begun,
    "model.output": _decided,
    "model.failed": _lost,
    "action.intent": _intended,
    "action.pending": _left_pending,
    "action.result": _came_to,
    "final": _finished,
}
