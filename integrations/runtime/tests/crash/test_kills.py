"""Workers that are killed (-9) and workers that race: nothing happens twice, or goes unsaid."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BOUNDARIES = 76
"""Those of an undisturbed run: 31 records and 7 effects, each with a before and an after."""
SETTLING = 36
"""Those of a run that goes on where the nested one had lost a call, without the call beside."""


def kills(*options, script="kills.py", code=0):
    """Kill in a process of its own, which has no threads when it forks; give the figures."""
    ran = subprocess.run(
        [sys.executable, str(HERE / script), *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert code == ran.returncode, ran.stderr
    figures = json.loads(ran.stdout)
    named = ("once", "uncertain_not_done", "uncertain_done", "permitted_again", "twice")
    assert figures["expected"] == 7 * figures["runs"]
    assert figures["expected"] == figures["unreported"] + sum(figures[name] for name in named)
    return figures


def test_a_kill_at_any_boundary_leaves_nothing_to_happen_twice():
    """Also where a call that was lost is being settled; what is not known is reported."""
    figures = kills("--boundaries")

    assert BOUNDARIES + 1 + SETTLING == figures["runs"]
    assert BOUNDARIES + 1 + 2 * SETTLING == figures["kills"]
    assert figures["uncertain_not_done"] > 0
    assert figures["uncertain_done"] > 0


@pytest.mark.parametrize("policy", ["deny", "silent"])
def test_a_policy_that_does_not_permit_it_has_nothing_run_again(policy):
    """One that denies what was lost, and one that has never heard of that, alike."""
    figures = kills("--kills", "40", "--policy", policy)

    assert figures["kills"] >= 40
    assert figures["kills_from_outside"] > 0
    assert figures["uncertain_done"] + figures["uncertain_not_done"] > 0


def test_a_policy_that_permits_it_has_each_effect_happen():
    """What was lost runs again under its own key, and nothing else does."""
    figures = kills("--kills", "40", "--policy", "again")

    assert figures["permitted_again"] > 0
    assert (0, 0) == (figures["uncertain_done"], figures["uncertain_not_done"])


@pytest.mark.parametrize("workers", [2, 8])
def test_of_workers_that_race_one_goes_on(workers):
    """The others are superseded and do nothing, be the run new or begun, killed or not."""
    races = 8
    figures = kills("--races", str(races), "--workers", str(workers))

    assert figures["runs"] == races
    assert figures["superseded"] >= races // 2 * (workers - 1)
    assert figures["kills"] > 0


@pytest.mark.parametrize("workers", [2, 8])
def test_what_a_killed_worker_leaves_the_others_take_up(workers):
    """Workers that take the run from each other while some are killed do nothing twice."""
    figures = kills("--kills", "12", "--workers", str(workers))

    assert figures["kills"] >= 12
    assert figures["superseded"] > 0


def test_an_intent_that_comes_too_late_is_found():
    """A runtime that claims after the body has effects that happen twice, and this sees them."""
    figures = kills("--kills", "40", script="late_claims.py", code=1)

    assert figures["twice"] > 0
