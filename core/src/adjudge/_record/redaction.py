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
from typing import Any

from adjudge._record.format import PlainDict
from adjudge._record.plain import Frame, PlainWriter
from adjudge._record.secrets import REDACTED, is_secret_name, redact_text, words_of
from adjudge._values import FrozenDict, FrozenList, digest, thaw
from adjudge.errors import ArgumentsRefused

__all__ = [
    "REDACTED",
    "Redactor",
    "apply_redactor",
    "default_redactor",
    "frame_of",
    "is_pure",
    "no_redaction",
]

Redactor = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_ARGUMENT_FIELDS = ("args", "effective_args", "edited_args")
_MAX_NESTING = 128
_MAX_KNOWN = 4096
_PATH = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]|\[\"([^\"]*)\"\]")
_log = logging.getLogger("adjudge")

_Path = tuple[str, ...]
_Secrecy = tuple[bool, bool, bool]
_HARMLESS: _Secrecy = (False, False, False)
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


def frame_of(
    redactor: Redactor, fixed: Mapping[str, Any], open_names: tuple[str, ...]
) -> Frame | None:
    """Give what bodies have in common that differ in the members called `open_names` alone.

    None is the answer where each body has to be looked through as a whole.
    """
    return redactor.frame(fixed, open_names) if type(redactor) is _Redactor else None


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
        self._plain = PlainWriter(self.shows_nothing)

    def __call__(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        redacted: dict[str, Any] = thaw(self._redacted(body))
        return redacted

    def sealed(self, body: Mapping[str, Any]) -> FrozenDict:
        """Redact a body into one that nobody can change, and keep its parts that show nothing."""
        shown = None if self._paths else self._plain.object_text(body)
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

    def shows_nothing(self, name: str) -> bool:
        """Whether a value under that name may be just anything."""
        return self._secrecy(name) is _HARMLESS

    def frame(self, fixed: Mapping[str, Any], open_names: tuple[str, ...]) -> Frame | None:
        """Give what bodies have in common, as `frame_of` says."""
        return None if self._paths else self._plain.frame(fixed, open_names)

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
