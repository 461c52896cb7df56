"""JSON values: what is accepted, that it cannot change, and its one canonical text."""

import copy
import json
import math
import pickle
from collections import UserDict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from uuid import UUID

import pytest

from adjudge._values import (
    FrozenDict,
    FrozenList,
    OpaqueValue,
    canonical_json,
    digest,
    freeze,
    freeze_object,
    kind_of,
    thaw,
)
from adjudge.errors import ArgumentsRefused


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


def nested(depth: int) -> object:
    """Give a value that is nested so many levels deep."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


class TestFreezing:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, None),
            (True, True),
            (7, 7),
            (2.5, 2.5),
            ("é", "é"),
            ((1, 2), [1, 2]),
            (Colour.RED, "red"),
            (Level.HIGH, 3),
            (Word.YES, "yes"),
            (Decimal("1.10"), Decimal("1.10")),
            (date(2026, 1, 2), "2026-01-02"),
            (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
            (UUID(int=0), "00000000-0000-0000-0000-000000000000"),
            (PurePosixPath("/a/b"), "/a/b"),
            (UserDict({"a": [1]}), {"a": [1]}),
        ],
    )
    def test_accepts(self, given, expected):
        """Clause 1: what stands for a JSON value becomes that value, of a plain type."""
        frozen = freeze(given)

        assert expected == frozen
        assert type(frozen) in {
            type(None), bool, int, float, str, Decimal, FrozenList, FrozenDict,
        }  # fmt: skip

    @pytest.mark.parametrize(
        "given",
        [
            math.nan,
            math.inf,
            -math.inf,
            Decimal("NaN"),
            Decimal("Infinity"),
            b"bytes",
            {1, 2},
            object(),
            {1: "a"},
            {Word.YES: 1},
            "\ud800",
            {"\udfff": 1},
            10**4000,
            -(10**4000),
            1 + 2j,
        ],
    )
    def test_refuses(self, given):
        """Clause 1: what is no JSON value is refused at the door, wherever it stands."""
        with pytest.raises(ArgumentsRefused):
            freeze(given)
        with pytest.raises(ArgumentsRefused) as caught:
            freeze({"a": [{"b": given}]})

        assert "args.a[0].b" in str(caught.value)

    def test_names_the_place(self):
        """A refusal says where the value stands."""
        with pytest.raises(ArgumentsRefused) as caught:
            freeze({"items": [{"price": math.nan}]})

        assert "args.items[0].price" in str(caught.value)

    def test_depth_is_bounded(self):
        """Clause 2: nesting over 64 levels is refused, 64 is not."""
        assert [[1]] == freeze(nested(2))
        freeze(nested(64))
        with pytest.raises(ArgumentsRefused):
            freeze(nested(65))

    def test_a_cycle_is_refused(self):
        """A value that holds itself is refused, not followed for ever."""
        loop: list[object] = []
        loop.append(loop)

        with pytest.raises(ArgumentsRefused):
            freeze(loop)

    def test_only_an_object_has_arguments(self):
        """Arguments are an object with named values."""
        with pytest.raises(ArgumentsRefused):
            freeze_object([1])  # type: ignore[arg-type]


class TestImmutability:
    @pytest.mark.parametrize(
        ("method", "arguments"),
        [
            ("__setitem__", ("a", 1)),
            ("__delitem__", ("a",)),
            ("__ior__", ({"a": 1},)),
            ("clear", ()),
            ("pop", ("a",)),
            ("popitem", ()),
            ("setdefault", ("z", 1)),
            ("update", ({"a": 1},)),
        ],
    )
    def test_no_method_changes_an_object(self, method, arguments):
        """Clause 29: a frozen object cannot be changed by any method of a dict."""
        frozen = freeze({"a": 1})
        with pytest.raises(TypeError):
            getattr(frozen, method)(*arguments)

        assert {"a": 1} == frozen

    @pytest.mark.parametrize(
        ("method", "arguments"),
        [
            ("__setitem__", (0, 1)),
            ("__delitem__", (0,)),
            ("__iadd__", ([1],)),
            ("__imul__", (2,)),
            ("append", (1,)),
            ("clear", ()),
            ("extend", ([1],)),
            ("insert", (0, 1)),
            ("pop", ()),
            ("remove", (1,)),
            ("reverse", ()),
            ("sort", ()),
        ],
    )
    def test_no_method_changes_a_list(self, method, arguments):
        """Clause 29: a frozen list cannot be changed by any method of a list."""
        frozen = freeze([1, 2])
        with pytest.raises(TypeError):
            getattr(frozen, method)(*arguments)

        assert [1, 2] == frozen

    def test_pickles_copies_and_serialises(self):
        """Clause 29: the frozen mapping pickles, copies and serialises as itself."""
        frozen = freeze({"a": [1, {"b": None}]})

        again = pickle.loads(pickle.dumps(frozen))
        assert (frozen, FrozenDict, FrozenList) == (again, type(again), type(again["a"]))
        assert copy.deepcopy(frozen) is frozen
        assert '{"a": [1, {"b": null}]}' == json.dumps(frozen)

    def test_the_callers_value_stays_apart(self):
        """What the caller changes afterwards does not reach the frozen copy, nor a thawed one."""
        given = {"a": [1]}
        frozen = freeze(given)
        given["a"].append(2)
        fresh = thaw(frozen)
        fresh["a"].append(3)

        assert {"a": [1]} == frozen
        assert (dict, list) == (type(fresh), type(fresh["a"]))


class TestCanonicalText:
    def test_is_sorted_ascii_and_tight(self):
        """Clause 28: sorted keys, ASCII, tight separators."""
        assert '{"a":1,"b":"\\u00e9"}' == canonical_json({"b": "é", "a": 1})

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (1, 1.0),
            (1, True),
            (0, False),
            ("1", 1),
            (None, "null"),
            ({}, []),
            ({}, None),
            (Decimal("1.0"), 1.0),
            (Decimal("1.0"), "1.0"),
            (Decimal("1.0"), {"$decimal": "1.0"}),
            ({"$$decimal": "1.0"}, {"$decimal": "1.0"}),
            (Decimal("1.0"), Decimal("1.00")),
            ({"a": None}, {}),
            (-0.0, 0.0),
        ],
    )
    def test_distinct_values_have_distinct_digests(self, one, other):
        """Clause 28: values that differ in kind or spelling never share a digest."""
        assert digest(one) != digest(other)

    def test_key_order_does_not_count(self):
        """The order of keys is no part of a value."""
        assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


class TestSecrets:
    def test_equals_nothing(self):
        """A secret's place equals nothing, itself included."""
        secret = OpaqueValue()

        assert "secret" == kind_of(secret)
        assert secret != secret
        assert secret != OpaqueValue()
        assert "<secret>" == repr(secret)

    def test_survives_freezing_and_pickling(self):
        """A secret stays one through freezing, thawing and pickling."""
        frozen = pickle.loads(pickle.dumps(freeze({"key": OpaqueValue()})))

        assert isinstance(thaw(frozen)["key"], OpaqueValue)


def test_a_decimal_of_a_class_of_its_own_becomes_a_plain_one():
    """Clause 1: what compares as it likes is judged, and handed on, as the number that it is."""

    class Small(Decimal):
        def __le__(self, other):
            return True

    frozen = freeze(Small(1000))

    assert (Decimal, Decimal(1000)) == (type(frozen), frozen)
