"""Arguments that are taken as they are: only such as the schema would leave alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge._arguments.plain_schema import kinds_of, plainly_fits, plainly_taken
from adjudge._values import FrozenDict
from adjudge.errors import ArgumentsRefused
from adjudge.integration import freeze_object, normalise

TYPES = {"s": "string", "i": "integer", "n": "number", "b": "boolean"}
VALUES = st.one_of(
    st.text(max_size=3),
    st.integers(-3, 3),
    st.integers(2**62, 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.just("3"),
    st.lists(st.integers(), max_size=1),
)


@st.composite
def schemas(draw):
    """Make the schema of a few arguments, some of which may be left out."""
    names = draw(st.sets(st.sampled_from("sinb"), min_size=1))
    optional = draw(st.sets(st.sampled_from(sorted(names))))
    return {
        "type": "object",
        "properties": {name: {"type": TYPES[name]} for name in sorted(names)},
        "required": sorted(names - optional),
        "additionalProperties": False,
    }


@given(schemas(), st.dictionaries(st.sampled_from("sinbx"), VALUES))
def test_what_is_taken_as_it_is_is_what_the_schema_gives(schema, args):
    """Whatever needs no look would come out of the schema unchanged, types included."""
    if not plainly_fits(args, kinds_of(schema)):
        return
    found = normalise(schema, freeze_object(args))

    assert () == tuple(found.problems)
    assert args == found.args
    assert [type(value) for value in args.values()] == [type(found.args[name]) for name in args]


def test_a_schema_that_says_more_needs_a_look():
    """An enumeration, a list and a schema that takes anything are held against the arguments."""

    def made(**properties):
        return {
            "type": "object",
            "properties": properties,
            "required": [],
            "additionalProperties": False,
        }

    text, number = {"type": "string"}, {"type": "integer", "default": 3}

    assert {"a": str, "b": int} == kinds_of(made(a=text, b=number))
    assert {} == kinds_of(made())
    assert kinds_of(made(a={"type": "array"})) is None
    assert kinds_of(made(a={**text, "enum": ["x"]})) is None
    assert kinds_of({"type": "object"}) is None
    assert kinds_of({**made(a=text), "additionalProperties": True}) is None


def test_only_the_very_types_fit():
    """A missing argument, one too many and a bool for a number need a look."""
    kinds = {"a": str, "b": int}

    assert plainly_fits({"a": "x", "b": 1}, kinds)
    assert not plainly_fits({"a": "x"}, kinds)
    assert not plainly_fits({"a": "x", "b": True}, kinds)
    assert not plainly_fits({"a": "x", "b": 1, "c": 1}, kinds)


class Name(str):
    """A text that is more than one."""

    __slots__ = ()


ODD = st.one_of(VALUES, st.floats(), st.just(Name("x")), st.just("\ud800"), st.just(10**5000))
NAMES = st.one_of(st.sampled_from("sinbx"), st.sampled_from("sinb").map(Name))


@given(schemas(), st.dictionaries(NAMES, ODD), st.sampled_from([dict, FrozenDict]))
def test_what_is_taken_at_once_is_what_the_long_way_gives(schema, args, kind):
    """It is frozen as `freeze_object` does, would be refused by nothing, and fits the schema."""
    taken = plainly_taken(kind(args), kinds_of(schema))
    if taken is None:
        return
    frozen = freeze_object(args)
    found = normalise(schema, frozen)

    assert () == tuple(found.problems)
    assert frozen == taken == found.args
    assert [*map(type, frozen)] == [*map(type, taken)]
    assert [*map(type, frozen.values())] == [*map(type, taken.values())]
    assert FrozenDict is type(taken)


def test_what_is_taken_is_a_copy():
    """Whoever changes what was handed over changes nothing of what is judged."""
    args = {"s": "x"}
    taken = plainly_taken(args, {"s": str})
    args["s"] = "y"

    assert {"s": "x"} == taken


@pytest.mark.parametrize(
    "args",
    [{"s": "\ud800"}, {"s": 1}, {"s": "x", "t": "y"}, {}, {Name("s"): "x"}, '{"s": "x"}', ["s"]],
)
def test_what_may_be_wrong_is_not_taken_at_once(args):
    """A lone surrogate, another kind, another name and a text take the long way."""
    assert plainly_taken(args, {"s": str}) is None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_no_number_without_a_meaning_is_taken_at_once(number):
    """What `freeze_object` refuses goes to it."""
    assert plainly_taken({"n": number}, {"n": float}) is None
    with pytest.raises(ArgumentsRefused):
        freeze_object({"n": number})
