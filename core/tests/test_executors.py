"""Where a tool runs: here, in a process of its own, or where its isolation says."""

from __future__ import annotations

import asyncio
import contextvars
import importlib.util
import os
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest

from adjudge import (
    ActionResult,
    Cancelled,
    CancelToken,
    ToolDef,
    ToolMetadata,
    inline_executor,
    route_executor,
    subprocess_executor,
)
from adjudge.testing import make_request


@pytest.fixture(scope="module")
def tools():
    """The module of tools, imported by a name that another process finds too."""
    path = Path(__file__).with_name("executor_tools.py")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("executor_tools", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["executor_tools"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(path.parent))
    del sys.modules["executor_tools"]


def definition(function, **metadata):
    """The function as a tool."""
    return ToolDef(function.__name__, "", function, metadata=ToolMetadata(**metadata))


async def run(executor, function, workspace=".", **args):
    """Run a function as a tool through an executor."""
    request = make_request(function.__name__, args, workspace=str(workspace))
    return await executor(request, definition(function))


class TestInline:
    async def test_async_and_sync_bodies_run_with_fresh_arguments(self):
        """Both kinds of function get plain values that they may change."""

        async def later(items):
            items.append(1)
            return items

        def now(items):
            items.append(2)
            return items

        assert [0, 1] == (await run(inline_executor(), later, items=[0])).value
        assert [0, 2] == (await run(inline_executor(), now, items=[0])).value

    async def test_a_sync_body_does_not_hold_the_loop(self):
        """A function that blocks runs in a thread, with the caller's context variables."""
        user = contextvars.ContextVar("user", default="nobody")
        user.set("ada")
        gate = threading.Event()

        def blocks():
            assert gate.wait(10)
            return user.get()

        running = asyncio.create_task(run(inline_executor(), blocks))
        await asyncio.sleep(0)
        gate.set()

        assert "ada" == (await running).value

    @pytest.mark.parametrize("error", [ValueError("no such order"), StopIteration("done")])
    async def test_a_body_that_raises_is_a_failed_result(self, error):
        """An exception is told by type and text."""

        def fails():
            raise error

        result = await run(inline_executor(), fails)

        assert (False, "tool_error") == (result.ok, result.code)
        assert f"{type(error).__name__}: {error}" == result.error

    @pytest.mark.parametrize("kind", ["async", "sync"])
    async def test_what_is_no_exception_goes_through(self, kind):
        """An exit is not turned into a result."""

        class Stop(BaseException):
            pass

        async def later():
            raise Stop

        def now():
            raise Stop

        with pytest.raises(Stop):
            await run(inline_executor(), later if kind == "async" else now)

    async def test_a_time_out_cancels_and_fails_the_call(self):
        """A coroutine that takes too long is cancelled; the result says that it timed out."""
        cancelled = asyncio.Event()

        async def hangs():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        result = await run(inline_executor(timeout_seconds=0.05), hangs)
        await asyncio.wait_for(cancelled.wait(), 5)

        assert (False, "timed_out") == (result.ok, result.code)

    async def test_a_body_that_ignores_its_cancellation_is_not_waited_for(self):
        """The bound holds for a coroutine that swallows its cancellation, and for a thread."""
        release, gate = asyncio.Event(), threading.Event()

        async def stubborn():
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        started = time.monotonic()
        first = await run(inline_executor(timeout_seconds=0.05), stubborn)
        second = await run(inline_executor(timeout_seconds=0.05), gate.wait)
        elapsed = time.monotonic() - started
        release.set()
        gate.set()

        assert ("timed_out", "timed_out") == (first.code, second.code)
        assert elapsed < 2

    async def test_a_bodys_own_time_out_error_is_its_error(self):
        """TimeoutError raised by the body is a failure of the tool, not our time-out."""

        async def fails():
            raise TimeoutError("upstream")

        assert "tool_error" == (await run(inline_executor(timeout_seconds=5), fails)).code

    async def test_cancelling_the_call_cancels_the_body(self):
        """Cancellation reaches the coroutine and goes on to the caller."""
        begun, ended = asyncio.Event(), asyncio.Event()

        async def works():
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        call = asyncio.create_task(run(inline_executor(), works))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert ended.is_set()

    @pytest.mark.parametrize("timeout", [0, -1, "5", True])
    def test_a_time_out_must_be_positive(self, timeout):
        """A bound that is none is refused."""
        with pytest.raises(ValueError, match="positive"):
            inline_executor(timeout_seconds=timeout)


class TestSubprocess:
    async def test_it_runs_in_another_process_in_the_workspace(self, tools, tmp_path):
        """The body sees its arguments, its defaults and the workspace, and another process id."""
        result = await run(subprocess_executor(), tools.describe, tmp_path, text="é")

        assert result.ok, result
        assert ("é", 3) == (result.value["text"], result.value["number"])
        assert os.getpid() != result.value["pid"]
        assert tmp_path.resolve() == Path(result.value["cwd"]).resolve()

    async def test_sync_functions_run_as_well(self, tools):
        """A function need not be a coroutine function."""
        value = {"a": [1, 2.5, None, True, "x"]}

        assert value == (await run(subprocess_executor(), tools.plain, value=value)).value

    async def test_an_exact_number_arrives_as_it_was_judged(self, tools):
        """Law 5: a Decimal is not turned into a float on the way."""
        result = await run(subprocess_executor(), tools.kind_of_decimal, value=Decimal("1.10"))

        assert "Decimal 1.10" == result.value

    async def test_the_environment_is_only_what_was_listed(self, tools, monkeypatch):
        """A secret in the caller's environment does not reach the tool."""
        monkeypatch.setenv("SECRET_TOKEN", "x")
        monkeypatch.setenv("WANTED", "y")
        executor = subprocess_executor(env_allowlist=("PATH", "WANTED"))
        result = await run(executor, tools.environment)

        assert "y" == result.value["WANTED"]
        assert "SECRET_TOKEN" not in result.value

    @pytest.mark.parametrize(
        ("name", "code", "says"),
        [
            ("fail", "tool_error", "ValueError: no such order"),
            ("leave", "crashed", "ended with 7"),
            ("die", "crashed", "SIGSEGV: about to crash"),
            ("no_json", "result_not_json", "object"),
        ],
    )
    async def test_however_it_ends_the_caller_lives(self, tools, name, code, says):
        """Errors, exits and crashes are failed results that say what happened."""
        result = await run(subprocess_executor(), getattr(tools, name))

        assert (False, code) == (result.ok, result.code)
        assert says in result.error

    async def test_processor_time_is_limited(self, tools):
        """A loop without an end is stopped by the limit."""
        result = await run(subprocess_executor(cpu_seconds=1), tools.spin)

        assert "cpu_exceeded" == result.code

    async def test_memory_is_limited(self, tools):
        """An allocation over the limit fails in the child; one below it works."""
        executor = subprocess_executor(max_memory_mb=400)

        assert (await run(executor, tools.grow, megabytes=50)).ok
        assert "MemoryError" in (await run(executor, tools.grow, megabytes=800)).error

    async def test_wall_time_is_limited_and_the_process_is_gone(self, tools, tmp_path):
        """A tool that hangs is ended, not only left."""
        pid_file = tmp_path / "pid"
        executor = subprocess_executor(timeout_seconds=6)
        result = await run(executor, tools.hang, pid_file=str(pid_file))

        assert "timed_out" == result.code
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)

    async def test_cancelling_the_call_ends_the_process(self, tools, tmp_path):
        """Cancellation kills the child before it goes on to the caller."""
        pid_file = tmp_path / "pid"
        call = asyncio.create_task(run(subprocess_executor(), tools.hang, pid_file=str(pid_file)))
        while not (pid_file.exists() and pid_file.read_text()):
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)

    async def test_what_the_tool_prints_cannot_pass_for_its_answer(self, tools):
        """Only the returned value is the result."""
        assert "real" == (await run(subprocess_executor(), tools.chatter)).value

    async def test_a_result_has_a_greatest_length(self, tools):
        """A child cannot fill the caller's memory."""
        executor = subprocess_executor(max_output_bytes=1000)
        result = await run(executor, tools.long_result, size=100_000)

        assert "output_too_large" == result.code

    async def test_a_function_that_another_process_cannot_find_is_refused(self):
        """A closure fails before anything runs."""

        async def closure():
            raise AssertionError("it must not run")

        assert "not_importable" == (await run(subprocess_executor(), closure)).code

    async def test_a_name_that_means_another_function_is_refused(self, tools, monkeypatch):
        """The child must not run something else of the same name."""
        original = tools.plain
        monkeypatch.setattr(tools, "plain", tools.describe)

        assert "not_importable" == (await run(subprocess_executor(), original, value=1)).code

    async def test_a_workspace_that_is_not_there_is_a_failure(self, tools, tmp_path):
        """The tool is not run somewhere else."""
        result = await run(subprocess_executor(), tools.plain, tmp_path / "missing", value=1)

        assert "no_workspace" == result.code

    def test_a_tool_of_the_started_script_runs(self, tmp_path):
        """A function of __main__ is found by its file, whose main part does not run again."""
        script = tmp_path / "script.py"
        script.write_text(
            "import asyncio, sys\n"
            "from adjudge import ToolDef, subprocess_executor\n"
            "from adjudge.testing import make_request\n"
            "def double(n):\n"
            "    return 2 * n\n"
            "if __name__ == '__main__':\n"
            "    request = make_request('double', {'n': 21}, workspace='.')\n"
            "    run = subprocess_executor()(request, ToolDef('double', '', double))\n"
            "    print(asyncio.run(run))\n"
        )
        out = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=False
        )

        assert 1 == len(out.stdout.splitlines()), out
        assert "value=42" in out.stdout

    @pytest.mark.parametrize(
        "limits",
        [
            {"cpu_seconds": 0},
            {"max_memory_mb": -1},
            {"timeout_seconds": 0},
            {"max_output_bytes": 0},
            {"timeout_seconds": "5"},
        ],
    )
    def test_a_limit_must_be_positive(self, limits):
        """A limit that is none is refused."""
        with pytest.raises(ValueError, match="positive"):
            subprocess_executor(**limits)


