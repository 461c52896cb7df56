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
import threading
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


# What they do to the exception that is being handled cannot be done by halves; a NOP is where a
# `try` stands.
_HANDLING = frozenset(
    {
        "NOP",
        *("PUSH_EXC_INFO", "POP_EXCEPT", "RERAISE", "COPY", "WITH_EXCEPT_START"),
        *("CALL_INTRINSIC_1", "CLEANUP_THROW", "END_ASYNC_FOR", "CHECK_EXC_MATCH"),
    }
)


@functools.cache
def _places(code, *, anywhere):
    """Find the instructions before which an interrupt comes.

    CPython runs signal handlers at the end of some instructions, which is before the next ones.
    """
    instructions = list(dis.get_instructions(code, show_caches=False))
    if anywhere:
        return {each.offset for each in instructions if each.opname not in _HANDLING}
    return {
        after.offset
        for before, after in itertools.pairwise(instructions)
        if before.opname.startswith("CALL")
        or before.opname == "JUMP_BACKWARD"
        # Not where one generator gives what another yields.
        or (before.opname == "RESUME" and before.arg & 3 < 2)
    }


def _interrupted(function, step, *, anywhere, of):
    """Call it with an interrupt at one of its instructions; say whether it came to that."""
    left, came = [step], []

    def trace(frame, what, _):
        file = frame.f_code.co_filename
        if file.startswith(_TESTS) or not any(part in file for part in of):
            return None
        frame.f_trace_opcodes = True
        if what == "opcode" and frame.f_lasti in _places(frame.f_code, anywhere=anywhere):
            left[0] -= 1
            if left[0] == 0:
                came.append(step)
                raise Interrupt
        return trace

    def call():
        # Without this the first call of a process would not be traced (Python 3.12).
        sys._getframe().f_trace_opcodes = True
        sys.settrace(trace)
        try:
            function()
        except Interrupt:
            return
        finally:
            sys.settrace(None)

    # In a thread of its own, to which tracing belongs. What is collected meanwhile does not count.
    gc.disable()
    try:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    finally:
        gc.enable()
    return bool(came)


@pytest.fixture
def at_each_instruction():
    """Go through a call with an interrupt at its first instruction, its second, and so on.

    `make` gives a fresh function each time, and `check` looks at what has come of it. `anywhere` is
    also where CPython does not look for signals. The files that count have one of the parts `of` in
    their names; the functions of the tests never count.
    """

    def go(make, check, *, anywhere=True, of=("",), at_least=100):
        step, came = 0, True
        while came:
            step += 1
            function, about = make()
            came = _interrupted(function, step, anywhere=anywhere, of=of)
            check(about, step)
        assert step > at_least

    return go
