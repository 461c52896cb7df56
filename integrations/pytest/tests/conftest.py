"""Runs pytest within pytest."""

from __future__ import annotations

pytest_plugins = ["pytester"]
