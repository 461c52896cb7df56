"""The values of a run: what an agent is told, what it proposes, and what came of it.

All of them are frozen. What a caller writes (a budget, a message, a proposal) is checked when it is
made, so that nothing runs on a value that means nothing. No value here does anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Protocol, runtime_checkable

from adjudge import PendingApproval

__all__ = [
    "Agent",
    "AgentAction",
    "Budget",
    "FinalAnswer",
    "Message",
    "OnToken",
    "RunResult",
    "StreamingAgent",
    "ToolCall",
    "ToolCalls",
    "Usage",
]

_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call, or a run of them, used; None means that nobody said.

    The `*_tokens` are counts of tokens. `cost_micros` is money, in millionths of whatever unit
    the caller counts in. Adding two gives their sums: what only one of them knows is its own, and
    `model` stays where both name the same. Raises `TypeError` or `ValueError` for what is no count.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    model: str | None = None
    cost_micros: int | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None:
                _check_count(f"Usage.{name}", value)
        if self.model is not None and not isinstance(self.model, str):
            raise TypeError(f"Usage.model is {self.model!r}; give the model's name, or None.")

    def __add__(self, other: object) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cache_read_tokens, other.cache_read_tokens),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
            self.model if self.model == other.model else None,
            _sum(self.cost_micros, other.cost_micros),
        )


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_micros",
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model proposes.

    `args` are the arguments, or the model's own JSON text for them: that is parsed once, strictly,
    by the guard. `call_id` is the provider's name of the call; the loop gives one where there is
    none. `usage` is that of the model call. Raises `TypeError` for what cannot be a proposal.
    """

    tool: str
    args: Mapping[str, Any] | str
    call_id: str = ""
    usage: Usage | None = None

    def __post_init__(self) -> None:
        if type(self.tool) is not str:
            _check_text("ToolCall.tool", self.tool)
        if type(self.args) is not dict and not isinstance(self.args, str | Mapping):
            raise TypeError(
                f"ToolCall.args is a {type(self.args).__name__}; give named values, or the JSON "
                "text that the model wrote."
            )
        if type(self.call_id) is not str:
            _check_text("ToolCall.call_id", self.call_id)
        if self.usage is not None:
            _check_usage("ToolCall.usage", self.usage)


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Several calls that the model proposes in one step, to be run side by side.

    `text` is what the model said beside them, `usage` that of the model call (the usage of the
    single calls is not looked at). Raises `TypeError` or `ValueError` for what cannot be proposals.
    """

    calls: tuple[ToolCall, ...]
    usage: Usage | None = None
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", _tuple_of("ToolCalls.calls", self.calls, ToolCall))
        if not self.calls:
            raise ValueError("ToolCalls.calls is empty; give a FinalAnswer where nothing runs.")
        given = [call.call_id for call in self.calls if call.call_id]
        if len(given) != len(set(given)):
            raise ValueError(f"ToolCalls.calls has a call_id twice: {given!r}; give each its own.")
        _check_text("ToolCalls.text", self.text)
        if self.usage is not None:
            _check_usage("ToolCalls.usage", self.usage)


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """What the agent answers in the end; the run is finished with it."""

    text: str
    usage: Usage | None = None

    def __post_init__(self) -> None:
        _check_text("FinalAnswer.text", self.text)
        if self.usage is not None:
            _check_usage("FinalAnswer.usage", self.usage)


AgentAction = ToolCall | ToolCalls | FinalAnswer


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    An assistant's message carries every call of its step in `tool_calls`. The answer to each is a
    message of role "tool", with the call's `tool_call_id` and, as `name`, the tool. Raises
    `TypeError` or `ValueError`, which name the field, for values that are none.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(f"Message.role is {self.role!r}; give one of {', '.join(_ROLES)}.")
        if type(self.content) is not str:
            _check_text("Message.content", self.content)
        if self.tool_calls:
            calls = _tuple_of("Message.tool_calls", self.tool_calls, ToolCall)
            object.__setattr__(self, "tool_calls", calls)


@runtime_checkable
class Agent(Protocol):
    """Whoever chooses the next action: a model behind an adapter, or any function of the talk.

    It may have a `name`, which the record then carries. For a run that can be resumed it must
    depend on the conversation alone.
    """

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Choose what to do next, having seen the conversation so far."""
        ...


