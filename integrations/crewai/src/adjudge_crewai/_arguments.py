"""One call's arguments: as the model sent them, as they are judged, and as the body gets them.

CrewAI parses and validates before it calls. What is judged is the JSON projection of exactly the
values that the body gets, and those objects run. Where a policy or a person rewrites an argument,
it goes through the tool's own `args_schema`, and what comes of it is judged again and runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from crewai.tools import BaseTool
from pydantic import ValidationError

from adjudge.integration import (
    Admitted,
    FrozenDict,
    InvalidArguments,
    canonical_json,
    project_object,
    thaw,
)

__all__ = ["CallArguments", "named_values"]


class CallArguments:
    """The arguments of one call; `values` are what the body gets, `sent` what the model wrote.

    `sent` None means that nothing but the values is known: all of them count as given.
    """

    def __init__(
        self, tool: BaseTool, values: Mapping[str, Any], sent: Mapping[str, Any] | None
    ) -> None:
        self._tool = tool
        self._original = dict(values)
        self._sent = sent
        self._judged: FrozenDict | None = None
        self._values: dict[str, _Kept] = {}

    def validate(self, args: FrozenDict) -> Admitted:
        """Project the values of the call, later those of a rewriting.

        Raises `InvalidArguments` for a rewriting that the tool does not take, and
        `ArgumentsRefused` for values that have no JSON meaning.
        """
        if self._judged is not None:
            return Admitted(self._keep(self._validated(args)))
        self._judged = self._keep(self._original)
        given = None if self._sent is None else frozenset(self._sent) & self._judged.keys()
        return Admitted(self._judged, given)

    def values_of(self, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the values behind judged arguments; None where they have changed since."""
        kept = self._values.get(canonical_json(args))
        if kept is None or canonical_json(project_object(kept.values)) != kept.seen:
            return None
        return kept.values

    def _keep(self, values: dict[str, Any]) -> FrozenDict:
        projected = project_object(values)
        seen = canonical_json(projected)
        self._values[seen] = _Kept(values, seen)
        return projected

    def _validated(self, args: FrozenDict) -> dict[str, Any]:
        assert self._judged is not None
        judged, sent = self._judged, self._sent or {}
        unchanged = {
            name
            for name, value in args.items()
            if name in judged and canonical_json(value) == canonical_json(judged[name])
        }
        merged = {
            name: sent.get(name, self._original[name]) if name in unchanged else thaw(value)
            for name, value in args.items()
        }
        fresh = _through_schema(self._tool, merged)
        lost = merged.keys() - fresh.keys()
        if lost:
            raise InvalidArguments(f"the tool takes no {min(lost)!r}")
        # What nobody rewrote stays the very object that was judged: validators need not be
        # idempotent.
        return {
            name: self._original[name] if name in unchanged else value
            for name, value in fresh.items()
        }


class _Kept(NamedTuple):
    """Values that a body could get, and the projection in which they were judged."""

    values: dict[str, Any]
    seen: str


def named_values(
    body: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Name the values of a call; raises `TypeError` for those that the body does not take."""
    if not args:
        return dict(kwargs)
    bound = inspect.signature(body).bind(*args, **kwargs).arguments
    for name, parameter in inspect.signature(body).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            bound |= bound.pop(name, {})
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{name!r} has no name by which a policy could judge it")
    return dict(bound)


def _through_schema(tool: BaseTool, values: dict[str, Any]) -> dict[str, Any]:
    """Validate values as the tool does; one without fields takes what it gets."""
    schema = tool.args_schema
    if not schema.model_fields:
        return values
    try:
        return schema.model_validate(values, by_alias=True, by_name=True).model_dump()
    except ValidationError as error:
        raise InvalidArguments(str(error.errors()[0]["msg"])) from None
