"""One call before the guard: what is proposed, the way to the body, and the answer by value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from adjudge import ArgumentsRefused, GovernedCall, Outcome
from adjudge.integration import (
    Effective,
    GovernedRun,
    InvalidArguments,
    ProposedCall,
    Replay,
    denied_text,
    ledger_key,
    project_object,
)
from adjudge_langchain._arguments import CallArguments, Unread, validation_text
from adjudge_langchain._binding import Binding
from adjudge_langchain._frames import Attempts, Frame
from adjudge_langchain._runs import (
    Place,
    UnreadableRun,
    attempt_of,
    carry_on,
    governed_run,
    governed_run_sync,
    place_of,
    wait,
)

__all__ = ["Call", "Passed", "judge", "judge_sync", "record_unjudged", "record_unjudged_sync"]


# A task whose process died before LangGraph kept what it gave is run again: then a body that has
# begun is denied (law 6). What a body gave is LangGraph's to keep.
_ONCE = Replay(keep=lambda ended: None, give=lambda kept: None)


class _Stopped(Exception):
    """Why the body of a call that may run does not: its values are not those that were judged."""


class _Left(NamedTuple):
    """A body that ended by telling the graph around it where to go."""

    signal: GraphBubbleUp


class Passed(NamedTuple):
    """What goes to a body: positional values and named ones."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(slots=True, eq=False)
class Call:
    """One call of a governed tool that has come to its body's door.

    `values` are what the body is about to get, by the names that a policy knows; `positions` names
    those of them that go by position, and `own` is what LangChain adds.
    """

    tool: BaseTool
    binding: Binding
    attempts: Attempts
    frame: Frame
    values: dict[str, Any]
    positions: tuple[str, ...]
    injected: Mapping[str, Any]
    own: Mapping[str, Any]
    unread: Unread | None = None
    place: Place | None = field(init=False)
    sent: Mapping[str, Any] = field(init=False)
    arguments: CallArguments = field(init=False)
    _number: int = field(init=False, default=1)
    _known_key: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.place = place_of(self.frame.config) if self.binding.guard.pauses else None
        self.sent = projected(self.frame.sent)

    @property
    def key(self) -> str:
        """What names the call, the same in every process that sees it again."""
        if self._known_key is None:
            self._known_key = self._named()
        return self._known_key

    def _named(self) -> str:
        place = self.place
        task = (self.frame.config.get("configurable") or {}).get("checkpoint_ns")
        try:
            return ledger_key(
                run="" if place is None else place.run_id,
                tool=self.tool.name,
                args=self.sent,
                call_id=self.frame.call_id,
                task=task or None,
            )
        except ArgumentsRefused:
            return ""  # they are denied, whatever the call is named

    def proposal(self, run: GovernedRun | None) -> ProposedCall:
        """The call as the guard wants it, its arguments to be read anew."""
        place = self.place
        injected = {**self.injected, **self.own}
        self._number = self._attempt(run)
        self.arguments = CallArguments(
            self.tool, self.frame.sent, self.values, injected, self.unread
        )
        return ProposedCall(
            self.tool.name,
            self.sent,
            call_id=self.frame.call_id,
            validate=self.arguments.validate,
            attempt=self._number,
            control_flow=(GraphInterrupt,),
            run=run,
            key=self.key if run is not None else None,
            may_pause=place is not None and place.pauses,
            replay=_ONCE if self._is_told_apart(run) else None,
        )

    def _is_told_apart(self, run: GovernedRun | None) -> bool:
        """Whether the ledger can tell the call from others alike, also after a crash."""
        ledger = self.binding.guard.ledger
        known = run is not None and not isinstance(run, UnreadableRun)
        known = known and self.frame.call_id is not None
        return known and ledger is not None and ledger.durable

    def _attempt(self, run: GovernedRun | None) -> int:
        """Number the attempt, where repeats can be told from new calls."""
        if self.frame.call_id is None:
            return 1
        number = self.attempts.number(self.key) if self.attempts else 1
        return number if run is None else attempt_of(run, self.key, number)

    def carry_on(self, run: GovernedRun) -> None:
        """Wait on if the call waits for a person; take up the answer if there is one."""
        carry_on(run, f"{self.key}/{self._attempt(run)}")

    @contextmanager
    def entered(self, effective: Effective, *, passing: bool = False) -> Iterator[Passed]:
        """Give what goes to the body; raises `_Stopped` where that was not judged.

        `passing` lets an `_arun` enter its own `_run` with the same values.
        """
        try:
            final = self.arguments.values_of(effective.args)
        except (InvalidArguments, ArgumentsRefused) as error:
            raise _Stopped(f"the arguments do not fit the tool: {error}") from None
        if final is None:
            raise _Stopped("the arguments changed after they were judged")
        self.frame.passing = final.seen if passing else None
        values = final.values
        named = {name: value for name, value in values.items() if name not in self.positions}
        positional = tuple(values[name] for name in self.positions if name in values)
        try:
            yield Passed(positional, {**named, **self.injected, **self.own})
        except GraphInterrupt:
            raise
        except Exception:
            if self.frame.call_id is not None:  # else nobody could tell it from a new call
                self.attempts.failed(self.key, self._number)
            raise
        finally:
            self.frame.passing = None
        if self.attempts:
            self.attempts.ended(self.key)

    def answer(self, call: GovernedCall) -> Any:
        """Give what LangChain gets: the body's own result, or the guard's text in its shape."""
        if call.pending is not None:
            wait(call.pending, goes_on=False)
        if call.text is not None:
            return self.told(call.text, denied=call.outcome is Outcome.DENIED)
        value = call.result.value
        if isinstance(value, _Left):
            raise value.signal
        return value

    def told(self, text: str, *, denied: bool) -> Any:
        """Put a text into the shape of the tool's results."""
        message = tool_message(self.tool, self.frame.call_id, text, denied=denied)
        return (message, None) if self.tool.response_format == "content_and_artifact" else message

    @property
    def context(self) -> Callable[[], Any] | None:
        """Who is calling."""
        return self.binding.context_of(self.tool.name, self.frame.call_id, self.frame.config)


