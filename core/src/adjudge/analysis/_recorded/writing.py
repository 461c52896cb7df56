"""Plain policy data as text: YAML that reads back to the same data, or JSON.

Every string stands in double quotes, so that no reader of YAML can take one for anything else; keys
are bare only where they are plain words.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["as_json_text", "as_yaml_text"]

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:\[[0-9]+\])*")
_NOT_BARE = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_SHORT = 80
_ESCAPES: Mapping[str, str] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def as_json_text(policy: Mapping[str, Any]) -> str:
    """Write a policy as JSON."""
    return json.dumps(policy, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def as_yaml_text(policy: Mapping[str, Any], comments: Iterable[str] = ()) -> str:
    """Write a policy as YAML, with comments before it."""
    lines = [f"# {line}".rstrip() for text in comments for line in _escaped(text).splitlines()]
    return "\n".join([*lines, *_mapping(policy, "")]) + "\n"


def _escaped(text: str) -> str:
    return "".join(c if c == "\n" or c.isprintable() else _escape(c) for c in text)


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, item in value.items():
        yield from _item(f"{indent}{_key(key)}:", item, indent + "  ")


def _item(head: str, value: Any, indent: str) -> Iterator[str]:
    flat = _flat(value)
    if flat is not None and len(head) + len(flat) <= _SHORT:
        yield f"{head} {flat}"
    elif isinstance(value, Mapping):
        yield head
        yield from _mapping(value, indent)
    elif isinstance(value, list | tuple):
        yield head
        for item in value:
            yield from _listed(item, indent)
    else:
        yield f"{head} {_scalar(value)}"


def _listed(value: Any, indent: str) -> Iterator[str]:
    """Write an element of a list; the first key of a mapping stands beside its dash."""
    if isinstance(value, Mapping) and value:
        first, *rest = list(_mapping(value, indent + "  "))
        yield f"{indent}- {first.lstrip()}"
        yield from rest
    else:
        yield from _item(f"{indent}-", value, indent + "  ")


def _flat(value: Any) -> str | None:
    """Write a value on one line where that is short and plain, else None."""
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping) and item for item in value):
            return None
        items = [_flat(item) for item in value]
        return None if None in items else f"[{', '.join(filter(None, items))}]"
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        if len(value) > 1 or any(isinstance(item, Mapping) for item in value.values()):
            return None
        key, item = next(iter(value.items()))
        flat = _flat(item)
        return None if flat is None else f"{{{_key(key)}: {flat}}}"
    return _scalar(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) and key.lower() not in _NOT_BARE else _quoted(key)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of a policy.")
    mantissa, exponent, power = repr(value).partition("e")
    # Without a point YAML 1.1 reads 1e+16 as text.
    return f"{mantissa}.0{exponent}{power}" if exponent and "." not in mantissa else repr(value)


def _quoted(text: str) -> str:
    return '"' + "".join(_char(char) for char in text) + '"'


def _char(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else _escape(char)


def _escape(char: str) -> str:
    point = ord(char)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
