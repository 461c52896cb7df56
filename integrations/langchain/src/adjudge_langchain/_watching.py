"""One call as a callback handler sees it: its arguments as they are read, and its body's time.

LangChain tells a handler of a call before it validates the arguments. What the body will get is
read here in the same way, by the schema of the tool that is known by that name. What cannot be read
so does not run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.tools import BaseTool, Tool
from pydantic import BaseModel, create_model
from pydantic.v1 import create_model as create_model_v1

from adjudge import ArgumentsRefused, GovernedCall, GovernError, ToolGuard
from adjudge.integration import Admitted, Effective, FrozenDict, InvalidArguments, ProposedCall
from adjudge_langchain._arguments import (
    INVALID,
    ONLY,
    CallArguments,
    Unread,
    check_unforged,
    fields_of,
    is_closed,
    read_values,
    validation_text,
)
from adjudge_langchain._bodies import (
    body_of,
    first_name,
    names_of,
    sent_to,
    unread_values,
)
from adjudge_langchain._shown import OWN, visible

__all__ = ["KnownTool", "Reading", "Running", "Watched", "known_tools"]


class KnownTool:
    """A tool whose calls a handler will see, and how their arguments are read."""

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool
        fields = fields_of(tool)
        self._injected = [name for name in fields if name not in visible(tool, {name: None})]
        self._schema: Any = tool.args_schema if fields else None
        if self._injected:
            # A handler is not shown what is injected: the same schema, which can do without.
            full: Any = self._schema
            make: Any = create_model if issubclass(full, BaseModel) else create_model_v1
            free: dict[str, Any] = dict.fromkeys(self._injected, (Any, None))
            self._schema = make(full.__name__, __base__=full, **free)

    def __deepcopy__(self, memo: dict[int, Any]) -> KnownTool:
        """Give itself: nothing in it changes, and equal handlers know the same tools."""
        return self

    def read(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Give named values as the body will get them; raises as the schema does."""
        if self._schema is None:
            return dict(sent)
        values = read_values(self._schema, sent)
        return {name: value for name, value in values.items() if name not in self._injected}

    def unread(self, sent: Mapping[str, Any], *, bare: bool) -> Unread | None:
        """Say what the body makes of values that no schema reads; None where one does."""
        tool = self.tool
        by_position = bare or isinstance(tool, Tool)
        if not by_position and is_closed(tool):
            return None
        first = (first_name(tool, sent),) if by_position else ()
        sync, in_loop = (
            unread_values(tool, body, first, {*OWN, *(names_of(body)[:1] if first else ())})
            for body in (body_of(tool), body_of(tool, in_loop=True))
        )
        problem = sync.problem or in_loop.problem
        both = {**in_loop.defaults, **sync.defaults}
        if both != {**sync.defaults, **in_loop.defaults}:
            problem = "the tool's function and its coroutine have other defaults"
        return Unread(both, problem)

    def is_instance(self, text: str) -> bool:
        """Whether a text is how an instance of the schema looks, which LangChain takes as well."""
        return any(text.startswith(f"{name}=") for name in fields_of(self.tool))


def known_tools(tools: Iterable[BaseTool]) -> dict[tuple[str, str], KnownTool]:
    """Give tools by what a handler is shown of them: the name and the description.

    Raises `GovernError` for two that look the same and take other arguments.
    """
    known: dict[tuple[str, str], KnownTool] = {}
    for tool in tools:
        first = known.setdefault((tool.name, tool.description), KnownTool(tool))
        if first.tool is not tool and first.tool.args != tool.args:
            raise GovernError(
                f"Two of the tools are named {tool.name!r}, with the same description and other "
                "arguments; a handler could not tell them apart."
            )
    return known


class Reading:
    """The reading of one call's arguments: once, for nothing can be rewritten here."""

    def __init__(self, known: KnownTool | None, given: Any, *, is_namesake: bool) -> None:
        self.rejected: Exception | None = None
        """What the schema raises, for the framework to answer."""
        self._known, self._given, self._read = known, given, False
        self._bare = not isinstance(given, Mapping)
        self._is_namesake = is_namesake
        if known is None:
            self.sent = {ONLY: given} if self._bare else dict(given)
        else:
            self.sent = sent_to(known.tool, given if self._bare else dict(given))

    def validate(self, args: FrozenDict) -> Admitted:
        """Read the arguments; raises `ArgumentsRefused` for what cannot be read here."""
        if self._read:
            raise InvalidArguments("a callback handler cannot change arguments; govern the tool")
        self._read = True
        known = self._known
        if self._is_namesake:
            raise ArgumentsRefused("another tool of that name is known; give the handler this one")
        if known is None:
            return Admitted(args)
        check_unforged(known.tool, self.sent)
        if self._bare and known.is_instance(str(self._given)):
            raise ArgumentsRefused("an instance is shown as its text alone; give a dict")
        unread = known.unread(self.sent, bare=self._bare)
        try:
            values = dict(self.sent) if self._bare else known.read(self.sent)
        except INVALID as error:
            self.rejected = error
            raise InvalidArguments(validation_text(error)) from None
        return CallArguments(known.tool, self.sent, values, {}, unread).validate(args)


