"""One call's arguments: as the model sent them, as they are judged, and as the body gets them.

LangChain validates between `run` and `_run`. What is judged is the JSON projection of exactly the
values that the body gets, and those objects run. What a policy or a person rewrites is validated by
the tool's own schema, and what comes of it is judged again and runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from langchain_core.tools import BaseTool, Tool
from pydantic import VERSION, AliasChoices, AliasPath, BaseModel, ValidationError
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
    project,
    project_object,
    thaw,
)
from adjudge_langchain._rewritten import hides, took
from adjudge_langchain._shown import visible

__all__ = [
    "INVALID",
    "ONLY",
    "CallArguments",
    "Kept",
    "Unread",
    "check_unforged",
    "fields_of",
    "is_closed",
    "read_values",
    "validation_text",
]

ONLY = "__arg1"
"""The name under which a model knows the one argument of a `Tool` without a schema."""
INVALID = (ValidationError, ValidationErrorV1)
_TAKES_NAMES = tuple(map(int, VERSION.split(".")[:2])) >= (2, 11)


class Kept(NamedTuple):
    """Values that were judged, and how their projection looked then, in canonical form."""

    values: dict[str, Any]
    seen: str


class Unread(NamedTuple):
    """What is known of values that go to a body past LangChain's validation."""

    defaults: Mapping[str, Any]
    problem: str | None
    """Why they cannot be judged, None where they can."""


class CallArguments:
    """The arguments of one call.

    `sent` is what the model sent, `values` what the body is about to get, by name, and `injected`
    what LangChain adds, which no policy sees. `unread` is there where LangChain's validation has
    not made the values, and the body fills in defaults of its own.
    """

    def __init__(
        self,
        tool: BaseTool,
        sent: Mapping[str, Any],
        values: dict[str, Any],
        injected: Mapping[str, Any],
        unread: Unread | None = None,
    ) -> None:
        self._unread = unread
        self._schema = _schema_of(tool)
        self._is_described = isinstance(tool.args_schema, dict)
        self._fields = fields_of(tool)
        self._raw = dict(sent)
        self._original = values
        self._injected = injected
        self._began = False
        self._judged = FrozenDict()
        self._kept: dict[str, Kept] = {}
        self._latest: tuple[FrozenDict, Kept] | None = None

    def validate(self, args: FrozenDict) -> Admitted:
        """Project the values of the call, later those of a rewriting.

        Raises `InvalidArguments` for a rewriting that the tool does not take, and
        `ArgumentsRefused` for values that have no JSON meaning.
        """
        if self._unread is not None and self._unread.problem:
            raise ArgumentsRefused(self._unread.problem)
        if self._began:
            return self._keep(self._rewritten(args), rewritten=True)
        self._began = True
        admitted = self._keep(self._original)
        self._judged = admitted.args
        return Admitted(admitted.args, self._given())

    def values_of(self, args: Mapping[str, Any]) -> Kept | None:
        """Give the values behind judged arguments; None where they have changed since."""
        latest = self._latest
        if latest is not None and latest[0] is args:  # it is frozen
            kept: Kept | None = latest[1]
        else:
            kept = self._kept.get(canonical_json(args))
        if kept is None or canonical_json(project_object(kept.values)) != kept.seen:
            return None
        return kept

    def _keep(self, values: dict[str, Any], *, rewritten: bool = False) -> Admitted:
        projected = project_object(values)
        judged = projected
        if isinstance(self._schema, dict):
            # LangChain does not validate against it.
            found = normalise(self._schema, projected, coerce=False)
            if rewritten and found.problems:
                raise InvalidArguments(found.problems[0])
            judged = found.args if self._is_described else projected
        if self._unread is not None:
            # The body's own default counts before the schema's, which is for bodies elsewhere.
            own = {n: each for n, each in self._unread.defaults.items() if n not in projected}
            judged = project_object({**judged, **own})
        text = canonical_json(judged)
        kept = Kept(values, text if judged is projected else canonical_json(projected))
        self._kept[text] = kept
        self._latest = (judged, kept)
        return Admitted(judged)

    def _given(self) -> frozenset[str]:
        """Name the arguments that the model itself sent, by the function's own names."""
        names = self._judged.keys()
        given = names & self._raw.keys()
        others = self._raw.keys() - names
        if others:
            given |= self._aliased(names)
            if others - {alias for each in self._fields.values() for alias in _aliases(each)}:
                # A validator may have read it into any field.
                given |= {name for name in names - given if self._is_no_default(name)}
        return frozenset(given)

    def _aliased(self, names: Collection[str]) -> set[str]:
        """Name the fields that the model calls otherwise."""
        return {
            name
            for name, field in self._fields.items()
            if name in names and any(alias in self._raw for alias in _aliases(field))
        }

    def _is_no_default(self, name: str) -> bool:
        field = self._fields.get(name)
        if name not in self._original or (field is not None and field.default_factory is not None):
            return False
        if field is None:
            return True
        return _canonical({name: field.get_default()}) != _canonical({name: self._original[name]})

    def _rewritten(self, args: FrozenDict) -> dict[str, Any]:
        unchanged = {
            name
            for name, value in args.items()
            if name in self._judged and canonical_json(value) == canonical_json(self._judged[name])
        }
        fresh = self._validated(args, unchanged)
        if self._unread is not None:
            # The body fills in what it was not sent, and not what the schema would.
            own = self._original.keys() | (args.keys() - unchanged)
            fresh = {name: value for name, value in fresh.items() if name in own}
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
        sent = self._kept_raw(unchanged) | changed
        injected = {name: self._injected[name] for name in self._fields & self._injected.keys()}
        try:
            read = _read(schema, sent, injected, by_name=True)
        except INVALID as error:
            raise InvalidArguments(validation_text(error)) from None
        self._check_taken(args, changed, read)
        return read.values

    def _kept_raw(self, unchanged: Collection[str]) -> dict[str, Any]:
        """Give what was sent for the arguments that stay, and nothing that could mean another."""
        kept: dict[str, Any] = {}
        for name in unchanged:
            field = self._fields.get(name)
            aliases = () if field is None else _aliases(field)
            sent = {key: self._raw[key] for key in (name, *aliases) if key in self._raw}
            if not sent and name in self._original and self._is_no_default(name):
                sent = {name: self._original[name]}  # defaults need not pass their own schema
            kept |= sent
        return kept

    def _check_taken(self, args: FrozenDict, changed: Collection[str], read: _Read) -> None:
        """Raise `InvalidArguments` unless the tool takes a rewriting as it was written.

        Aliases and validators can put other values in its place, and what runs then is not what
        was decided.
        """
        for name in changed:
            if hides(args[name]):
                raise InvalidArguments(f"args.{name} holds a secret, which would be lost")
            if name not in read.values or not took(args[name], project(read.values[name])):
                raise InvalidArguments(f"args.{name}: the tool does not take it as rewritten")
        for name in self._judged.keys() - args.keys():
            if name in read.provided:
                raise InvalidArguments(f"args.{name}: the tool fills it in again")


