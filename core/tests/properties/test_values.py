"""Values frozen, thawed and digested (clauses 1, 28 and 29)."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from properties.trying import LAWS

from adjudge._values import (
    FrozenDict,
    FrozenList,
    canonical_json,
    digest,
    freeze,
    kind_of,
    thaw,
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.sampled_from([0, 0.0, False, "", 1, 1.0, True, "1", Decimal(1), Decimal("1.0"), None]),
)
keys = st.sampled_from(["a", "b", "$a", "$decimal", "$$decimal", "$secret", ""]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=3
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are one JSON value: the same kinds and number types at any depth."""
    if type(thaw(one)) is not type(thaw(other)):
        return False
    if kind_of(one) == "object":
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if kind_of(one) == "list":
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | Decimal):
        return repr(one) == repr(other)
    return bool(one == other)


@settings(max_examples=4 * LAWS)
@given(values, values)
def test_distinct_values_never_share_a_digest(one: Any, other: Any) -> None:
    """Clause 28: digests are equal for the same value alone; 1, 1.0, true, Decimal 1 are four."""
    assert same(one, other) is (digest(one) == digest(other))


@settings(max_examples=LAWS)
@given(st.dictionaries(keys, values, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_is_irrelevant(value: dict[str, Any], shuffle: Any) -> None:
    """Clause 28: keys are sorted."""
    mixed = list(value.items())
    shuffle.shuffle(mixed)

    assert canonical_json(value) == canonical_json(dict(mixed))


@settings(max_examples=LAWS)
@given(values)
def test_canonical_text_is_plain_json(value: Any) -> None:
    """Clause 28: the text is ASCII, parses, and has no space between its parts."""
    text = canonical_json(value)

    assert text.isascii()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


@settings(max_examples=LAWS)
@given(values)
def test_freezing_twice_is_freezing_once(value: Any) -> None:
    """Clause 29: what is frozen stays as it is, also through copy and pickle."""
    frozen = freeze(value)

    assert canonical_json(value) == canonical_json(frozen) == canonical_json(freeze(frozen))
    assert same(frozen, pickle.loads(pickle.dumps(frozen)))
    assert same(frozen, copy.deepcopy(frozen))


@settings(max_examples=LAWS)
@given(values)
def test_a_body_gets_fresh_plain_values(value: Any) -> None:
    """Clause 29: what is thawed has no frozen part, shares nothing, and is the same value."""
    frozen = freeze(value)
    first, second = thaw(frozen), thaw(frozen)

    assert same(frozen, first)
    assert not any(isinstance(part, FrozenDict | FrozenList) for part in _parts(first))
    shared = {id(part) for part in _parts(first)} & {id(part) for part in _parts(second)}
    assert not shared


def _parts(value: Any) -> list[Any]:
    """List the value's dicts and lists, itself included."""
    if isinstance(value, dict):
        return [value, *(part for inner in value.values() for part in _parts(inner))]
    if isinstance(value, list):
        return [value, *(part for inner in value for part in _parts(inner))]
    return []


@settings(max_examples=LAWS)
@given(values, values)
def test_the_arguments_given_to_freeze_stay_the_callers(one: Any, other: Any) -> None:
    """Clause 29: changing what was handed in changes nothing that was frozen."""
    given_in = {"one": one, "list": [other]}
    frozen = freeze(given_in)
    before = canonical_json(frozen)

    given_in["list"].append("later")
    given_in["one"] = "later"

    assert before == canonical_json(frozen)
