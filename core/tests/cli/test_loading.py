"""How the commands load the policies that they are given."""

import gc

import pytest

from adjudge.cli._loading import load
from adjudge.errors import PolicyCompileError


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was_after_an_error(enabled, tmp_path):
    """A command lets the collector of cycles rest while it compiles, and no longer."""
    policy = tmp_path / "policy.json"
    policy.write_text('{"rules": 5}')
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(PolicyCompileError):
            load(str(policy))
        assert enabled is gc.isenabled()
    finally:
        (gc.enable if was_enabled else gc.disable)()
