"""`govern`, the one verb: tools as copies; agents and crews where they stand."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from crewai import Agent, Crew
from crewai.agents.agent_builder.base_agent import BaseAgent
from crewai.tools import BaseTool
from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool

from adjudge import GovernError, ToolGuard
from adjudge.integration import warn_unless_durable
from adjudge_crewai._binding import (
    SITE,
    Binding,
    CallSite,
    ContextSource,
    Scope,
    at,
    inherited,
)
from adjudge_crewai._hooks import govern_cache, running
from adjudge_crewai._names import check_names
from adjudge_crewai._paused import PauseInside, RunPaused
from adjudge_crewai._tools import govern_tool

__all__ = ["binding_of", "govern"]

T = TypeVar("T")

_BASE = "__adjudge_base__"
_BINDING = "__adjudge_binding__"
_MADE: weakref.WeakValueDictionary[object, type] = weakref.WeakValueDictionary()
"""The classes of what is governed, as long as anything is of them: each takes a while to make."""


def govern(
    target: T,
    guard: ToolGuard,
    *,
    context: ContextSource | None = None,
    ungoverned: Collection[str] = (),
) -> T:
    """Put a crew, an agent, a tool or a list of tools under a guard.

    Of tools it gives governed copies. A crew, with its agents, their tools and those of its tasks,
    and an agent are governed in place and returned. `context` gets the `CallSite` of each call and
    answers who is calling; None or an exception denies. `ungoverned` names the tools at a model's
    provider that may run unjudged; others are refused. The same guard again changes nothing, but
    for a `context` where there was none. Raises `GovernError` for another guard or another
    `context`, and for what cannot be governed.
    """
    binding = Binding.of(guard, context, ungoverned)
    if guard.pauses:
        warn_unless_durable(guard.ledger)
    given: Any = target
    if isinstance(given, BaseTool):
        return govern_tool(given, binding)  # type: ignore[return-value]
    if isinstance(given, Crew):
        _govern_crew(given, binding)
    elif isinstance(given, BaseAgent):
        _govern_agent(given, binding)
    elif isinstance(given, Sequence) and not isinstance(given, str):
        return _governed_tools(given, binding)  # type: ignore[return-value]
    else:
        raise GovernError(
            f"A {type(target).__name__} cannot be governed; give a Crew, an Agent, a tool or a "
            "list of tools. What a flow runs is governed by itself."
        )
    return target


def binding_of(target: object) -> Binding | None:
    """Find how a crew or an agent is governed."""
    found = getattr(type(target), _BINDING, None)
    return found if isinstance(found, Binding) else None


def _governed_tools(tools: Sequence[Any], binding: Binding) -> list[BaseTool]:
    for each in tools:
        if not isinstance(each, BaseTool):
            raise GovernError(
                f"A {type(each).__name__} is no CrewAI tool; make one with @tool, or of a "
                "LangChain tool with Tool.from_langchain."
            )
    made = [govern_tool(each, binding) for each in tools]
    check_names(made)
    return made


def _govern_crew(crew: Crew, binding: Binding) -> None:
    if _is_new(crew, binding, "crew"):
        _govern_parts(crew, binding)
        _put_class(crew, binding, _governed_crew_class)


def _govern_parts(crew: Crew, binding: Binding) -> None:
    agents = [*crew.agents, *(task.agent for task in crew.tasks), crew.manager_agent]
    for agent in agents:
        if agent is not None:
            _govern_agent(agent, binding)
    for task in crew.tasks:
        task.tools = _governed_tools(task.tools or [], binding)


def _govern_agent(agent: BaseAgent, binding: Binding) -> None:
    if not isinstance(agent, Agent):
        raise GovernError(
            f"A {type(agent).__name__} runs its tools in another framework's loop; govern the "
            "agent there, with that framework's integration."
        )
    if not _is_new(agent, binding, "agent"):
        return
    _check_provider(agent, binding)
    agent.tools = _governed_tools(agent.tools or [], binding)
    _put_class(agent, binding, _governed_agent_class)
    for each in agent.tools:
        if isinstance(each, BaseAgentTool):
            for coworker in each.agents:
                _govern_agent(coworker, binding)


def _check_provider(agent: Agent, binding: Binding) -> None:
    """Raise `GovernError` for tools that run at the provider of the agent's model."""
    names = set(getattr(agent.llm, "builtin_tools", None) or ()) - binding.ungoverned
    if names:
        raise GovernError(
            f"The model of the agent {agent.role!r} has {min(names)!r}, which runs at its provider "
            f"where nothing is judged; leave it out, or write ungoverned=[{min(names)!r}]."
        )


