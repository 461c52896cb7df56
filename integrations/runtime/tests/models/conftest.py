"""What the tests of the models share: a service, tools, and both ways to ask."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from adjudge import ToolSet, tool

# `model_service` and `wires` are what the tests here share besides fixtures.
sys.path.insert(0, str(Path(__file__).parent))

from model_service import ModelService


@tool()
def find(place: str, limit: int = 3) -> str:
    """Find what is there."""
    return f"{limit} things in {place}"


@tool()
def refund(order: str, speed: Literal["slow", "fast"]) -> str:
    """Pay back."""
    return f"{order} {speed}"


@pytest.fixture
def tools() -> ToolSet:
    """Two tools."""
    return ToolSet([find, refund])


@pytest.fixture
def service() -> Iterator[ModelService]:
    """A service of its own for each test."""
    with ModelService() as running:
        yield running
