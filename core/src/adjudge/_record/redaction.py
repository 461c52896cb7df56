"""Takes secrets out of an event before any sink sees it, and so before it is hashed.

It promises: at any depth, no value under a secret name, or under a name or path that was given, is
in the record; the structure stays. It does its best, and promises nothing, for secrets inside free
text under harmless names. It changes what is recorded, never what is executed or asked of a person.
The digest that it leaves proves, to whoever has the arguments, which they were; it has no key, so
it does not hide a secret that can be guessed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any, TypeVar

from adjudge._record.format import PlainDict
from adjudge._record.secrets import (
    REDACTED,
    is_harmless,
    is_secret_name,
    redact_text,
    words_of,
)
from adjudge._values import FrozenDict, FrozenList, digest, thaw
from adjudge.errors import ArgumentsRefused

__all__ = [
    "REDACTED",
    "Redactor",
    "apply_redactor",
    "default_redactor",
    "is_pure",
    "no_redaction",
]

Redactor = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_ARGUMENT_FIELDS = ("args", "effective_args", "edited_args")
_MAX_NESTING = 128
_MAX_KNOWN = 4096
_FEW = 64
_SHORT = 1024
_PATH = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]|\[\"([^\"]*)\"\]")
_log = logging.getLogger("adjudge")

_K = TypeVar("_K", bound="str | tuple[str, ...]")
_V = TypeVar("_V")
_Path = tuple[str, ...]
_Secrecy = tuple[bool, bool, bool]
_HARMLESS: _Secrecy = (False, False, False)
_SMALL = 2**63
_NO_TEXT = frozenset({int, float, bool, type(None)})


def default_redactor(
    *,
    names: Iterable[str] = (),
    paths: Iterable[str] = (),
    allow_names: Iterable[str] = (),
    digests: bool = True,
) -> Redactor:
    """Make the function that a guard applies to the body of each event.

    `names` are further secret names, whatever their spelling (`X-Ssn`, `xSsn` and `x_ssn` are one);
    `allow_names` are names that look secret and are not. `paths` are places in the body, such as
    `args.card.number` or `args.items[*].code`, where `*` is any key or index; a path into `args`
    holds for rewritten and edited arguments too. With `digests`, arguments from which something was
    taken get their SHA-256 beside them, as `args_digest`. A path that is none raises `ValueError`,
    a bare text in place of a list `TypeError`.
    """
    for name, given in (("names", names), ("paths", paths), ("allow_names", allow_names)):
        # A text is a sequence of letters: nothing of what is meant would be taken out.
        if isinstance(given, str):
            raise TypeError(f"{name} is the text {given!r}; write [{given!r}].")
    return _Redactor(
        frozenset(map(words_of, names)),
        frozenset(map(words_of, allow_names)),
        tuple(map(_parse_path, paths)),
        digests,
    )


def is_pure(redactor: Redactor) -> bool:
    """Whether a redactor gives the same for the same body, whenever it is asked."""
    return type(redactor) is _Redactor or redactor is no_redaction


def no_redaction(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Record everything as it is, secrets included."""
    return body


def apply_redactor(redactor: Redactor, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Redact a body; where the redactor fails, all that is recorded of the body is that it did."""
    try:
        if type(redactor) is _Redactor:
            return redactor.sealed(body)
        redacted: object = redactor(body)
        if not isinstance(redacted, Mapping):
            raise TypeError(f"a redactor returns a mapping, not a {type(redacted).__name__}")
        sealed: Mapping[str, Any] = _sealed(redacted)
        return sealed
    except Exception as error:
        # The text of the error may quote what was to be redacted.
        kind = type(error).__name__
        _log.error("The redactor failed with %s; the event's body is left out.", kind)
        return FrozenDict({"redaction_failed": kind})


def _sealed(value: Any) -> Any:
    """Give a body that no sink can change under the next one's hands."""
    kind = type(value)
    if kind is str or kind is FrozenDict or kind is FrozenList or kind is PlainDict:
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: _sealed(item) for key, item in value.items()})
    if isinstance(value, tuple):
        return tuple(map(_sealed, value))
    if isinstance(value, list):
        return FrozenList(map(_sealed, value))
    return value


