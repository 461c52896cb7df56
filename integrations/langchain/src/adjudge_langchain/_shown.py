"""Which of a call's arguments a model sends, and which LangChain adds to them.

LangChain finds it out anew for each call; of a governed tool, whose schema and function decide it
name by name, the answers are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.manager import BaseRunManager
from langchain_core.tools import BaseTool

__all__ = ["OWN", "SHOWN", "Shown", "is_own", "visible"]

OWN = ("run_manager", "callbacks")
"""The names under which LangChain hands a body objects of its own."""
SHOWN = "__adjudge_shown__"
"""Where the class of a governed tool has its `Shown`."""
# Where LangChain finds it out; what a class has of its own there may answer otherwise each time.
_ASKED = ("_filter_injected_args", "_injected_args_keys")

_Known: TypeAlias = tuple[tuple[Any, ...], dict[str, bool]]
"""A tool's schema and functions, and what is known of names while it has these."""


class Shown:
    """The names that a model sends to one tool, as far as they have been asked about."""

    _MOST = 256

    def __init__(self) -> None:
        self._known: _Known = ((), {})

    @classmethod
    def where_kept(cls, base: type[BaseTool]) -> Shown | None:
        """Give one for tools of a class; None where LangChain itself is not the one who says."""
        for name in _ASKED:
            owner = next((each for each in base.__mro__ if name in vars(each)), base)
            if owner.__module__.partition(".")[0] != "langchain_core":
                return None
        return cls()

    def among(self, tool: BaseTool, names: Iterable[str]) -> set[str]:
        """Give those of the names that a model sends."""
        parts = (tool.args_schema, getattr(tool, "func", None), getattr(tool, "coroutine", None))
        before, known = self._known
        if len(before) != len(parts) or not all(map(is_, before, parts)):
            known = {}  # a copy that was given another schema, or another function
            self._known = (parts, known)
        unknown = [name for name in names if name not in known]
        shown = {name for name in names if known.get(name)}
        if unknown:
            found = _asked(tool, unknown)
            shown.update(found)
            if len(known) + len(unknown) <= self._MOST:  # a model may make up any number of names
                known.update({name: name in found for name in unknown})
        return shown


def visible(tool: BaseTool, values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values that the model sends, without what is injected."""
    kept: Shown | None = getattr(type(tool), SHOWN, None)
    shown = _asked(tool, values) if kept is None else kept.among(tool, values)
    # LangChain leaves out its own two names as well, also where a model sends values under them.
    return {
        name: value
        for name, value in values.items()
        if name in shown or (name in OWN and not is_own(value))
    }


def is_own(value: object) -> bool:
    """Whether a value is LangChain's own object, handed to a body beside its arguments."""
    return isinstance(value, BaseRunManager | BaseCallbackManager)


def _asked(tool: BaseTool, names: Iterable[str]) -> set[str]:
    # What a callback is shown as `inputs`; LangChain has no public word for what it injects. A test
    # fails if it moves.
    return set(tool._filter_injected_args(dict.fromkeys(names)))
