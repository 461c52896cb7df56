"""Arguments as a provider wants to be told of them again: as JSON text, or as an object.

Text of the model's that is no JSON object cannot be handed back as one: it is told as the value of
`INVALID_JSON`, as Anthropic's documentation on fine-grained tool streaming says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adjudge import AdjudgeError
from adjudge.integration import freeze_object, parse_arguments, thaw

__all__ = ["as_object", "as_text"]


def as_object(args: Mapping[str, Any] | str) -> dict[str, Any]:
    """Give arguments as plain JSON values."""
    try:
        frozen = parse_arguments(args or "{}") if isinstance(args, str) else freeze_object(args)
    except AdjudgeError:
        return {"INVALID_JSON": args if isinstance(args, str) else repr(dict(args))}
    plain = thaw(frozen)
    assert isinstance(plain, dict)
    return plain


def as_text(args: Mapping[str, Any] | str) -> str:
    """Give arguments as JSON text; the model's own text as it is."""
    if isinstance(args, str):
        return args
    return json.dumps(as_object(args), default=str)
