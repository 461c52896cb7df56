"""What the journal keeps, and the keys in it: the same values, whichever way they are made."""

import asyncio
import hashlib
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import ArgumentsRefused, StepRecord
from adjudge.integration import canonical_json, freeze_object
from adjudge_runtime import ToolCall, Usage, idempotency_key
from adjudge_runtime._answers import Answer
from adjudge_runtime._journal import Journal
from adjudge_runtime._making import recorded
from adjudge_runtime._past import Past
from adjudge_runtime._stops import Halt, Stop

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


@pytest.mark.parametrize(
    "args", [{"b": 1, "a": 2}, {"$b": 1}, {"a": '"'}, {"a": None, "b": True, "c": 1.5}, {}]
)
def test_plain_arguments_have_the_same_key(args):
    """In any order, with names like tags and with values of each plain kind."""
    assert key_of("run", 3, "work", args, 2) == idempotency_key("run", 3, "work", args, index=2)


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

    foreign = tuple(body.values())
    record = outcome(recorded, (run_id, 3), "model.output", "key", body, foreign=foreign)

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

    body = {"args": args, "tool": "work"}

    record = recorded(("run", 1), "model.output", "", body, foreign=("work",))

    assert args is record.body["args"]
    assert {"args": {"deep": [{"er": 1}]}, "tool": "work"} == record.body


class Shelf:
    """A store that keeps what it is given, and checks nothing."""

    durable = False

    def __init__(self):
        self.records = []

    async def append(self, record):
        """Keep a record."""
        self.records.append(record)

    async def load(self, run_id):
        """Give what there is."""
        return self.records


ODD = st.one_of(TEXTS, st.just("\ud800"), st.just(""))
COUNTS = st.one_of(st.none(), st.integers(0, 9), st.just(HUGE))
USAGES = st.one_of(st.none(), st.builds(Usage, COUNTS, COUNTS, model=st.one_of(st.none(), ODD)))


def put_down(write):
    """Give the record that a journal makes, or why it makes none."""
    shelf = Shelf()
    journal = Journal(shelf, "run", Past(), Halt())
    try:
        asyncio.run(write(journal))
    except Stop as stop:
        return stop.code, stop.error
    (record,) = shelf.records
    return record


def expected_of(kind, key, body, found):
    """Give the record that `StepRecord` makes of the whole body, or why the journal has none."""
    when = found.timestamp if isinstance(found, StepRecord) else datetime.now(UTC)
    try:
        return StepRecord("run", 0, kind, key, body, when)
    except ValueError as error:
        return "agent_failed", f"the journal cannot keep {kind}: {error}"


@given(ODD, st.one_of(ODD, OBJECTS), ODD, USAGES)
def test_a_decision_is_put_down_as_its_class_would_have_it(tool, args, call_id, usage):
    """Names, arguments and a model of any text are kept as they are, or refused in words."""
    try:
        frozen = args if isinstance(args, str) else freeze_object(args)
    except ArgumentsRefused:
        return
    call = ToolCall(tool, frozen, call_id, usage)

    found = put_down(lambda journal: journal.decide(2, call))

    body = {"step": 2, "type": "tool_call", "tool": tool, "args": args, "call_id": call_id}
    if usage is not None:
        body["usage"] = asdict(usage)
    assert expected_of("model.output", "", body, found) == found


@given(ODD, ODD)
def test_an_intent_is_put_down_as_its_class_would_have_it(tool, call_id):
    """It names the call, whatever its names are."""
    call = ToolCall(tool, "{}", call_id)

    found = put_down(lambda journal: journal.intend(2, 1, call, "key"))

    body = {"step": 2, "call": 1, "tool": tool, "call_id": call_id}
    assert expected_of("action.intent", "key", body, found) == found


@given(ODD, ODD, ODD, st.one_of(st.floats(), st.integers(), st.just(HUGE)), USAGES)
def test_a_result_is_put_down_as_its_class_would_have_it(tool, message, code, lasted, usage):
    """What a tool and its executor say is kept as it is, or refused in words."""
    answer = Answer(message, "allow", "failed", ok=False, code=code, duration_ms=lasted)
    answer.usage = usage

    found = put_down(lambda journal: journal.keep(2, 1, tool, answer, uncertain=False))

    about = {"verdict": "allow", "outcome": "failed", "ok": False, "error": None, "code": code}
    body = {"step": 2, "call": 1, "tool": tool, **about}
    body |= {"duration_ms": round(lasted, 3), "message": message}
    if usage is not None:
        body["usage"] = asdict(usage)
    assert expected_of("action.result", "", body, found) == found
