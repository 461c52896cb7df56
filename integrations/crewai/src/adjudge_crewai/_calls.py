"""One call before the guard: what is proposed, the way to the body, and the answer by value."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from crewai.tools import BaseTool, ToolFailure

from adjudge import (
    ArgumentsRefused,
    CallContext,
    GovernedCall,
    Outcome,
    PendingApproval,
    ToolMetadata,
)
from adjudge.integration import (
    Effective,
    InvalidArguments,
    ProposedCall,
    denied_text,
    digest,
    ledger_key,
    project_object,
)
from adjudge_crewai._arguments import CallArguments, NamedValues, named_values
from adjudge_crewai._binding import (
    AROUND,
    CALL,
    PATH,
    PAUSES,
    SCOPE,
    SITE,
    Binding,
    CallSite,
    Proposal,
    Scope,
    inherited,
    scope_of,
)
from adjudge_crewai._names import identity_of
from adjudge_crewai._paused import RunPaused
from adjudge_crewai._results import Stopped, replay_of

__all__ = ["SENT", "Gate", "Sent", "record_invalid", "refuse"]


@dataclass(slots=True)
class Sent:
    """What a tool got before it validated it, and whether its body's gate was reached since."""

    tool: object
    args: Mapping[str, Any]
    reached: bool = False


SENT: ContextVar[Sent | None] = ContextVar("adjudge_sent", default=None)


