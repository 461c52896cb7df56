"""The ways in: a tool of a `ToolSet` (`check`), and a framework's continuation (`govern_call`).

Each says how its arguments are read, how rewritten ones become what the body would get, and what
running the body means. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from adjudge._arguments.proposal import (
    Admitted,
    Effective,
    InvalidArguments,
    ProposedCall,
    json_text,
    read_arguments,
)
from adjudge._arguments.schema import normalise
from adjudge._enforcement.effects import Execute
from adjudge._enforcement.signature import Signature
from adjudge._enforcement.tools import ToolDef
from adjudge._executors.inline import call_arguments
from adjudge._types import ActionRequest, ToolMetadata
from adjudge._values import EMPTY, FrozenDict, freeze_object
from adjudge.errors import ArgumentsRefused, NotAnObject

if TYPE_CHECKING:
    from adjudge._enforcement.places import CallPlace
    from adjudge._enforcement.runs import GovernedRun
    from adjudge._executors.routing import Executor

__all__ = ["Door", "FrameworkDoor", "ToolDoor", "UnknownToolDoor"]


class Door(Protocol):
    """One way in: what was proposed, how its arguments are read, and what its body is."""

    @property
    def tool(self) -> str: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def call_id(self) -> str | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def key(self) -> str | None:
        """What names the call across processes, if anything does."""
        ...

    @property
    def run(self) -> GovernedRun | None:
        """The framework's run that can pause, if the call is part of one."""
        ...

    @property
    def agent(self) -> str | None:
        """The agent whose model proposed the call, where that tells calls of a run apart."""
        ...

    @property
    def parent(self) -> str | None:
        """The calls inside of whose bodies this one was proposed."""
        ...

    @property
    def may_pause(self) -> bool:
        """Whether the call can still be left waiting for a person."""
        ...

    @property
    def declared(self) -> ToolMetadata | None: ...
    @property
    def metadata(self) -> ToolMetadata | None:
        """What a policy is to know of the tool, where that is the same for every call."""
        ...

    @property
    def control_flow(self) -> tuple[type[BaseException], ...]: ...
    @property
    def shadow(self) -> Callable[..., Any] | None:
        """The tool's own shadow, where it has one."""
        ...

    @property
    def known(self) -> bool:
        """Whether there is such a tool."""
        ...

    @property
    def raises(self) -> bool:
        """Whether the body's own exception is raised again rather than returned."""
        ...

    @property
    def returns_result(self) -> bool:
        """Whether what runs the body answers with an `ActionResult`."""
        ...

    def admit(self, arguments: str | Mapping[str, Any]) -> Admitted:
        """Read the arguments; raises `ArgumentsRefused`, `NotAnObject` or `InvalidArguments`."""
        ...

    @property
    def injects(self) -> bool:
        """Whether anything is injected."""
        ...

    def injected(self) -> FrozenDict:
        """Give the injected values, frozen; raises `ArgumentsRefused`."""
        ...

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Give rewritten arguments as the body would get them, or raise as `admit` does."""
        ...

    def execution(self, request: ActionRequest, *, changed: bool) -> Execute:
        """Say how to run the body with the request's arguments."""
        ...

    def unjudged(self) -> Execute | None:
        """Say how the framework answers invalid arguments, None where it does not."""
        ...

    def unrouted_isolation(self, metadata: ToolMetadata | None) -> str | None:
        """Name the isolation that the body would not get, None where there is none."""
        ...


class ToolDoor:
    """A tool of a `ToolSet`, run by the executor or in place; made once for each tool."""

    namespace = None
    call_id: str | None = None
    attempt = 1
    key = None
    run: GovernedRun | None = None
    agent: str | None = None
    parent: str | None = None
    may_pause = True
    control_flow: tuple[type[BaseException], ...] = ()
    known = True
    raises = False
    injects = False
    metadata: ToolMetadata | None = None

    def __init__(
        self, definition: ToolDef, signature: Signature, executor: Executor | None
    ) -> None:
        self.definition = definition
        self.signature = signature
        self.executor = executor
        self.tool = definition.name
        self.declared = definition.metadata
        self.shadow = definition.shadow_fn
        # An executor answers with an `ActionResult`, a function with its value.
        self.returns_result = executor is not None

    def at(self, place: CallPlace) -> ToolDoor:
        """Give the same door for one call of a run."""
        placed = copy(self)
        placed.call_id, placed.run = place.call_id, place.run
        placed.agent, placed.parent = place.agent, place.parent
        placed.control_flow = place.control_flow
        return placed

    def admit(self, arguments: str | Mapping[str, Any]) -> Admitted:
        """Read the arguments and fill in the signature's defaults."""
        if type(arguments) is dict:
            sent = freeze_object(arguments)
        else:
            sent = read_arguments(arguments)
        args = sent if sent.keys() == self.signature.names else self.complete(sent)
        return Admitted(args, None if args is sent else frozenset(sent))

    def injected(self) -> FrozenDict:
        """Nothing is injected here."""
        return EMPTY

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Hold arguments against the signature, and fill in its defaults."""
        problem = self.signature.problem(args)
        if problem is not None:
            raise InvalidArguments(problem)
        return self.signature.filled(args)

    def execution(self, request: ActionRequest, *, changed: bool) -> Execute:
        """Run the executor, or the function itself."""
        if self.signature.own:
            request = self.signature.unfilled(request)
        if self.executor is not None:
            definition = self.definition
            if request.declared is not None and request.declared != definition.metadata:
                definition = replace(definition, metadata=request.declared)
            return Execute(self.executor, (request, definition))
        return Execute(self.definition.fn, (), call_arguments(request), not self.signature.is_async)

    def unjudged(self) -> None:
        """There is no framework that would answer."""
        return

    def unrouted_isolation(self, metadata: ToolMetadata | None) -> str | None:
        """Without an executor a declared isolation is nobody's."""
        if self.executor is not None or metadata is None:
            return None
        return metadata.isolation


