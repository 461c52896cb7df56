"""The JSON Schema normaliser: defaults, coercions, problems and doubts (design, section 3)."""

import copy

import pytest

from adjudge._arguments.schema import normalise
from adjudge._values import FrozenDict, canonical_json
from adjudge.errors import ArgumentsRefused


def schema_of(*required, **properties):
    """Give the schema of an object with these properties."""
    return {"type": "object", "properties": properties, "required": list(required)}


def normalised(described, value):
    """Normalise one value under one property's schema."""
    return normalise(schema_of("x", x=described), {"x": value})


INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
STRING = {"type": "string"}
NULL = {"type": "null"}


class TestDefaults:
    def test_a_missing_argument_gets_its_default(self):
        """A default that the body would fill in is judged."""
        result = normalise(schema_of(amount={**INTEGER, "default": 10}), {"to": "b"})

        assert {"to": "b", "amount": 10} == result.args

    def test_given_names_only_what_was_sent(self):
        """Clause 3: a filled-in default was not given."""
        result = normalise(schema_of(amount={**INTEGER, "default": 10}), {"to": "b"})

        assert frozenset({"to"}) == result.given

    def test_a_sent_value_stays(self):
        """A default replaces nothing, null included."""
        result = normalise(schema_of(x={"anyOf": [INTEGER, NULL], "default": 3}), {"x": None})

        assert {"x": None} == result.args

    def test_nested_objects_get_theirs(self):
        """Defaults are filled in below lists, references and nullable unions."""
        schema = {
            **schema_of(
                lines={"type": "array", "items": {"$ref": "#/$defs/line"}},
                last={"anyOf": [{"$ref": "#/$defs/line"}, NULL], "default": None},
            ),
            "$defs": {"line": schema_of(n={**INTEGER, "default": 1})},
        }

        result = normalise(schema, {"lines": [{}, {"n": 2}], "last": {}})

        assert {"lines": [{"n": 1}, {"n": 2}], "last": {"n": 1}} == result.args

    def test_a_default_is_taken_as_it_stands(self):
        """Validators do not validate defaults, and neither do we."""
        result = normalise(schema_of(x={**INTEGER, "default": "3"}), {})

        assert {"x": "3"} == result.args

    def test_a_default_beside_a_reference_counts(self):
        """`{"$ref": ..., "default": ...}` has that default."""
        schema = {**schema_of(x={"$ref": "#/$defs/n", "default": 4}), "$defs": {"n": INTEGER}}

        assert {"x": 4} == normalise(schema, {}).args

    def test_defaults_survive_without_coercion(self):
        """A body without a validator is judged with defaults, and scalars as sent."""
        schema = schema_of(x=INTEGER, y={**INTEGER, "default": 1})

        assert {"x": "3", "y": 1} == normalise(schema, {"x": "3"}, coerce=False).args


class TestCoercion:
    @pytest.mark.parametrize(
        ("described", "sent", "judged"),
        [
            (INTEGER, "3", 3),
            (INTEGER, " -3 ", -3),
            (INTEGER, "1_000", 1000),
            (INTEGER, "3.00", 3),
            (INTEGER, 3.0, 3),
            (INTEGER, True, 1),
            (NUMBER, "1e3", 1000.0),
            (NUMBER, ".5", 0.5),
            (NUMBER, 3, 3),
            (NUMBER, False, 0.0),
            (BOOLEAN, "true", True),
            (BOOLEAN, "OFF", False),
            (BOOLEAN, 1, True),
            (BOOLEAN, 0.0, False),
            (STRING, "3", "3"),
            ({"anyOf": [INTEGER, NULL]}, "3", 3),
            ({"type": ["integer", "null"]}, "3", 3),
            ({"anyOf": [INTEGER, NULL]}, None, None),
            ({"allOf": [INTEGER], "default": 1}, "3", 3),
            ({"type": "array", "items": BOOLEAN}, ["no", 1], [False, True]),
            ({"type": "array", "prefixItems": [INTEGER], "items": BOOLEAN}, ["1", "1"], [1, True]),
            ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
        ],
    )
    def test_a_scalar_becomes_what_the_body_gets(self, described, sent, judged):
        """A coercion that lax validators agree on is made before the judging."""
        result = normalised(described, sent)

        assert canonical_json({"x": judged}) == canonical_json(result.args)
        assert () == result.problems

    @pytest.mark.parametrize(
        ("described", "sent"),
        [
            ({"anyOf": [STRING, INTEGER]}, "3"),
            ({"anyOf": [INTEGER, BOOLEAN]}, "1"),
            ({"anyOf": [{**INTEGER, "maximum": 5}, {"type": "boolean"}]}, "1"),
            ({"enum": [1, 2], "type": "integer"}, "1"),
            ({}, "3"),
            (True, "3"),
            ({"$ref": "#/nowhere"}, "3"),
            ({"$ref": "elsewhere.json#/x"}, "3"),
            ({"type": "object", "patternProperties": {"a": INTEGER}}, {"a": "3"}),
            ({"anyOf": [schema_of(a=INTEGER), schema_of(a=STRING)]}, {"a": "3"}),
            (INTEGER, 1e300),
        ],
    )
    def test_what_is_ambiguous_stays_as_sent(self, described, sent):
        """Where validators could differ the value is judged as the model wrote it."""
        result = normalised(described, sent)

        assert {"x": sent} == result.args
        assert () == result.problems

    @pytest.mark.parametrize("text", ["nan", " NaN ", "-inf", "+Infinity", "1e400"])
    def test_text_that_becomes_no_number_is_refused(self, text):
        """Clause 2: NaN and infinity are refused as text too, where a validator reads it."""
        with pytest.raises(ArgumentsRefused):
            normalised(NUMBER, text)

    def test_the_input_is_left_alone(self):
        """Normalising changes neither the arguments nor the schema."""
        schema = schema_of(x={"type": "array", "items": INTEGER}, y={**NULL, "default": [1]})
        args = {"x": ["1"]}
        before = copy.deepcopy((schema, args))

        result = normalise(schema, args)

        assert before == (schema, args)
        assert isinstance(result.args, FrozenDict)