class Gate:
    """The last gate before the body of one tool; `binding` None asks the run that is going on."""

    def __init__(
        self,
        tool: BaseTool,
        binding: Binding | None,
        *,
        shadow: Callable[..., Any] | None = None,
        metadata: ToolMetadata | None = None,
    ) -> None:
        self.tool = tool
        self.binding = binding
        self.shadow = shadow
        self.metadata = metadata

    def call(self, body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Judge a call, run the body if it may, and answer as the framework would."""
        bound = self._bound()
        if bound is None:
            return body(*args, **kwargs)
        made = _Made(self, *bound, named_values(self.tool, body, args, kwargs))

        def execute(effective: Effective) -> Any:
            with made.running(effective) as values:
                if values is None:
                    return made.cached
                result = body(**values)
                # As the framework does where a body turns out to give a coroutine.
                return asyncio.run(result) if inspect.iscoroutine(result) else result

        try:
            call = bound[0].guard.govern_call_sync(made.proposed, execute, context=made.context)
        except Stopped as stopped:
            return _failure(denied_text(str(stopped)))
        return made.answer(call)

    async def acall(
        self, body: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Do what `call` does, for a body that is awaited."""
        bound = self._bound()
        if bound is None:
            return await body(*args, **kwargs)
        made = _Made(self, *bound, named_values(self.tool, body, args, kwargs))

        async def execute(effective: Effective) -> Any:
            with made.running(effective) as values:
                return made.cached if values is None else await body(**values)

        try:
            call = await bound[0].guard.govern_call(made.proposed, execute, context=made.context)
        except Stopped as stopped:
            return _failure(denied_text(str(stopped)))
        return made.answer(call)

    @property
    def guard_now(self) -> Binding | None:
        """The binding under which a call would be judged now."""
        bound = self._bound()
        return None if bound is None else bound[0]

    def _bound(self) -> tuple[Binding, Scope | None] | None:
        if self.binding is not None:
            return inherited(self.binding), scope_of(self.binding.guard)
        scope = SCOPE.get()
        return None if scope is None else (AROUND.get() or scope.binding, scope)


class _Made:
    """One attempt at one call, with all that is known of it."""

    def __init__(
        self, gate: Gate, binding: Binding, scope: Scope | None, named: NamedValues
    ) -> None:
        self._gate, self._binding, self._scope = gate, binding, scope
        self._values = named.values
        proposal = CALL.get()
        sent = _sent_to(gate.tool)
        self._direct = proposal is None or not _is_of(proposal, gate.tool, sent)
        if proposal is None or self._direct:
            proposal = Proposal(gate.tool)
        self.proposal = proposal
        self._sent = proposal.sent if sent is None else sent
        proposal.attempts += 1
        proposal.plain = False
        self.site = SITE.get() or CallSite()
        self.context = None if binding.context is None else self._who
        self._key = self._name_call()
        self.arguments = CallArguments(gate.tool, named, self._sent)
        self.proposed = self._propose()
        self._plain = False
        self.cached: Any = None

    def _who(self) -> Any:
        assert self._binding.context is not None
        answer = self._binding.context(self.site)
        if not inspect.isawaitable(answer):
            return self._noted(answer)

        async def wait() -> CallContext:
            return self._noted(await answer)

        return wait()

    def _noted(self, caller: CallContext) -> CallContext:
        self.proposal.caller = getattr(caller, "principal", None)
        return caller

    def _name_call(self) -> str | None:
        """Name the call so that it is found again when the run starts again, None where none is."""
        scope = self._scope
        if scope is None or scope.run is None:
            return None
        try:
            args = project_object(self._values if self._sent is None else self._sent)
        except ArgumentsRefused:
            return None  # the guard refuses them, and says so on the record
        name, namespace = identity_of(self._gate.tool)
        named = functools.partial(
            ledger_key,
            run=scope.run.id,
            tool=name,
            args=args,
            namespace=namespace,
            agent=getattr(self.site.agent, "role", None),
            task=digest([PATH.get(), *_task_texts(self.site.task)]),
        )
        if not self.proposal.number:
            self.proposal.number = scope.count(named())
        return named(occurrence=self.proposal.number)

    def _propose(self) -> ProposedCall:
        name, namespace = identity_of(self._gate.tool)
        run = None if self._scope is None or self._key is None else self._scope.run
        return ProposedCall(
            name,
            self._arguments(),
            namespace=namespace,
            call_id=self.proposal.call_id,
            validate=self.arguments.validate,
            declared=self._gate.metadata,
            shadow=self._gate.shadow,
            attempt=self.proposal.attempts,
            key=self._key,
            control_flow=(RunPaused,),
            run=run,
            may_pause=run is not None,
            replay=replay_of(self._gate.tool, exactly=self._direct),
        )

    def _arguments(self) -> str | Mapping[str, Any]:
        """Give what the model sent: its text, where the tool got that, to be read strictly."""
        if self._sent is None:
            return self._values
        text = self.proposal.text
        same = text is not None and json.loads(text) == self._sent
        return text if text is not None and same else self._sent

    @contextmanager
    def running(self, effective: Effective) -> Iterator[dict[str, Any] | None]:
        """Give the body its values, None where the executor's cache has the result already."""
        values = self.arguments.values_of(effective.args)
        if values is None:
            raise Stopped("the arguments changed after they were judged")
        self._plain = not effective.changed
        kept = self.proposal.cached
        if self._plain and kept is not None and kept.caller == self.proposal.caller:
            self.cached = kept.value
            yield None
            return
        inside = PATH.set(f"{PATH.get()}/{self._key or identity_of(self._gate.tool)[0]}")
        pauses: list[RunPaused] = []
        within, call = PAUSES.set((*PAUSES.get(), pauses)), CALL.set(None)
        try:
            yield values
        except Exception:
            self._leave(pauses)
            raise
        else:
            self._leave(pauses)
        finally:
            CALL.reset(call)
            PAUSES.reset(within)
            PATH.reset(inside)

    def _leave(self, pauses: list[RunPaused]) -> None:
        """Be left by a pause that the body took for an answer: what waits would never be run."""
        run = None if self._scope is None else self._scope.run
        for paused in pauses:
            if run is not None and paused.run_id == run.id:
                raise paused from None

    def answer(self, call: GovernedCall) -> Any:
        """Give what the framework would be given: a result, or why there is none."""
        tool = self._gate.tool
        if call.pending is not None:
            raise self._pause(call.pending)
        self.proposal.plain = self._plain and call.outcome is Outcome.COMPLETED
        if call.outcome is Outcome.DENIED:
            return _failure(call.text)
        if call.outcome is Outcome.PREVIEWED:
            # A text that is no result must be neither the final answer nor held to a schema.
            framed = tool.result_as_answer or tool.result_schema is not None
            return _failure(call.text) if framed else call.text
        return call.result.value

    def _pause(self, pending: PendingApproval) -> RunPaused:
        assert self._scope is not None
        assert self._scope.run is not None
        paused = RunPaused(self._scope.run.id, (pending,))
        self._scope.pause = paused
        for body in PAUSES.get():
            body.append(paused)
        return paused


def refuse(binding: Binding, tool: Any, args: Mapping[str, Any], reason: str) -> str:
    """Deny a call for a reason that is not the policy's; give what the model is told."""

    def refused(_: object) -> Any:
        raise ArgumentsRefused(reason)

    call = binding.guard.govern_call_sync(_unjudged(tool, args, refused), _no_body)
    return call.text or denied_text(reason)


def record_invalid(
    binding: Binding, tool: BaseTool, sent: Mapping[str, Any], error: Exception
) -> None:
    """Put on record that the framework rejects a call's arguments."""

    def rejected(_: object) -> Any:
        raise InvalidArguments(str(error))

    def nothing(_: Effective) -> None:
        return None

    context = None
    if binding.context is not None:
        context = functools.partial(binding.context, SITE.get() or CallSite())
    binding.guard.govern_call_sync(_unjudged(tool, sent, rejected), nothing, context=context)


def _unjudged(tool: Any, args: Mapping[str, Any], validate: Callable[[Any], Any]) -> ProposedCall:
    name, namespace = identity_of(tool)
    proposal = CALL.get()
    call_id = proposal.call_id if proposal is not None else None
    return ProposedCall(name, args, namespace=namespace, call_id=call_id, validate=validate)


def _no_body(_: Effective) -> None:
    raise RuntimeError("A refused call has no body.")


def _sent_to(tool: object) -> Mapping[str, Any] | None:
    """Take what was put down of the call that a tool is in."""
    sent = SENT.get()
    if sent is None or sent.tool is not tool or sent.reached:
        return None
    sent.reached = True
    return sent.args


def _is_of(proposal: Proposal, tool: BaseTool, sent: Mapping[str, Any] | None) -> bool:
    """Whether a call is the one that an executor proposed, and not one that a hook makes itself."""
    if proposal.tool is not tool:
        return False
    known, got = proposal.sent or {}, sent or {}
    return all(known[name] == got[name] for name in known.keys() & got.keys())


def _task_texts(task: Any) -> list[str | None]:
    return [getattr(task, name, None) for name in ("name", "description", "expected_output")]


def _failure(text: str | None) -> ToolFailure:
    return ToolFailure(message=text or denied_text(""))
