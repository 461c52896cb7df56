"""The JSON projection of Python values (clause 1)."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import ClassVar
from uuid import UUID

import pytest

from adjudge._arguments.projection import project, project_object
from adjudge._values import MAX_DEPTH, FrozenDict, OpaqueValue
from adjudge.errors import ArgumentsRefused


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ()


class Secret:
    """A secret of the kind that pydantic and others have."""

    def get_secret_value(self):
        """Give the secret itself."""
        return "hunter2"


class Model:
    """What a pydantic model looks like from outside."""

    model_fields = {"owner": None, "colour": None}  # noqa: RUF012 (as on a real model)

    def __init__(self, owner, colour, **extra):
        self.owner, self.colour, self.model_extra = owner, colour, extra or None

    def model_dump(self):
        """Never called: it would reveal nested secrets' types only by luck."""
        raise AssertionError


class RootModel(Model):
    """What a pydantic root model looks like from outside."""

    __pydantic_root_model__ = True

    def __init__(self, root):
        self.root = root


@pytest.mark.parametrize(
    ("value", "judged"),
    [
        (Point(1, ("a",)), {"x": 1, "tags": ["a"]}),
        (Model("ann", Colour.RED), {"owner": "ann", "colour": "red"}),
        (
            Model("ann", Colour.RED, more=[Point(1)]),
            {"owner": "ann", "colour": "red", "more": [{"x": 1, "tags": []}]},
        ),
        ([Model({"k": Point(2)}, None)], [{"owner": {"k": {"x": 2, "tags": []}}, "colour": None}]),
        (RootModel([Point(1)]), [{"x": 1, "tags": []}]),
        (Decimal("1.10"), Decimal("1.10")),
        (date(2024, 2, 3), "2024-02-03"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        ({"a", "b"}, ["a", "b"]),
        (frozenset({2, 1}), [1, 2]),
    ],
)
def test_a_value_projects_to_its_json_meaning(value, judged):
    """Clause 1: models are objects, an Enum is its value, dates and the like are text."""
    assert judged == project(value)


def test_a_secret_projects_to_a_marker_that_equals_nothing():
    """A secret is there, opaque, at any depth, and carries nothing of itself."""
    projected = project_object({"token": Secret(), "in": Model(Secret(), None)})

    assert isinstance(projected["token"], OpaqueValue)
    assert isinstance(projected["in"]["owner"], OpaqueValue)
    assert projected["token"] != projected["token"]
    assert "hunter2" not in repr(projected)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        b"bytes",
        float("nan"),
        Decimal("Infinity"),
        "\ud800",
        {1: "a"},
        SimpleNamespace(a=1),
        Point,
        Model,
        Secret,
        [Point(object())],
        1j,
    ],
    ids=repr,
)
def test_a_value_without_json_meaning_is_refused(value):
    """Clause 1: anything else is refused at the door."""
    with pytest.raises(ArgumentsRefused):
        project(value)


def test_a_cycle_is_refused():
    """A value that holds itself is nested too deep, and no RecursionError."""
    loop = []
    loop.append(loop)

    with pytest.raises(ArgumentsRefused):
        project(loop)


def test_the_depth_bound_is_that_of_frozen_values():
    """Clause 2: Python objects are held to the same bound as text."""
    value = 1
    for _ in range(MAX_DEPTH):
        value = {"x": value}

    assert isinstance(project(value), FrozenDict)
    with pytest.raises(ArgumentsRefused):
        project(Point(value))


class OldModel:
    """What a model of pydantic 1 looks like."""

    __fields__: ClassVar = {"a": object(), "inner": object()}

    def __init__(self, **fields):
        self.__dict__.update(fields)

    @classmethod
    def __get_validators__(cls):
        """Give none."""
        return iter(())

    @classmethod
    def parse_obj(cls, given):
        """Make one."""
        return cls(**given)


def test_models_of_pydantic_1_are_objects():
    """Their fields and extras show at any depth; one with a root is that."""
    inner = OldModel(a=1, extra="x")

    assert {"a": 2, "inner": {"a": 1, "extra": "x"}} == project(OldModel(a=2, inner=inner))
    assert [1, {"a": 3}] == project(OldModel(__root__=[1, OldModel(a=3)]))


def test_named_arguments_are_asked_for():
    """`project_object` takes the arguments of a call, not a lone value."""
    with pytest.raises(ArgumentsRefused):
        project_object([1])


def test_a_property_that_raises_is_not_swallowed():
    """Law 4: what fails while a value is read reaches the caller."""

    class Broken(Model):
        @property
        def owner(self):
            """Fail."""
            raise LookupError

        @owner.setter
        def owner(self, value):
            """Take anything."""

    with pytest.raises(LookupError):
        project(Broken(1, 2))
