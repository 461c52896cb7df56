"""Handoffs: judged as calls of a tool, before the callback runs and the agent changes.

The SDK has no value by which a handoff could be refused, so `HandoffDenied` ends the run. An agent
that a list of handoffs names plainly becomes there the handoff that the SDK would make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import Agent, AgentBase, AgentsException, Handoff, RunContextWrapper, handoff

from adjudge import AdjudgeError, GovernedCall, GovernError
from adjudge.integration import Effective, ProposedCall
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._body import GovernedBody, is_governed

__all__ = ["HandoffDenied", "check_handoff", "govern_handoffs", "target_of"]

_MADE_BY_SDK = ("agents.handoffs", "agents.realtime.handoffs")


class HandoffDenied(AdjudgeError, AgentsException):
    """A handoff that may not happen; its text is what a model would be told of a tool.

    `call` is the governed call, its decision included. `run_data` is the SDK's, as in each of its
    exceptions.
    """

    code = "handoff_denied"

    def __init__(self, call: GovernedCall) -> None:
        super().__init__(call.text)
        self.call = call

    def __reduce__(self) -> tuple[type[HandoffDenied], tuple[GovernedCall]]:
        return (type(self), (self.call,))


class GovernedHandoff(GovernedBody):
    """The governed way to a handoff; `reach` governs the agent that it leads to."""

    def __init__(
        self, item: Handoff[Any, Any], binding: Binding, reach: Callable[[AgentBase], None]
    ) -> None:
        super().__init__(item.tool_name, binding)
        self._schema = item.input_json_schema
        self._invoke = item.on_invoke_handoff
        self._reach = reach
        # The SDK validates the text by itself, unless there is nothing to be read.
        function = getattr(item.on_invoke_handoff, "func", item.on_invoke_handoff)
        self._sdk_reads = function.__module__ in _MADE_BY_SDK and bool(
            item.input_json_schema.get("properties")
        )

    def proposal(self, arguments: str, call_id: str | None = None) -> ProposedCall:
        """Say what is judged; the SDK tells a handoff no call id."""
        return ProposedCall(
            self.name,
            arguments or "{}",
            call_id=call_id,
            schema=self._schema,
            rejects_invalid_text=self._sdk_reads,
        )

    async def __call__(self, context: RunContextWrapper[Any], arguments: str) -> Any:
        """Judge one handoff; give the agent that takes over, governed, or raise."""

        async def run(effective: Effective) -> Any:
            text = effective.text if effective.changed else arguments
            agent = await self._invoke(context, text)
            if not isinstance(agent, AgentBase):
                raise GovernError(f"A handoff led to a {type(agent).__name__}, which is no agent.")
            if self.binding.recursive:
                self._reach(agent)
            return agent

        return await self._mediate(self.proposal(arguments), run, context)

    def _said(self, call: GovernedCall) -> Any:
        raise HandoffDenied(call)


class _PlainHandoff(Handoff[Any, Any]):
    """The handoff to an agent that was listed plainly; in a search of the list it is that agent."""

    target: AgentBase | None = None

    def __eq__(self, other: object) -> bool:
        return other is self or (other is not None and other is self.target)

    __hash__ = None  # type: ignore[assignment]


def govern_handoffs(items: list[Any], binding: Binding, reach: Callable[[AgentBase], None]) -> None:
    """Govern the handoffs of a list, in place."""
    for index, item in enumerate(items):
        if isinstance(item, AgentBase):
            item = items[index] = _plain(item)
        elif isinstance(item, _PlainHandoff) and item.target is not None:
            _refresh(item, item.target)
        if isinstance(item, Handoff) and not isinstance(item.on_invoke_handoff, GovernedHandoff):
            item.on_invoke_handoff = GovernedHandoff(item, binding, reach)


def check_handoff(item: Handoff[Any, Any], binding: Binding) -> None:
    """Raise `GovernError` where a handoff is under another guard or was renamed."""
    body: object = item.on_invoke_handoff
    name = item.tool_name
    if isinstance(item, _PlainHandoff) and isinstance(body, GovernedHandoff):
        name = body.name  # it follows the name of its agent
    is_governed(f"handoff {name!r}", name, body, binding)


def target_of(item: Any) -> AgentBase | None:
    """Give the agent that an entry of a list of handoffs leads to, where that is known."""
    if isinstance(item, AgentBase):
        return item
    # The SDK has no public way from a handoff to its agent; a test fails if this one moves.
    reference = getattr(item, "_agent_ref", None)
    return getattr(item, "target", None) if reference is None else reference()


def _plain(agent: AgentBase) -> _PlainHandoff:
    made: Any = _made(agent)
    made.__class__ = _PlainHandoff
    made.target = agent
    return made  # type: ignore[no-any-return]


def _refresh(item: _PlainHandoff, target: AgentBase) -> None:
    """Follow the agent's name and description, which the SDK reads anew each time."""
    made = _made(target)
    if (made.tool_name, made.tool_description) != (item.tool_name, item.tool_description):
        vars(item).update(vars(made))


def _made(agent: AgentBase) -> Handoff[Any, Any]:
    if isinstance(agent, Agent):
        return handoff(agent)
    from agents.realtime import RealtimeAgent, realtime_handoff  # half a second, for few

    if not isinstance(agent, RealtimeAgent):
        raise GovernError(f"The SDK makes no handoff of a {type(agent).__name__}.")
    return realtime_handoff(agent)
