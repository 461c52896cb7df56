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
        self._writers: Mapping[type, Callable[[Any], str | None]] = {
            str: self._texts.__getitem__,
            int: _int_shown,
            type(None): _null,
            # Another redactor may have vouched for it, one that hides less.
            PlainDict: self.object_text,
            FrozenDict: self.object_text,
            FrozenList: self._list_text,
            float: _float_shown,
            bool: _bool_shown,
        }

    def object_text(self, value: Mapping[str, Any]) -> str | None:
        """Write an object that is plain JSON, frozen but for itself, and shows no secret."""
        starts = self._starts[tuple(value)]
        if starts is None:
            return None
        writer_of, texts = self._writers.get, self._texts
        members = []
        for name, start in starts:
            item = value[name]
            kind = type(item)
            # As the writers do, for what is nearly all of them.
            if kind is str:
                shown = texts[item]
            elif kind is int and -_SMALL < item < _SMALL:
                shown = repr(item)
            else:
                shown = writer_of(kind, _nothing)(item)
            if not shown:
                return None
            members.append(start + shown)
        return "{" + ",".join(members) + "}"

    def text(self, value: object) -> str | None:
        """Write any value, as `object_text` does."""
        return self._writers.get(type(value), _nothing)(value)

    def frame(self, fixed: Mapping[str, Any], open_names: tuple[str, ...]) -> Frame | None:
        """Give what objects have in common that differ in the members called `open_names` alone."""
        starts = self._starts[(*fixed, *open_names)]
        if starts is None:
            return None
        pieces = [""]
        names = []
        for before, (name, start) in zip("{" + "," * len(starts), starts, strict=False):
            pieces[-1] += before + start
            if name in open_names:
                names.append(name)
                pieces += ("", "")
                continue
            shown = self.text(fixed[name])
            if not shown:
                return None
            pieces[-1] += shown
        pieces[-1] += "}"
        return Frame(self._writers, fixed, tuple(names), pieces)

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

    __slots__ = ("_fixed", "_names", "_pieces", "_writers")

    def __init__(
        self,
        writers: Mapping[type, Callable[[Any], str | None]],
        fixed: Mapping[str, Any],
        names: tuple[str, ...],
        pieces: list[str],
    ) -> None:
        self._writers = writers
        self._fixed = fixed
        self._names = names
        # Every second one is a place.
        self._pieces = pieces

    def body(self, differing: Mapping[str, Any]) -> PlainDict | None:
        """Give the body with these members, all of them; None where one might show a secret.

        One that is a `PlainDict` has been looked through by the same redactor.
        """
        writer_of = self._writers.get
        pieces = self._pieces.copy()
        place = 1
        for name in self._names:
            value = differing[name]
            kind = type(value)
            # As the writers do, for what most of them are.
            if value is None:
                text: str | None = "null"
            elif kind is PlainDict:
                text = value.text
            else:
                text = writer_of(kind, _nothing)(value)
            if not text:
                return None
            pieces[place] = text
            place += 2
        made = PlainDict(self._fixed, **differing)
        made.text = "".join(pieces)
        return made


def _text_shown(text: str) -> str | None:
    """Write a text that shows no secret; None is any other."""
    return encode_basestring_ascii(text) if is_harmless(text) else None


def _int_shown(value: int) -> str | None:
    return repr(value) if -_SMALL < value < _SMALL else None


def _float_shown(value: float) -> str | None:
    return repr(value) if isfinite(value) else None


def _bool_shown(value: bool) -> str:
    return "true" if value else "false"


def _null(value: None) -> str:
    return "null"


def _nothing(value: object) -> None:
    """Leave a value of any other kind to others."""
