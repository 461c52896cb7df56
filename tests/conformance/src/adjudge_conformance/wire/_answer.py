"""One answer of the scripted model, before it is put into the words of an API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "AnsweredCall", "pieces"]


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A proposed call with the id under which the model proposes it."""

    id: str
    tool: str
    arguments: str
    item: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said, by which model, and what it cost in tokens.

    Ids, tokens and the time (in seconds since 1970) depend on the request's content and on nothing
    else, so that the same request gets the same bytes back.
    """

    id: str
    model: str
    turn: int
    text: str | None
    calls: tuple[AnsweredCall, ...]
    created: int = 1_767_225_600

    @property
    def input_tokens(self) -> int:
        """The tokens read: more with each turn."""
        return 20 + 10 * self.turn

    @property
    def output_tokens(self) -> int:
        """The tokens written: more with each call."""
        return 5 + 3 * len(self.calls)


def pieces(text: str) -> tuple[str, ...]:
    """Cut a text in two, as a stream would, so that nobody can rely on getting it whole."""
    middle = (len(text) + 1) // 2
    return tuple(part for part in (text[:middle], text[middle:]) if part)