def _schema_of(tool: BaseTool) -> Any:
    """Give what LangChain validates by, or a JSON schema by which it does not."""
    if tool.args_schema is not None or isinstance(tool, Tool):
        return tool.args_schema
    # It was made of the signature of the body.
    described: Any = tool.tool_call_schema
    return described.model_json_schema()


class _Read(NamedTuple):
    """What a schema made of arguments, and the names of those that are no defaults."""

    values: dict[str, Any]
    provided: frozenset[str]


def read_values(
    schema: type, merged: Mapping[str, Any], injected: Mapping[str, Any] = EMPTY
) -> dict[str, Any]:
    """Validate as LangChain does, and give the fields that were sent or have a default."""
    return _read(schema, merged, injected).values


def _read(
    schema: type, merged: Mapping[str, Any], injected: Mapping[str, Any], *, by_name: bool = False
) -> _Read:
    """Validate; `by_name` says that fields may be sent by their names, aliases or not."""
    sent = {**merged, **injected}
    if issubclass(schema, BaseModel):
        named: dict[str, Any] = {"by_name": True, "by_alias": True}
        model: Any = schema.model_validate(sent, **(named if by_name and _TAKES_NAMES else {}))
        fields = {name: field.is_required() for name, field in schema.model_fields.items()}
        provided = model.model_fields_set
        dumped = model.model_dump()
    elif issubclass(schema, BaseModelV1):
        old_fields = schema.__fields__
        if by_name:
            aliases = {name: field.alias for name, field in old_fields.items()}
            sent = {aliases.get(name, name): value for name, value in sent.items()}
        old = schema.parse_obj(sent)
        fields = {name: bool(field.required) for name, field in old_fields.items()}
        provided = old.__fields_set__
        model, dumped = old, old.dict()
    else:
        raise ArgumentsRefused(
            f"The tool's schema is a {schema.__name__}, which validates nothing."
        )
    values = {
        name: getattr(model, name)
        for name in dumped
        if name not in injected
        and (
            name in provided
            or name in sent
            or (name in fields and not fields[name] and name not in ("args", "kwargs"))
        )
    }
    return _Read(values, frozenset(provided))


def _canonical(values: Mapping[str, Any]) -> str | None:
    try:
        return canonical_json(project_object(values))
    except ArgumentsRefused:
        return None


def fields_of(tool: BaseTool) -> Mapping[str, Any]:
    """Give the fields of a tool's schema, where that is a model."""
    schema = tool.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_fields
    if isinstance(schema, type) and issubclass(schema, BaseModelV1):
        return schema.__fields__
    return {}


def is_closed(tool: BaseTool) -> bool:
    """Whether a tool's schema names all that its body can be sent."""
    schema: Any = tool.args_schema
    if not fields_of(tool):
        return False
    if issubclass(schema, BaseModel):
        return bool(schema.model_config.get("extra") != "allow")
    return bool(schema.__config__.extra != "allow")


def check_unforged(tool: BaseTool, sent: Mapping[str, Any]) -> None:
    """Refuse a value that is sent for what is injected, under an alias of it.

    LangChain takes away what is sent under an injected argument's own name, and no other. Raises
    `ArgumentsRefused`.
    """
    fields = fields_of(tool)
    shown = visible(tool, sent)
    for name in sent:
        if name not in shown:
            raise ArgumentsRefused(f"a bare value stands for args.{name}, which is injected")
        meant = [
            field for field, each in fields.items() if field != name and name in _aliases(each)
        ]
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
