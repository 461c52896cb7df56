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
from pydantic import AliasChoices, AliasPath, ValidationError

from adjudge.integration import (
    Admitted,
    FrozenDict,
    InvalidArguments,
    canonical_json,
    project_object,
    thaw,
)

__all__ = ["CallArguments", "NamedValues", "named_values"]


class CallArguments:
    """The arguments of one call; `values` are what the body gets, `sent` what the model wrote.

    `sent` None means that nothing but the values is known.
    """

    def __init__(self, tool: BaseTool, named: NamedValues, sent: Mapping[str, Any] | None) -> None:
        self._tool = tool
        self._original = dict(named.values)
        self._sent = sent
        self._given = named.given if sent is None else _fields_of(tool, sent)
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
        return Admitted(self._judged, self._given & self._judged.keys())

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
        merged: dict[str, Any] = {
            name: sent.get(name, self._original[name]) if name in unchanged else thaw(value)
            for name, value in args.items()
        }
        fresh = _through_schema(self._tool, merged)
        for name, value in merged.items():
            lost = name if name not in fresh else None
            if lost is None and name not in unchanged:
                lost = _lost(value, fresh[name])
            if lost is not None:
                raise InvalidArguments(f"the tool takes no {lost!r}")
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


class NamedValues(NamedTuple):
    """The values that a body gets, by name, and the names of those that its caller gave."""

    values: dict[str, Any]
    given: frozenset[str]


def named_values(
    tool: BaseTool, body: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> NamedValues:
    """Name the values of a call; raises `TypeError` for those that the body does not take.

    Where the body has a default of its own for an argument of the tool, that is judged, too.
    """
    named = dict(kwargs)
    if args:
        bound = inspect.signature(body).bind(*args, **kwargs).arguments
        for name, parameter in inspect.signature(body).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound |= bound.pop(name, {})
            elif name in bound and parameter.kind in (
                parameter.VAR_POSITIONAL,
                parameter.POSITIONAL_ONLY,
            ):
                raise TypeError(f"{name!r} has no name by which a policy could judge it")
        named = dict(bound)
    given = frozenset(named)
    missing = tool.args_schema.model_fields.keys() - given
    for name, parameter in _parameters(body).items() if missing else ():
        if name in missing and parameter.default is not parameter.empty:
            named[name] = parameter.default
    return NamedValues(named, given)


def _parameters(body: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(body).parameters
    except (TypeError, ValueError):
        return {}  # a builtin's, which says nothing of its defaults


def _fields_of(tool: BaseTool, sent: Mapping[str, Any]) -> frozenset[str]:
    """Give the names of what was sent, by which a policy knows it: the fields', not the aliases."""
    fields, config = tool.args_schema.model_fields, tool.args_schema.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    names = set(sent) - fields.keys()
    for name, field in fields.items():
        found = field.validation_alias
        choices = found.choices if isinstance(found, AliasChoices) else [found, field.alias]
        starts = {each.path[0] if isinstance(each, AliasPath) else each for each in choices}
        if by_name or starts == {None}:  # else validation ignores the name itself
            starts.add(name)
        if not starts.isdisjoint(sent):
            names.add(name)
    return frozenset(names)


def _lost(wanted: Any, got: Any) -> str | None:
    """Find a name in what was rewritten that validation left out, at any depth."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        missing = wanted.keys() - got.keys()
        if missing:
            return min(map(str, missing))
        pairs = [(wanted[name], got[name]) for name in wanted]
    elif isinstance(wanted, list) and isinstance(got, list | tuple):
        pairs = list(zip(wanted, got, strict=False))
    return next((lost for pair in pairs if (lost := _lost(*pair)) is not None), None)


def _through_schema(tool: BaseTool, values: dict[str, Any]) -> dict[str, Any]:
    """Validate values as the tool does; one without fields takes what it gets."""
    schema = tool.args_schema
    if not schema.model_fields:
        return values
    try:
        return schema.model_validate(values, by_alias=True, by_name=True).model_dump()
    except ValidationError as error:
        raise InvalidArguments(str(error.errors()[0]["msg"])) from None
