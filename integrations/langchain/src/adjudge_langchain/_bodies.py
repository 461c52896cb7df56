"""The functions behind tools: the names and the defaults that a body gives its own arguments.

LangChain hands a bare string to a body by position, past the schema's names and defaults, and who
calls the body's door himself comes past the schema altogether. What is judged then is what the
body's own signature makes of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool

from adjudge_langchain._arguments import ONLY, Unread, fields_of, visible

__all__ = ["body_of", "first_name", "names_of", "sent_to", "takes_one", "unread_values"]

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def body_of(tool: BaseTool, *, in_loop: bool = False) -> Callable[..., Any]:
    """Give the function that is a tool's body."""
    if isinstance(tool, StructuredTool | Tool):
        found = (tool.coroutine or tool.func) if in_loop else (tool.func or tool.coroutine)
        if found is not None:
            return found
    own = in_loop and type(tool)._arun is not BaseTool._arun
    return tool._arun if own else tool._run


def takes_one(tool: BaseTool) -> bool:
    """Whether LangChain hands over the one value by position, whatever the model calls it."""
    return isinstance(tool, Tool) and tool.args_schema is None


def first_name(tool: BaseTool) -> str:
    """Name the argument that a bare value is."""
    if takes_one(tool):
        return ONLY
    return next(iter(fields_of(tool) or tool.args or (ONLY,)))


def sent_to(tool: BaseTool, tool_input: Any) -> dict[str, Any]:
    """Give what was sent, by name."""
    if not isinstance(tool_input, dict):
        return {first_name(tool): tool_input}
    sent = visible(tool, tool_input)
    if takes_one(tool) and len(sent) == 1:
        return {first_name(tool): next(iter(sent.values()))}
    return sent


def names_of(body: Callable[..., Any]) -> tuple[str, ...]:
    """Name the parameters that a body takes by position, in order."""
    return tuple(name for name, each in _parameters(body) if each.kind in _BY_POSITION)


def unread_values(
    tool: BaseTool, body: Callable[..., Any], first: tuple[str, ...], hidden: Collection[str]
) -> Unread:
    """Say what a body makes of values that no schema has read.

    `first` names what is sent as a bare value; `hidden` are names that are no arguments.
    """
    parameters = _parameters(body)
    defaults = {
        name: each.default
        for name, each in parameters
        if each.default is not each.empty
        and name not in hidden
        and RunnableConfig.__name__ not in str(each.annotation)
    }
    names = names_of(body)
    alone = isinstance(tool, Tool) and len(fields_of(tool)) <= 1
    problem = None
    if first and not alone and names and names[0] != first[0]:
        problem = (
            f"a bare value is {first[0]!r} to the tool's schema and {names[0]!r} to its body; "
            "name the argument"
        )
    return Unread(visible(tool, defaults), problem)


def _parameters(body: Callable[..., Any]) -> list[tuple[str, inspect.Parameter]]:
    try:
        return list(inspect.signature(body).parameters.items())
    except (TypeError, ValueError):
        return []
