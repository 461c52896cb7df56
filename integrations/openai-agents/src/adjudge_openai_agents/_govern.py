"""`govern`, the one verb, and function tools out of a `ToolSet`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeVar, cast, get_args

from agents import AgentBase, FunctionTool, Handoff, function_tool
from agents.exceptions import UserError

from adjudge import GovernError, ToolGuard, ToolSet
from adjudge.integration import warn_unless_durable
from adjudge_openai_agents._agents import agents_behind, govern_agents, govern_handoff
from adjudge_openai_agents._binding import Binding, ContextSource, Hosted
from adjudge_openai_agents._invoker import govern_function_tool
from adjudge_openai_agents._owned import runs_what_was_judged
from adjudge_openai_agents._tools import GOVERNABLE, govern_tools

__all__ = ["govern", "governed_function_tools"]

T = TypeVar("T")


def govern(
    target: T,
    guard: ToolGuard,
    *,
    recursive: bool = True,
    hosted: Hosted = "refuse",
    ungoverned: Collection[str] = (),
    context: ContextSource | None = None,
) -> T:
    """Put a tool, a list of tools, an agent or a handoff under a guard.

    A tool or a list comes back as governed copies. An agent, realtime or not, is governed in place
    and returned, with its handoffs, with the agents that it hands off to or uses as tools unless
    `recursive` is False, and with tools that it gets later. So is a lone handoff. `hosted` says
    what becomes of tools that run at the provider, and `ungoverned` names tools that may run
    although they cannot be governed. `context` gets the SDK's run context of each call and answers
    who is calling; None or an exception denies. The same guard again changes nothing. Raises
    `GovernError` for another guard and for what cannot be governed. A guard that pauses leaves a
    call waiting where the SDK can (`pending`, `resume`).
    """
    if hosted not in get_args(Hosted):
        raise GovernError(f"hosted is {hosted!r}; say 'refuse', 'strip' or 'allow'.")
    binding = _binding(guard, recursive, hosted, context, ungoverned)
    if isinstance(target, AgentBase):
        govern_agents([target], binding)
        return target
    if isinstance(target, Handoff):
        govern_handoff(target, binding)
        return target
    if not isinstance(target, (list, *GOVERNABLE)):
        raise GovernError(
            f"A {type(target).__name__} cannot be governed; give a tool that runs here, a list of "
            "tools, an agent or a handoff. A ToolSet is for governed_function_tools."
        )
    tools: list[Any] = target if isinstance(target, list) else [target]
    governed = govern_tools(tools, binding)
    if recursive:
        govern_agents(agents_behind(tools), binding)
    if not isinstance(target, list) and not governed:
        raise GovernError("The tool runs at the provider; in a list it can be left out.")
    return cast(T, governed if isinstance(target, list) else governed[0])


def governed_function_tools(
    tools: ToolSet,
    *,
    policy: Any = None,
    guard: ToolGuard | None = None,
    context: ContextSource | None = None,
    **options: Any,
) -> list[FunctionTool]:
    """Make a governed function tool out of each tool of a set, for `Agent(tools=...)`.

    Give a `guard`, or a `policy` with whatever else `ToolGuard` takes. Metadata and shadows are the
    set's own, and the model is told each function's real parameters.
    """
    if (guard is None) == (policy is None) or (guard is not None and options):
        raise GovernError("Give either a guard, or a policy with the options of a ToolGuard.")
    guard = guard or ToolGuard(policy=policy, tools=tools, **options)
    binding = _binding(guard, True, "refuse", context, ())
    return [
        govern_function_tool(
            _function_tool(runs_what_was_judged(each.fn), each.name, each.description),
            replace(binding, declared=each.metadata, shadow=each.shadow_fn, owned=True),
        )
        for each in tools
    ]


def _binding(
    guard: ToolGuard,
    recursive: bool,
    hosted: Hosted,
    context: ContextSource | None,
    ungoverned: Collection[str],
) -> Binding:
    if not isinstance(guard, ToolGuard):
        raise GovernError(f"guard is a {type(guard).__name__}; give a ToolGuard.")
    if guard.pauses:
        warn_unless_durable(guard.ledger)
    asked: object = context
    if asked is not None and not callable(asked):
        raise GovernError(
            f"context is a {type(asked).__name__}; give a function of the run context that answers "
            "with a CallContext."
        )
    if isinstance(ungoverned, str) or not all(isinstance(name, str) for name in ungoverned):
        raise GovernError(
            f"ungoverned is {ungoverned!r}; give a list of the names of tools that may run without "
            "a guard."
        )
    return Binding(guard, recursive, hosted, frozenset(ungoverned), context)


def _function_tool(function: Callable[..., Any], name: str, description: str) -> FunctionTool:
    """Give the SDK's tool; in its strict schema mode where the parameters allow that."""
    make = functools.partial(
        function_tool, function, name_override=name, description_override=description
    )
    try:
        return make()
    except UserError:
        return make(strict_mode=False)
