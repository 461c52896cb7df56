"""The key under which the same call is the same call, however often it is tried."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from adjudge import AdjudgeError
from adjudge.integration import canonical_json, parse_arguments

__all__ = ["idempotency_key"]

_SMALL = 2**63


def idempotency_key(
    run_id: str, step: int, tool: str, args: Mapping[str, Any] | str, *, index: int = 0
) -> str:
    """Give the key of one call of a run: 32 hexadecimal digits, the same in every attempt.

    `step` is the number of the model call, from 0, `index` the place among the calls that it
    proposed together, and `args` what it proposed, as values or as the model's JSON text. The
    idea is that of the `Idempotency-Key` header of payment services. Raises `ArgumentsRefused` for
    values that are no JSON.
    """
    read = _read(args)
    text = _plain_text(run_id, step, tool, read, index)
    if text is None:
        named = [run_id, step, tool, read]
        text = canonical_json([*named, index] if index else named)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _plain_text(run_id: object, step: object, tool: object, args: object, index: int) -> str | None:
    """Write the canonical text where nothing needs a tag or a look, as nearly nothing does."""
    if not isinstance(args, dict):
        return None
    members: dict[str, str | None] = {}
    for name, value in args.items():
        if type(name) is not str or not name.isascii() or name[:1] == "$":
            return None
        members[name] = _written(value)
    texts = [_written(run_id), _written(step), _written(tool), *members.values()]
    if None in texts:
        return None
    ordered = sorted(members) if len(members) > 1 else members
    named = ",".join([f"{encode_basestring_ascii(name)}:{members[name]}" for name in ordered])
    last = f",{_written(index)}" if index else ""
    return f"[{texts[0]},{texts[1]},{texts[2]},{{{named}}}{last}]"


def _written(value: Any) -> str | None:
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value) if value.isascii() else None
    if kind is int:
        return repr(value) if -_SMALL < value < _SMALL else None
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return repr(value) if isfinite(value) else None
    return "null" if value is None else None


def _read(args: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    if not isinstance(args, str):
        return args
    try:
        return parse_arguments(args)
    except AdjudgeError:
        # The guard will refuse it; until then the text itself stands for what it says.
        return args
