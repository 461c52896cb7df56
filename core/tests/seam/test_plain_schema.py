"""Arguments that are taken as they are: only such as the schema would leave alone."""

from hypothesis import given
from hypothesis import strategies as st

from adjudge._arguments.plain_schema import kinds_of, plainly_fits
from adjudge.integration import freeze_object, normalise

TYPES = {"s": "string", "i": "integer", "n": "number", "b": "boolean"}
VALUES = st.one_of(
    st.text(max_size=3),
    st.integers(-3, 3),
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
