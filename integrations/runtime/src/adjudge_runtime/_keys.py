"""The key under which the same call is the same call, however often it is tried."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from adjudge import AdjudgeError
from adjudge.integration import canonical_json, parse_arguments

__all__ = ["idempotency_key"]


def idempotency_key(
    run_id: str, step: int, tool: str, args: Mapping[str, Any] | str, *, index: int = 0
) -> str:
    """Give the key of one call of a run: 32 hexadecimal digits, the same in every attempt.

    `step` is the number of the model call, from 0, `index` the place among the calls that it
    proposed together, and `args` what it proposed, as values or as the model's JSON text. The
    idea is that of the `Idempotency-Key` header of payment services. Raises `ArgumentsRefused` for
    values that are no JSON.
    """
    named = [run_id, step, tool, _read(args)]
    text = canonical_json([*named, index] if index else named)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _read(args: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    if not isinstance(args, str):
        return args
    try:
        return parse_arguments(args)
    except AdjudgeError:
        # The guard will refuse it; until then the text itself stands for what it says.
        return args