class TestRoute:
    @pytest.mark.parametrize(
        "routes", [[inline_executor()], {None: "inline"}], ids=["list", "name"]
    )
    def test_routes_lead_to_executors(self, routes):
        """What is no mapping to executors is refused where it is written."""
        with pytest.raises(TypeError, match=r"\{None: inline_executor\(\)\}"):
            route_executor(routes)

    @pytest.fixture
    def executor(self):
        """Two routes that say which they are."""

        def named(name):
            async def execute(request, definition):
                return ActionResult(True, name)

            return execute

        return route_executor({None: named("default"), "box": named("box")})

    @pytest.mark.parametrize(("isolation", "expected"), [(None, "default"), ("box", "box")])
    async def test_the_isolation_picks_the_route(self, executor, isolation, expected):
        """A tool runs where it declares; None is the default."""
        result = await executor(make_request("t"), definition(print, isolation=isolation))

        assert expected == result.value

    async def test_an_isolation_without_a_route_fails_closed(self, executor):
        """Law 4: a tool that asks for a container never gets the host instead."""
        result = await executor(make_request("t"), definition(print, isolation="container"))

        assert (False, "no_route") == (result.ok, result.code)

    async def test_without_a_default_route_a_plain_tool_fails_closed(self):
        """There is no hidden default."""
        result = await route_executor({})(make_request("t"), definition(print))

        assert "no_route" == result.code

    async def test_the_routes_are_fixed_when_it_is_made(self):
        """A mapping that changes later changes nothing."""
        routes = {}
        executor = route_executor(routes)
        routes[None] = inline_executor()

        assert "no_route" == (await executor(make_request("t"), definition(print))).code


class TestCancelToken:
    def test_it_is_tripped_once_and_stays_so(self):
        """The first reason holds."""
        token = CancelToken()
        before = (token.cancelled, token.reason)
        token.cancel("stop pressed")
        token.cancel("again")

        assert (False, "") == before
        assert (True, "stop pressed") == (token.cancelled, token.reason)

    def test_it_is_what_a_guard_reads(self):
        """Any object with `cancelled` and `reason` is a kill switch; this is one."""
        assert isinstance(CancelToken(), Cancelled)

    def test_an_empty_reason_trips_it_too(self):
        """Whether it is tripped does not depend on what is said."""
        token = CancelToken()
        token.cancel("")

        assert token.cancelled
