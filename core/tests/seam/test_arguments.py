"""Strict reading of a model's argument text (clause 2)."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge._arguments.parsing import _parsed_with_care, parse_arguments
from adjudge._values import FrozenDict
from adjudge.errors import ArgumentsRefused, NotAnObject

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=5), st.booleans())
def test_reads_plain_json_objects_as_json_loads_does(value, ascii_only):
    """Any object of JSON values comes back as it was written, frozen."""
    text = json.dumps(value, ensure_ascii=ascii_only)

    parsed = parse_arguments(text)

    assert value == parsed
    assert isinstance(parsed, FrozenDict)


@given(st.text(alphabet='{}[]":,0129.eE+-truefalsnNIity \\u\t\n\ud800', max_size=24))
def test_answers_every_text_with_a_value_or_one_of_its_two_errors(text):
    """Clause 2: text that `json.loads` rejects is NotAnObject; what we read it reads the same."""
    try:
        lenient = json.loads(text)
    except ValueError:
        lenient = None

    try:
        parsed = parse_arguments(text)
    except NotAnObject:
        assert not isinstance(lenient, dict)
    except ArgumentsRefused:
        assert isinstance(lenient, dict)
    else:
        assert lenient == parsed


def outcome(read, text):
    """Give what a reader gives, or the type and the words of what it raises."""
    try:
        return repr(read(text))
    except (NotAnObject, ArgumentsRefused) as error:
        return type(error), str(error)


TEXTS = st.text(alphabet='{}[]":,019.eE+-ntN \\u\n\ud800é\ufeff', max_size=12)
WORDS = st.sampled_from(
    ['"a":1', '"a":NaN', '"a":1e999', '"b":{"c":0,"c":1}', f'"d":-{10**3999}', f'"d":{10**4000}']
)


@given(st.one_of(TEXTS, st.lists(WORDS, max_size=4).map(lambda each: f"{{{','.join(each)}}}")))
def test_the_quick_way_and_the_careful_one_read_the_same(text):
    """What is plainly right is read at once, and everything else as if there were no such way."""
    assert outcome(_parsed_with_care, text) == outcome(parse_arguments, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "null",
        "[]",
        "3",
        '"{}"',
        "{",
        "{'a': 1}",
        '{"a": 1,}',
        "{} {}",
        "\ufeff{}",
        "[NaN]",
    ],
)
def test_leaves_text_that_is_no_object_to_the_framework(text):
    """Clause 2: what is no JSON, or no object, is the framework's to answer."""
    with pytest.raises(NotAnObject) as caught:
        parse_arguments(text)

    assert "invalid_arguments" == caught.value.code


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": 1, "a": 1}', id="duplicate key"),
        pytest.param('{"a": 1, "\\u0061": 2}', id="duplicate key, escaped"),
        pytest.param('{"o": [{"a": {"b": 1, "b": 2}}]}', id="duplicate key, nested"),
        pytest.param('{"a": {"b": 1, "b": 2}, "a": 3}', id="duplicate of a duplicate"),
        pytest.param('{"a": NaN}', id="NaN"),
        pytest.param('{"a": [Infinity]}', id="Infinity"),
        pytest.param('{"a": -Infinity}', id="-Infinity"),
        pytest.param('{"a": 1e400}', id="overflow"),
        pytest.param('{"a": -1e400}', id="negative overflow"),
        pytest.param('{"a": ' + "9" * 4001 + "}", id="4,001 digits"),
        pytest.param('{"a": -' + "9" * 100_000 + "}", id="100,000 digits"),
        pytest.param('{"a": "\\ud800"}', id="lone surrogate, escaped"),
        pytest.param('{"a": "\ud800"}', id="lone surrogate, raw"),
        pytest.param('{"\\udc00": 1}', id="lone surrogate in a key"),
    ],
)
def test_refuses_what_a_lenient_parser_would_accept(text):
    """Clause 2: these are denied under any policy."""
    with pytest.raises(ArgumentsRefused) as caught:
        parse_arguments(text)

    assert "refused_arguments" == caught.value.code


def nested(levels: int) -> str:
    """Write objects in objects."""
    return '{"a": ' * levels + "1" + "}" * levels


def test_accepts_nesting_up_to_the_bound():
    """Clause 2: 64 levels are read."""
    assert {"a": 1} == _innermost(parse_arguments(nested(64)))


@pytest.mark.parametrize("levels", [65, 300, 50_000])
def test_refuses_deeper_nesting_without_a_recursion_error(levels):
    """Clause 2: nesting over 64 levels is refused however deep it goes."""
    with pytest.raises(ArgumentsRefused):
        parse_arguments(nested(levels))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_bottomless_text_is_an_error_of_ours(text):
    """Text that only opens is refused or left to the framework, never a RecursionError."""
    with pytest.raises((ArgumentsRefused, NotAnObject)):
        parse_arguments(text)


def test_accepts_an_integer_of_exactly_the_bound():
    """Clause 2: 4,000 digits are read."""
    parsed = parse_arguments('{"a": -' + "9" * 4000 + "}")

    assert -int("9" * 4000) == parsed["a"]


def test_a_lower_interpreter_limit_refuses_instead_of_raising():
    """A Python set to read fewer digits refuses the number, and does not call it no JSON."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with pytest.raises(ArgumentsRefused):
            parse_arguments('{"a": ' + "9" * 700 + "}")
    finally:
        sys.set_int_max_str_digits(limit)


def test_malformed_text_with_a_duplicate_key_stays_the_frameworks():
    """A refusal counts only for text that is an object at all."""
    with pytest.raises(NotAnObject):
        parse_arguments('{"a": 1, "a": 2')


def _innermost(value):
    while isinstance(value["a"], dict):
        value = value["a"]
    return value
