"""A tool node that runs all calls of a message at once, made safe to be run again.

LangGraph runs such a node anew from its start when the run goes on: calls that had ended run again,
and answers go to whichever call asks first. Where the guard lets calls wait, each call is therefore
made a task of its own inside of the node's task (the tasks of LangGraph's functional API). The
checkpointer keeps what a task gave, so that it does not run again, and each interrupt has its own
id, so that an answer reaches the call that asked. Elsewhere the node is left to itself.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.func import task
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy

from adjudge_langchain.integration import Binding, place_of

__all__ = ["separate_calls"]

TASK = "tool_call"
"""The name of the task of one call, in streams and traces."""
_PUSHED = "__pregel_push"
_LEFT = "adjudge_left"


def separate_calls(
    node: ToolNode, binding: Binding, retry: Sequence[RetryPolicy] | None = None
) -> None:
    """Have each call of a message run as a task of its own, where calls can wait.

    `retry` are the policies of the node around, which then hold for each call. Once is enough.
    """
    if isinstance(node.func, _Batches):
        return
    batches = _Batches(node, binding, tuple(retry or ()))
    # What a RunnableCallable calls; a test fails when it is kept elsewhere.
    node.func, node.afunc = batches, _AsyncBatches(batches)


class _Batches:
    """What a node runs in place of its own function."""

    def __init__(self, node: ToolNode, binding: Binding, retry: tuple[RetryPolicy, ...]) -> None:
        self.node, self.binding, self.retry = node, binding, retry
        self.run: Any = node.func
        self.arun: Any = node.afunc
        self.attempts = _Attempts()

    def __call__(self, input: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        calls, kind = self.parsed(input)
        if not self.divides(len(calls), config):
            return self.run(input, config=config, runtime=runtime)
        if _in_a_loop():
            # Tasks would need the very loop that waits here.
            return self.run(input, config=_not_alone(config), runtime=runtime)
        held = self.attempts.of(config, runtime, calls)

        def run_one(index: int) -> Any:
            given, alone = self.one_of(input, kind, calls[index]), _alone(get_config(), index)
            try:
                return held.made(index, self.run(given, config=alone, runtime=runtime))
            except ParentCommand as signal:
                return held.made(index, _left(signal))

        one = self.task_of(run_one)
        futures = {index: one(index) for index in held.missing}
        for index, future in futures.items():
            held.ended[index] = _ended(future.result)
        return self.combined(held.results(), kind)

    def task_of(self, run_one: Callable[[int], Any]) -> Callable[[int], Any]:
        """Make a task of a function that runs one call."""
        make: Any = task(name=TASK, retry_policy=self.retry or None)
        made: Callable[[int], Any] = make(run_one)
        return made

    def divides(self, count: int, config: RunnableConfig) -> bool:
        """Whether calls can wait here, and have no task of their own yet."""
        if not self.binding.guard.pauses or not count:
            return False
        place = place_of(config)
        return place is not None and not (place.pauses and count == 1)

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
        if not batches.divides(len(calls), config):
            return await arun(input, config=config, runtime=runtime)
        held = batches.attempts.of(config, runtime, calls)

        async def run_one(index: int) -> Any:
            given, alone = batches.one_of(input, kind, calls[index]), _alone(get_config(), index)
            try:
                return held.made(index, await arun(given, config=alone, runtime=runtime))
            except ParentCommand as signal:
                return held.made(index, _left(signal))

        one = batches.task_of(run_one)
        futures = {index: one(index) for index in held.missing}
        ended = await asyncio.gather(*futures.values(), return_exceptions=True)
        held.ended.update(zip(futures, ended, strict=True))
        return batches.combined(held.results(), kind)


# What became of the calls


class _Held:
    """What the calls of one message gave so far, or raised."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.ended: dict[int, Any] = {}
        self._made: dict[int, Any] = {}

    def made(self, index: int, result: Any) -> Any:
        """Put down what a call gave just now.

        In an event stream, a task's result does not reach its caller in older releases of 1.2:
        https://github.com/langchain-ai/langgraph/blob/1.2.16/libs/langgraph/langgraph/pregel/_retry.py
        """
        self._made[index] = result
        return result

    @property
    def missing(self) -> list[int]:
        """The calls that are still to be made."""
        return [index for index in range(self.count) if index not in self.ended]

    def results(self) -> list[Any]:
        """Give all results in order, or raise: an error first, then what waits, all at once."""
        ended = [self._result(index) for index in range(self.count)]
        raised = [each for each in ended if isinstance(each, BaseException)]
        for error in raised:
            if not isinstance(error, GraphInterrupt):
                raise error
        if raised:
            raise GraphInterrupt(tuple(asked for each in raised for asked in each.args[0]))
        for each in ended:
            if isinstance(each, Mapping) and _LEFT in each:
                raise ParentCommand(each[_LEFT])
        return ended

    def _result(self, index: int) -> Any:
        result = self.ended[index]
        return self._made.get(index) if result is None else result


class _Attempts:
    """The batches of recent node tasks: a retry of the node makes no call again.

    Each call has the node's retries for itself, so what has raised by then is at the end of them.
    """

    _MOST = 256

    def __init__(self) -> None:
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._lock = Lock()

    def of(self, config: RunnableConfig, runtime: Runtime[Any], calls: Sequence[Any]) -> _Held:
        """Give what is known of the calls of a node's task."""
        name = f"{config['configurable'].get('checkpoint_ns')} {calls!r}"
        info = runtime.execution_info
        with self._lock:
            held = self._held.pop(name, None)
            if held is None or info is None or info.node_attempt == 1:
                held = _Held(len(calls))
            self._held[name] = held
            if len(self._held) > self._MOST:
                self._held.popitem(last=False)
        return held


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


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _alone(config: RunnableConfig, index: int) -> RunnableConfig:
    """Say that the task runs one call alone, as LangGraph says it of what a `Send` starts."""
    return _on_path(config, (_PUSHED, index, True))


def _not_alone(config: RunnableConfig) -> RunnableConfig:
    return _on_path(config, ())


def _on_path(config: RunnableConfig, path: tuple[Any, ...]) -> RunnableConfig:
    return {**config, "metadata": {**config.get("metadata", {}), "langgraph_path": path}}
