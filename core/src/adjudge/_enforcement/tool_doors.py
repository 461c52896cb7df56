"""The way in of a tool of a `ToolSet` (`check`), and that of a name which no tool has.

Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from adjudge._arguments.plain_schema import kinds_of, plainly_fits, plainly_taken
from adjudge._arguments.proposal import Admitted, InvalidArguments, fitted, read_arguments
from adjudge._enforcement.effects import Execute
from adjudge._enforcement.settings import Settings
from adjudge._enforcement.signature import Signature
from adjudge._enforcement.tools import ToolDef, ToolSet
from adjudge._executors.inline import call_arguments
from adjudge._types import ActionRequest, ToolMetadata
from adjudge._values import EMPTY, FrozenDict, freeze_object
from adjudge.policy import LayeredPolicyBundle, PolicyBundle

if TYPE_CHECKING:
    from adjudge._enforcement.places import CallPlace
    from adjudge._enforcement.runs import GovernedRun
    from adjudge._executors.routing import Executor

__all__ = ["ToolDoor", "UnknownToolDoor", "doors_of"]

Schemas = Mapping[str, Mapping[str, Any]]
BeforeAsking = Callable[[ActionRequest], tuple[str, str] | None]


def doors_of(
    settings: Settings, tools: ToolSet, *, executor: Executor | None, schemas: Schemas = EMPTY
) -> dict[str, ToolDoor]:
    """Give the door of each tool, by its name.

    A set of tools keeps those that it had last: a host may make a guard for each of its runs, of
    schemas that are frozen, so that none of them can have changed meanwhile.
    """
    policy = settings.policy
    if executor is not None or settings.shadows or not tools or not _is_bundle(policy):
        return _made_doors(settings, tools, executor, schemas)
    # What was read of a schema must hold for the next guard, too.
    if not all(type(schema) is FrozenDict for schema in schemas.values()):
        return _made_doors(settings, tools, None, schemas)
    last = tools.derived(_no_doors)
    kept = last.get("doors")
    if kept is None or kept[0] is not policy or not _are_the_same(kept[1], schemas):
        doors = _made_doors(settings, tools, None, schemas)
        # One value, so that threads may share it.
        kept = last["doors"] = (policy, dict(schemas), doors)
    return kept[2]


def _made_doors(
    settings: Settings, tools: ToolSet, executor: Executor | None, schemas: Schemas
) -> dict[str, ToolDoor]:
    doors = {
        item.name: ToolDoor(item, tools.signature(item.name), executor, schemas.get(item.name))
        for item in tools
    }
    if _is_bundle(settings.policy):
        for door in doors.values():
            door.metadata = settings.metadata(door)
    return doors


_Kept = tuple[object, Schemas, dict[str, "ToolDoor"]]


def _no_doors(tools: ToolSet) -> dict[str, _Kept]:
    return {}


def _is_bundle(policy: object) -> bool:
    """Whether a policy is ours, and says the same of a tool each time."""
    return isinstance(policy, PolicyBundle | LayeredPolicyBundle)


def _are_the_same(kept: Schemas, given: Schemas) -> bool:
    # By identity: 1 equals True, and is another default.
    return len(kept) == len(given) and all(
        given.get(name) is schema for name, schema in kept.items()
    )


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
    before_asking: BeforeAsking | None = None
    control_flow: tuple[type[BaseException], ...] = ()
    known = True
    raises = False
    injects = False
    metadata: ToolMetadata | None = None

    def __init__(
        self,
        definition: ToolDef,
        signature: Signature,
        executor: Executor | None,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        self.definition = definition
        self.signature = signature
        self.executor = executor
        self.schema = schema
        self.kinds = None if schema is None else kinds_of(schema)
        # Where the schema and the signature name the same, to fit the one is to be whole.
        kinds = self.kinds
        self.whole = kinds if kinds is not None and kinds.keys() == signature.names else None
        self.tool = definition.name
        self.declared = definition.metadata
        self.shadow = definition.shadow_fn
        # An executor answers with an `ActionResult`, a function with its value.
        self.returns_result = executor is not None

    def at(self, place: CallPlace) -> ToolDoor:
        """Give the same door for one call of a run."""
        placed = object.__new__(ToolDoor)
        placed.__dict__.update(self.__dict__)
        placed.call_id, placed.run = place.call_id, place.run
        placed.agent, placed.parent = place.agent, place.parent
        placed.control_flow = place.control_flow
        placed.may_pause, placed.before_asking = place.may_pause, place.before_asking
        return placed

    def admit(self, arguments: str | Mapping[str, Any]) -> Admitted:
        """Read the arguments and fill in the signature's defaults."""
        if self.whole is not None:
            taken = plainly_taken(arguments, self.whole)
            if taken is not None:
                return Admitted(taken)
        if type(arguments) is dict:
            sent = freeze_object(arguments)
        else:
            sent = read_arguments(arguments)
        if self.schema is not None:
            fits = self.kinds is not None and plainly_fits(sent, self.kinds)
        else:
            fits = True
        whole = fits and sent.keys() == self.signature.names
        args = sent if whole else self.complete(sent)
        return Admitted(args, None if args.keys() == sent.keys() else frozenset(sent))

    def injected(self) -> FrozenDict:
        """Nothing is injected here."""
        return EMPTY

    def complete(self, args: FrozenDict) -> FrozenDict:
        """Hold arguments against schema and signature, and fill in the defaults."""
        if self.schema is not None:
            args = fitted(self.schema, args)
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
    before_asking = None
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
