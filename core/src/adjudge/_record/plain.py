"""Writes bodies that are plain JSON and show no secret, and sees in the same go that they are such.

Nearly every body is one, and this is much quicker than to make another body and then to write that.
It never takes anything out: where something might have to be, it gives None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from adjudge._record.format import Kept, PlainDict
from adjudge._record.secrets import is_harmless
from adjudge._values import FrozenDict, FrozenList

__all__ = ["Frame", "PlainWriter"]

_SMALL = 2**63


class PlainWriter:
    """Writes canonical JSON; `shows_nothing` says that any value may stand under a name."""

    def __init__(self, shows_nothing: Callable[[str], bool]) -> None:
        self._shows_nothing = shows_nothing
        self._starts = Kept(self._starts_of)
        self._texts = Kept(_text_shown)

    def object_text(self, value: Mapping[str, Any]) -> str | None:
        """Write an object that is plain JSON, frozen but for itself, and shows no secret."""
        starts = self._starts[tuple(value)]
        if starts is None:
            return None
        members = []
        for name, start in starts:
            item = value[name]
            # As `text` does, for what is nearly all of them.
            shown = self._texts[item] if type(item) is str else self.text(item)
            if not shown:
                return None
            members.append(start + shown)
        return "{" + ",".join(members) + "}"

    def text(self, value: object) -> str | None:
        """Write any value, as `object_text` does."""
        kind = type(value)
        if kind is str:
            return self._texts[value]  # type: ignore[index]
        if kind is int:
            return repr(value) if -_SMALL < value < _SMALL else None  # type: ignore[operator]
        if value is None:
            return "null"
        if kind is PlainDict:  # was looked through before
            return value.text  # type: ignore[attr-defined, no-any-return]
        if kind is FrozenDict:
            return self.object_text(value)  # type: ignore[arg-type]
        if kind is FrozenList:
            return self._list_text(value)  # type: ignore[arg-type]
        if kind is float:
            return repr(value) if isfinite(value) else None  # type: ignore[arg-type]
        if kind is bool:
            return "true" if value else "false"
        return None

    def frame(self, fixed: Mapping[str, Any], open_names: tuple[str, ...]) -> Frame | None:
        """Give what objects have in common that differ in the members called `open_names` alone."""
        starts = self._starts[(*fixed, *open_names)]
        if starts is None:
            return None
        members = []
        names = []
        for name, start in starts:
            if name in open_names:
                names.append(name)
                members.append(start.replace("%", "%%") + "%s")
                continue
            shown = self.text(fixed[name])
            if not shown:
                return None
            members.append((start + shown).replace("%", "%%"))
        return Frame(self.text, fixed, tuple(names), "{" + ",".join(members) + "}")

    def _list_text(self, value: FrozenList) -> str | None:
        items = []
        for item in value:
            # A flag, or a pair of a name and its value, may make a secret of what follows; and a
            # list within a list is rare.
            if type(item) is str and (len(value) == 2 or item.startswith("-")):
                return None
            shown = None if type(item) is FrozenList else self.text(item)
            if not shown:
                return None
            items.append(shown)
        return "[" + ",".join(items) + "]"

    def _starts_of(self, names: tuple[str, ...]) -> tuple[tuple[str, str], ...] | None:
        """Give how each member is begun, in order; None where a value may not be just anything."""
        for name in names:
            # One with a `$` is written otherwise, and a `value` may have its name beside it.
            if type(name) is not str or name == "value" or name.startswith("$"):
                return None
            if not self._shows_nothing(name):
                return None
        return tuple((name, encode_basestring_ascii(name) + ":") for name in sorted(names))


class Frame:
    """What many bodies have in common, written once, with a place for each member that differs."""

    __slots__ = ("_fixed", "_names", "_template", "_text_of")

    def __init__(
        self,
        text_of: Callable[[object], str | None],
        fixed: Mapping[str, Any],
        names: tuple[str, ...],
        template: str,
    ) -> None:
        self._text_of = text_of
        self._fixed = fixed
        self._names = names
        self._template = template

    def body(self, differing: Mapping[str, Any]) -> PlainDict | None:
        """Give the body with these members, all of them; None where one might show a secret."""
        text_of = self._text_of
        shown = []
        for name in self._names:
            text = text_of(differing[name])
            if not text:
                return None
            shown.append(text)
        made = PlainDict(self._fixed, **differing)
        made.text = self._template % tuple(shown)
        return made


def _text_shown(text: str) -> str | None:
    """Write a text that shows no secret; None is any other."""
    return encode_basestring_ascii(text) if is_harmless(text) else None
