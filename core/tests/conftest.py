"""Sets how Hypothesis runs these tests: the same examples each time, or many new ones.

A run that decides whether a change may land must not depend on luck; the search for what nobody
has thought of is a run of its own, `tox run -e deep`.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile("ci", deadline=None, suppress_health_check=_SLOW, derandomize=True)
# ADJUDGE_PROFILE=deep also looks ten times as long where a test says how long it looks.
settings.register_profile("deep", deadline=None, suppress_health_check=_SLOW, print_blob=True)
settings.load_profile(os.environ.get("ADJUDGE_PROFILE", "ci"))
