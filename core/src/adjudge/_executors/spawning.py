"""Runs a tool's function in a process of its own, with limits on memory, processor and wall time.

It protects against tools that crash, hang or run away. It is no security boundary: the child has
the caller's files, network and rights. The child imports the function by module and name, so that
module is imported once more there; the arguments go in as they were judged, and the result comes
back as JSON: nothing else of the child's is trusted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from adjudge._enforcement.limits import is_positive
from adjudge._enforcement.tools import ToolDef
from adjudge._executors.inline import Executor, call_arguments
from adjudge._types import ActionRequest, ActionResult
from adjudge.errors import AdjudgeError

__all__ = ["subprocess_executor"]

_SHOWN_OF_STDERR = 2000
_CHUNK = 64 * 1024
_CHILD = Path(__file__).with_name("child.py")


class _Failed(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def subprocess_executor(
    *,
    cpu_seconds: int = 30,
    max_memory_mb: int = 512,
    timeout_seconds: float = 60.0,
    max_output_bytes: int = 10_000_000,
    env_allowlist: tuple[str, ...] = ("PATH", "HOME", "USER", "LANG", "LC_ALL"),
) -> Executor:
    """Make an executor that runs each call in a fresh interpreter, in the context's workspace.

    `max_memory_mb` bounds the address space, the interpreter's own included. The environment is
    what `env_allowlist` names of the caller's. The tool is a function at the top level of a module,
    or of the script that was started; anything else fails (`not_importable`) without running. What
    it prints is dropped. Raises `AdjudgeError` on systems without POSIX resource limits.
    """
    for name, limit in (
        ("cpu_seconds", cpu_seconds),
        ("max_memory_mb", max_memory_mb),
        ("timeout_seconds", timeout_seconds),
        ("max_output_bytes", max_output_bytes),
    ):
        if not is_positive(limit):
            raise ValueError(f"{name} is {limit!r}; give a positive number.")
    if os.name != "posix":
        raise AdjudgeError("subprocess_executor needs POSIX resource limits; use another executor.")

    async def execute(request: ActionRequest, tool: ToolDef) -> ActionResult:
        started = time.perf_counter()
        try:
            job = {
                **_address_of(tool.fn),
                "args": call_arguments(request),
                "sys_path": list(map(os.path.abspath, sys.path)),
                "cpu_seconds": cpu_seconds,
                "memory_bytes": max_memory_mb * 1024 * 1024,
            }
            environment = {name: os.environ[name] for name in env_allowlist if name in os.environ}
            workspace = _workspace_of(request)
            process = await _start(workspace, environment)
            async with _ended_whatever_happens(process):
                answer = await _exchange(
                    process, pickle.dumps(job), timeout_seconds, max_output_bytes
                )
            value = _value_in(answer)
        except _Failed as failure:
            elapsed = (time.perf_counter() - started) * 1000
            return ActionResult(False, error=str(failure), code=failure.code, duration_ms=elapsed)
        return ActionResult(True, value, duration_ms=(time.perf_counter() - started) * 1000)

    return execute


def _address_of(function: Callable[..., Any]) -> dict[str, str | None]:
    """Say where the child finds the function, and make sure that it is this one."""
    module_name = getattr(function, "__module__", None)
    qualified = getattr(function, "__qualname__", None)
    module = sys.modules.get(module_name or "")
    found: Any = module
    for part in (qualified or "?").split("."):
        found = getattr(found, part, None)
    file = getattr(module, "__file__", None)
    if found is not function or (module_name == "__main__" and file is None):
        raise _Failed(
            "not_importable",
            f"{qualified or function!r} cannot be imported in another process; make it a function "
            "at the top level of a module",
        )
    return {
        "module": module_name,
        "qualname": qualified,
        "file": str(Path(str(file)).absolute()) if module_name == "__main__" else None,
    }


def _workspace_of(request: ActionRequest) -> str:
    workspace = request.context.workspace
    if not Path(workspace).is_dir():
        raise _Failed("no_workspace", f"the workspace {workspace!r} is no directory")
    return workspace


async def _start(workspace: str, environment: dict[str, str]) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # The folder of the child's script must not hide modules of the library.
            str(_CHILD),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=workspace,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise _Failed("crashed", f"no process could be started: {error.strerror}") from error


@contextlib.asynccontextmanager
async def _ended_whatever_happens(process: asyncio.subprocess.Process) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())


async def _exchange(
    process: asyncio.subprocess.Process, job: bytes, timeout_seconds: float, max_output_bytes: int
) -> bytes:
    """Send the job, and give what the child answered before it ended well."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    talk = asyncio.gather(
        _read_at_most(process.stdout, max_output_bytes),
        _read_end(process.stderr, _SHOWN_OF_STDERR),
        _send(process.stdin, job),
    )
    try:
        async with asyncio.timeout(timeout_seconds):
            answer, said, _ = await talk
            status = await process.wait()
    except TimeoutError:
        text = f"it took longer than {timeout_seconds:g} s and was ended"
        raise _Failed("timed_out", text) from None
    if status == -signal.SIGXCPU:
        raise _Failed("cpu_exceeded", "it used up its processor time")
    if status != 0:
        ending = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with {status}"
        tail = said.decode(errors="replace").strip()
        raise _Failed("crashed", f"its process ended {ending}" + (f": {tail}" if tail else ""))
    return answer


async def _send(stream: asyncio.StreamWriter, data: bytes) -> None:
    # A child that died does not read; how it died is told by its status.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()


async def _read_at_most(stream: asyncio.StreamReader, limit: int) -> bytes:
    data = b""
    while piece := await stream.read(_CHUNK):
        data += piece
        if len(data) > limit:
            raise _Failed("output_too_large", f"its result is longer than {limit} bytes")
    return data


async def _read_end(stream: asyncio.StreamReader, size: int) -> bytes:
    data = b""
    while piece := await stream.read(_CHUNK):
        data = (data + piece)[-size:]
    return data


def _value_in(answer: bytes) -> Any:
    try:
        read = json.loads(answer)
        code, value = read["code"], read["value"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _Failed("crashed", "its process ended without an answer") from None
    if code:
        raise _Failed(str(code), str(value))
    return value
