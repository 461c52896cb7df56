"""The task in which a tool node runs, and tasks of its calls that need no other worker.

LangGraph says in no public place which node of which graph a task belongs to, and how its calls
are started; both are in what a task of the functional API is started with. Where that is kept
elsewhere nothing is divided and nothing waits, and tests fail.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Self

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.types import RetryPolicy

__all__ = ["InWorkers", "NodeTask", "Started", "at_once", "task_of_node"]

_CALL = "__pregel_call"
# What LangGraph tells whoever looks at a run: where a call is made, for streams and traces.
_SHOWN = ("langgraph_node", "langgraph_checkpoint_ns", "langgraph_triggers")


@dataclass(frozen=True, slots=True)
class NodeTask:
    """The task of a graph's node that is a tool node, and nothing else.

    What such a node is given comes from the checkpoint, so it makes the same calls in the same
    order whenever it is run again. A node that calls a tool node may make others.
    """

    config: RunnableConfig
    retry: Sequence[RetryPolicy]
    """How often LangGraph tries the node."""
    untracked: frozenset[str]
    """The channels of its graph that no checkpointer keeps."""

    @property
    def name(self) -> str:
        """What names the task, the same whenever it is run again."""
        return str(self.config["configurable"]["checkpoint_ns"])

    def starting(self, start: Callable[..., Any]) -> RunnableConfig:
        """Give a config in which tasks are started by `start`, which the caller holds."""
        return self._with_starter(self.config, weakref.ref(start))

    def of_call(self, config: RunnableConfig) -> RunnableConfig:
        """Give the config of a call's task, as its body would have it in the node's own."""
        own = self._call(self.config).keywords["submit"]
        shown, told = self.config.get("metadata") or {}, config.get("metadata") or {}
        metadata = {**told, **{name: shown[name] for name in _SHOWN if name in shown}}
        return {**self._with_starter(config, own), "metadata": metadata}

    def _with_starter(self, config: RunnableConfig, starter: Any) -> RunnableConfig:
        call = partial(self._call(config), submit=starter)
        return {**config, "configurable": {**config["configurable"], _CALL: call}}

    @staticmethod
    def _call(config: RunnableConfig) -> Any:
        return config["configurable"][_CALL]


def task_of_node(
    node: Runnable[Any, Any], config: RunnableConfig, *, on_loop: bool
) -> NodeTask | None:
    """Give the task of the graph's node that is `node`; None where it runs for something else.

    None as well where the graph keeps nothing, so that nothing in it can be gone on with.
    """
    call = (config.get("configurable") or {}).get(_CALL)
    schedule = getattr(call, "keywords", {}).get("schedule_task")
    graph = getattr(schedule, "__self__", None)
    metadata: Mapping[str, Any] = config.get("metadata") or {}
    path = metadata.get("langgraph_path") or (True,)
    around = getattr(graph, "nodes", {}).get(metadata.get("langgraph_node"))
    if around is None or around.bound is not node or path[-1] is True:
        return None  # the last is so for a task of the functional API
    if graph is None or graph.checkpointer is None or iscoroutinefunction(schedule) != on_loop:
        return None
    channels: Mapping[str, Any] = graph.specs
    untracked = (name for name, each in channels.items() if isinstance(each, UntrackedValue))
    return NodeTask(
        config, tuple(around.retry_policy or graph.retry_policy or ()), frozenset(untracked)
    )


# How the tasks of calls are started: by no worker of the graph, all of which may be waiting for
# such tasks, but as a tool node runs its calls.


class Started:
    """The tasks of calls on an event loop."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    def __call__(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Start one."""
        name = options.get("__name__")
        made: Coroutine[Any, Any, Any] = function(*args, **_own(options))
        self._tasks.append(asyncio.create_task(made, name=name))
        return self._tasks[-1]

    async def end(self) -> None:
        """Leave none running, as when the node's task is cancelled."""
        running = [each for each in self._tasks if not each.done()]
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)


def at_once() -> Started:
    """Start tasks on the event loop that runs, however many."""
    return Started()


class InWorkers:
    """The tasks of calls in the threads of a pool."""

    def __init__(self, workers: Executor) -> None:
        self._workers = workers
        self._futures: list[Future[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Begin no more where not all could be started."""
        if error is not None:
            self.stop()

    def __call__(self, function: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        """Start one, as soon as a thread is free."""
        self._futures.append(self._workers.submit(function, *args, **_own(options)))
        return self._futures[-1]

    def stop(self) -> None:
        """Begin no more of them."""
        for each in self._futures:
            each.cancel()


def _own(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is meant for LangGraph's own starter."""
    return {name: value for name, value in options.items() if not name.startswith("__")}
