"""The governed copies of an agent's tools, kept from one request to the model to the next.

The SDK asks an agent for its tools before each request, and to govern one takes longer than to
judge a call. A copy is given again only while its tool and itself are as they were when it was
made: what was swapped or changed since is governed anew. So is what cannot be compared, and every
tool of an MCP server, which the SDK makes anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self
from weakref import ref

from agents import AgentBase, Tool

from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._tools import govern_tools

__all__ = ["KeptTools"]

# Kept with the agent, whose life it shares; the SDK reads no field that begins so.
_FIELD = "__adjudge_kept__"


class KeptTools:
    """The governed copies of one agent's tools."""

    def __init__(self) -> None:
        self._bound: tuple[Binding, Binding] | None = None
        self._kept: dict[int, _Kept] = {}

    @classmethod
    def of(cls, agent: AgentBase) -> KeptTools:
        """Give what is kept with an agent."""
        kept: KeptTools = vars(agent).setdefault(_FIELD, cls())
        return kept

    def __deepcopy__(self, memo: dict[int, Any]) -> KeptTools:
        """Give none: a deep copy of an agent has other tools."""
        return KeptTools()

    def bound(self, binding: Binding, agent: AgentBase) -> Binding:
        """Give a binding for the tools of the agent, under the name that it has now."""
        known = self._bound
        if known is None or known[0] is not binding or not _is_for(known[1], agent):
            known = (binding, replace(binding, agent=agent.name, holder=ref(agent)))
            self._bound = known
        return known[1]

    def governed(
        self, tools: Iterable[Tool], binding: Binding, *, listed: Iterable[Tool]
    ) -> list[Tool]:
        """Give governed copies as `govern_tools` does, and forget what is no longer `listed`."""
        before, kept, governed = self._kept, dict[int, _Kept](), list[Tool]()
        for tool in tools:
            known = before.get(id(tool))
            if known is None or not known.is_of(tool, binding):
                made = govern_tools([tool], binding)
                governed += made
                known = _Kept.of(tool, made[0], binding) if made and made[0] is not tool else None
            else:
                governed.append(known.copy)
            if known is not None:
                kept[id(tool)] = known
        for tool in listed:  # with those that are not enabled just now
            if id(tool) in before:
                kept.setdefault(id(tool), before[id(tool)])
        self._kept = kept
        return governed


def _is_for(binding: Binding, agent: AgentBase) -> bool:
    holder = None if binding.holder is None else binding.holder()
    return holder is agent and binding.agent == agent.name


@dataclass(frozen=True, slots=True)
class _Kept:
    """A tool and its governed copy, and how both looked when it was made."""

    tool: Tool
    copy: Tool
    binding: Binding
    looks: tuple[_Look, _Look]

    @classmethod
    def of(cls, tool: Tool, copy: Tool, binding: Binding) -> Self | None:
        """Keep a copy; None where nobody could tell whether it is as it was."""
        try:
            return cls(tool, copy, binding, (_Look(tool), _Look(copy)))
        except (TypeError, ValueError, RecursionError):
            return None

    def is_of(self, tool: Tool, binding: Binding) -> bool:
        """Whether it is the copy of this tool under this binding, and neither has changed."""
        if self.tool is not tool or self.binding is not binding:
            return False
        before, copied = self.looks
        return before.is_still(tool) and copied.is_still(self.copy)


class _Look:
    """How a tool looked: the values of its fields, and what was in those that can be changed.

    It holds the values, so that nothing else has their identity. Raises as `json.dumps` does for a
    dict that is no JSON.
    """

    __slots__ = ("_contents", "_fields", "_ids", "_kind", "_values")

    def __init__(self, tool: Tool) -> None:
        self._kind, self._fields = type(tool), tuple(vars(tool))
        self._values = tuple(vars(tool).values())
        self._ids = tuple(map(id, self._values))
        changeable = (each for each in self._values if isinstance(each, dict | list | set))
        self._contents = [(each, _contents(each)) for each in changeable]

    def is_still(self, tool: Tool) -> bool:
        """Whether the tool looks so now; raises nothing."""
        fields = vars(tool)
        if (type(tool), tuple(fields)) != (self._kind, self._fields):
            return False
        if tuple(map(id, fields.values())) != self._ids:
            return False
        try:
            return all(_contents(each) == known for each, known in self._contents)
        except (TypeError, ValueError, RecursionError):
            return False


def _contents(value: dict[Any, Any] | list[Any] | set[Any]) -> str | list[object]:
    """Give what is in a schema, as text, for which 1 is not True; or in a list of guardrails."""
    return json.dumps(value) if isinstance(value, dict) else [*map(_Same, value)]


@dataclass(slots=True, eq=False)
class _Same:
    """An item that is equal to itself alone."""

    item: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.item is self.item
