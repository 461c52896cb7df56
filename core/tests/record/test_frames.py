"""A body that is written from what many have in common is the body that is written as a whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge._record.format import record_line, to_json
from adjudge._record.redaction import default_redactor, frame_of, no_redaction
from adjudge._values import freeze

NAMES = st.sampled_from(
    ["a", "b c", "é", "%s", "tool", "args", "name", "value", "$x", "password", "apiKey", "ssn"]
)
TEXTS = st.text(max_size=5) | st.sampled_from(
    ["", "%s", "plain words", "é\n\x00", "password=s3cr3t", "--token", "Bearer Ab1", "a=b"]
)
SCALARS = (
    TEXTS
    | st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, -(2**63), 10**30])
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
).map(freeze)
OPEN_VALUES = VALUES | st.sampled_from([float("nan"), float("inf"), (1, 2), {"a": 1}])


@st.composite
def bodies(draw):
    """Draw members that are fixed, and twice the values of some that are not."""
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=6))
    place = draw(st.integers(0, len(names)))
    fixed = {name: draw(VALUES) for name in names[:place]}
    return fixed, [{name: draw(OPEN_VALUES) for name in names[place:]} for _ in range(2)]


@given(bodies())
@example(({"tool": "t"}, [{"a": "password=s3cr3t"}, {"a": "x"}]))
@example(({"a": 1}, [{"password": "x"}, {"password": None}]))
@example(({"name": "Authorization"}, [{"value": "x"}, {"value": 7}]))
@example(({"tool": "%s"}, [{"%s": True}, {"%s": 1}]))
def test_a_framed_body_is_the_one_that_is_looked_through_as_a_whole(drawn):
    """Clause 28 and redaction: where a frame gives a body, redaction takes nothing out of it.

    Its text is the canonical one. Where a secret shows, in a name or in a value, it gives none.
    """
    fixed, several = drawn
    redact = default_redactor(names=["ssn"], digests=False)
    frame = frame_of(redact, fixed, tuple(several[0]))
    for differing in several if frame is not None else ():
        body = frame.body(differing)
        if body is None:
            continue
        whole = record_line(to_json(redact({**fixed, **differing})))

        assert whole == body.text
        assert whole == record_line(to_json({**fixed, **differing}))
        assert whole == json.dumps(body, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    "differing",
    [
        {"args": freeze({"order": "A-1007", "amount": 12, "paid": True, "note": None})},
        {"args": freeze({"inner": {"texts": ["a", "b", "c"], "number": 1.5}})},
        {"duration_ms": 0.25},
        {"code": "denied", "reason": "100 % of them are out of stock"},
    ],
)
def test_what_plainly_shows_nothing_is_framed(differing):
    """Nearly all bodies are written the quick way."""
    frame = frame_of(default_redactor(), {"tool": "t", "attempt": 1}, tuple(differing))
    body = frame.body(differing)

    assert {"tool": "t", "attempt": 1, **differing} == body


def test_a_redactor_that_looks_at_whole_bodies_has_no_frames():
    """Paths lead into a body, and a function of somebody else's may look at all of it."""
    for redact in (default_redactor(paths=["args.code"]), no_redaction, lambda body: body):
        assert frame_of(redact, {"tool": "t"}, ("args",)) is None
