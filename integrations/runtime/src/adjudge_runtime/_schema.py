"""The JSON Schema of a tool, read from its function's signature, for a model to be told.

It says exactly which arguments there are (`additionalProperties` is false unless the function takes
any), which of them may be left out and what they are then. A body gets plain JSON values: a
dataclass or TypedDict in a signature describes an object, and arrives as a dict; an Enum arrives as
its value. What JSON cannot say raises `ToolDefinitionError`; nothing is guessed. It validates no
arguments: that is for the guard and the body.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from adjudge import ToolDef, ToolDefinitionError

__all__ = ["tool_schema"]

_SCALARS: Mapping[Any, str] = types.MappingProxyType(
    {
        str: "string",
        int: "integer",
        float: "number",
        bool: "boolean",
        types.NoneType: "null",
        None: "null",
    }
)
_ARRAYS = (list, Sequence, tuple)
_OBJECTS = (dict, Mapping)
# Qualifiers of a TypedDict's keys; which keys are required is read elsewhere.
_QUALIFIERS = frozenset({"Required", "NotRequired", "ReadOnly"})


def tool_schema(tool: ToolDef) -> dict[str, Any]:
    """Give the JSON Schema of a tool's arguments: an object with a property for each.

    Raises `ToolDefinitionError`, which names the tool and the argument, for an annotation that is
    missing, cannot be resolved, or has no JSON form.
    """
    parameters = inspect.signature(tool.fn).parameters.values()
    hints = _hints(tool)
    properties: dict[str, Any] = {}
    required: list[str] = []
    takes_any = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            where = f"The argument {parameter.name!r} of {tool.name}"
            if parameter.name not in hints:
                raise ToolDefinitionError(
                    f"{where} has no annotation, so that no model can be told what it is; "
                    "write its type, or `Any`."
                )
            described = _Reader(where, ()).schema(hints[parameter.name])
            if parameter.default is parameter.empty:
                required.append(parameter.name)
            else:
                described = _with_default(described, parameter.default)
            properties[parameter.name] = described
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": takes_any,
    }


def _hints(tool: ToolDef) -> dict[str, Any]:
    function: Any = inspect.unwrap(tool.fn)
    while not inspect.isroutine(function):
        function = getattr(function, "func", None) or type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ToolDefinitionError(
            f"An annotation of {tool.name} cannot be resolved ({error}); "
            "use names that the module of the function knows when it runs."
        ) from None


def _with_default(described: dict[str, Any], default: object) -> dict[str, Any]:
    """Add a default where its JSON form is all of it; that there is one shows in `required`."""
    if isinstance(default, Enum):
        default = default.value
    if default is None or type(default) in (str, int, float, bool):
        return {**described, "default": default}
    return described


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """Reads annotations; `inside` are the classes being read, so that none contains itself."""

    where: str
    inside: tuple[type, ...]

    def schema(self, annotation: Any) -> dict[str, Any]:
        """Describe the values of one annotation."""
        if annotation is Any or annotation is object:
            return {}
        if isinstance(annotation, typing.Hashable) and annotation in _SCALARS:
            return {"type": _SCALARS[annotation]}
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            return self._annotated(annotation)
        if getattr(origin, "_name", None) in _QUALIFIERS:
            return self.schema(typing.get_args(annotation)[0])
        if origin is typing.Literal:
            return self._one_of(list(typing.get_args(annotation)))
        if origin in (typing.Union, types.UnionType):
            return self._union(typing.get_args(annotation))
        if isinstance(annotation, typing.NewType):
            return self.schema(annotation.__supertype__)
        if type(annotation).__name__ == "TypeAliasType":
            return self.schema(annotation.__value__)
        return self._container(annotation, origin or annotation, typing.get_args(annotation))

    def _container(
        self, annotation: Any, origin: Any, arguments: tuple[Any, ...]
    ) -> dict[str, Any]:
        if origin in _OBJECTS:
            return self._mapping(arguments)
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            items = [self.schema(item) for item in arguments]
            counts = {"minItems": len(items), "maxItems": len(items)}
            return {"type": "array", "prefixItems": items, **counts}
        if origin in _ARRAYS:
            items_of = self.schema(arguments[0]) if arguments else {}
            return {"type": "array", **({"items": items_of} if items_of else {})}
        if isinstance(origin, type):
            if issubclass(origin, Enum):
                return self._one_of([member.value for member in origin])
            if typing.is_typeddict(origin):
                return self._fields(origin, frozenset(getattr(origin, "__required_keys__", ())))
            if dataclasses.is_dataclass(origin):
                return self._fields(origin, _needed(origin))
        raise ToolDefinitionError(
            f"{self.where} is annotated {_name(annotation)}, which has no JSON form; use str, int, "
            "float, bool, None, list, dict, Literal, an Enum, a TypedDict or a dataclass of them."
        )

    def _annotated(self, annotation: Any) -> dict[str, Any]:
        inner, *notes = typing.get_args(annotation)
        texts = [note for note in notes if isinstance(note, str)]
        return {**self.schema(inner), **({"description": " ".join(texts)} if texts else {})}

    def _mapping(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if arguments and self.schema(arguments[0]) != {"type": "string"}:
            raise ToolDefinitionError(
                f"{self.where} has keys of type {_name(arguments[0])}; "
                "the keys of a JSON object are strings."
            )
        values = self.schema(arguments[1]) if arguments else {}
        return {"type": "object", "additionalProperties": values or True}

    def _one_of(self, values: list[Any]) -> dict[str, Any]:
        plain = [value.value if isinstance(value, Enum) else value for value in values]
        if not plain or not all(type(value) in _SCALARS for value in plain):
            raise ToolDefinitionError(
                f"{self.where} is one of {values!r}; only strings, numbers, booleans and None "
                "can be listed."
            )
        kinds = list(dict.fromkeys(_SCALARS[type(value)] for value in plain))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": plain}

    def _union(self, members: tuple[Any, ...]) -> dict[str, Any]:
        return {"anyOf": [self.schema(member) for member in members]}

    def _fields(self, described: Any, required: frozenset[str]) -> dict[str, Any]:
        if described in self.inside:
            raise ToolDefinitionError(
                f"{self.where} is a {described.__name__}, which contains itself; "
                "use `dict` for a value of any depth."
            )
        inner = _Reader(self.where, (*self.inside, described))
        try:
            hints = typing.get_type_hints(described, include_extras=True)
        except (NameError, TypeError) as error:
            raise ToolDefinitionError(
                f"{self.where} is a {described.__name__}, of which a field cannot be resolved "
                f"({error}); define its types at the top of a module."
            ) from None
        if dataclasses.is_dataclass(described):
            names = [field.name for field in dataclasses.fields(described) if field.init]
        else:
            names = list(hints)
        return {
            "type": "object",
            "properties": {name: inner.schema(hints[name]) for name in names},
            "required": [name for name in names if name in required],
            "additionalProperties": False,
        }


def _needed(described: Any) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(described)
        if field.default is missing and field.default_factory is missing
    )


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)