class TestProblems:
    @pytest.mark.parametrize(
        ("described", "sent"),
        [
            (INTEGER, "many"),
            (INTEGER, 3.5),
            (INTEGER, None),
            (INTEGER, [3]),
            (NUMBER, {"n": 3}),
            (NUMBER, ""),
            (BOOLEAN, "maybe"),
            (BOOLEAN, 2),
            (STRING, 3),
            (STRING, ["a"]),
            (STRING, None),
            (NULL, 0),
            ({"type": "array"}, 3),
            ({"type": "object"}, "{}"),
            ({"type": "object"}, []),
            ({"anyOf": [INTEGER, NULL]}, "many"),
            ({"type": "array", "items": INTEGER}, [1, "many"]),
        ],
    )
    def test_a_certain_violation_is_a_problem(self, described, sent):
        """Every lax validator rejects these."""
        assert 1 == len(normalised(described, sent).problems)

    def test_a_missing_required_argument_is_a_problem(self):
        """A required argument without a default is missed."""
        assert ("args.x is missing.",) == normalise(schema_of("x", x=INTEGER), {}).problems

    def test_a_required_argument_with_a_default_is_not_missed(self):
        """Strict schemas require every property, those with defaults too."""
        assert () == normalise(schema_of("x", x={**INTEGER, "default": 1}), {}).problems

    @pytest.mark.parametrize(
        ("described", "sent"),
        [
            ({"enum": ["a", "b"]}, "c"),
            ({"const": 1}, True),
            ({**STRING, "format": "date"}, 3),
            (INTEGER, "0x10"),
            ({"type": "array", "items": INTEGER}, "12"),
            ({"anyOf": [{"const": 1}, {"const": 2}]}, 3),
            ({**schema_of(), "additionalProperties": False}, {"a": 1}),
        ],
    )
    def test_what_some_validators_accept_is_a_doubt(self, described, sent):
        """Enums with look-ups of their own, unknown keys and formats are no certain violation."""
        result = normalised(described, sent)

        assert () == result.problems
        assert 1 == len(result.doubts)
        assert {"x": sent} == result.args


class TestBounds:
    def test_a_recursive_schema_ends(self):
        """A schema that refers to itself alone is left aside."""
        schema = {**schema_of(x={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}

        assert {"x": 1} == normalise(schema, {"x": 1}).args

    def test_a_schema_that_branches_without_end_is_refused(self):
        """Law 4: a schema made to be slow ends in a denial, soon."""
        loop = {"anyOf": [{"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/loop"}]}
        schema = {**schema_of(x={"$ref": "#/$defs/loop"}), "$defs": {"loop": loop}}

        with pytest.raises(ArgumentsRefused):
            normalise(schema, {"x": 1})

    @pytest.mark.parametrize(
        "described",
        [
            {"enum": 3},
            {"type": 3},
            {"type": []},
            {"anyOf": []},
            {"anyOf": 3},
            {"allOf": [3]},
            {"$ref": 3},
            {"type": "array", "prefixItems": 3},
            {"type": "object", "properties": [], "required": "x"},
        ],
    )
    def test_a_malformed_schema_raises_nothing_else(self, described):
        """Whatever a schema holds, the value is judged as sent or found wanting."""
        assert {"x": {"a": []}} == normalised(described, {"a": []}).args
