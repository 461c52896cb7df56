"""From a proposal to a request: the arguments read, the caller known, both on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adjudge._attempt import Attempt, Refusal, Steps, failure_text
from adjudge._doors import Door
from adjudge._effects import BindContext
from adjudge._proposal import InvalidArguments
from adjudge._record import to_json
from adjudge._settings import Settings
from adjudge._types import ActionRequest, CallContext, ExecutionContext, Principal
from adjudge._values import EMPTY, FrozenDict, freeze_object
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["Admission"]

_NOBODY = Principal("user", "unknown")


class Admission(Attempt):
    """An attempt that starts with a proposal."""

    __slots__ = ("context", "extra")

    def __init__(
        self,
        settings: Settings,
        door: Door,
        seq: int,
        *,
        extra: Mapping[str, Any] | None = None,
        context: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(settings, door, seq)
        self.extra = extra
        self.context = context

    def admit(self) -> Steps[tuple[ActionRequest, str | None]]:
        """Read the arguments, ask who is calling, and record the proposal.

        The text, where there is one, says why the arguments never get a verdict.
        """
        door = self.door
        refusal: Refusal | None = None
        unread: str | None = None
        args, given, injected = EMPTY, None, EMPTY
        try:
            injected = door.injected()
            admitted = door.admit()
            args, given = admitted.args, admitted.given
        except (NotAnObject, InvalidArguments) as error:
            unread = str(error)
        except ArgumentsRefused as error:
            refusal = Refusal("refused_arguments", str(error), discharges="none")
        except Exception as error:
            why = f"the arguments could not be read: {failure_text(error)}"
            refusal = Refusal("refused_arguments", why, discharges="none")
        try:
            context = yield from self._bind_context()
        except Refusal as failed:
            context = None
            refusal = refusal or failed
        except BaseException:
            self.settled = True
            self.request = self._request(args, given, injected, self._context(_NOBODY))
            yield from self._propose(None, refusal is not None or unread is not None)
            raise
        self.sent = args if given is None else FrozenDict({k: args[k] for k in args if k in given})
        request = self._request(args, given, injected, context or self._context(_NOBODY))
        self.request = request
        who = None if context is None else context.principal
        yield from self._propose(who, refusal is not None or unread is not None)
        if refusal is not None:
            raise refusal
        return request, unread

    def _request(
        self,
        args: FrozenDict,
        given: frozenset[str] | None,
        injected: FrozenDict,
        context: ExecutionContext,
    ) -> ActionRequest:
        door = self.door
        return ActionRequest(
            door.tool,
            args,
            self.settings.metadata(door),
            context,
            door.namespace,
            given,
            injected,
        )

    def _propose(self, who: Principal | None, unreadable: bool) -> Steps[None]:
        if not self.settings.records:
            return
        assert self.request is not None
        door = self.door
        body: dict[str, Any] = {
            "namespace": door.namespace,
            "call_id": door.call_id,
            "principal": None if who is None else describe_principal(who),
        }
        if not unreadable:
            body["args"] = self.request.args
        elif isinstance(door.arguments, str):
            body["arguments_text"] = door.arguments
        else:
            body["args"] = _described(door.arguments)
        yield from self.emit("step.proposed", body)

    def _bind_context(self) -> Steps[ExecutionContext]:
        """Give the context of this call: of the `context=` callable, or the guard's own."""
        if self.context is None:
            return self.own_context(self._frozen_extra())
        try:
            found = yield BindContext(self.context)
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
        given = self._frozen_extra()
        return self._context(
            found.principal,
            found.environment,
            found.workspace,
            FrozenDict({**given, **extra}) if given else extra,
            session,
        )

    def own_context(self, extra: FrozenDict = EMPTY) -> ExecutionContext:
        """Give the context that holds where no `context=` was given: the guard's own."""
        settings = self.settings
        return self._context(settings.principal, settings.environment, settings.workspace, extra)

    def _frozen_extra(self) -> FrozenDict:
        if not self.extra:
            return EMPTY
        try:
            return freeze_object(self.extra, where="extra")
        except ArgumentsRefused as error:
            raise _context_failed(str(error)) from None

    def _context(
        self,
        principal: Principal,
        environment: str | None = None,
        workspace: str = ".",
        extra: FrozenDict = EMPTY,
        session: Mapping[str, Any] | None = None,
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
