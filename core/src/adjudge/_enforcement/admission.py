"""From a proposal to a request: the arguments read, the caller known, both on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge._arguments.proposal import InvalidArguments
from adjudge._enforcement.attempt import Refusal, Steps, failure_text
from adjudge._enforcement.effects import BindContext
from adjudge._enforcement.judging import Judging
from adjudge._record.format import to_json
from adjudge._types import ActionRequest, CallContext, ExecutionContext, Principal
from adjudge._values import EMPTY, FrozenDict, freeze_object
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["Admission", "Reading"]

_NOBODY = Principal("user", "unknown")


@dataclass(slots=True)
class Reading:
    """What came of reading the arguments: them, or why they get no verdict, or why they deny."""

    args: FrozenDict = field(default_factory=lambda: EMPTY)
    given: frozenset[str] | None = None
    injected: FrozenDict = field(default_factory=lambda: EMPTY)
    unread: str | None = None
    refusal: Refusal | None = None


class Admission(Judging):
    """An attempt that starts with a proposal."""

    __slots__ = ()

    def admit(self, reading: Reading) -> Steps[tuple[ActionRequest, str | None]]:
        """Take up what was read, ask who is calling, and record the proposal.

        The text, where there is one, says why the arguments never get a verdict.
        """
        context: ExecutionContext | None = None
        try:
            context = yield from self.who()
        except Refusal as failed:
            reading.refusal = reading.refusal or failed
        except BaseException:
            self.settled = True
            self.take_up(reading, None)
            yield from self.propose(reading, None)
            raise
        request = self.take_up(reading, context)
        if self.settings.records:
            yield from self.propose(reading, context)
        if reading.refusal is not None:
            raise reading.refusal
        return request, reading.unread

    def read(self) -> Reading:
        """Read the arguments, and put down what the model sent of them."""
        door = self.door
        reading = Reading()
        try:
            reading.injected = door.injected()
            admitted = door.admit(self.arguments)
            args, given = admitted.args, admitted.given
            reading.args, reading.given = args, given
            if given is not None:
                args = FrozenDict({name: args[name] for name in args if name in given})
            self.sent = args
        except (NotAnObject, InvalidArguments) as error:
            reading.unread = str(error)
        except ArgumentsRefused as error:
            reading.refusal = Refusal("refused_arguments", str(error), discharges="none")
        except Exception as error:
            why = f"the arguments could not be read: {failure_text(error)}"
            reading.refusal = Refusal("refused_arguments", why, discharges="none")
        return reading

    def take_up(self, reading: Reading, context: ExecutionContext | None) -> ActionRequest:
        """Make the request, as far as it is known."""
        if context is None:
            context = self._context(_NOBODY, None, ".", EMPTY, None)
        door = self.door
        self.request = ActionRequest(
            door.tool,
            reading.args,
            self.settings.metadata(door),
            context,
            door.namespace,
            reading.given,
            reading.injected,
        )
        return self.request

    def propose(self, reading: Reading, context: ExecutionContext | None) -> Steps[None]:
        """Record the proposal."""
        door = self.door
        body: dict[str, Any] = {
            "namespace": door.namespace,
            "call_id": door.call_id,
            "principal": None if context is None else describe_principal(context.principal),
        }
        if reading.refusal is None and reading.unread is None:
            body["args"] = reading.args
        elif isinstance(self.arguments, str):
            body["arguments_text"] = self.arguments
        else:
            body["args"] = _described(self.arguments)
        yield from self.emit("step.proposed", body)

    def who(self) -> Steps[ExecutionContext]:
        """Find out who is calling, and where."""
        if self.context is None:
            return self.own_context(self._frozen_extra() if self.extra else EMPTY)
        return (yield from self._bind_context(self.context))

    def _bind_context(self, source: Callable[[], Any]) -> Steps[ExecutionContext]:
        """Ask the `context=` callable who is calling (clause 26)."""
        try:
            found = yield BindContext(source)
        except Exception as error:
            raise _context_failed(failure_text(error)) from error
        problem = _problem(found)
        if problem is not None:
            raise _context_failed(problem)
        try:
            extra = freeze_object(found.extra, where="context.extra")
            session = found.session
            if session is not None:
                session = freeze_object(session, where="context.session")
        except ArgumentsRefused as error:
            raise _context_failed(str(error)) from None
        self.caller = found
        if self.extra:
            extra = FrozenDict({**self._frozen_extra(), **extra})
        return self._context(found.principal, found.environment, found.workspace, extra, session)

    def own_context(self, extra: FrozenDict = EMPTY) -> ExecutionContext:
        """Give the context that holds where no `context=` was given: the guard's own."""
        settings = self.settings
        return self._context(
            settings.principal, settings.environment, settings.workspace, extra, None
        )

    def _frozen_extra(self) -> FrozenDict:
        try:
            return freeze_object(self.extra, where="extra")  # type: ignore[arg-type]
        except ArgumentsRefused as error:
            raise _context_failed(str(error)) from None

    def _context(
        self,
        principal: Principal,
        environment: str | None,
        workspace: str,
        extra: FrozenDict,
        session: Mapping[str, Any] | None,
    ) -> ExecutionContext:
        return ExecutionContext(
            principal,
            environment,
            workspace,
            self.correlation_id,
            self.seq,
            self.settings.now(),
            extra,
            session,
        )


def describe_principal(who: Principal) -> dict[str, Any]:
    """Give a principal as plain JSON."""
    return {"kind": who.kind, "id": who.id, "name": who.name}


def _described(arguments: object) -> Any:
    """Give refused arguments as JSON, for the record alone."""
    try:
        return to_json(arguments)
    except Exception:
        return {"$unreadable": type(arguments).__name__}


def _problem(found: Any) -> str | None:
    if type(found) is not CallContext:
        return f"it answered with a {type(found).__name__}, which is no CallContext"
    if type(found.principal) is not Principal:
        return f"its principal is a {type(found.principal).__name__}, which is no Principal"
    places: tuple[object, ...] = (found.workspace, found.environment or "")
    if not all(isinstance(place, str) for place in places):
        return "its environment or its workspace is no text"
    return None


def _context_failed(why: str) -> Refusal:
    return Refusal(
        "context_failed", f"who is calling could not be found out: {why}", discharges="none"
    )
