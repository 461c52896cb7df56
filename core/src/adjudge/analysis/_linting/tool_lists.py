"""The tools that there are, as lint knows them: names, which arguments may be left out, metadata.

They come from a `ToolSet`, from names, or from the schemas that frameworks and providers use: the
function tools of OpenAI (flat or under `function`), the tools of MCP (`inputSchema`) and of
Anthropic (`input_schema`).
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge._enforcement.tools import ToolDef, ToolSet
from adjudge._types import ToolMetadata
from adjudge.errors import PolicyCompileError
from adjudge.policy._faults import describe

__all__ = ["KnownTool", "ToolList", "Tools", "load_tools", "tool_list"]

_SCHEMAS = ("parameters", "inputSchema", "input_schema")


@dataclass(frozen=True, slots=True)
class KnownTool:
    """One tool; `optional` are the arguments that may be absent when the call is judged."""

    name: str
    optional: frozenset[str] = frozenset()
    metadata: ToolMetadata | None = None


ToolList = tuple[KnownTool, ...]
Tools = ToolSet | Iterable[str | Mapping[str, Any] | ToolDef | KnownTool]


def tool_list(tools: Tools) -> ToolList:
    """Read a list of tools. Raises `PolicyCompileError` for what is no tool."""
    if isinstance(tools, str | Mapping):
        raise PolicyCompileError(
            "The tools are a list of names or of schemas; put a single one into brackets."
        )
    signatures = tools if isinstance(tools, ToolSet) else None
    known: dict[str, KnownTool] = {}
    for number, item in enumerate(tools):
        tool = _tool(item, number, signatures)
        known.setdefault(tool.name, tool)
    return tuple(known.values())


def load_tools(source: str) -> ToolList:
    """Read the tools in a JSON file, or those of `module:attribute`.

    Raises `PolicyCompileError` where there are none to be had.
    """
    module, colon, attribute = source.partition(":")
    if colon and not Path(source).exists():
        return tool_list(_imported(source, module, attribute))
    try:
        tools = json.loads(Path(source).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PolicyCompileError(
            f"The tool list {source!r} cannot be read: {error}. It is a JSON list of names or of "
            "schemas, or module:attribute of a ToolSet."
        ) from None
    if isinstance(tools, dict) and isinstance(tools.get("tools"), list):
        # The answer of an MCP server to tools/list.
        tools = tools["tools"]
    if not isinstance(tools, list):
        raise PolicyCompileError(f"The tool list {source!r} is no JSON list of names or schemas.")
    return tool_list(tools)


def _imported(source: str, module: str, attribute: str) -> Tools:
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:
        # A module that ends the process while it is imported must not end the lint as good.
        raise PolicyCompileError(
            f"The tools {source!r} cannot be imported: {describe(error)}."
        ) from error
    finally:
        sys.path.pop(0)
    if not isinstance(found, Iterable):
        raise PolicyCompileError(
            f"{source!r} is a {type(found).__name__}; name a ToolSet or a list of tools."
        )
    return found


def _tool(item: object, number: int, signatures: ToolSet | None) -> KnownTool:
    if isinstance(item, KnownTool):
        return item
    if isinstance(item, str) and item:
        return KnownTool(item)
    if isinstance(item, ToolDef):
        signature = (signatures or ToolSet([item])).signature(item.name)
        optional = frozenset(name for name, each in signature.defaults.items() if each is None)
        return KnownTool(item.name, optional, item.metadata)
    if isinstance(item, Mapping):
        inner = item.get("function")
        described = inner if isinstance(inner, Mapping) else item
        name = described.get("name")
        if isinstance(name, str) and name:
            schema = next((described[key] for key in _SCHEMAS if key in described), None)
            return KnownTool(name, _optional(schema))
    definition = getattr(item, "__adjudge_tool__", None)
    if isinstance(definition, ToolDef):
        return _tool(definition, number, None)
    raise PolicyCompileError(
        f"Entry {number + 1} of the tool list is no tool; write its name, or an object with a name "
        "and the schema of its parameters."
    )


def _optional(schema: object) -> frozenset[str]:
    """Give the arguments that may be absent: left out without a default, or null."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return frozenset()
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    return frozenset(
        str(name)
        for name, each in properties.items()
        if (name not in required and _default(each) is None) or _may_be_null(each)
    )


def _default(schema: object) -> object:
    return schema.get("default") if isinstance(schema, Mapping) else None


def _may_be_null(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    either = [*_listed(schema.get("anyOf")), *_listed(schema.get("oneOf"))]
    return any(isinstance(each, Mapping) and each.get("type") == "null" for each in either)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
