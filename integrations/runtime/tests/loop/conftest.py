"""The fixtures of the loop's tests."""

import pytest

from .scripted import World


@pytest.fixture
def world():
    """Give tools that put down what they did."""
    return World()
