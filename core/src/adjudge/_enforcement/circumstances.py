"""What the record says of a proposed call beside its arguments, so that it can be judged again.

What is as it is by default is left out. Nothing here is redacted yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adjudge._record.format import PlainDict
from adjudge._types import ActionRequest, ToolMetadata
from adjudge._values import FrozenDict, FrozenList

__all__ = ["circumstances", "declaration", "shown_paths"]

_PLAIN = ToolMetadata()
_NOTHING = PlainDict()


def declaration(metadata: ToolMetadata | None, *, has_shadow: bool) -> FrozenDict | None:
    """Give what differs from a plain tool's metadata; None is a tool of which nothing is known."""
    if metadata is None:
        return None
    if metadata == _PLAIN and not has_shadow:
        return _NOTHING
    found: dict[str, Any] = {}
    for name in ToolMetadata.__slots__:
        # A preview counts as a policy sees it: whether it could really run.
        value = has_shadow if name == "has_shadow" else getattr(metadata, name)
        if value != getattr(_PLAIN, name):
            found[name] = FrozenList(value) if isinstance(value, tuple) else value
    return FrozenDict(found)


def circumstances(request: ActionRequest) -> dict[str, Any]:
    """Give where and with what a call was proposed."""
    context = request.context
    found: dict[str, Any] = {}
    if request.given is not None:
        # As keys, since a redactor would take a list of two for a name and its value.
        found["given"] = FrozenDict(dict.fromkeys(sorted(request.given), True))
    if request.injected:
        found["injected"] = request.injected
    if context.workspace != ".":
        found["workspace"] = context.workspace
    if context.extra:
        found["extra"] = context.extra
    if context.session is not None:
        found["session"] = context.session
    return found


def shown_paths(
    request: ActionRequest,
    effective: object,
    redacted: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> FrozenDict:
    """Give the resolved paths, without those whose text is taken out elsewhere: an argument's."""
    about = circumstances(request) | {"args": request.args, "effective_args": effective}
    hidden = set(_texts(about)).difference(_texts(redacted(about)))
    return FrozenDict({text: path for text, path in request.resolved.items() if text not in hidden})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
