"""Collects the test cases of policies, `NAME.test.yaml` and the like, under pytest.

pytest loads this in every run of everybody who has it installed, so it imports nothing of Adjudge
until it meets a file of cases, and a file that is not one of ours is never touched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_adjudge._settings import add_settings, least_coverage

if TYPE_CHECKING:
    from pytest_adjudge._items import PolicyTestFile

__all__ = ["pytest_addoption", "pytest_collect_file", "pytest_configure"]

_SUFFIXES = (".test.yaml", ".test.yml", ".test.json", ".test.toml")
# The key that every file of cases begins with; a file that does not have it is somebody else's.
_MARK = re.compile(rb"""(?:^|[{,\s])["']?adjudge_tests["']?\s*[:=]""")
_MOST_READ = 64 * 1024


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    add_settings(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a percentage that is none before anything is collected."""
    least_coverage(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PolicyTestFile | None:
    """Collect a file of policy tests, and nothing else."""
    if not file_path.name.endswith(_SUFFIXES) or not _is_ours(file_path):
        return None
    from pytest_adjudge._items import PolicyTestFile

    return PolicyTestFile.from_parent(parent, path=file_path)


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _MARK.search(file.read(_MOST_READ)) is not None
    except OSError:
        return False
