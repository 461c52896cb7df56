"""One call's arguments: as the model sent them, as they are judged, and as the body gets them.

LangChain validates between `run` and `_run`. What is judged is the JSON projection of exactly the
values that the body gets, and those objects run. What a policy or a person rewrites is validated by
the tool's own schema, and what comes of it is judged again and runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from langchain_core.tools import BaseTool, Tool
from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1

from adjudge import ArgumentsRefused
from adjudge.integration import (
    EMPTY,
    Admitted,
    FrozenDict,
    InvalidArguments,
    canonical_json,
    normalise,
    project_object,
    thaw,
)

__all__ = [
    "INVALID",
    "ONLY",
    "CallArguments",
    "check_unforged",
    "fields_of",
    "read_values",
    "validation_text",
    "visible",
]

ONLY = "__arg1"
"""The name under which a model knows the one argument of a `Tool` without a schema."""
INVALID = (ValidationError, ValidationErrorV1)


class _Kept(NamedTuple):
    """Values that were judged, and how their projection looked then."""

    values: dict[str, Any]
    seen: str


class CallArguments:
    """The arguments of one call.

    `sent` is what the model sent, `values` what the body is about to get, by name, and `injected`
    what LangChain adds, which no policy sees.
    """

    def __init__(
        self,
        tool: BaseTool,
        sent: Mapping[str, Any],
        values: dict[str, Any],
        injected: Mapping[str, Any],
    ) -> None:
        self._schema = _schema_of(tool)
        self._fields = fields_of(tool)
        self._raw = dict(sent)
        self._original = values
        self._injected = injected
        self._began = False
        self._judged = FrozenDict()
        self._kept: dict[str, _Kept] = {}

    def validate(self, args: FrozenDict) -> Admitted:
        """Project the values of the call, later those of a rewriting.

        Raises `InvalidArguments` for a rewriting that the tool does not take, and
        `ArgumentsRefused` for values that have no JSON meaning.
        """
        if self._began:
            return self._keep(self._rewritten(args), rewritten=True)
        self._began = True
        admitted = self._keep(self._original)
        self._judged = admitted.args
        return Admitted(admitted.args, self._given())

    def values_of(self, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the values behind judged arguments; None where they have changed since."""
        kept = self._kept.get(canonical_json(args))
        if kept is None:
            return None
        return kept.values if canonical_json(project_object(kept.values)) == kept.seen else None

    def _keep(self, values: dict[str, Any], *, rewritten: bool = False) -> Admitted:
        projected = project_object(values)
        judged = projected
        if isinstance(self._schema, dict):
            # LangChain does not validate against it. Whoever has the body fills in the defaults.
            found = normalise(self._schema, projected, coerce=False)
            if rewritten and found.problems:
                raise InvalidArguments(found.problems[0])
            judged = found.args
        self._kept[canonical_json(judged)] = _Kept(values, canonical_json(projected))
        return Admitted(judged)

    def _given(self) -> frozenset[str]:
        """Name the arguments that the model itself sent, by the function's own names."""
        names = self._judged.keys()
        given = names & self._raw.keys()
        if self._raw.keys() - names:
            given |= self._aliased(names)
        return frozenset(given)

    def _aliased(self, names: Collection[str]) -> set[str]:
        """Name the fields that the model calls otherwise."""
        return {
            name
            for name, field in self._fields.items()
            if name in names and any(alias in self._raw for alias in _aliases(field))
        }

    def _rewritten(self, args: FrozenDict) -> dict[str, Any]:
        unchanged = {
            name
            for name, value in args.items()
            if name in self._judged and canonical_json(value) == canonical_json(self._judged[name])
        }
        fresh = self._validated(args, unchanged)
        # What nobody rewrote stays the very object that was judged: validators need not be
        # idempotent.
        return {
            name: self._original[name] if name in unchanged and name in self._original else value
            for name, value in fresh.items()
        }

    def _validated(self, args: FrozenDict, unchanged: set[str]) -> dict[str, Any]:
        changed: dict[str, Any] = thaw(
            FrozenDict({name: value for name, value in args.items() if name not in unchanged})
        )
        schema = self._schema
        if not isinstance(schema, type):
            # A default that was filled in for the policy alone is the body's own affair.
            return {name: self._original[name] for name in unchanged & self._original.keys()} | (
                changed
            )
        kept = {
            name: value
            for name, value in self._raw.items()
            if name in unchanged or name not in self._judged
        }
        try:
            return read_values(schema, {**kept, **changed}, self._injected)
        except INVALID as error:
            raise InvalidArguments(validation_text(error)) from None


def _schema_of(tool: BaseTool) -> Any:
    """Give what LangChain validates by, or a JSON schema by which it does not."""
    if tool.args_schema is not None or isinstance(tool, Tool):
        return tool.args_schema
    # It was made of the signature of the body.
    described: Any = tool.tool_call_schema
    return described.model_json_schema()


def read_values(
    schema: type, merged: Mapping[str, Any], injected: Mapping[str, Any] = EMPTY
) -> dict[str, Any]:
    """Validate as LangChain does, and give the fields that were sent or have a default."""
    sent = {**merged, **injected}
    if issubclass(schema, BaseModel):
        model: Any = schema.model_validate(sent)
        fields = {name: field.is_required() for name, field in schema.model_fields.items()}
        provided = model.model_fields_set
    elif issubclass(schema, BaseModelV1):
        old = schema.parse_obj(sent)
        fields = {name: bool(field.required) for name, field in schema.__fields__.items()}
        provided = old.__fields_set__
        model = old
    else:
        raise ArgumentsRefused(
            f"The tool's schema is a {schema.__name__}, which validates nothing."
        )
    named = {
        name
        for name, required in fields.items()
        if name in provided or name in sent or not (required or name in ("args", "kwargs"))
    }
    extra = set(sent) & set(getattr(model, "model_extra", None) or ())
    return {
        name: getattr(model, name)
        for name in (*fields, *sorted(extra))
        if name in named | extra and name not in injected
    }


def visible(tool: BaseTool, values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values that the model sends, without what is injected."""
    # What a callback is shown as `inputs`; LangChain has no public word for what it injects. A test
    # fails if it moves.
    shown: dict[str, Any] = tool._filter_injected_args(dict(values))
    return shown


def fields_of(tool: BaseTool) -> Mapping[str, Any]:
    """Give the fields of a tool's schema, where that is a model."""
    schema = tool.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_fields
    if isinstance(schema, type) and issubclass(schema, BaseModelV1):
        return schema.__fields__
    return {}


def check_unforged(tool: BaseTool, sent: Mapping[str, Any]) -> None:
    """Refuse a value that is sent for what is injected, under an alias of it.

    LangChain takes away what is sent under an injected argument's own name, and no other. Raises
    `ArgumentsRefused`.
    """
    fields = fields_of(tool)
    for name in sent.keys() - fields.keys():
        meant = [field for field, each in fields.items() if name in _aliases(each)]
        if len(visible(tool, dict.fromkeys(meant))) < len(meant):
            raise ArgumentsRefused(f"args.{name} stands for a value that is injected")


def _aliases(field: Any) -> Iterator[str]:
    for alias in (field.alias, getattr(field, "validation_alias", None)):
        for each in alias.choices if isinstance(alias, AliasChoices) else (alias,):
            first = each.path[0] if isinstance(each, AliasPath) else each
            if isinstance(first, str):
                yield first


def validation_text(error: Exception) -> str:
    """Say what is wrong with arguments, without their values."""
    if not isinstance(error, INVALID):
        return f"the tool takes no such arguments ({type(error).__name__})"
    return "; ".join(
        f"args.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
    )
