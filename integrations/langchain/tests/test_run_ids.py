"""`AdjudgeCallbackHandler` where a caller gives several calls one run id, and they overlap."""

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.tools import tool

from adjudge_langchain import AdjudgeCallbackHandler, govern

RUN_ID = uuid4()
FAILED, COMPLETED = ["action.failed"], ["action.completed"]


def config_of(handler: AdjudgeCallbackHandler) -> Any:
    """Give what each of the calls is called with."""
    return {"callbacks": [handler], "run_id": RUN_ID}


def ends(record: Any) -> dict[str, list[str]]:
    """Give how the calls of each tool ended."""
    found: dict[str, list[str]] = {}
    for event in record.events:
        if event.kind.startswith("action."):
            found.setdefault(event.body["tool"], []).append(event.kind)
    return found


def test_calls_of_two_threads(guard_of, record):
    """Law 7: each ends on record as it ended, whichever began first."""
    begun, ended = threading.Event(), threading.Event()

    @tool
    def first(name: str) -> str:
        """Fail once the other has ended."""
        begun.set()
        assert ended.wait(10)
        raise KeyError(name)

    @tool
    def second(name: str) -> str:
        """Answer."""
        return name

    def run_first() -> None:
        with pytest.raises(KeyError):
            first.invoke({"name": "a"}, config_of(handler))

    handler = AdjudgeCallbackHandler(guard_of())
    thread = threading.Thread(target=run_first)
    thread.start()
    assert begun.wait(10)
    second.invoke({"name": "b"}, config_of(handler))
    ended.set()
    thread.join()

    assert {"first": FAILED, "second": COMPLETED} == ends(record)


def test_calls_of_two_tasks(guard_of, record):
    """Law 7: so it is for calls on one event loop."""

    @tool
    async def first(name: str) -> str:
        """Fail once the other has ended."""
        begun.set()
        await ended.wait()
        raise KeyError(name)

    @tool
    async def second(name: str) -> str:
        """Answer while the other runs."""
        await begun.wait()
        return name

    async def run_second() -> None:
        await second.ainvoke({"name": "b"}, config_of(handler))
        ended.set()

    async def run() -> None:
        with pytest.raises(KeyError):
            await asyncio.gather(first.ainvoke({"name": "a"}, config_of(handler)), run_second())

    handler = AdjudgeCallbackHandler(guard_of())
    begun, ended = asyncio.Event(), asyncio.Event()
    asyncio.run(run())

    assert {"first": FAILED, "second": COMPLETED} == ends(record)


def test_a_call_that_is_cancelled_beside_another(guard_of, record):
    """Law 7: a call that is given up ends as cancelled, and the other as it ends."""

    @tool
    async def first(name: str) -> str:
        """Wait to be cancelled."""
        begun.set()
        return str(await asyncio.Event().wait())

    @tool
    async def second(name: str) -> str:
        """Answer once the other is cancelled."""
        await cancelled.wait()
        return name

    async def run() -> None:
        waiting = asyncio.ensure_future(first.ainvoke({"name": "a"}, config_of(handler)))
        await begun.wait()
        answering = asyncio.ensure_future(second.ainvoke({"name": "b"}, config_of(handler)))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        cancelled.set()
        await answering

    handler = AdjudgeCallbackHandler(guard_of())
    begun, cancelled = asyncio.Event(), asyncio.Event()
    asyncio.run(run())

    assert {"first": ["action.cancelled"], "second": COMPLETED} == ends(record)


@pytest.mark.parametrize("governed", [False, True], ids=["handler", "governed"])
def test_a_call_inside_of_another(guard_of, record, governed):
    """The end of the inner call is not taken for that of the outer one, whoever judges it."""
    guard = guard_of()
    handler = AdjudgeCallbackHandler(guard)

    @tool
    def inner(name: str) -> str:
        """Answer."""
        return name

    called = govern(inner, guard) if governed else inner

    @tool
    def outer(name: str) -> str:
        """Call another, and fail."""
        called.invoke({"name": name}, config_of(handler))
        raise KeyError(name)

    with pytest.raises(KeyError):
        outer.invoke({"name": "a"}, config_of(handler))

    assert {"inner": COMPLETED, "outer": FAILED} == ends(record)


def test_calls_one_after_the_other(guard_of, erase, record):
    """An id that is used again is that of a new call."""
    handler = AdjudgeCallbackHandler(guard_of())

    for name in "ab":
        erase.invoke({"name": name}, config_of(handler))

    assert {"erase": COMPLETED * 2} == ends(record)
