"""Lets these tests import what stands beside them, and sets how Hypothesis runs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent.parent))

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
# `ci` is what every run does; ADJUDGE_PROFILE=deep looks ten times as long.
settings.register_profile("ci", deadline=None, suppress_health_check=_SLOW)
settings.register_profile("deep", settings.get_profile("ci"), print_blob=True)
settings.load_profile(os.environ.get("ADJUDGE_PROFILE", "ci"))
