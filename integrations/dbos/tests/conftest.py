"""A database of its own for each test, on the server that ADJUDGE_POSTGRES_URL names."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .world import World, fresh_world


@pytest.fixture(scope="session")
def url() -> str:
    """Name the server, which has to be there: nothing here is skipped."""
    found = os.environ.get("ADJUDGE_POSTGRES_URL")
    if not found:
        pytest.fail(
            "ADJUDGE_POSTGRES_URL is not set. Run `.ci/postgres pytest integrations/dbos`, "
            "which starts a server, or set it to the URL of one."
        )
    return found


@pytest.fixture
def world(url: str) -> Iterator[World]:
    """Give a database of its own to a test."""
    with fresh_world(url) as made:
        yield made