@dataclass(frozen=True, slots=True)
class UnknownToolDoor:
    """A name that no tool has; it is denied, and has no body."""

    tool: str
    call_id: str | None = None

    namespace = None
    attempt = 1
    key = None
    run = None
    agent = None
    parent = None
    may_pause = True
    control_flow = ()
    known = False
    raises = False
    injects = False
    returns_result = False
    declared = None
    metadata = None
    shadow = None

    def admit(self, arguments: str | Mapping[str, Any]) -> Admitted:
        """Read the arguments, for the record."""
        return Admitted(read_arguments(arguments))

    def injected(self) -> FrozenDict:
        """Nothing is injected here."""
        return EMPTY

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Nothing is known of the arguments."""
        return args

    def execution(self, request: ActionRequest, *, changed: bool) -> Execute:
        """There is no body."""
        raise LookupError(f"There is no tool {self.tool!r}.")

    def unjudged(self) -> None:
        """There is no framework that would answer."""
        return

    def unrouted_isolation(self, metadata: ToolMetadata | None) -> None:
        """There is no body."""
        return


@dataclass(slots=True)
class FrameworkDoor:
    """A framework's continuation, which runs the body in place."""

    call: ProposedCall
    execute: Callable[[Effective], Awaitable[Any] | Any]

    known = True
    raises = True
    injects = True
    returns_result = False
    metadata = None

    @property
    def shadow(self) -> Callable[..., Any] | None:
        """The shadow that the integration knows of."""
        return self.call.shadow

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.call.tool

    @property
    def namespace(self) -> str | None:
        """Where the tool came from."""
        return self.call.namespace

    @property
    def call_id(self) -> str | None:
        """The provider's id of the call."""
        return self.call.call_id

    @property
    def key(self) -> str | None:
        """What names the call across processes."""
        return self.call.key

    @property
    def run(self) -> GovernedRun | None:
        """The run that can pause."""
        return self.call.run

    @property
    def agent(self) -> str | None:
        """Whose call it is."""
        return self.call.agent

    @property
    def parent(self) -> str | None:
        """The call around it."""
        return self.call.parent

    @property
    def may_pause(self) -> bool:
        """Whether the framework can still leave the call waiting."""
        return self.call.may_pause

    @property
    def attempt(self) -> int:
        """Which attempt at the call this is."""
        return self.call.attempt

    @property
    def declared(self) -> ToolMetadata | None:
        """What the tool declares."""
        return self.call.declared

    @property
    def control_flow(self) -> tuple[type[BaseException], ...]:
        """The exceptions by which the framework suspends a run."""
        return self.call.control_flow

    def admit(self, arguments: str | Mapping[str, Any]) -> Admitted:
        """Read the arguments, refuse forged injected ones, and normalise by the schema."""
        call = self.call
        try:
            sent = read_arguments(arguments)
        except NotAnObject as error:
            if call.rejects_invalid_text:
                raise
            raise ArgumentsRefused(str(error)) from None
        forged = call.injected.keys() & sent.keys()
        if forged:
            names = ", ".join(repr(name) for name in sorted(forged))
            raise ArgumentsRefused(f"args holds {names}, which only the framework may supply.")
        if call.validate is not None:
            found = call.validate(sent)
            given = found.given if call.given is None else call.given
            return Admitted(freeze_object(found.args), given)
        if call.schema is None:
            return Admitted(sent, call.given)
        filled = normalise(call.schema, sent, coerce=call.schema_is_enforced)
        if call.schema_is_enforced and filled.problems:
            raise InvalidArguments(filled.problems[0])
        given = call.given
        if given is None and filled.given != filled.args.keys():
            given = filled.given
        return Admitted(filled.args, given)

    def injected(self) -> FrozenDict:
        """Freeze what the framework injects."""
        if not self.call.injected:
            return EMPTY
        return freeze_object(self.call.injected, where="injected")

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Hold rewritten arguments against the schema, and normalise them by it."""
        if self.call.validate is not None:
            return freeze_object(self.call.validate(args).args)
        schema = self.call.schema
        if schema is None:
            return args
        found = normalise(schema, args, coerce=self.call.schema_is_enforced)
        if found.problems:
            raise InvalidArguments(found.problems[0])
        return found.args

    def execution(self, request: ActionRequest, *, changed: bool) -> Execute:
        """Call the continuation."""
        args = request.args if isinstance(request.args, FrozenDict) else freeze_object(request.args)
        text = None
        if isinstance(self.call.arguments, str) and not changed:
            text = self.call.arguments
        elif isinstance(self.call.arguments, str) and self.call.validate is None:
            text = json_text(args)  # here, where arguments that text cannot carry still deny
        return Execute(self.execute, (Effective(args, text, changed=changed),))

    def unjudged(self) -> Execute:
        """Call the continuation with what the model sent, for the framework to refuse."""
        arguments = self.call.arguments
        if isinstance(arguments, str):
            return Execute(self.execute, (Effective(EMPTY, arguments, changed=False),))
        return Execute(self.execute, (Effective(read_arguments(arguments), None, changed=False),))

    def unrouted_isolation(self, metadata: ToolMetadata | None) -> str | None:
        """A continuation runs in place unless the integration says otherwise."""
        if metadata is None or self.call.routes_isolation:
            return None
        return metadata.isolation
