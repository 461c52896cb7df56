"""How what a tool gave is kept for a run that starts over, and given again.

CrewAI cannot save a run: it goes on by starting again, and asks its models again. The guard's
ledger then gives each finished call what it gave before. Kept is JSON, or the text that the model
was told; nothing that is kept is ever executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crewai.tools import BaseTool, ToolFailure
from pydantic import BaseModel

from adjudge.integration import Replay

__all__ = ["Stopped", "replay_of"]


class Stopped(Exception):
    """Why the body of a call that may run does not: its values are not those that were judged."""


def replay_of(tool: BaseTool, *, exactly: bool) -> Replay:
    """Say how results of a tool are kept; `exactly` keeps none that would come back as another.

    A model is told a text. The application's own code gets the value, and a text in its place would
    be no answer.
    """

    def keep(ended: object) -> Mapping[str, Any] | None:
        if isinstance(ended, Exception):
            return _raised(ended)
        if exactly and not (_is_json(ended) or isinstance(ended, ToolFailure)):
            return None
        return _described(tool, ended)

    return Replay(keep, _given_again)


def _given_again(kept: Mapping[str, Any]) -> Any:
    if "stopped" in kept:
        raise Stopped(kept["stopped"])
    if "raised" in kept:
        # The model is told of an exception's text, and the record of its name.
        raise type(str(kept["raised"]), (Exception,), {})(kept["text"])
    if "failure" in kept:
        return ToolFailure.model_validate_json(kept["failure"])
    return json.loads(kept["json"]) if "json" in kept else kept["text"]


def _raised(error: Exception) -> dict[str, Any]:
    if isinstance(error, Stopped):
        return {"stopped": str(error)}
    return {"raised": type(error).__name__, "text": str(error)}


def _described(tool: BaseTool, value: Any) -> dict[str, Any]:
    """Give a result as JSON from which the model would be told the same."""
    if isinstance(value, ToolFailure):
        return {"failure": value.model_dump_json()}
    if _is_json(value):
        return {"json": json.dumps(value)}  # as text, in which any JSON may stand
    if isinstance(value, BaseModel) and tool.result_schema is not None:
        return {"json": value.model_dump_json()}
    return {"text": tool.format_output_for_agent(value)}


def _is_json(value: object) -> bool:
    """Whether JSON gives back exactly this value, types and all."""
    if value is None or type(value) in (bool, int, str):
        return True
    if type(value) is float:
        return value == value and abs(value) != float("inf")
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    return False
