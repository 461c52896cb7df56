"""Core's JSON Schema normaliser, held against the validator that stands before the bodies here."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, Union
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError, create_model

from adjudge import ArgumentsRefused
from adjudge.integration import canonical_json, normalise, project


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 2.5


class Line(BaseModel):
    start: Point
    width: int = 1
    tags: list[str] = []
    next: "Line | None" = None


class Bounded(BaseModel):
    n: int = Field(ge=0, le=5)


ANNOTATIONS = [
    int,
    float,
    bool,
    str,
    int | None,
    float | None,
    bool | None,
    str | None,
    int | float,
    Union[float, int],  # noqa: UP007 (the order matters)
    int | str,
    bool | int,
    int | bool | str,
    list[int],
    list[float | None],
    tuple[int, str],
    dict[str, int],
    dict[str, list[bool]],
    int | list[int],
    Literal["a", "b"],
    Literal[1, 2],
    Colour,
    Level,
    Colour | None,
    Level | int,
    date,
    date | None,
    UUID,
    Decimal,
    Any,
    Point,
    Line,
    Line | None,
    Point | Line,
    list[Point],
    Bounded | int,
    Bounded | dict[str, int],
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 7)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, 1.0, 2.0, 3.5, 1e20, 10**400])
    | st.text(max_size=4)
    | st.sampled_from(
        ["3", "+3", " 3 ", "3.0", "3.5", "1_0", "1e3", ".5", "5.", "1", "nan", "-inf"]
    )
    | st.sampled_from(["1e400", "true", "FALSE", "yes", "off", "a", "red"])
    | st.sampled_from(["2024-02-03", "12345678-1234-5678-1234-567812345678", ""])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "n", "start", "width", "tags", "next"]), inner)
    ),
    max_leaves=6,
)


def changed(judged: object, sent: object) -> bool:
    """Whether normalising changed anything, a number's spelling included."""
    return canonical_json(judged) != canonical_json(sent)


def reads_alike(judged: object, body: object) -> bool:
    """Whether the judged value is the body's; keys that the body ignores may be left."""
    if isinstance(body, dict):
        return all(key in judged and reads_alike(judged[key], body[key]) for key in body)
    if isinstance(body, list):
        return len(judged) == len(body) and all(map(reads_alike, judged, body))
    return isinstance(judged, bool) == isinstance(body, bool) and judged == body


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_what_is_judged_is_what_pydantic_hands_to_the_body(annotation, data):
    """Law 5: what is changed is changed as for the body; a problem is a call that is rejected."""
    model = create_model("Arguments", value=(annotation, ...))
    sent = {"value": data.draw(values)}
    try:
        validated = model(**sent)
    except ValidationError:
        validated = None

    try:
        judged = normalise(model.model_json_schema(), sent)
    except ArgumentsRefused:
        return

    if judged.problems:
        assert validated is None
    elif validated is not None and changed(judged.args["value"], sent["value"]):
        assert reads_alike(judged.args, project(validated))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.sampled_from(ANNOTATIONS), values)
def test_without_coercion_scalars_stay_as_sent(annotation, value):
    """A body that no validator stands before is judged on what it sees."""
    schema = create_model("Arguments", value=(annotation, ...)).model_json_schema()

    try:
        judged = normalise(schema, {"value": value}, coerce=False)
    except ArgumentsRefused:
        return

    if not isinstance(value, dict | list):
        assert {"value": value} == judged.args
