"""What stands between a proposal and its judgment: reading the arguments, once and strictly, and completing them.

There are two doors: a tool of a `ToolSet` (`check`) and a framework's continuation (`govern_call`). Each says how its
arguments are read, how a rewritten set of them becomes what the body would get, and what running the body means. Nothing
here decides anything.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adjudge._arguments import parse_arguments
from adjudge._effects import Execute
from adjudge._executors import Executor
from adjudge._schema import normalise
from adjudge._tools import Signature, ToolDef
from adjudge._types import ActionRequest, ToolMetadata
from adjudge._values import EMPTY, FrozenDict, OpaqueValue, freeze_object, thaw
from adjudge.errors import ArgumentsRefused

__all__ = [
    "Admitted",
    "Door",
    "Effective",
    "FrameworkDoor",
    "InvalidArguments",
    "ProposedCall",
    "ToolDoor",
    "UnknownToolDoor",
]


class InvalidArguments(Exception):
    """Arguments that the tool does not take: they never get a verdict, and the body does not run."""


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One tool call as a framework hands it over.

    `arguments` is the model's own text or values that the framework has parsed. `schema` is the tool's JSON Schema, where
    the framework does not hand over validated values; `schema_is_enforced` vouches that the continuation itself validates
    against it before the body. `given` names what the model itself sent, None where the arguments say it. `injected` is
    what the framework adds, never part of the arguments. `attempt` counts the framework's own repeats of one call from 1.
    `control_flow` lists the exception types by which the framework suspends a run. `routes_isolation` vouches that the
    continuation runs the body under the isolation that the tool declares.
    """

    tool: str
    arguments: str | Mapping[str, Any]
    namespace: str | None = None
    call_id: str | None = None
    schema: Mapping[str, Any] | None = None
    schema_is_enforced: bool = False
    given: frozenset[str] | None = None
    injected: Mapping[str, Any] = EMPTY
    declared: ToolMetadata | None = None
    attempt: int = 1
    control_flow: tuple[type[BaseException], ...] = ()
    routes_isolation: bool = False


class Effective:
    """The arguments that the body shall get, in the form that the framework needs."""

    __slots__ = ("_args", "_frozen", "_text", "changed")

    def __init__(self, frozen: FrozenDict, text: str | None, *, changed: bool) -> None:
        self._frozen = frozen
        self._text = text
        self._args: dict[str, Any] | None = None
        self.changed = changed
        """Whether a transform or an edit made them differ from what was proposed."""

    @property
    def args(self) -> dict[str, Any]:
        """Fresh plain dicts and lists, this object's own."""
        if self._args is None:
            self._args = thaw(self._frozen)
        return self._args

    @property
    def text(self) -> str:
        """The framework's own text where nothing changed, else JSON."""
        if self._text is None:
            self._text = json_text(self._frozen)
        return self._text

    def __repr__(self) -> str:
        return f"Effective(args={self._frozen!r}, changed={self.changed})"


