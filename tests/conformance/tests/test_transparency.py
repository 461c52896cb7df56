"""The comparison behind law 1: what counts as a difference, and when a case says nothing."""

import pytest

from adjudge_conformance.transparency import differences_when_governed

TAKE = {
    "requests": ['{"model": "m", "input": ["a"]}'],
    "ran": ["body pay {}"],
    "problems": [],
    "transcript": {"final": "done", "usage": [1, 2]},
}


def compared(*takes, scrubs=None, runs=1):
    """Compare three takes, given as what differs from `TAKE` in each."""
    waiting = [{**TAKE, **take} for take in takes]
    return differences_when_governed(lambda name, governed: waiting.pop(0), scrubs or {}, runs=runs)


def test_equal_runs_are_transparent():
    """Three equal takes have no difference."""
    assert [] == compared({}, {}, {})


@pytest.mark.parametrize(
    "governed",
    [
        {"requests": ['{"model": "m", "input": ["b"]}']},
        {"requests": ['{"model":"m", "input": ["a"]}']},
        {"requests": []},
        {"ran": []},
        {"ran": ["body pay {}", "body pay {}"]},
        {"problems": ["the script has ended"]},
        {"transcript": {"final": "done", "usage": [1, 3]}},
        {"transcript": {"final": "done", "usage": [1, 2], "more": None}},
        {"transcript": {"final": "done", "usage": [True, 2]}},
        {"transcript": {"raised": ["ValueError: no"]}},
    ],
)
def test_whatever_the_guard_changes_is_a_difference(governed):
    """Law 1: a byte of a request, a run, a problem or a field of the transcript."""
    (difference, *_) = compared({}, {}, governed)

    assert difference.startswith("governed: ")


def test_unsteady_framework_makes_the_case_void():
    """Two ungoverned runs that differ say nothing about a guard, and that is a failure."""
    (difference,) = compared({}, {"transcript": {"final": "done", "usage": [9, 2]}}, {})

    assert difference.startswith("void, ")


def test_scrubbed_field_is_not_compared():
    """A field that a driver scrubs, with its reason, does not make a case void."""
    scrubs = {"transcript.usage.0": "it counts what is cached"}

    assert [] == compared({}, {"transcript": {"final": "done", "usage": [9, 2]}}, {}, scrubs=scrubs)


def test_scrubbed_field_of_a_request_leaves_the_others():
    """A scrub of a request's field leaves its other fields to be compared."""
    scrubs = {"request.id": "it is random"}
    takes = [{"requests": [f'{{"id": {n}, "input": {text}}}']} for n, text in enumerate("112")]

    assert [] == compared(takes[0], takes[1], takes[1], scrubs=scrubs)
    assert 1 == len(compared(*takes, scrubs=scrubs))


def test_run_in_which_nothing_happens_is_not_transparent():
    """A run that starts no body cannot show that governing changes nothing."""
    (difference,) = compared({"ran": []}, {"ran": []}, {"ran": []})

    assert "1 bodies should start" in difference


def test_run_that_reaches_no_model_is_not_transparent():
    """A driver that fails alike with a guard and without shows nothing."""
    (difference,) = compared({"requests": []}, {"requests": []}, {"requests": []})

    assert difference == "ungoverned: nothing was sent to the model"


def test_bodies_are_not_counted_where_the_framework_decides():
    """Where it is the framework's affair what runs, only the comparison counts."""
    assert [] == compared({"ran": []}, {"ran": []}, {"ran": []}, runs=None)
