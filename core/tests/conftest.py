"""Sets how Hypothesis runs these tests, and what all of them share.

A run that decides whether a change may land must not depend on luck; the search for what nobody
has thought of is a run of its own, `tox run -e deep`.
"""

from __future__ import annotations

import dis
import functools
import gc
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile("ci", deadline=None, suppress_health_check=_SLOW, derandomize=True)
# Where a test says how long it looks, `trying.examples` makes it longer or shorter as well.
settings.register_profile("deep", deadline=None, suppress_health_check=_SLOW, print_blob=True)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=20)
settings.load_profile(os.environ.get("ADJUDGE_PROFILE", "ci"))

_TESTS = str(Path(__file__).parent)


class Interrupt(KeyboardInterrupt):
    """What a signal handler raised: Ctrl-C, or an alarm."""


@functools.cache
def _looked_at(code):
    """Find the instructions after those at whose end CPython runs signal handlers."""
    instructions = list(dis.get_instructions(code, show_caches=False))
    looks = ("CALL", "RESUME", "JUMP_BACKWARD", "SEND", "FOR_ITER")
    return {
        after.offset
        for before, after in itertools.pairwise(instructions)
        if before.opname.startswith(looks)
    }


def _interrupted(function, step, *, anywhere, of):
    """Call it with an interrupt at one of its instructions; say whether it came to that."""
    left = [step]

    def trace(frame, what, _):
        if _TESTS in frame.f_code.co_filename or of not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if what == "opcode" and (anywhere or frame.f_lasti in _looked_at(frame.f_code)):
            left[0] -= 1
            if left[0] == 0:
                raise Interrupt
        return trace

    before = sys.gettrace()
    # What is collected meanwhile is not what is looked at.
    gc.disable()
    # Without this the first call of a process would not be traced (Python 3.12).
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        function()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
        gc.enable()
    return left[0] <= 0


@pytest.fixture
def at_each_instruction():
    """Go through a call with an interrupt at its first instruction, its second, and so on.

    `make` gives a fresh function each time, and `check` looks at what has come of it. `anywhere` is
    also where CPython does not look for signals. `of` is part of the names of the files that count;
    the functions of the tests never do.
    """

    def go(make, check, *, anywhere=True, of="", at_least=100):
        step, came = 0, True
        while came:
            step += 1
            function, about = make()
            came = _interrupted(function, step, anywhere=anywhere, of=of)
            check(about, step)
        assert step > at_least

    return go
