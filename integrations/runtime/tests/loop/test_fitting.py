"""Arguments that are taken as they are: only such as the schema would leave alone."""

from hypothesis import given
from hypothesis import strategies as st

from adjudge import ToolDef
from adjudge.integration import freeze_object, normalise
from adjudge_runtime import ToolCall
from adjudge_runtime._fitting import kinds_of, plainly_fits
from adjudge_runtime._schema import tool_schema

from .scripted import DONE, Script, call

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
    if not plainly_fits(ToolCall("t", args), kinds_of(schema)):
        return
    found = normalise(schema, freeze_object(args))

    assert () == tuple(found.problems)
    assert args == found.args
    assert [type(value) for value in args.values()] == [type(found.args[name]) for name in args]


def test_a_schema_that_says_more_needs_a_look():
    """An enumeration, a nested object and a function that takes anything are the guard's."""

    def plain(a: str, b: int = 3) -> None:
        pass

    def nested(a: list[str]) -> None:
        pass

    def anything(a: str, **rest: object) -> None:
        pass

    kinds = [kinds_of(tool_schema(ToolDef("t", "", each))) for each in (plain, nested)]

    assert [{"a": str, "b": int}, None] == kinds
    assert kinds_of({"type": "object"}) is None
    assert kinds_of(tool_schema(ToolDef("t", "", lambda: None))) == {}
    assert not plainly_fits(ToolCall("t", {"a": "x"}), kinds[0])
    assert not plainly_fits(ToolCall("t", '{"a": "x", "b": 1}'), kinds[0])
    assert plainly_fits(ToolCall("t", {"a": "x", "b": 1}), kinds[0])
    assert not plainly_fits(ToolCall("t", {"a": "x", "b": True}), kinds[0])


async def test_both_ways_lead_to_the_same(world):
    """The same call as values and as text is judged, run and told alike."""
    agent = Script(call("order", count=2), ToolCall("order", '{"count": 2}'), DONE)

    await world.run(agent)

    assert ['{"ordered": 2}'] * 2 == agent.told
    first, second = world.bodies("policy.evaluated")
    assert first == second
