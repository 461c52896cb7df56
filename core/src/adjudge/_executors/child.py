"""What runs in the process of `subprocess_executor`: one call, and its answer as JSON.

The job is read from standard input; the answer goes to what was standard output, and what the tool
prints goes to standard error, so that it cannot pass for an answer. Run as a script, never imported
for its effects.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import pickle
import resource
import runpy
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Do the one job."""
    answer_to = os.dup(1)
    os.dup2(2, 1)
    job = pickle.load(sys.stdin.buffer)  # noqa: S301 - the parent process made it
    try:
        _limit(resource.RLIMIT_CPU, job["cpu_seconds"])
        _limit(resource.RLIMIT_AS, job["memory_bytes"])
        _limit(resource.RLIMIT_CORE, 0)
    except (OSError, ValueError) as error:
        answer = ("limits_refused", f"the limits cannot be set here: {error}")
    else:
        answer = _run(job)
    with os.fdopen(answer_to, "w", encoding="ascii") as stream:
        json.dump({"code": answer[0], "value": answer[1]}, stream)


def _limit(which: int, soft: int) -> None:
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _run(job: Mapping[str, Any]) -> tuple[str, Any]:
    sys.path[:] = job["sys_path"]
    try:
        value = _found(job)(**job["args"])
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except Exception as error:
        return "tool_error", f"{type(error).__name__}: {error}"
    from adjudge._values import freeze

    try:
        frozen = freeze(value, where="the result")
        json.dumps(frozen)
    except (ValueError, TypeError) as error:
        return "result_not_json", f"its result is no JSON: {error}"
    return "", frozen


def _found(job: Mapping[str, Any]) -> Any:
    if job["file"] is None:
        found: Any = importlib.import_module(job["module"])
    else:
        # Not as __main__: its `if __name__ == "__main__"` must not run again.
        space = runpy.run_path(job["file"], run_name="__adjudge_tool__")
        first, _, rest = job["qualname"].partition(".")
        found, job = space[first], {**job, "qualname": rest}
    for part in filter(None, job["qualname"].split(".")):
        found = getattr(found, part)
    return found


async def _awaited(value: Any) -> Any:
    return await value


if __name__ == "__main__":
    main()