class Watched:
    """A call whose body LangChain runs, while a thread of its own stands for it at the guard."""

    def __init__(
        self, guard: ToolGuard, proposed: ProposedCall, context: Any, reading: Reading, key: str
    ) -> None:
        self.key, self.attempt = key, proposed.attempt
        self._reading = reading
        self._moved, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._started = False
        self._governed: GovernedCall | None = None
        self._failed: BaseException | None = None
        self._forget: Callable[[], object] = lambda: None
        target = copy_context().run
        govern = guard.govern_call_sync
        self._thread = threading.Thread(
            target=target, args=(self._run, govern, proposed, context), daemon=True
        )

    def until_it_runs(self) -> GovernedCall | None:
        """Have the call judged; None where its body may run now.

        Raises what the schema raises for arguments that it rejects: their body never runs.
        """
        self._thread.start()
        self._moved.wait()
        if self._started:
            return None
        if self._failed is not None:
            raise self._failed
        return self._governed

    def end(self, error: BaseException | None) -> None:
        """Say what became of the body, and wait until that is on record."""
        trace = None if error is None else error.__traceback__
        self._forget()
        self._error = error
        self._ended.set()
        self._thread.join()
        if error is not None:
            error.__traceback__ = trace

    def when_given_up(self, then: Callable[[], None]) -> None:
        """Do something when the task of a call has ended, and nobody has heard of the call since.

        Before langchain-core 1.8 a handler is not told of one that is cancelled, and of one that
        another handler stops it is told in no release.
        """
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return  # plain code, which nobody cancels
        if task is None:
            return

        def ended(_: object) -> None:
            then()

        task.add_done_callback(ended)
        self._forget = lambda: task.remove_done_callback(ended)

    def _run(self, govern: Any, proposed: ProposedCall, context: Any) -> None:
        try:
            self._governed = govern(proposed, self._body, context=context)
        except BaseException as error:
            self._failed = error
        finally:
            self._moved.set()

    def _body(self, effective: Effective) -> None:
        if self._reading.rejected is not None:
            raise self._reading.rejected
        self._started = True
        self._moved.set()
        self._ended.wait()
        if self._error is not None:
            raise self._error


@dataclass(slots=True, eq=False)
class _Begun:
    """A call that has begun; `watched` is None where it is judged elsewhere."""

    watched: Watched | None
    ended: bool = False


# What has begun here and has not ended. A call begins and ends in one context, and no other call
# that overlaps with it does, but for those that are inside of it.
_BEGUN: ContextVar[tuple[_Begun, ...]] = ContextVar("adjudge_begun", default=())


class Running:
    """The calls that have begun, by their run ids, of which a caller may give several calls one."""

    def __init__(self) -> None:
        self._begun: dict[UUID, list[_Begun]] = {}
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Running:
        """Give none: what has begun ends where it has begun."""
        return Running()

    def __contains__(self, run_id: UUID) -> bool:
        """Whether a call of that id has begun and not ended."""
        return run_id in self._begun

    def begin(self, run_id: UUID, watched: Watched | None) -> None:
        """Put down that a call begins here."""
        begun = _Begun(watched)
        with self._lock:
            self._begun.setdefault(run_id, []).append(begun)
        _BEGUN.set((*(each for each in _BEGUN.get() if not each.ended), begun))

    def end(self, run_id: UUID) -> Watched | None:
        """Give the call of that id that ends here; None for one that is judged elsewhere."""
        with self._lock:
            alike = self._begun.get(run_id)
            if alike is None:
                return None
            here = (each for each in reversed(_BEGUN.get()) if each in alike)
            return self._drop(run_id, next(here, alike[0]))

    def give_up(self, run_id: UUID, watched: Watched) -> Watched | None:
        """Give a call of which nobody has heard since it began; None where it has ended."""
        with self._lock:
            for begun in self._begun.get(run_id, ()):
                if begun.watched is watched:
                    return self._drop(run_id, begun)
        return None

    def _drop(self, run_id: UUID, begun: _Begun) -> Watched | None:
        begun.ended = True
        self._begun[run_id].remove(begun)
        if not self._begun[run_id]:
            del self._begun[run_id]
        return begun.watched