OnToken = Callable[[str], object | Awaitable[object]]
"""What is told each piece of text as a model writes it; it may be async."""


@runtime_checkable
class StreamingAgent(Agent, Protocol):
    """An agent that can tell what it is writing while it writes."""

    async def stream(self, conversation: Sequence[Message], on_token: OnToken) -> AgentAction:
        """Do what `step` does, and tell `on_token` each piece of text as it comes."""
        ...


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a run may go; every cap is looked at before each model call, None is no cap.

    - `duration_seconds`: time since this attempt began, in seconds (a resumed run begins anew).
    - `steps`: model calls, those of earlier attempts included.
    - `input_tokens`, `output_tokens`, `tokens` (both together): what the agent said it used.
    - `step_timeout_seconds`: how long one model call may take, in seconds.
    - `max_repeated_calls`: how many times a run may propose one call, the same tool with the same
      arguments.
    - `cost_micros`: money, in millionths of a unit. `cost` counts it from a model call's `Usage`;
      without it `Usage.cost_micros` is what counts. One that raises or gives no count ends the run.

    An agent that says nothing of its usage is not capped by it. What cannot be a cap raises
    `TypeError` or `ValueError`.
    """

    duration_seconds: float | None = 600
    steps: int | None = 50
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens: int | None = None
    step_timeout_seconds: float | None = None
    max_repeated_calls: int | None = None
    cost_micros: int | None = None
    cost: Callable[[Usage], int] | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "input_tokens", "output_tokens", "tokens", "cost_micros"):
            value = getattr(self, name)
            if value is not None:
                _check_count(f"Budget.{name}", value)
        if self.max_repeated_calls is not None:
            _check_count("Budget.max_repeated_calls", self.max_repeated_calls, least=1)
        for name in ("duration_seconds", "step_timeout_seconds"):
            value = getattr(self, name)
            if value is not None:
                _check_seconds(f"Budget.{name}", value)
        if self.cost is not None and not callable(self.cost):
            raise TypeError(
                f"Budget.cost is {self.cost!r}; give a function from Usage to millionths of a unit."
            )

    @classmethod
    def unlimited(cls) -> Budget:
        """Give a budget without any cap, said out loud."""
        return cls(duration_seconds=None, steps=None)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to.

    `error` says in words why there is no `final_answer`, `code` in one word that is stable: empty
    where the run finished, else `budget_exhausted`, `repeated_call`, `step_timeout`, `cancelled`,
    `agent_failed`, `budget_failed`, `superseded`, `store_failed`, `ledger_failed`, `record_failed`
    or `paused`.
    `steps_taken` counts the model calls that led to calls of tools, `usage` is the sum of what they
    said they used, None where none said anything, and `denials` counts the calls that were denied;
    all three include earlier attempts, the last two agents inside of tools. `pending` are the calls
    that a paused run waits for.
    """

    correlation_id: str
    bundle_id: str
    final_answer: str | None = None
    error: str | None = None
    steps_taken: int = 0
    usage: Usage | None = None
    code: str = ""
    pending: tuple[PendingApproval, ...] = ()
    denials: int = 0


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None:
        return other
    return one if other is None else one + other


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}; give a string.")


def _check_usage(name: str, value: object) -> None:
    if not isinstance(value, Usage):
        raise TypeError(f"{name} is {value!r}; give a Usage, or None where nobody said.")


def _check_count(name: str, value: object, *, least: int = 0) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; give a whole number, or None.")
    if value < least:
        raise ValueError(f"{name} is {value}; give {least} or more, or None.")


def _check_seconds(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; give a number of seconds, or None for no limit.")
    if not isfinite(value) or value <= 0:
        raise ValueError(f"{name} is {value}; give a positive number, or None for no limit.")


def _tuple_of(name: str, values: object, kind: type[ToolCall]) -> tuple[ToolCall, ...]:
    if not isinstance(values, tuple | list):
        raise TypeError(f"{name} is a {type(values).__name__}; give a tuple of {kind.__name__}.")
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{name} holds {value!r}; give {kind.__name__} values alone.")
    return tuple(values)