def json_text(args: FrozenDict) -> str:
    """Write arguments as JSON; what JSON cannot carry exactly raises `ArgumentsRefused`."""
    try:
        return json.dumps(args, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise ArgumentsRefused(
            "args holds a Decimal or a secret, which JSON text cannot carry exactly."
        ) from None


@dataclass(frozen=True, slots=True)
class Admitted:
    """Arguments that were read: those to judge, and the names of those that the model itself sent (None: all)."""

    args: FrozenDict
    given: frozenset[str] | None = None


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
    def declared(self) -> ToolMetadata | None: ...
    @property
    def arguments(self) -> str | Mapping[str, Any]: ...
    @property
    def control_flow(self) -> tuple[type[BaseException], ...]: ...
    @property
    def raises(self) -> bool:
        """Whether the body's own exception is raised again rather than returned."""
        ...

    def admit(self) -> Admitted:
        """Read the arguments; raises `ArgumentsRefused`, `NotAnObject` or `InvalidArguments`."""
        ...

    def injected(self) -> FrozenDict:
        """Give the injected values, frozen; raises `ArgumentsRefused`."""
        ...

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Give rewritten arguments as the body would get them; raises `InvalidArguments` or `ArgumentsRefused`."""
        ...

    def execution(self, request: ActionRequest, *, changed: bool) -> Execute:
        """Say how to run the body with the request's arguments."""
        ...

    def unjudged(self) -> Execute | None:
        """Say how the framework answers invalid arguments itself; None where it has no such answer."""
        ...

    def unrouted_isolation(self, metadata: ToolMetadata | None) -> str | None:
        """Name the isolation that the body would not get, None where there is none."""
        ...


def _read(arguments: str | Mapping[str, Any]) -> FrozenDict:
    return parse_arguments(arguments) if isinstance(arguments, str) else freeze_object(arguments)


@dataclass(frozen=True, slots=True)
class ToolDoor:
    """A tool of a `ToolSet`, run by the executor or in place."""

    definition: ToolDef
    signature: Signature
    arguments: str | Mapping[str, Any]
    executor: Executor | None

    namespace = None
    call_id = None
    attempt = 1
    control_flow = ()
    raises = False

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def declared(self) -> ToolMetadata:
        """What the tool declares."""
        return self.definition.metadata

    def admit(self) -> Admitted:
        """Read the arguments and fill in the signature's defaults."""
        sent = _read(self.arguments)
        args = self.complete(sent)
        return Admitted(args) if args is sent else Admitted(args, frozenset(sent))

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
        if self.executor is not None:
            definition = self.definition
            if request.declared is not None and request.declared != definition.metadata:
                definition = replace(definition, metadata=request.declared)
            return Execute(self.executor, (request, definition))
        args = thaw(request.args)
        for name, value in self.signature.defaults.items():
            # The function's own default is no JSON value, and nobody replaced it.
            if isinstance(value, OpaqueValue) and isinstance(args.get(name), OpaqueValue):
                del args[name]
        return Execute(self.definition.fn, (), args, not self.signature.is_async)

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
    arguments: str | Mapping[str, Any]

    namespace = None
    call_id = None
    attempt = 1
    control_flow = ()
    raises = False
    declared = None

    def admit(self) -> Admitted:
        """Read the arguments, for the record."""
        return Admitted(_read(self.arguments))

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


@dataclass(frozen=True, slots=True)
class FrameworkDoor:
    """A framework's continuation, which runs the body in place."""

    call: ProposedCall
    execute: Callable[[Effective], Awaitable[Any] | Any]

    raises = True

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
    def attempt(self) -> int:
        """Which attempt at the call this is."""
        return self.call.attempt

    @property
    def declared(self) -> ToolMetadata | None:
        """What the tool declares."""
        return self.call.declared

    @property
    def arguments(self) -> str | Mapping[str, Any]:
        """What the model sent."""
        return self.call.arguments

    @property
    def control_flow(self) -> tuple[type[BaseException], ...]:
        """The exceptions by which the framework suspends a run."""
        return self.call.control_flow

    def admit(self) -> Admitted:
        """Read the arguments, refuse forged injected ones, and normalise by the schema."""
        call = self.call
        sent = _read(call.arguments)
        forged = call.injected.keys() & sent.keys()
        if forged:
            names = ", ".join(repr(name) for name in sorted(forged))
            raise ArgumentsRefused(f"args holds {names}, which only the framework may supply.")
        if call.schema is None:
            return Admitted(sent, call.given)
        found = normalise(call.schema, sent, coerce=call.schema_is_enforced)
        if call.schema_is_enforced and found.problems:
            raise InvalidArguments(found.problems[0])
        given = call.given
        if given is None and found.given != found.args.keys():
            given = found.given
        return Admitted(found.args, given)

    def injected(self) -> FrozenDict:
        """Freeze what the framework injects."""
        if not self.call.injected:
            return EMPTY
        return freeze_object(self.call.injected, where="injected")

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Hold rewritten arguments against the schema, and normalise them by it."""
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
        if isinstance(self.call.arguments, str):
            text = json_text(args) if changed else self.call.arguments
        return Execute(self.execute, (Effective(args, text, changed=changed),))

    def unjudged(self) -> Execute:
        """Call the continuation with what the model sent, for the framework to refuse."""
        arguments = self.call.arguments
        if isinstance(arguments, str):
            return Execute(self.execute, (Effective(EMPTY, arguments, changed=False),))
        return Execute(self.execute, (Effective(_read(arguments), None, changed=False),))

    def unrouted_isolation(self, metadata: ToolMetadata | None) -> str | None:
        """A continuation runs in place unless the integration says otherwise."""
        if metadata is None or self.call.routes_isolation:
            return None
        return metadata.isolation
