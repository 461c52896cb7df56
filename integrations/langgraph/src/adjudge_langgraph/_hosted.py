"""Tools that run at the provider and are bound to a model: refused, left out, or let through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjudge_langchain.integration import Binding, allowed_tools

__all__ = ["check_bindings"]


def check_bindings(bindings: Iterable[Any], binding: Binding) -> None:
    """Look at the tools that were bound to the models of a graph's nodes.

    Raises `GovernError` for tools at the provider, unless they may run or are to be left out.
    """
    for bound in bindings:
        tools = list(bound.kwargs["tools"])
        allowed = allowed_tools(tools, binding)
        if len(allowed) != len(tools):
            bound.kwargs["tools"] = allowed
