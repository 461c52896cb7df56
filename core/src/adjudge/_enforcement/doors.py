"""What every way in says of itself, and the way in of a framework's continuation (`govern_call`).

It says how its arguments are read, how rewritten ones become what the body would get, and what
running the body means. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from adjudge._arguments.proposal import (
    Admitted,
    Effective,
    InvalidArguments,
    ProposedCall,
    fitted,
    json_text,
    read_arguments,
)
from adjudge._arguments.schema import normalise
from adjudge._enforcement.effects import Execute
from adjudge._types import ActionRequest, ToolMetadata
from adjudge._values import EMPTY, FrozenDict, freeze_object
from adjudge.errors import ArgumentsRefused, NotAnObject

if TYPE_CHECKING:
    from adjudge._enforcement.runs import GovernedRun

__all__ = ["Door", "FrameworkDoor"]


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
    def before_asking(self) -> Callable[[ActionRequest], tuple[str, str] | None] | None:
        """What may deny the call where a person would be asked, if anything may."""
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
    before_asking = None

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
        return fitted(schema, args, coerce=self.call.schema_is_enforced)

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
