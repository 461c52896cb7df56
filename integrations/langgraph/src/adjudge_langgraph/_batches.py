"""A tool node that runs all calls of a message at once, made safe to be run again.

LangGraph runs such a node anew from its start when the run goes on: calls that had ended run again,
and answers go to whichever call asks first. Where the guard lets calls wait, each call is therefore
made a task of its own inside of the node's task (the tasks of LangGraph's functional API). The
checkpointer keeps what a task gave, so that it does not run again, and each interrupt has its own
id, so that an answer reaches the call that asked. LangGraph knows such tasks by their order alone,
so that holds where the tool node is the graph's node itself, and makes the same calls each time.
Elsewhere the node is left to itself, and nothing waits in it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_executor_for_config, set_config_context
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.func import task
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Command

from adjudge_langchain.integration import Binding, place_of
from adjudge_langgraph._tasks import InWorkers, NodeTask, at_once, task_of_node

__all__ = ["separate_calls"]

TASK = "tool_call"
"""The name of the task of one call, in streams and traces."""
_PUSHED = "__pregel_push"
_LEFT = "adjudge_left"
_INSIDE: ContextVar[str | None] = ContextVar("adjudge_inside", default=None)
"""The task of the call in whose body something runs."""


def separate_calls(node: ToolNode, binding: Binding, *, lasting: bool = True) -> None:
    """Have each call of a message run as a task of its own, where calls can wait.

    Nothing waits where the graph around is not `lasting`: it is begun anew when it goes on. Once is
    enough.
    """
    if isinstance(node.func, _Batches):
        node.func.lasting &= lasting
        return
    batches = _Batches(node, binding, lasting)
    # What a RunnableCallable calls; a test fails when it is kept elsewhere.
    node.func, node.afunc = batches, _AsyncBatches(batches)


class _Batches:
    """What a node runs in place of its own function."""

    def __init__(self, node: ToolNode, binding: Binding, lasting: bool) -> None:
        self.node, self.binding, self.lasting = node, binding, lasting
        self.run: Any = node.func
        self.arun: Any = node.afunc
        self.attempts = _Attempts()

    def __call__(self, input: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        calls, kind = self.parsed(input)
        own = self.task_around(config, on_loop=False)
        if own is None or not calls or _runs_alone(config, calls):
            with _inside(config):
                return self.run(input, config=self.undivided(config, own), runtime=runtime)
        held = self.attempts.of(own, runtime, calls)

        def run_one(index: int) -> Any:
            given, alone = self.one_of(input, kind, calls[index]), _alone(own, index)
            with _inside(alone):
                try:
                    return held.made(index, self.run(given, config=alone, runtime=runtime))
                except ParentCommand as signal:
                    return held.made(index, _left(signal))

        with get_executor_for_config(config) as workers, InWorkers(workers) as start:
            with set_config_context(own.starting(start)) as context:
                futures = context.run(self.started, run_one, held, own)
            for index, future in futures.items():
                held.ended[index] = ended = _ended(future.result)
                if _ends_all(ended):
                    start.stop()
        return self.given(own, held, kind)

    def task_around(self, config: RunnableConfig, *, on_loop: bool) -> NodeTask | None:
        """Give the task of the node, where calls can wait in it."""
        if not self.lasting or not self._may_pause(config) or _is_inside(config):
            return None
        return task_of_node(self.node, config, on_loop=on_loop)

    def undivided(self, config: RunnableConfig, own: NodeTask | None) -> RunnableConfig:
        """Say of calls that run together that they do, where one of them could wait."""
        return _not_alone(config) if own is None and self._may_pause(config) else config

    def _may_pause(self, config: RunnableConfig) -> bool:
        return self.binding.guard.pauses and place_of(config) is not None

    def started(
        self, run_one: Callable[[int], Any], held: _Held, own: NodeTask
    ) -> Mapping[int, Any]:
        """Start a task for each call that has none."""
        make: Any = task(name=TASK, retry_policy=own.retry or None)
        one = make(run_one)
        return {index: one(index) for index in held.missing}

    def given(self, own: NodeTask, held: _Held, kind: str) -> Any:
        """Give what the node gives, or raise; then nothing has to be known of the calls."""
        ended = False
        try:
            results = held.results()
            ended = True
        except GraphInterrupt:
            ended = True
            raise
        finally:
            if ended or not own.retry:
                self.attempts.drop(held)
        return self.combined(results, kind)

    def parsed(self, input: Any) -> tuple[list[Any], str]:
        """Give the calls of an input, and in which form they came."""
        # The node's own reading, of which there is no public one; a test fails when it moves.
        calls, kind = self.node._parse_input(input)
        return calls, kind

    def one_of(self, input: Any, kind: str, call: Any) -> Any:
        """Give the input for one call alone, with the state as it was."""
        if kind == "tool_calls":
            return [call] if isinstance(input, list) else input
        return {"__type": "tool_call_with_context", "tool_call": call, "state": input}

    def combined(self, results: Sequence[Any], kind: str) -> Any:
        """Put the results of all calls together, as the node does."""
        outputs = [output for result in results for output in self._outputs(result)]
        form: Any = kind
        # Commands are put together in a way of their own; a test fails when it moves.
        return self.node._combine_tool_outputs(outputs, form)

    def _outputs(self, result: Any) -> list[Any]:
        # The setting of the node, which it shows nowhere else; a test fails when it moves.
        key = self.node._messages_key
        parts = result if isinstance(result, list) else [result]
        outputs: list[Any] = []
        for part in parts:
            outputs.extend([part] if isinstance(part, Command) else part[key])
        return outputs


class _AsyncBatches:
    """The same on an event loop."""

    def __init__(self, batches: _Batches) -> None:
        self.batches = batches

    async def __call__(self, input: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        batches = self.batches
        arun = batches.arun
        calls, kind = batches.parsed(input)
        own = batches.task_around(config, on_loop=True)
        if own is None or not calls or _runs_alone(config, calls):
            with _inside(config):
                return await arun(input, config=batches.undivided(config, own), runtime=runtime)
        held = batches.attempts.of(own, runtime, calls)

        async def run_one(index: int) -> Any:
            given, alone = batches.one_of(input, kind, calls[index]), _alone(own, index)
            with _inside(alone):
                try:
                    return held.made(index, await arun(given, config=alone, runtime=runtime))
                except ParentCommand as signal:
                    return held.made(index, _left(signal))

        start = at_once()
        try:
            with set_config_context(own.starting(start)) as context:
                futures = context.run(batches.started, run_one, held, own)
            ended = await asyncio.gather(*futures.values(), return_exceptions=True)
        finally:
            await start.end()
        held.ended.update(zip(futures, ended, strict=True))
        return batches.given(own, held, kind)


# What became of the calls


class _Held:
    """What the calls of one message gave so far, or raised."""

    def __init__(self, name: str, count: int, untracked: Collection[str]) -> None:
        self.name, self.count, self._untracked = name, count, untracked
        self.ended: dict[int, Any] = {}
        self._made: dict[int, Any] = {}

    def made(self, index: int, result: Any) -> Any:
        """Put down what a call gave just now, and give what the checkpointer is to keep of it.

        In an event stream, a task's result does not reach its caller in older releases of 1.2:
        https://github.com/langchain-ai/langgraph/blob/1.2.16/libs/langgraph/langgraph/pregel/_retry.py
        """
        self._made[index] = result
        return _kept(result, self._untracked)

    @property
    def missing(self) -> list[int]:
        """The calls that are still to be made."""
        return [index for index in range(self.count) if index not in self.ended]

    def results(self) -> list[Any]:
        """Give all results in order, or raise: an error first, then what waits, all at once."""
        ended = [self._result(index) for index in range(self.count)]
        raised = [each for each in ended if isinstance(each, BaseException)]
        for error in filter(_ends_all, raised):
            raise error
        if raised:
            raise GraphInterrupt(tuple(asked for each in raised for asked in each.args[0]))
        for each in ended:
            if isinstance(each, Mapping) and _LEFT in each:
                raise ParentCommand(each[_LEFT])
        return ended

    def _result(self, index: int) -> Any:
        ended = self.ended[index]
        return ended if isinstance(ended, BaseException) else self._made.get(index, ended)


class _Attempts:
    """The batches of node tasks that may be tried again: no call is made again then.

    Each call has the node's retries for itself, so what has raised by then is at the end of them.
    """

    _MOST = 256

    def __init__(self) -> None:
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Attempts:
        """Give none: a copy of a node is tried for itself."""
        return _Attempts()

    def of(self, own: NodeTask, runtime: Runtime[Any], calls: Sequence[Any]) -> _Held:
        """Give what is known of the calls of a node's task."""
        name = f"{own.name} {calls!r}"
        info = runtime.execution_info
        with self._lock:
            held = self._held.pop(name, None)
            if held is None or info is None or info.node_attempt == 1:
                held = _Held(name, len(calls), own.untracked)
            self._held[name] = held
            if len(self._held) > self._MOST:
                self._held.popitem(last=False)
        return held

    def drop(self, held: _Held) -> None:
        """Forget a batch."""
        with self._lock:
            self._held.pop(held.name, None)


