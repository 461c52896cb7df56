"""Whatever is handed to the reader, only a policy or a compile error comes out (law 4)."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from properties.trying import examples

from adjudge.errors import PolicyCompileError
from adjudge.policy._model import PolicySource
from adjudge.policy._reading.source import read_policy
from adjudge.policy._reading.words import COMBINING, OPERATORS

WORDS = (
    *OPERATORS,
    *COMBINING,
    *("version", "defaults", "predicates", "tools", "rules", "id", "priority", "match"),
    *("decision", "verdict", "transform", "path", "jsonpath", "set", "append", "delete"),
    *("approvers", "timeout_seconds", "obligations", "phase", "params", "on", "ref", "literal"),
    *(
        "tool",
        "args.x",
        "args.x.gt",
        "args.items[0].sku",
        'args["a.b"]',
        ".",
        ".x",
        "context.extra.a",
    ),
    *(
        "always",
        "allow",
        "deny",
        "transform",
        "approve_required",
        "p",
        "q",
        "$.args.x",
        "(a+)+",
        "$",
    ),
    *("no", "1e3", "~", "<<", "declared.reversible", "given.x", "args", "*.a.b", "args.x.each"),
)


@st.composite
def words(draw):
    """Draw a word of the language; as a function, so that strategies built on it stay readable."""
    return draw(st.sampled_from(WORDS))


scalars = (
    words()
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just(10**4000)
)
keys = words() | st.text(max_size=6)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def some_trees(draw):
    """Draw any nested value."""
    return draw(nested)


trees = some_trees()
matches = st.recursive(
    st.sampled_from(["always", "p", "q"]) | st.dictionaries(keys, trees, max_size=2),
    lambda inner: st.fixed_dictionaries(
        {}, optional={"all_of": st.lists(inner, max_size=3), "not": inner, "args.x.each": inner}
    ),
    max_leaves=6,
)
rules = st.fixed_dictionaries(
    {"match": matches | trees},
    optional={
        "decision": st.sampled_from(["allow", "deny", "transform", "approve_required"]) | trees,
        "transform": trees,
        "obligations": trees,
        "approvers": trees,
        "timeout_seconds": trees,
        "priority": trees,
        "id": trees,
    },
)
policies = st.fixed_dictionaries(
    {"rules": st.lists(rules, max_size=3)},
    optional={"predicates": st.dictionaries(st.sampled_from("pq"), matches), "tools": trees},
)


def outcome(source, **options):
    """Read a policy; give it or its problems, and let any other exception through."""
    try:
        return read_policy(source, **options)
    except PolicyCompileError as error:
        return error.problems


def is_answer(found):
    """Tell whether this is a policy, or at least one problem in words."""
    return isinstance(found, PolicySource) or (bool(found) and all(map(str.strip, found)))


@given(policies | st.dictionaries(keys, trees))
@settings(max_examples=examples(200), deadline=None)
def test_a_mapping_gives_a_policy_or_problems(source):
    """No nested data makes the reader raise anything but PolicyCompileError."""
    assert is_answer(outcome(source))


@given(st.text(max_size=60) | st.binary(max_size=60))
@settings(max_examples=examples(200), deadline=None)
@example('{"rules": [}')
@example("\x85")
def test_a_text_gives_a_policy_or_problems(text):
    """No text makes the reader raise anything but PolicyCompileError, as JSON or as TOML."""
    for format_ in ("json", "toml"):
        assert is_answer(outcome(text, format=format_))


@pytest.mark.needs_yaml
@given(
    st.text(max_size=60)
    | st.binary(max_size=60)
    | st.lists(
        words() | st.sampled_from([": ", "\n", "- ", "  ", "&a ", "*a", *"[]{},!'\""]),
        max_size=25,
    ).map("".join)
)
@settings(max_examples=examples(400), deadline=None)
@example("? ? ?")
@example("*a : 1")
@example("- &a\n- *a")
@example("<<: *a")
def test_a_yaml_text_gives_a_policy_or_problems(text):
    """No text makes the reader raise anything but PolicyCompileError, as YAML."""
    assert is_answer(outcome(text, format="yaml"))


def is_plain(value):
    """Tell whether JSON and the dict say the same of a value."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return value.isprintable()
    if isinstance(value, dict):
        return all(is_plain(each) for pair in value.items() for each in pair)
    return all(map(is_plain, value)) if isinstance(value, list) else value != 10**4000


@given(policies.filter(is_plain))
@settings(max_examples=examples(60), deadline=None)
def test_a_dict_and_its_json_are_read_alike(source):
    """A dict and the JSON that says the same are both taken or both refused."""
    from_dict, from_json = outcome(source), outcome(json.dumps(source), format="json")

    assert isinstance(from_dict, PolicySource) == isinstance(from_json, PolicySource)
