"""What every kind of tool has in common: a governed body in the place of the tool's own.

A kind says what is proposed, how its body runs with the effective arguments, and in which shape the
model is told of a denial. Who has a guard already, and under which name, is settled here.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from agents import RunContextWrapper

from adjudge import GovernedCall, GovernError
from adjudge.integration import (
    Admitted,
    Effective,
    FrozenDict,
    InvalidArguments,
    ProposedCall,
    normalise,
)
from adjudge_openai_agents._approval import Approval
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._runs import (
    Suspended,
    entered,
    forget_nested,
    forget_other_runs,
    frame_of,
)

__all__ = ["GovernedBody", "TypedBody", "govern_copy", "is_governed"]

T = TypeVar("T")


class GovernedBody:
    """The governed way to one body, under one name; `nests` where the body runs an agent."""

    nests = False

    def __init__(self, name: str, binding: Binding) -> None:
        self.name = name
        self.binding = binding

    async def _mediate(
        self,
        call: ProposedCall,
        run: Callable[[Effective], Any],
        context: RunContextWrapper[Any],
    ) -> Any:
        """Judge one call; then run its body, or say why it does not run."""
        frame = frame_of(context, self.binding.guard)
        inside = frame.inside(call.call_id)

        async def execute(effective: Effective) -> Any:
            # An agent that the SDK runs for the tool is part of the run; one that the body runs by
            # itself is a run of its own.
            if self.nests:
                forget_other_runs(context)
            with entered(inside if self.nests else None):
                result = run(effective)
                if inspect.isawaitable(result):
                    result = await result
            if self.nests and inside.waits:
                frame.waits = True
                raise Suspended(result)
            return result

        call = replace(
            call,
            run=frame.run,
            agent=self.binding.agent,
            parent=frame.parent,
            may_pause=False,  # the SDK pauses before it comes here, or not at all
            control_flow=(Suspended,),
        )
        source = self.binding.context
        try:
            governed = await self.binding.guard.govern_call(
                call, execute, context=source and functools.partial(source, context)
            )
        except Suspended as suspended:
            return suspended.value
        if self.nests and governed.text is not None:
            forget_nested(context)
        return governed.result.value if governed.text is None else self._said(governed)

    def proposed(self, raw: Any, call_id: str) -> ProposedCall:
        """Say what is judged, of what the SDK shows where it asks whether a person must approve."""
        raise NotImplementedError

    def changes(self, raw: Any) -> bool:
        """Whether the body would get other arguments than the tool's own approval would see."""
        return False

    def _said(self, call: GovernedCall) -> Any:
        """Give what the model is told in place of a result, in the shape of the kind."""
        return call.text

    def __deepcopy__(self, memo: dict[int, Any]) -> GovernedBody:
        """Copies of what is governed are governed by the same guard."""
        return self


class TypedBody(GovernedBody):
    """A body that gets a request of the SDK's own, with fields that `schema` describes."""

    schema: ClassVar[Mapping[str, Any]]

    def _proposed(self, held: Mapping[str, Any], call_id: str | None) -> ProposedCall:
        """Propose what a request holds; what the model left out is absent."""
        return ProposedCall(
            self.name,
            {name: value for name, value in held.items() if value is not None},
            call_id=call_id,
            validate=_RequestFields(self.schema).validate,
        )


class _RequestFields:
    """One call's arguments: as the SDK has them first, later as a request can carry them."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._proposed: FrozenDict | None = None

    def validate(self, args: FrozenDict) -> Admitted:
        """Admit what is proposed as it is; raise `InvalidArguments` for a rewriting that fails."""
        if self._proposed is None:
            # The body would get these whatever they are, so they are judged.
            self._proposed = args
            return Admitted(args)
        found = normalise(self._schema, args)
        faults = [*found.problems, *found.doubts]
        known = self._schema["properties"].keys() | self._proposed.keys()
        faults += [f"args.{name} is nothing that the request has." for name in args.keys() - known]
        if faults:
            raise InvalidArguments(faults[0])
        return Admitted(found.args)


def govern_copy(
    tool: T, field: str, binding: Binding, make: Callable[[T, Binding], GovernedBody]
) -> T:
    """Give a copy of a tool whose body in `field` is governed; the tool itself where it is."""
    name = getattr(tool, "name", type(tool).__name__)
    if is_governed(f"tool {name!r}", name, getattr(tool, field), binding):
        return tool
    governed: Any = copy.copy(tool)
    body = make(governed, binding)
    setattr(governed, field, body)
    if getattr(governed, field) is not body:
        raise GovernError(
            f"The tool {name!r} has its own {field} whatever is set, so no guard can stand before "
            f"its body; let {field} be a plain attribute."
        )
    own = getattr(tool, "needs_approval", None)
    asks = binding.guard.pauses and binding.guard.may_ask
    if own is not None and (asks or own is not False):
        governed.needs_approval = Approval(body, own)
    return governed  # type: ignore[no-any-return]


def is_governed(what: str, name: str, body: object, binding: Binding) -> bool:
    """Whether this guard has the body; raise `GovernError` for another guard or another name."""
    if not isinstance(body, GovernedBody):
        return False
    if body.name != name:
        raise GovernError(
            f"The {what} was governed as {body.name!r} and then renamed; "
            "govern it under its last name."
        )
    if body.binding.guard is not binding.guard:
        raise GovernError(f"The {what} is under another guard; govern the original instead.")
    return True
