"""What the journal keeps, and the keys in it: the same values, whichever way they are made."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import ArgumentsRefused, StepRecord
from adjudge.integration import canonical_json, freeze_object
from adjudge_runtime import idempotency_key
from adjudge_runtime._making import recorded

HUGE = 10**4100  # more digits than a record may have
TEXTS = st.one_of(st.text(max_size=4), st.text('$a"\\\n\x7fé', max_size=4))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**70), 2**70),
        st.just(HUGE),
        st.floats(),
        TEXTS,
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("$ab", max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)


def key_of(*named):
    """Give the key as it is defined: a digest of the canonical text."""
    return hashlib.sha256(canonical_json([*named]).encode()).hexdigest()[:32]


def outcome(function, *args, **named):
    """Give what a function gives, or the type and the words of what it raises."""
    try:
        return function(*args, **named)
    except (ArgumentsRefused, ValueError) as error:
        return type(error), str(error)


@given(TEXTS, st.integers(0, 2**65), TEXTS, OBJECTS, st.integers(0, 2))
def test_the_key_is_the_digest_of_the_canonical_text(run_id, step, tool, args, index):
    """It is so for plain values, which are written in a quicker way, as for all others."""
    named = [run_id, step, tool, args] + ([index] if index else [])

    expected = outcome(key_of, *named)

    assert expected == outcome(idempotency_key, run_id, step, tool, args, index=index)


@pytest.mark.parametrize("args", [{1: 2}, {1: 2, "a": 3}, {"a": float("nan")}, {"a": object()}])
def test_what_is_no_json_has_no_key(args):
    """A name that is no text, and a value without a meaning, are refused."""
    with pytest.raises(ArgumentsRefused):
        idempotency_key("run", 0, "work", args)


RUNS = st.one_of(st.just("run"), st.text(max_size=3), st.just("a\0b"))
BODIES = st.dictionaries(st.sampled_from(["step", "tool", "message"]), VALUES, max_size=3)


@given(RUNS, BODIES)
def test_a_record_is_what_its_class_makes_of_the_same(run_id, body):
    """It has the same fields of the same types, or is refused with the same words."""
    now = datetime.now(UTC)
    expected = outcome(StepRecord, run_id, 3, "model.output", "key", body, now)

    record = outcome(recorded, (run_id, 3), "model.output", "key", body)

    assert type(expected) is type(record)
    if not isinstance(record, StepRecord):
        assert expected == record
        return
    assert expected == replace(record, timestamp=now)
    assert (type(expected.body), UTC) == (type(record.body), record.timestamp.tzinfo)
    assert [*map(type, expected.body.values())] == [*map(type, record.body.values())]


def test_arguments_that_are_frozen_are_not_copied():
    """What the loop froze when it was proposed is what the record holds."""
    args = freeze_object({"deep": [{"er": 1}]})

    record = recorded(
        ("run", 1), "model.output", "", {"args": args, "tool": "work"}, frozen=(args,)
    )

    assert args is record.body["args"]
    assert {"args": {"deep": [{"er": 1}]}, "tool": "work"} == record.body
