"""One invocation of a governed tool, from its `run` to the door of its body.

`run` and `arun` know the call's id and what the model sent; `_run` and `_arun` get the values that
LangChain's validation made of it. A frame carries the one to the other, through a context variable,
which LangChain takes along into its threads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from langchain_core.tools import BaseTool

__all__ = ["FRAME", "Attempts", "Frame"]


@dataclass(slots=True, eq=False)
class Frame:
    """What `run` was called with."""

    tool: BaseTool
    sent: dict[str, Any]
    """What the model sent, by the names that a policy knows; what is injected is left out."""
    call_id: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    begun: bool = True
    """Whether LangChain's `run` has begun it, and not somebody at the body's own door."""
    reading: bool = False
    """Whether LangChain has begun to read the arguments."""
    reached: bool = False
    """Whether the call has come to its body's door."""
    passing: str | None = None
    """The canonical form of judged values with which an `_arun` may enter its own `_run`."""

    def takes_pass(self, seen: str) -> bool:
        """Whether this is the judged call on its way from `_arun` into `_run`; true once."""
        if self.passing != seen:
            return False
        self.passing = None
        return True


FRAME: ContextVar[Frame | None] = ContextVar("adjudge_frame", default=None)


class Attempts:
    """How often the bodies of recent calls have raised, so that their repeats can be numbered."""

    _MOST = 1024

    def __init__(self) -> None:
        self._failed: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Attempts:
        """Give itself: a repeat is one whichever copy makes it."""
        return self

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._failed)

    def number(self, key: str) -> int:
        """Give the number of the attempt that is about to be made, from 1."""
        with self._lock:
            return self._failed.get(key, 0) + 1

    def failed(self, key: str, number: int) -> None:
        """Put down that the attempt of that number has raised."""
        with self._lock:
            self._failed[key] = max(self._failed.pop(key, 0), number)
            if len(self._failed) > self._MOST:
                self._failed.popitem(last=False)

    def ended(self, key: str) -> None:
        """Forget a call whose body has given a result."""
        with self._lock:
            self._failed.pop(key, None)