def _is_new(target: Crew | Agent, binding: Binding, what: str) -> bool:
    held = binding_of(target)
    if held is None:
        hidden = sorted(_ENTRIES & vars(target).keys())
        if hidden:
            raise GovernError(
                f"The {what} has {hidden[0]} replaced on the object itself, which would hide the "
                "governed one; override it in a subclass."
            )
        return True
    return binding.adds_to(held, what)


_ENTRIES = frozenset({"aexecute_task", "akickoff", "execute_task", "kickoff", "kickoff_async"})


def _governed_crew_class(base: type[Crew], binding: Binding) -> type[Crew]:
    class Governed(base, defer_build=True):  # type: ignore[call-arg, misc, valid-type]
        def kickoff(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
            """Run the crew, governed."""
            with _run_of(self, binding, inputs) as given:
                return super().kickoff(given, *args, **kwargs)

        async def kickoff_async(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
            """Run the crew, governed."""
            with _run_of(self, binding, inputs or {}) as given:
                return await super().kickoff_async(given, *args, **kwargs)

        async def akickoff(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
            """Run the crew, governed."""
            with _run_of(self, binding, inputs) as given:
                return await super().akickoff(given, *args, **kwargs)

        def kickoff_for_each(self, *args: Any, **kwargs: Any) -> Any:
            """Run copies of the crew, all of them one governed run."""
            with _run_of(self, binding):
                return super().kickoff_for_each(*args, **kwargs)

        async def kickoff_for_each_async(self, *args: Any, **kwargs: Any) -> Any:
            """Run copies of the crew, all of them one governed run."""
            with _run_of(self, binding):
                return await super().kickoff_for_each_async(*args, **kwargs)

        async def akickoff_for_each(self, *args: Any, **kwargs: Any) -> Any:
            """Run copies of the crew, all of them one governed run."""
            with _run_of(self, binding):
                return await super().akickoff_for_each(*args, **kwargs)

        def replay(self, *args: Any, **kwargs: Any) -> Any:
            """Run the crew from one of its tasks on, governed."""
            with _run_of(self, binding):
                return super().replay(*args, **kwargs)

        def copy(self, *args: Any, **kwargs: Any) -> Any:
            """Give a governed copy."""
            made = super().copy(*args, **kwargs)
            _govern_crew(made, binding)
            return made

        @classmethod
        def from_checkpoint(cls, *args: Any, **kwargs: Any) -> Any:
            """Give the crew of a checkpoint, governed."""
            made = base.from_checkpoint(*args, **kwargs)
            _govern_crew(made, binding)
            return made

    return _disguised(Governed, base, binding)


def _governed_agent_class(base: type[Agent], binding: Binding) -> type[Agent]:
    class Governed(base, defer_build=True):  # type: ignore[call-arg, misc, valid-type]
        def execute_task(self, task: Any, *args: Any, **kwargs: Any) -> Any:
            """Work on a task, governed."""
            with _task_of(self, task, binding):
                return super().execute_task(task, *args, **kwargs)

        async def aexecute_task(self, task: Any, *args: Any, **kwargs: Any) -> Any:
            """Work on a task, governed."""
            with _task_of(self, task, binding):
                return await super().aexecute_task(task, *args, **kwargs)

        def kickoff(self, *args: Any, **kwargs: Any) -> Any:
            """Run the agent, governed."""
            _check_provider(self, binding)
            govern_cache(self)
            with running(binding), at(CallSite(agent=self)):
                return super().kickoff(*args, **kwargs)

        async def kickoff_async(self, *args: Any, **kwargs: Any) -> Any:
            """Run the agent, governed."""
            _check_provider(self, binding)
            govern_cache(self)
            with running(binding), at(CallSite(agent=self)):
                return await super().kickoff_async(*args, **kwargs)

        def create_agent_executor(self, tools: Any = None, task: Any = None) -> None:
            """Make the executor, with governed tools alone."""
            chosen = tools if tools is not None else self.tools or []
            super().create_agent_executor(_governed_tools(chosen, binding), task)

        def get_delegation_tools(self, *args: Any, **kwargs: Any) -> Any:
            """Give the tools for delegation, governed."""
            return _governed_tools(super().get_delegation_tools(*args, **kwargs), binding)

        def get_mcp_tools(self, *args: Any, **kwargs: Any) -> Any:
            """Give the tools of MCP servers, governed."""
            return _governed_tools(super().get_mcp_tools(*args, **kwargs), binding)

        def get_platform_tools(self, *args: Any, **kwargs: Any) -> Any:
            """Give the tools of apps, governed."""
            return _governed_tools(super().get_platform_tools(*args, **kwargs), binding)

        @classmethod
        def from_checkpoint(cls, *args: Any, **kwargs: Any) -> Any:
            """Give the agent of a checkpoint, governed."""
            made = base.from_checkpoint(*args, **kwargs)
            _govern_agent(made, binding)
            return made

    return _disguised(Governed, base, binding)


def _put_class(target: Any, binding: Binding, make: Callable[[Any, Binding], type]) -> None:
    held = type(target)
    base = vars(held).get(_BASE, held)
    # The class holds on to its binding, so these ids are nobody else's while it is here.
    key = (base, id(binding.guard), id(binding.context), binding.ungoverned)
    made = _MADE.get(key)
    if made is None:
        made = _MADE.setdefault(key, make(base, binding))
    object.__setattr__(target, "__class__", made)


def _disguised(made: type[T], base: Any, binding: Binding) -> type[T]:
    setattr(made, _BINDING, binding)
    setattr(made, _BASE, base)
    # Pydantic builds the rest when something is made of the class, but not when a checkpoint is
    # written of what is of it; there is no field more than in the base.
    made.__pydantic_serializer__ = base.__pydantic_serializer__  # type: ignore[attr-defined]
    made.__name__, made.__qualname__, made.__module__ = (
        base.__name__,
        base.__qualname__,
        base.__module__,
    )
    return made


class _Streamed(dict[str, Any]):
    """A streamed run's inputs: CrewAI gives them to the run that it starts in a thread.

    That is once somebody iterates over the stream, when the block may have been left that said in
    which run this is and who is calling.
    """

    def __init__(self, inputs: Mapping[str, Any] | None, scope: Scope, binding: Binding) -> None:
        super().__init__(inputs or {})
        self.inputs, self.scope, self.binding = inputs, scope, binding

    def __bool__(self) -> bool:
        return True


@contextmanager
def _run_of(
    crew: Any, binding: Binding, inputs: Mapping[str, Any] | None = None
) -> Iterator[Mapping[str, Any] | None]:
    """Be in the crew's run, and give its inputs."""
    _govern_parts(crew, binding)  # and what was added since
    streamed = inputs if isinstance(inputs, _Streamed) else None
    in_thread = streamed is not None and not crew.stream
    given, left = inputs, None
    if streamed is not None:
        given, left, binding = streamed.inputs, streamed.scope, streamed.binding
    try:
        with running(binding, left=left) as scope, at(CallSite(crew=crew)):
            yield _Streamed(given, scope, inherited(binding)) if crew.stream else given
    except RunPaused as paused:
        if in_thread:
            # What iterates over the stream is told of an Exception alone.
            raise PauseInside(paused) from None
        raise


@contextmanager
def _task_of(agent: Any, task: Any, binding: Binding) -> Iterator[None]:
    _check_provider(agent, binding)
    govern_cache(agent)
    around = SITE.get() or CallSite()
    site = CallSite(agent, task, getattr(agent, "crew", None) or around.crew)
    try:
        with running(binding), at(site):
            yield
    except RunPaused as paused:
        if getattr(task, "async_execution", False):
            # CrewAI's thread for such a task waits forever for one that ends by no Exception.
            raise PauseInside(paused) from None
        raise