def _kept(result: Any, untracked: Collection[str]) -> Any:
    """Leave out what LangGraph itself keeps in no checkpoint, and what may not be able to be."""
    if isinstance(result, list):
        return [_kept(each, untracked) for each in result]
    if not untracked or not isinstance(result, Command) or not isinstance(result.update, Mapping):
        return result
    update = {name: each for name, each in result.update.items() if name not in untracked}
    return replace(result, update=update)


def _left(signal: ParentCommand) -> dict[str, Any]:
    """Put down that a tool left for the graph around its node.

    Raised inside of the call's own task, it would be read as meaning the graph of that.
    """
    return {_LEFT: signal.args[0]}


def _ended(result: Callable[[], Any]) -> Any:
    """Give what a task gave, or what it raised."""
    try:
        return result()
    except BaseException as error:
        return error


def _ends_all(ended: Any) -> bool:
    """Whether the node raises for a call: then none begins after it, as in the node's own pool."""
    return isinstance(ended, BaseException) and not isinstance(ended, GraphInterrupt)


# Where something runs


def _runs_alone(config: RunnableConfig, calls: Sequence[Any]) -> bool:
    """Whether the node's task is for one call anyway, as where a `Send` starts it."""
    place = place_of(config)
    return place is not None and place.pauses and len(calls) == 1


@contextmanager
def _inside(config: RunnableConfig) -> Iterator[None]:
    """Know in the bodies of calls that they are inside of a task for calls."""
    token = _INSIDE.set(_task_in(config))
    try:
        yield
    finally:
        _INSIDE.reset(token)


def _is_inside(config: RunnableConfig) -> bool:
    task_now = _task_in(config)
    return task_now is not None and _INSIDE.get() == task_now


def _task_in(config: RunnableConfig) -> str | None:
    return (config.get("configurable") or {}).get("checkpoint_ns")


def _alone(own: NodeTask, index: int) -> RunnableConfig:
    """Say that the task runs one call alone, as LangGraph says it of what a `Send` starts."""
    return _on_path(own.of_call(get_config()), (_PUSHED, index, True))


def _not_alone(config: RunnableConfig) -> RunnableConfig:
    return _on_path(config, ())


def _on_path(config: RunnableConfig, path: tuple[Any, ...]) -> RunnableConfig:
    return {**config, "metadata": {**config.get("metadata", {}), "langgraph_path": path}}
