"""A tool's JSON Schema says what its signature says, and nothing is guessed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict, Union

import jsonschema
import pytest

from adjudge import ToolDef, ToolDefinitionError, tool
from adjudge_runtime._schema import tool_schema


class Colour(Enum):
    """Two words."""

    RED = "red"
    BLUE = "blue"


class Line(TypedDict):
    """A part that need not have a note."""

    sku: str
    note: NotRequired[str]


@dataclass
class Order:
    """A value with a value inside."""

    number: int
    line: Line
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    """One that contains itself."""

    below: list["Tree"]


Name = NewType("Name", str)


def schema(annotation: Any) -> Any:
    """The schema of one argument."""

    def body(value):
        """Do it."""

    body.__annotations__ = {"value": annotation}
    return tool_schema(ToolDef("t", "", body))["properties"]["value"]


@pytest.mark.parametrize(
    ("annotation", "described"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (Name, {"type": "string"}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict, {"type": "object", "additionalProperties": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Union[int, None], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP007
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[str, "Where."], {"type": "string", "description": "Where."}),
    ],
    ids=str,
)
def test_an_annotation_has_its_schema(annotation: Any, described: Any) -> None:
    """Each kind that JSON can say."""
    assert described == schema(annotation)


def test_values_with_fields_are_objects_that_take_nothing_else() -> None:
    """A dataclass, and a TypedDict in it; what has a default may be left out."""
    line = {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "note": {"type": "string"}},
        "required": ["sku"],
        "additionalProperties": False,
    }

    assert {
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "line": line,
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["number", "line"],
        "additionalProperties": False,
    } == schema(Order)


@pytest.mark.parametrize(
    "annotation",
    [set[str], bytes, date, dict[int, str], complex, list[date], Literal[b"x"], Tree, type],
    ids=str,
)
def test_what_json_cannot_say_is_an_error_that_names_the_argument(annotation: Any) -> None:
    """Also inside of something else."""
    with pytest.raises(ToolDefinitionError, match="'value' of t"):
        schema(annotation)


def test_an_argument_without_an_annotation_is_an_error() -> None:
    """`Any` says that anything will do."""

    def body(value):
        """Do it."""

    with pytest.raises(ToolDefinitionError, match="no annotation"):
        tool_schema(ToolDef("t", "", body))


def test_a_name_that_is_not_there_is_an_error() -> None:
    """With the tool's name."""

    def body(value: "Missing"):  # noqa: F821
        """Do it."""

    with pytest.raises(ToolDefinitionError, match="of t cannot be resolved"):
        tool_schema(ToolDef("t", "", body))


def test_defaults_are_told_and_leave_the_argument_out_of_the_required() -> None:
    """An Enum's by its value; one that JSON has no scalar for by its absence alone."""

    @tool()
    def body(a: str, *, b: int = 3, c: Colour = Colour.RED, d: list[int] = [], **rest: Any) -> str:  # noqa: B006
        """Do it."""

    described = tool_schema(body.__adjudge_tool__)
    defaults = {name: each.get("default") for name, each in described["properties"].items()}

    assert {"a": None, "b": 3, "c": "red", "d": None} == defaults
    assert (["a"], True) == (described["required"], described["additionalProperties"])


def test_methods_partials_and_callable_objects_are_read_through() -> None:
    """What is bound already is no argument."""

    class Desk:
        def find(self, place: str) -> str:
            """Find."""

        def __call__(self, place: str) -> str:
            """Find."""

    def find(limit: int, place: str) -> str:
        """Find."""

    desk = Desk()
    bodies = (desk.find, desk, partial(find, 3))
    found = [tool_schema(ToolDef("t", "", body))["properties"] for body in bodies]

    assert [{"place": {"type": "string"}}] * 3 == found


def test_what_is_described_is_json_schema() -> None:
    """A validator reads it, takes what fits and refuses what does not."""

    def body(order: Order, colour: Colour, pair: tuple[int, str], note: str | None = None) -> None:
        """Do it."""

    described = json.loads(json.dumps(tool_schema(ToolDef("t", "", body))))
    good = {"order": {"number": 1, "line": {"sku": "a"}}, "colour": "red", "pair": [1, "a"]}
    validator = jsonschema.Draft202012Validator(described)
    jsonschema.Draft202012Validator.check_schema(described)

    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "more": 1})
    assert not validator.is_valid({**good, "pair": [1]})
    assert not validator.is_valid({**good, "colour": "green"})
