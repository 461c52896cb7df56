"""`AdjudgeCallbackHandler`: the guard where only LangChain's callbacks reach.

A callback sees a call before its tool validates it, and can stop it by raising, and in no other
way. So it enforces allow, deny and approval; what would need a preview or other arguments is
denied, with the reason. A governed tool judges its own calls, and the handler leaves them to it.
A tool that is invoked without the callbacks is not seen at all: prefer `govern`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from inspect import getattr_static
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from adjudge import AdjudgeError, ArgumentsRefused, GovernError, Outcome, ToolGuard
from adjudge.integration import GovernedRun, ProposedCall, denied_text, ledger_key
from adjudge_langchain._arguments import INVALID
from adjudge_langchain._binding import Binding, ContextSource
from adjudge_langchain._calls import projected
from adjudge_langchain._frames import FRAME, Attempts
from adjudge_langchain._runs import Place, attempt_of, carry_on, governed_run_sync, place_of, wait
from adjudge_langchain._tools import binding_of
from adjudge_langchain._watching import Reading, Running, Watched, known_tools

__all__ = ["AdjudgeCallbackHandler", "ToolCallDenied", "denial_for_model"]

_FIXED = (
    "raise_error",
    "run_inline",
    "ignore_agent",
    "on_tool_start",
    "on_tool_end",
    "on_tool_error",
)


class ToolCallDenied(AdjudgeError):
    """A call that the handler has stopped; `text` is what a model is to be told."""

    code = "tool_call_denied"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def denial_for_model(error: ToolCallDenied, request: object = None) -> str | None:
    """Give a denial as text for the model, None for other errors.

    For `ToolErrorMiddleware(on_error=denial_for_model)`, and for
    `ToolNode(handle_tool_errors=denial_for_model)`: without one of them a denial ends the run.
    """
    given: object = error
    return given.text if isinstance(given, ToolCallDenied) else None


class AdjudgeCallbackHandler(BaseCallbackHandler):
    """Stops the calls of tools that a guard does not allow, by raising `ToolCallDenied`.

    `tools` are those whose calls it will see: with them it judges the arguments as their schemas
    read them, defaults included; without, as the model sent them. `context` gets the `ToolRun` of
    each call. While a person is asked, the thread of the call waits, also that of an event loop.
    The settings by which LangChain would swallow its denials are fixed.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        tools: Iterable[BaseTool] = (),
        context: ContextSource | None = None,
    ) -> None:
        self._binding = Binding.of(guard, context=context)
        self._tools = known_tools(tools)
        self._attempts = Attempts()
        self._running = Running()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if AsyncCallbackHandler in cls.__mro__:
            raise GovernError(
                f"{cls.__name__} is an AsyncCallbackHandler, whose errors LangChain swallows where "
                "a tool is called from plain code; derive from AdjudgeCallbackHandler alone."
            )
        own = vars(AdjudgeCallbackHandler)
        changed = [name for name in _FIXED if getattr_static(cls, name) is not own[name]]
        if changed:
            raise GovernError(
                f"{cls.__name__} has a {changed[0]} of its own, by which calls could run unjudged; "
                "use a second handler beside this one."
            )

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; raises `GovernError` for those by which calls could run unjudged."""
        if name.startswith("on_tool_"):
            _refuse(name, wanted=False)
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        """Whether both judge the same calls: LangChain installs only one of equal handlers."""
        return (
            isinstance(other, AdjudgeCallbackHandler)
            and other._binding == self._binding
            and {name: id(each.tool) for name, each in other._tools.items()}
            == {name: id(each.tool) for name, each in self._tools.items()}
        )

    def __hash__(self) -> int:
        return id(self.guard)

    @property
    def guard(self) -> ToolGuard:
        """The guard that judges."""
        return self._binding.guard

    @property
    def raise_error(self) -> bool:
        """True: LangChain would log denials and run the tool all the same."""
        return True

    @raise_error.setter
    def raise_error(self, value: bool) -> None:
        _refuse("raise_error", wanted=value is True)

    @property
    def run_inline(self) -> bool:
        """True: the handler runs where the call is made."""
        return True

    @run_inline.setter
    def run_inline(self, value: bool) -> None:
        _refuse("run_inline", wanted=value is True)

    @property
    def ignore_agent(self) -> bool:
        """False: LangChain would not tell the handler of calls."""
        return False

    @ignore_agent.setter
    def ignore_agent(self, value: bool) -> None:
        _refuse("ignore_agent", wanted=value is False)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Judge a call; raises `ToolCallDenied` where it may not run."""
        name = str(serialized.get("name") or kwargs.get("name") or "")
        if self._is_governed(name):
            if run_id in self._running:
                self._running.begin(run_id, None)  # its end is not that of the other
            return
        try:
            sent = input_str if inputs is None else inputs
            known = self._tools.get((name, str(serialized.get("description"))))
            namesake = known is None and any(each == name for each, _ in self._tools)
            reading = Reading(known, sent, is_namesake=namesake)
            self._judge(run_id, name, reading, tool_call_id)
        except (ToolCallDenied, GraphInterrupt, *INVALID):
            raise
        except Exception as error:
            # LangChain swallows a NotImplementedError, whatever the handler says.
            text = denied_text(f"the call could not be judged ({type(error).__name__})")
            raise ToolCallDenied(text) from error

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Put down that a call's body is done."""
        failed = isinstance(output, ToolMessage) and output.status == "error"
        error = ToolException("the tool answered with an error") if failed else None
        self._end(self._running.end(run_id), error)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Put down that a call's body raised."""
        self._end(self._running.end(run_id), error)

    def _end(self, watched: Watched | None, error: BaseException | None) -> None:
        if watched is None:
            return
        if error is None:
            self._attempts.ended(watched.key)
        elif isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            self._attempts.failed(watched.key, watched.attempt)
        watched.end(error)

    def _is_governed(self, name: str) -> bool:
        frame = FRAME.get()
        if frame is None or frame.reading or frame.tool.name != name:
            return False  # what a validator or a body calls is another call
        held = binding_of(frame.tool)
        return held is not None and held.guard is self.guard

    def _judge(self, run_id: UUID, name: str, reading: Reading, call_id: str | None) -> None:
        config = _config()
        place = place_of(config) if self.guard.pauses else None
        run = None if place is None else governed_run_sync(self.guard, place.run_id)
        key = _key(name, reading, call_id, config)
        proposed = self._proposal(name, reading, call_id, run, place, key)
        if run is not None:
            carry_on(run, f"{key}/{proposed.attempt}")
        context = self._binding.context_of(name, call_id, config)
        watched = Watched(self.guard, proposed, context, reading, key)
        governed = watched.until_it_runs()
        if governed is None:
            self._running.begin(run_id, watched)
            watched.when_given_up(
                lambda: self._end(self._running.give_up(run_id, watched), asyncio.CancelledError())
            )
            return
        if governed.pending is not None:
            wait(governed.pending, goes_on=False)
        if governed.outcome is Outcome.PREVIEWED:
            raise ToolCallDenied(
                denied_text("dry_run: a callback handler cannot give a preview; govern the tool")
            )
        raise ToolCallDenied(governed.text or denied_text(governed.result.error or ""))

    def _proposal(
        self,
        name: str,
        reading: Reading,
        call_id: str | None,
        run: GovernedRun | None,
        place: Place | None,
        key: str,
    ) -> ProposedCall:
        number = self._attempts.number(key)
        attempt = 1 if call_id is None else attempt_of(run, key, number)
        return ProposedCall(
            name,
            projected(reading.sent),
            call_id=call_id,
            validate=reading.validate,
            attempt=attempt,
            control_flow=(GraphInterrupt,),
            run=run,
            key=None if run is None else key,
            may_pause=place is not None and place.pauses,
        )


def _key(name: str, reading: Reading, call_id: str | None, config: Mapping[str, Any]) -> str:
    """Name a call, the same in every process that sees it again."""
    place, configurable = place_of(config), config.get("configurable") or {}
    try:
        return ledger_key(
            run="" if place is None else place.run_id,
            tool=name,
            args=projected(reading.sent),
            call_id=call_id,
            task=configurable.get("checkpoint_ns") or None,
        )
    except ArgumentsRefused:
        return ""  # they are denied, whatever the call is named


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    except RuntimeError:
        return {}


def _refuse(name: str, *, wanted: bool) -> None:
    if wanted:
        return
    raise GovernError(f"{name} is fixed: set otherwise, LangChain would run what is denied.")
