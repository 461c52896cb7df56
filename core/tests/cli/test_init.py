"""`adjudge init`."""

from __future__ import annotations

import pytest

from adjudge.testing import assert_verdict

pytestmark = pytest.mark.needs_yaml


def test_it_writes_a_policy_that_compiles(adjudge, tmp_path):
    """What init writes passes lint as it is."""
    done = adjudge("init")
    checked = adjudge("policy", "lint", "policy.yaml")

    assert (0, "") == (done.returncode, done.stderr)
    assert "wrote policy.yaml" in done.stdout
    assert 0 == checked.returncode, checked.stderr


def test_the_first_policy_says_what_its_comments_say(adjudge, tmp_path):
    """All five verdicts occur, for the calls that the comments name."""
    adjudge("init")
    policy = (tmp_path / "policy.yaml").read_text()

    assert_verdict(policy, "pay", {"amount": 20}, "allow", rule="small-payments")
    assert_verdict(policy, "pay", {"amount": 51}, "approve_required")
    assert_verdict(policy, "delete_file", {"path": "x"}, "dry_run")
    assert_verdict(policy, "read_file", {"path": "a/.env"}, "deny", rule="no-secrets")
    assert_verdict(
        policy, "search", {"q": "x"}, "transform", effective_args={"q": "x", "limit": 20}
    )
    assert_verdict(policy, "anything", {}, "deny")


def test_a_folder_gets_a_policy_in_it(adjudge, tmp_path):
    """A path that is a folder means policy.yaml in it."""
    (tmp_path / "sub").mkdir()

    assert 0 == adjudge("init", "sub").returncode
    assert (tmp_path / "sub" / "policy.yaml").exists()


def test_what_is_there_is_never_overwritten(adjudge, tmp_path):
    """Init refuses, says so, and leaves the file alone."""
    (tmp_path / "policy.yaml").write_text("mine")
    done = adjudge("init")

    assert (2, "") == (done.returncode, done.stdout)
    assert "is there already" in done.stderr
    assert "mine" == (tmp_path / "policy.yaml").read_text()


def test_a_place_that_cannot_be_written_is_an_error(adjudge):
    """A folder that is not there is said so."""
    done = adjudge("init", "missing/policy.yaml")

    assert 2 == done.returncode
    assert "cannot be written" in done.stderr
