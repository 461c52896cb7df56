"""The key under which the same call is the same call, however often it is tried."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from adjudge import AdjudgeError
from adjudge.integration import canonical_json, parse_arguments
from adjudge_runtime._making import are_plain

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
    read = _read(args)
    text = _plain_text(run_id, step, tool, read, index)
    if text is None:
        named = [run_id, step, tool, read]
        text = canonical_json([*named, index] if index else named)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _plain_text(run_id: str, step: int, tool: str, args: object, index: int) -> str | None:
    """Write the canonical text where nothing needs a tag or a look, as nearly nothing does."""
    if not isinstance(args, dict) or not are_plain((run_id, step, tool, index, *args.values())):
        return None
    for name in args:
        if type(name) is not str or not name.isascii() or name[:1] == "$":
            return None
    members = [f"{encode_basestring_ascii(name)}:{_written(args[name])}" for name in sorted(args)]
    named = [_written(run_id), _written(step), _written(tool), "{" + ",".join(members) + "}"]
    if index:
        named.append(_written(index))
    return "[" + ",".join(named) + "]"


def _written(value: object) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)  # type: ignore[arg-type]
    if kind is int or kind is float:
        return repr(value)
    return "null" if value is None else "true" if value else "false"


def _read(args: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    if not isinstance(args, str):
        return args
    try:
        return parse_arguments(args)
    except AdjudgeError:
        # The guard will refuse it; until then the text itself stands for what it says.
        return args
