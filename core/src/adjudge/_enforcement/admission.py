"""From a proposal to a request: the arguments read, the caller known, both on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adjudge._arguments.proposal import InvalidArguments
from adjudge._enforcement.attempt import Refusal, Steps, failure_text
from adjudge._enforcement.circumstances import circumstances
from adjudge._enforcement.effects import BindContext
from adjudge._enforcement.judging import Judging
from adjudge._making import OpenContext, OpenRequest
from adjudge._record.format import PlainDict, to_json
from adjudge._record.redaction import Redactor, apply_redactor, is_pure
from adjudge._types import ActionRequest, AuditEvent, CallContext, ExecutionContext, Principal
from adjudge._values import EMPTY, FrozenDict, freeze_object
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["Admission", "Reading"]

_NOBODY = Principal("user", "unknown")


class Reading:
    """What came of reading the arguments: them, or why they get no verdict, or why they deny."""

    args: FrozenDict = EMPTY
    given: frozenset[str] | None = None
    injected: FrozenDict = EMPTY
    unread: str | None = None
    refusal: Refusal | None = None


class Admission(Judging):
    """An attempt that starts with a proposal."""

    def identify(self, reading: Reading) -> Steps[ExecutionContext | None]:
        """Ask who is calling; where that fails, it is put down with what was read."""
        try:
            return (yield from self.who())
        except Refusal as failed:
            reading.refusal = reading.refusal or failed
            return None
        except BaseException:
            self.settled = True
            self.take_up(reading, None)
            yield from self.propose(reading, None)
            raise

    def read(self) -> Reading:
        """Read the arguments, and put down what the model sent of them."""
        door = self.door
        reading = Reading()
        try:
            if door.injects:
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
            context = self.made_context(_NOBODY, None, ".", EMPTY, None)
        door = self.door
        request: ActionRequest = OpenRequest(
            door.tool,
            reading.args,
            self.settings.metadata(door) if door.metadata is None else door.metadata,
            context,
            door.namespace,
            reading.given,
            reading.injected,
            EMPTY,
        )
        request.__class__ = ActionRequest
        self.request = request
        return request

    def take_up_own(self, reading: Reading) -> ExecutionContext:
        """Make the request of the guard's own principal, and give its context.

        It is what `take_up` makes of `own_context`, without their calls, which cost as much again.
        """
        settings, door = self.settings, self.door
        context: ExecutionContext = OpenContext(
            settings.principal,
            settings.environment,
            settings.workspace,
            self.correlation_id,
            self.seq,
            settings.now(),
            EMPTY,
            None,
        )
        context.__class__ = ExecutionContext
        self.request = request = OpenRequest(
            door.tool,
            reading.args,
            settings.metadata(door) if door.metadata is None else door.metadata,
            context,
            door.namespace,
            reading.given,
            reading.injected,
            EMPTY,
        )
        request.__class__ = ActionRequest
        return context

    def propose(self, reading: Reading, context: ExecutionContext | None) -> Steps[None]:
        """Record the proposal, whose request was taken up."""
        if self.settings.records:
            yield from self.flush(self.proposal(reading, context))

    def proposal(self, reading: Reading, context: ExecutionContext | None) -> AuditEvent:
        """Make the event `step.proposed`."""
        request = self.request
        assert request is not None
        members = circumstances(request)
        members["call_id"] = self.door.call_id
        members["principal"] = None if context is None else self._description(context.principal)
        if reading.refusal is None and reading.unread is None:
            members["args"] = reading.args
        elif isinstance(self.arguments, str):
            members["arguments_text"] = self.arguments
        else:
            members["args"] = _described(self.arguments)
        settings, door = self.settings, self.door
        self.bodies = bodies = settings.bodies_of(door)
        has_shadow = settings.shadow_of(door) is not None
        body = bodies.proposed(members, door.declared, has_shadow=has_shadow)
        return self.event("step.proposed", body, request.context.timestamp)

    def _description(self, who: Principal) -> Mapping[str, Any]:
        settings = self.settings
        if who is settings.principal:
            return settings.described
        return FrozenDict({"kind": who.kind, "id": who.id, "name": who.name})

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
        return self.made_context(
            found.principal, found.environment, found.workspace, extra, session
        )

    def own_context(self, extra: FrozenDict = EMPTY) -> ExecutionContext:
        """Give the context that holds where no `context=` was given: the guard's own."""
        settings = self.settings
        return self.made_context(
            settings.principal, settings.environment, settings.workspace, extra, None
        )

    def _frozen_extra(self) -> FrozenDict:
        try:
            return freeze_object(self.extra, where="extra")  # type: ignore[arg-type]
        except ArgumentsRefused as error:
            raise _context_failed(str(error)) from None

    def made_context(
        self,
        principal: Principal,
        environment: str | None,
        workspace: str,
        extra: FrozenDict,
        session: Mapping[str, Any] | None,
    ) -> ExecutionContext:
        """Make the context of this call."""
        context: ExecutionContext = OpenContext(
            principal,
            environment,
            workspace,
            self.correlation_id,
            self.seq,
            self.settings.now(),
            extra,
            session,
        )
        context.__class__ = ExecutionContext
        return context


def described(who: Principal, redact: Redactor) -> FrozenDict:
    """Give a principal as plain JSON, looked through if the redactor says that it shows nothing."""
    plain = FrozenDict({"kind": who.kind, "id": who.id, "name": who.name})
    shown = apply_redactor(redact, plain) if is_pure(redact) else plain
    return shown if type(shown) is PlainDict else plain


def _described(arguments: object) -> Any:
    """Give refused arguments as JSON, for the record alone."""
    if type(arguments) is PlainDict:
        arguments = dict(arguments)  # what another redactor vouched for is looked through anew
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