def _parse_path(path: str) -> _Path:
    steps: list[str] = []
    place = 0
    while place < len(path):
        if steps and path[place] == ".":
            place += 1
        match = _PATH.match(path, place)
        if match is None:
            raise ValueError(
                f"{path!r} is no path to redact; write one such as args.card.number, "
                'args.items[*].code or args["a.b"].'
            )
        steps.append(next(group for group in match.groups() if group is not None))
        place = match.end()
    if not steps:
        raise ValueError("An empty path to redact; write one such as args.card.number.")
    return tuple(steps)


class _Redactor:
    def __init__(
        self,
        names: frozenset[_Path],
        allowed: frozenset[_Path],
        paths: tuple[_Path, ...],
        digests: bool,
    ) -> None:
        self._names = names
        self._allowed = allowed
        self._paths = paths + tuple(
            (field, *path[1:])
            for path in paths
            if path[0] == "args"
            for field in _ARGUMENT_FIELDS[1:]
        )
        self._digests = digests
        self._known: dict[str, _Secrecy] = {}
        self._starts = _Kept(self._starts_of)
        self._texts_shown = _Kept(_text_shown)

    def __call__(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        redacted: dict[str, Any] = thaw(self._redacted(body))
        return redacted

    def sealed(self, body: Mapping[str, Any]) -> FrozenDict:
        """Redact a body into one that nobody can change, and keep its parts that show nothing."""
        shown = None if self._paths else self._object_shown(body)
        return self._redacted(body) if shown is None else PlainDict.of(body, shown)

    def _redacted(self, body: Mapping[str, Any]) -> FrozenDict:
        redacted = self._mapping(body, self._paths, 0)
        if not self._digests:
            return redacted
        digests = {
            f"{field}_digest": _digest_of(body[field])
            for field in _ARGUMENT_FIELDS
            if redacted.get(field) is not body.get(field) and redacted[field] != body[field]
        }
        return FrozenDict({**redacted, **digests}) if digests else redacted

    def _object_shown(self, value: Mapping[str, Any]) -> str | None:
        """Write an object that is plain JSON, frozen but for itself, and shows no secret.

        None is any other. Nearly every body is such, and this looks through it and writes it in one
        go, much quicker than another body is made and written.
        """
        starts = self._starts[tuple(value)]
        if starts is None:
            return None
        texts = self._texts_shown
        members = []
        for name, start in starts:
            item = value[name]
            kind = type(item)
            if kind is str:
                shown: str | None = texts[item]
            elif item is None:
                shown = "null"
            elif kind is FrozenDict:
                shown = self._object_shown(item)
            elif kind is FrozenList:
                shown = self._list_shown(item)
            elif kind is PlainDict:  # was looked through before
                shown = item.text
            else:
                shown = _number_shown(item)
            if not shown:
                return None
            members.append(start + shown)
        return "{" + ",".join(members) + "}"

    def _list_shown(self, value: FrozenList) -> str | None:
        items = []
        for item in value:
            kind = type(item)
            if kind is str:
                # A flag, or a pair of a name and its value, is a matter for `_list`.
                known = len(value) != 2 and not item.startswith("-")
                shown = self._texts_shown[item] if known else None
            elif kind is FrozenDict:
                shown = self._object_shown(item)
            else:
                shown = "null" if item is None else _number_shown(item)
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
            if self._secrecy(name) is not _HARMLESS:
                return None
        return tuple((name, encode_basestring_ascii(name) + ":") for name in sorted(names))

    def _is_secret(self, name: str, value: object) -> bool:
        return self._secrecy(name)[_sort_of(value)]

    def _secrecy(self, name: str) -> _Secrecy:
        """Say of each sort of value whether it is secret under that name."""
        known = self._known.get(name)
        if known is None:
            words = words_of(name)
            if words in self._allowed:
                known = _HARMLESS
            elif words in self._names:
                known = (True, True, True)
            else:
                number, text, other = (is_secret_name(name, value) for value in (0, "", None))
                known = (number, text, other) if text else _HARMLESS
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[name] = known
        return known

    def _walk(self, value: Any, paths: tuple[_Path, ...], depth: int) -> Any:
        if paths and not all(paths):
            return _blank(value, depth)
        if isinstance(value, str):
            return redact_text(value, self._is_secret)
        if depth >= _MAX_NESTING:
            return REDACTED
        if isinstance(value, dict | Mapping):
            return self._mapping(value, paths, depth)
        if isinstance(value, list | tuple | Set):
            return self._list(value, paths, depth)
        return value

    def _mapping(
        self, value: Mapping[Any, Any], paths: tuple[_Path, ...], depth: int
    ) -> FrozenDict:
        named = _named_value(value) if "value" in value else None
        found: dict[Any, Any] = {}
        same = type(value) is FrozenDict
        for key, item in value.items():
            name = named if named is not None and key == "value" else str(key)
            kind = type(item)
            secrecy = self._known.get(name) or self._secrecy(name)
            if secrecy is not _HARMLESS and secrecy[_sort_of(item)]:
                shown = _blank(item, depth + 1)
            elif paths:
                shown = self._walk(item, _below(paths, str(key)), depth + 1)
            elif kind is str:
                shown = redact_text(item, self._is_secret)
            elif kind in _NO_TEXT:
                shown = item
            else:
                shown = self._walk(item, (), depth + 1)
            same = same and shown is item
            found[key] = shown
        return value if same else FrozenDict(found)  # type: ignore[return-value]

    def _list(self, value: Collection[Any], paths: tuple[_Path, ...], depth: int) -> FrozenList:
        found = []
        same = type(value) is FrozenList
        before: object = None
        for index, item in enumerate(value):
            name = before if isinstance(before, str) else ""
            # ["--password", "x"] of a command line, and the pair ["Authorization", "x"].
            follows = name.startswith("-") or (len(value) == 2 and " " not in name)
            if follows and isinstance(item, str) and self._is_secret(name, item):
                shown: Any = REDACTED
            else:
                shown = self._walk(item, _below(paths, str(index)), depth + 1)
            same = same and shown is item
            before = item
            found.append(shown)
        return value if same else FrozenList(found)  # type: ignore[return-value]


def _named_value(value: Mapping[Any, Any]) -> str | None:
    """Give the name in `{"name": "Authorization", "value": "x"}`, as headers are often written."""
    for key in ("name", "key", "header", "field"):
        if isinstance(value.get(key), str):
            return str(value[key])
    return None


class _Kept(dict[_K, _V]):
    """What a function gave for the last some thousand keys, looked up without a call."""

    def __init__(self, function: Callable[[_K], _V]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: _K) -> _V:
        found = self._function(key)
        # What shows a secret is not kept, nor what is long: names and texts are a model's.
        if found is not None and len(key) <= _FEW and sum(map(len, key)) <= _SHORT:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[key] = found
        return found


def _text_shown(text: str) -> str | None:
    """Write a text that shows no secret; None is any other."""
    return encode_basestring_ascii(text) if is_harmless(text) else None


def _number_shown(value: object) -> str | None:
    """Write a number, or a bool, whose JSON form is itself; None is anything else."""
    kind = type(value)
    if kind is int:
        return repr(value) if -_SMALL < value < _SMALL else None  # type: ignore[operator]
    if kind is float:
        return repr(value) if isfinite(value) else None  # type: ignore[arg-type]
    if kind is bool:
        return "true" if value else "false"
    return None


def _sort_of(value: object) -> int:
    """Tell values apart as far as `is_secret_name` does: the place in a `_Secrecy`."""
    if isinstance(value, int | float):
        return 2 if isinstance(value, bool) else 0
    return 1 if isinstance(value, str | list | tuple) else 2


def _below(paths: tuple[_Path, ...], step: str) -> tuple[_Path, ...]:
    if not paths:
        return ()
    return tuple(path[1:] for path in paths if path[0] in (step, "*"))


def _blank(value: Any, depth: int) -> Any:
    """Keep the structure of a secret value, and nothing that it says."""
    if value is None or isinstance(value, bool):
        return value
    if depth < _MAX_NESTING:
        if isinstance(value, Mapping):
            return FrozenDict({key: _blank(item, depth + 1) for key, item in value.items()})
        if isinstance(value, list | tuple | Set):
            return FrozenList([_blank(item, depth + 1) for item in value])
    return REDACTED


def _digest_of(arguments: Any) -> str | None:
    try:
        return digest(arguments)
    except ArgumentsRefused:
        return None
