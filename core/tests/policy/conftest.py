"""Lets the tests of this folder import what they share: `asking`, and `properties.trying`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