def tool_message(tool: BaseTool, call_id: str | None, text: str, *, denied: bool) -> Any:
    """Give the tool's answer: a message where a model asked, else the text."""
    if call_id is None:
        return text
    status: Any = "error" if denied else "success"
    return ToolMessage(content=text, name=tool.name, tool_call_id=call_id, status=status)


async def judge(call: Call, body: Callable[..., Awaitable[Any]]) -> Any:
    """Judge a call, run its body if it may, and answer as LangChain does."""
    guard, run = call.binding.guard, None
    if call.place is not None:
        run = await governed_run(guard, call.place.run_id)
        call.carry_on(run)

    async def execute(effective: Effective) -> Any:
        with call.entered(effective, passing=True) as passed:
            try:
                return await body(*passed.args, **passed.kwargs)
            except GraphInterrupt:
                raise
            except GraphBubbleUp as signal:
                return _Left(signal)

    try:
        governed = await guard.govern_call(call.proposal(run), execute, context=call.context)
    except _Stopped as stopped:
        return call.told(denied_text(str(stopped)), denied=True)
    return call.answer(governed)


def judge_sync(call: Call, body: Callable[..., Any]) -> Any:
    """Do what `judge` does, from plain code."""
    guard, run = call.binding.guard, None
    if call.place is not None:
        run = governed_run_sync(guard, call.place.run_id)
        call.carry_on(run)

    def execute(effective: Effective) -> Any:
        with call.entered(effective) as passed:
            try:
                return body(*passed.args, **passed.kwargs)
            except GraphInterrupt:
                raise
            except GraphBubbleUp as signal:
                return _Left(signal)

    try:
        governed = guard.govern_call_sync(call.proposal(run), execute, context=call.context)
    except _Stopped as stopped:
        return call.told(denied_text(str(stopped)), denied=True)
    return call.answer(governed)


# Calls that never come to a body


def _unjudged(frame: Frame, error: Exception | None) -> ProposedCall:
    def rejected(_: object) -> Any:
        if isinstance(error, ArgumentsRefused):
            raise error
        if error is not None and not frame.reading:
            raise ArgumentsRefused(
                f"the call was stopped before its arguments were read ({type(error).__name__})"
            )
        raise InvalidArguments("they were rejected" if error is None else validation_text(error))

    return ProposedCall(
        frame.tool.name, projected(frame.sent), call_id=frame.call_id, validate=rejected
    )


async def record_unjudged(binding: Binding, frame: Frame, error: Exception | None) -> GovernedCall:
    """Put on record that LangChain rejects a call's arguments, or deny those that are refused."""

    async def execute(_: Effective) -> None:
        return None

    who = binding.context_of(frame.tool.name, frame.call_id, frame.config)
    return await binding.guard.govern_call(_unjudged(frame, error), execute, context=who)


def record_unjudged_sync(binding: Binding, frame: Frame, error: Exception | None) -> GovernedCall:
    """Do what `record_unjudged` does, from plain code."""
    who = binding.context_of(frame.tool.name, frame.call_id, frame.config)
    proposed = _unjudged(frame, error)
    return binding.guard.govern_call_sync(proposed, lambda _: None, context=who)


def projected(sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give what was sent as JSON values; those that have no JSON meaning are left for refusal."""
    try:
        return project_object(sent)
    except ArgumentsRefused:
        return sent
