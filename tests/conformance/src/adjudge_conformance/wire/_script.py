"""What the scripted model says: turns per model name, and the ids of the calls that it proposes.

A call's id tells which model proposed it, in which turn and in which conversation, so that the next
turn can be chosen from a request alone: nothing is counted on the server, and a nested, parallel or
restarted agent gets the answer that belongs to its own history.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["ScriptedCall", "Script", "Turn", "call_id"]

_ID = re.compile(r"call_(?P<model>[A-Za-z0-9-]+)_(?P<turn>\d+)_(?P<index>\d+)_[0-9a-f]{8}\Z")
_THOUGHT = "Thought: step {turn} of {model}\n"


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call as the model writes it; `arguments` is the raw text and need not be JSON.

    `item` holds further fields of the call's item in the Responses API, a namespace for one. With a
    `type` among them it is the whole item but for its ids, and no function call: a shell's, say.
    """

    tool: str
    arguments: str
    id: str | None = None
    item: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model: tool calls, or a text, or both."""

    calls: tuple[ScriptedCall, ...] = ()
    text: str | None = None


def call_id(model: str, conversation: str, turn: int, index: int) -> str:
    """The id of a proposed call; `conversation` is the first thing that the user said in it."""
    digest = hashlib.sha256(f"{model}\n{conversation}".encode()).hexdigest()[:8]
    return f"call_{model}_{turn}_{index}_{digest}"


class Script:
    """The turns of every scripted model, by model name.

    Raises:
        ValueError: A model's name cannot stand in a call id, or two of its turns say the same text,
            so that a history could not tell them apart.
    """

    def __init__(self, turns: Mapping[str, Sequence[Turn]]) -> None:
        for model, said in turns.items():
            texts = [turn.text for turn in said if turn.text is not None]
            if not re.fullmatch(r"[A-Za-z0-9-]+", model):
                raise ValueError(
                    f"the model name {model!r} becomes part of call ids: "
                    "write it in letters, digits and hyphens only"
                )
            if len(texts) != len(set(texts)):
                raise ValueError(f"two turns of {model!r} say the same text; give each its own")
        self._turns = {model: tuple(said) for model, said in turns.items()}

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._turns)

    def turns(self, model: str) -> tuple[Turn, ...]:
        return self._turns[model]

    def next_turn(self, model: str, *, call_ids: Sequence[str], said: Sequence[str]) -> int:
        """The number of the turn that follows the last one of which a history holds a trace."""
        done = -1
        for seen in call_ids:
            done = max(done, self._turn_of_call(model, seen))
        for number, turn in enumerate(self._turns[model]):
            thought = _THOUGHT.format(turn=number, model=model)
            if any(text == turn.text or thought in text for text in said):
                done = max(done, number)
        return done + 1

    def ids(self, model: str, turn: int, conversation: str) -> tuple[str, ...]:
        """The ids of a turn's calls, in the order in which they are proposed."""
        return tuple(
            call.id or call_id(model, conversation, turn, index)
            for index, call in enumerate(self._turns[model][turn].calls)
        )

    def react_text(self, model: str, turn: int) -> str:
        """A turn as a ReAct model writes it: one action, or the final answer."""
        said = self._turns[model][turn]
        thought = _THOUGHT.format(turn=turn, model=model)
        if not said.calls:
            return f"{thought}Final Answer: {said.text}"
        call = said.calls[0]
        return f"{thought}Action: {call.tool}\nAction Input: {call.arguments}\n"

    def _turn_of_call(self, model: str, seen: str) -> int:
        match = _ID.match(seen)
        if match:
            return int(match["turn"]) if match["model"] == model else -1
        for number, turn in enumerate(self._turns[model]):
            if any(call.id == seen for call in turn.calls):
                return number
        return -1


def digest_of(value: object) -> str:
    """A short name for a JSON value, the same in every run."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
