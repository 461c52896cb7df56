"""JSON text: every value with its line and column, no key twice, nothing that JSON cannot say."""

import pytest

from adjudge.errors import PolicyCompileError
from adjudge.policy._reading.json_source import JsonSyntax, read_json
from adjudge.policy._reading.nodes import Problems
from adjudge.policy._reading.source import read_policy


def problems_of(text):
    """Give what is wrong with a JSON policy."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy(text, format="json", file="policy.json")
    return caught.value.problems


def test_every_value_has_its_line_and_column():
    """Clause 33: a leaf of a JSON policy stands at its key."""
    policy = read_policy(
        '{\n  "rules": [\n    {"match": {\n      "args.x.gt": 5}}]}', file="policy.json"
    )
    place = policy.rules[0].match.place

    assert ("policy.json", 4, 7) == (place.file, place.line, place.column)
    assert "rules[0].match.args.x.gt" == place.path


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('{"version": 1,\n "version": 1}', 'policy.json:2:2: version: "version" is given twice'),
        (
            '{"rules": [{"id": "r", "match": {"args.x": 1, "args.x": 2}, "decision": "allow"}]}',
            'policy.json:1:47: rule "r", match.args.x: "args.x" is given twice',
        ),
        (
            '{"rules": [{"id": "r", "decision": "deny", "match": "always", "decision": "allow"}]}',
            'policy.json:1:63: rule "r", decision: "decision" is given twice',
        ),
    ],
)
def test_a_key_given_twice_is_a_problem_with_both_places(text, first):
    """Clause 4: duplicate keys are compile errors, in JSON as well."""
    (problem,) = problems_of(text)

    assert problem.startswith(first)
    assert "line 1, column" in problem


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 4001])
def test_a_number_that_is_not_finite_is_a_problem(value):
    """What Python's parser adds to JSON, and what overflows, cannot be compared with."""
    (problem,) = problems_of(
        f'{{"rules": [{{"id": "r", "match": {{"args.x": {value}}}, "decision": "allow"}}]}}'
    )

    assert problem.startswith('policy.json:1:44: rule "r", match.args.x: ')


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff": 1}'])
def test_a_lone_surrogate_is_a_problem(text):
    """Text that is not Unicode is refused, in values and in keys."""
    rule = f'{{"id": "r", "match": {{"args.x.eq": {{"literal": {text}}}}}, "decision": "allow"}}'

    assert "surrogate" in problems_of(f'{{"rules": [{rule}]}}')[0]


def test_an_exponent_is_a_number_in_json():
    """What is a surprise in YAML is plain in JSON."""
    policy = read_policy('{"rules": [{"match": {"args.x.gt": 1e3}}]}')

    assert 1000.0 == policy.rules[0].match.operand


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("{", 2),
        ('{"a"}', 5),
        ('{"a" 1}', 6),
        ('{"a": 1,}', 9),
        ('{"a": 1 "b": 2}', 9),
        ("{a: 1}", 2),
        ("{1: 2}", 2),
        ('{{"a": 1}: 2}', 2),
        ("[1 2]", 4),
        ("[1,]", 4),
        ("{} x", 4),
        ('{"a": tru}', 7),
        ('{"a": "x', 7),
        ("", 1),
        ("'a'", 1),
    ],
)
def test_what_is_no_json_is_told_where(text, column):
    """Broken JSON has a line and a column."""
    with pytest.raises(JsonSyntax) as caught:
        read_json(text, Problems())

    assert (1, column) == (caught.value.line, caught.value.column)


@pytest.mark.parametrize(
    "text", ['{"a":' * 5000, "[" * 5000, "{" * 5000, '{"a":' * 5000 + "}" * 5000]
)
def test_deep_nesting_is_a_problem_and_no_crash(text):
    """Nesting is bounded long before the interpreter is."""
    assert len(problems_of(text)) == 1
