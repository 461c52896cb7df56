"""A conversation: messages in order, to which one more can be added without copying the rest.

It is a value. Adding gives a longer one and leaves this one as it was, and both share what they
have in common, so that a step costs the same after ten messages and after ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from adjudge_runtime._values import Message

__all__ = ["Conversation"]


class Conversation(Sequence[Message]):
    """An immutable sequence of messages; equal to any tuple or conversation of the same ones."""

    __slots__ = ("_length", "_shared")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._shared = list(messages)
        self._length = len(self._shared)

    def append(self, message: Message) -> Conversation:
        """Give this conversation with one more message; this one stays as it is."""
        return self.extended((message,))

    def extended(self, messages: Iterable[Message]) -> Conversation:
        """Give this conversation with more messages; this one stays as it is."""
        shared = self._shared
        if len(shared) != self._length:
            # Another conversation went on from here: the two part.
            shared = shared[: self._length]
        shared.extend(messages)
        longer = object.__new__(Conversation)
        longer._shared = shared
        longer._length = len(shared)
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._shared[number] for number in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"There is no message {index}; the conversation has {self._length}.")
        return self._shared[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[Message]:
        return islice(self._shared, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conversation | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    # A call's arguments may be a dict, so there is no hash that would agree with equality.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Conversation({list(self)!r})"
