"""`evaluate` knows what it is given alone: no clock, file, network or random number (law 8)."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from properties.calls import requests
from properties.policies import Layers, Policy, layered, policies
from properties.trying import LAWS

from adjudge._types import ActionRequest
from adjudge.policy import evaluate

OUTSIDE = {"time", "posix", "nt", "_io", "io", "_socket", "_random", "_ssl", "select"}


def calls_outside(function: Any, *args: Any) -> list[str]:
    """Run a function and name each built-in it called that looks outside the process."""
    found: list[str] = []

    def watch(frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call":
            owner = getattr(arg, "__self__", None)
            modules = {getattr(arg, "__module__", None), getattr(owner, "__name__", None)}
            modules.add(type(owner).__module__)
            if modules & OUTSIDE:
                found.append(str(arg))

    before = sys.getprofile()
    gc.disable()  # what others do in the collector's callbacks is not the function's
    sys.setprofile(watch)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
        gc.enable()
    return found


@settings(max_examples=LAWS)
@given(policies() | layered(), requests())
def test_evaluate_looks_at_nothing_outside(policy: Policy | Layers, call: ActionRequest) -> None:
    """Law 8: a decision reads no clock, network, file or random number."""
    compiled = policy.compiled()

    assert [] == calls_outside(evaluate, compiled, call)


@pytest.mark.parametrize(
    "look", [time.time, time.monotonic, Path.cwd, Path(__file__).exists, Path(__file__).read_text]
)
def test_a_look_outside_is_seen(look: Any) -> None:
    """What would break the law is noticed by the test above."""
    assert calls_outside(look)
