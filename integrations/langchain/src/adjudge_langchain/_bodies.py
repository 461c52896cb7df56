"""The functions behind tools: the names and the defaults that a body gives its own arguments.

LangChain hands a bare string to a body by position, past the schema's names and defaults, reads
nothing where the schema is a dict or none, and who calls the body's door himself comes past the
schema altogether. What is judged then is what the body's own signature makes of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from adjudge import ArgumentsRefused
from adjudge.integration import EMPTY, project
from adjudge_langchain._arguments import ONLY, Unread, fields_of
from adjudge_langchain._shown import visible

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


def first_name(tool: BaseTool, sent: Mapping[str, Any] = EMPTY) -> str:
    """Name the argument that goes by position: a bare value, or the one that a `Tool` is sent."""
    if takes_one(tool):
        return ONLY
    if isinstance(tool, Tool) and isinstance(tool.args_schema, dict) and len(sent) == 1:
        return next(iter(sent))
    return next(iter(fields_of(tool) or tool.args or (ONLY,)))


def sent_to(tool: BaseTool, tool_input: Any) -> dict[str, Any]:
    """Give what was sent, by name."""
    if isinstance(tool_input, BaseModel | BaseModelV1):
        tool_input = _set_in(tool_input)  # LangChain reads instances as well
    if not isinstance(tool_input, dict):
        return {first_name(tool): tool_input}
    sent = visible(tool, tool_input)
    if takes_one(tool) and len(sent) == 1:
        return {first_name(tool): next(iter(sent.values()))}
    return sent


def _set_in(model: BaseModel | BaseModelV1) -> dict[str, Any]:
    """Give the fields of a model that are no defaults."""
    if isinstance(model, BaseModelV1):
        return {name: getattr(model, name) for name in model.__fields_set__}
    return {name: getattr(model, name) for name in model.model_fields_set}


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
        and _has_meaning(each.default)
    }
    names = names_of(body)
    alone = takes_one(tool) or (isinstance(tool, Tool) and len(tool.args) <= 1)
    others = {name for name, _ in parameters}
    problem = None
    if first and names and names[0] != first[0] and not (alone and first[0] not in others):
        problem = (
            f"a bare value is {first[0]!r} to the tool's schema and {names[0]!r} to its body; "
            "name the argument"
        )
    return Unread(visible(tool, defaults), problem)


def _has_meaning(value: object) -> bool:
    """Whether a default is a value that a policy could look at."""
    try:
        project(value)
    except ArgumentsRefused:
        return False
    return True


def _parameters(body: Callable[..., Any]) -> list[tuple[str, inspect.Parameter]]:
    try:
        return list(inspect.signature(body).parameters.items())
    except (TypeError, ValueError):
        return []
