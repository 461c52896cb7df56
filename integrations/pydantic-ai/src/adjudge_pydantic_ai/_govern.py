"""`govern`, the one verb: an agent under a guard, in place.

An agent's class is swapped for a subclass that adds an `AdjudgeCapability` to each of its runs, so
whatever starts one (`run`, a stream, an adapter, a wrapper around the agent) is governed, with
tools and toolsets that are added later or for one run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from pydantic_ai import Agent
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import AbstractCapability

from adjudge import GovernError, ToolGuard
from adjudge.integration import warn_unless_durable
from adjudge_pydantic_ai._binding import Binding, ContextSource, Hosted
from adjudge_pydantic_ai._capability import AdjudgeCapability, Gate, HandedOutGate, RunGate
from adjudge_pydantic_ai._native import allowed_native_tools

__all__ = ["govern", "binding_of"]

T = TypeVar("T")

_BINDING = "__adjudge_binding__"
_DOORS = ("iter", "_resolve_realtime_session")


def govern(
    target: T,
    guard: ToolGuard,
    *,
    hosted: Hosted = "refuse",
    ungoverned: Collection[str] = (),
    context: ContextSource | None = None,
) -> T:
    """Put an agent under a guard, in place, and return it.

    A `WrapperAgent` is returned as it is, with the agent inside governed. `hosted` says what
    becomes of tools that run at the provider; `ungoverned` names those of them, and the output
    functions, that may run unjudged. `context` gets the run context of each call and answers who
    is calling; None or an exception denies. The same guard again changes nothing. Raises
    `GovernError` for another guard, and for what cannot be governed.
    """
    _govern_agent(target, _binding(guard, hosted, ungoverned, context))
    return target


def binding_of(agent: Agent[Any, Any]) -> Binding | None:
    """Find how an agent is governed, None where it is not."""
    binding = getattr(type(agent), _BINDING, None)
    if isinstance(binding, Binding):
        return binding
    for capability in _leaves(agent.root_capability):
        if isinstance(capability, AdjudgeCapability):
            return capability.binding
    return None


def _binding(
    guard: ToolGuard, hosted: Hosted, ungoverned: Collection[str], context: ContextSource | None
) -> Binding:
    binding = Binding.of(guard, hosted, ungoverned, context)
    if guard.pauses:
        warn_unless_durable(guard.ledger)
    return binding


def _govern_agent(target: object, binding: Binding) -> None:
    if _is_durable(target):
        raise GovernError(
            f"A {type(target).__name__} runs its tools again when it is replayed, and the guard "
            "would judge and record them again; govern agents that run in one process."
        )
    if isinstance(target, WrapperAgent):
        _govern_agent(target.wrapped, binding)
        return
    if not isinstance(target, Agent):
        raise GovernError(
            f"A {type(target).__name__} cannot be governed; give an Agent. Toolsets can be wrapped "
            "in a GovernedToolset."
        )
    hidden = [door for door in _DOORS if door in vars(target)]
    if hidden:
        raise GovernError(
            f"The agent {target.name!r} has {hidden[0]} replaced on the object itself, which would "
            "hide the governed one; override it in a subclass of Agent."
        )
    held = binding_of(target)
    if held is not None and held.guard is not binding.guard:
        raise GovernError(f"The agent {target.name!r} is under another guard; it has only one.")
    if hasattr(type(target), _BINDING):
        return
    binding = held or binding
    for capability in _leaves(target.root_capability):
        if _is_durable(capability):
            raise GovernError(
                f"The agent {target.name!r} has a {type(capability).__name__}, which runs its "
                "tools again when a workflow is replayed; govern agents that run in one process."
            )
    allowed_native_tools(target.root_capability.get_native_tools(), binding)
    target.__class__ = _governed_class(type(target), binding)


def _governed_class(base: type[Agent[Any, Any]], binding: Binding) -> type[Agent[Any, Any]]:
    class Governed(base):  # type: ignore[misc, valid-type]
        @asynccontextmanager
        async def iter(
            self, *args: Any, capabilities: Sequence[Any] | None = None, **options: Any
        ) -> AsyncGenerator[Any]:
            """Start a run with the guard closest to its tools."""
            ours: Gate[Any] = RunGate(binding)
            around = [HandedOutGate(ours), *(capabilities or ()), ours]
            run = super().iter(*args, capabilities=around, **options)
            async with run as started:
                _check_placed(ours, self)
                yield started

        # Every realtime session, also one of a wrapper around the agent, comes through here, and
        # nothing public does. A test fails if it moves.
        @asynccontextmanager
        async def _resolve_realtime_session(
            self, *args: Any, capabilities: Sequence[Any] | None = None, **options: Any
        ) -> AsyncGenerator[Any]:
            ours: Gate[Any] = Gate(binding)
            session = super()._resolve_realtime_session(
                *args, capabilities=[HandedOutGate(ours), *(capabilities or ()), ours], **options
            )
            async with session as resolved:
                _check_placed(ours, self)
                parameters = resolved.model_request_parameters
                allowed = allowed_native_tools(parameters.native_tools, binding)
                if len(allowed) != len(parameters.native_tools):
                    parameters = replace(parameters, native_tools=allowed)
                    resolved = replace(resolved, model_request_parameters=parameters)
                yield resolved

    if not hasattr(base, "_resolve_realtime_session"):
        Governed.realtime = _no_realtime  # type: ignore[method-assign, unused-ignore]
    setattr(Governed, _BINDING, binding)
    Governed.__name__, Governed.__qualname__ = base.__name__, base.__qualname__
    Governed.__module__ = base.__module__
    return Governed


def _no_realtime(agent: Agent[Any, Any], *_: Any, **__: Any) -> Any:
    raise GovernError(
        f"The agent {agent.name!r} is governed, and realtime sessions of this release of "
        "PydanticAI cannot be; use a release that this package was tested with."
    )


def _check_placed(ours: Gate[Any], agent: Agent[Any, Any]) -> None:
    if not ours.placed:
        raise GovernError(
            f"The agent {agent.name!r} did not take the guard's capability into its run; its class "
            "must hand the capabilities that `iter` gets to Agent."
        )


def _leaves(capability: AbstractCapability[Any]) -> list[AbstractCapability[Any]]:
    leaves: list[AbstractCapability[Any]] = []
    capability.apply(leaves.append)
    return leaves


def _is_durable(target: object) -> bool:
    return any(
        each.__module__.startswith("pydantic_ai.durable_exec") for each in type(target).__mro__
    )
