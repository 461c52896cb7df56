"""Read YAML strictly, over the parser of PyYAML's safe loader (the `yaml` extra).

Promises that nothing is read otherwise than written: duplicate keys, also through `<<`, tags,
several documents and aliases that blow up are problems with line and column. It builds no Python
objects from tags. PyYAML is imported when the first YAML text is read, so that everything else
works without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from adjudge.errors import PolicyCompileError
from adjudge.policy._model import Place
from adjudge.policy._reading.data_source import scalar_node
from adjudge.policy._reading.nodes import (
    FASTER,
    MAX_SLOW_NODES,
    MAX_SLOW_TEXT,
    Entry,
    Fields,
    Items,
    Node,
    Problems,
    Scalar,
    below,
    check_bounds,
)
from adjudge.policy._reading.scalars import read_plain
from adjudge.policy._reading.yaml_events import Doubtful, events_of, fast_events_of

__all__ = ["has_yaml", "read_yaml"]

# What all aliases of one text together may expand to, in values.
_MAX_ALIASED = 10_000
_STR_TAG = "tag:yaml.org,2002:str"


def has_yaml() -> bool:
    """Tell whether PyYAML is there."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        return False
    return True


def read_yaml(
    text: str, problems: Problems, reached: Callable[[int], None] | None = None
) -> Node | None:
    """Read one document; None if it holds nothing. What is no YAML raises `PolicyCompileError`."""
    try:
        import yaml
    except ImportError:
        raise PolicyCompileError(
            "Reading YAML needs PyYAML, which is not installed: pip install 'adjudge[yaml]'. "
            "A policy can also be written in JSON, in TOML or as a dict."
        ) from None
    try:
        # Events come as they are asked for, so that what is nested too deeply is never read on.
        try:
            attempt = Problems(file=problems.file)
            node = _Composer(fast_events_of(text), attempt, reached).document()
            problems.take(attempt)
            return node
        except Doubtful as doubt:
            _refuse_slow(text, problems, doubt)
            problems.most_values = min(problems.most_values, MAX_SLOW_NODES)
            return _Composer(events_of(text), problems, reached).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        problems.add_text(
            f"This is no YAML: {what}. Quote a key or text with any of []{{}},:#&*!|>'\"%@`.",
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        )
    except yaml.YAMLError as error:
        problems.add_text(f"This is no YAML: {' '.join(str(error).split())}.")
    problems.stop_if_any()
    return None


def _refuse_slow(text: str, problems: Problems, doubt: Doubtful) -> None:
    """Refuse a text that is too long for the parser in Python; an error of libyaml stands then."""
    if len(text) <= MAX_SLOW_TEXT:
        return
    if doubt.__cause__ is not None:
        raise doubt.__cause__
    problems.add_text(
        "Only PyYAML's own parser reads this YAML for certain, and that is slow: it may have "
        f"{MAX_SLOW_TEXT // 1024 // 1024} MiB at most. {FASTER}"
    )
    problems.stop_if_any()


class _Composer:
    """Turns the events of one document into nodes."""

    def __init__(
        self, events: Iterator[Any], problems: Problems, reached: Callable[[int], None] | None
    ) -> None:
        self._events = events
        self._problems = problems
        self._reached = reached
        self._anchors: dict[str, Node | None] = {}
        self._aliased = 0

    def document(self) -> Node | None:
        node: Node | None = None
        documents = 0
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    self._problems.add_text(
                        "A second document begins here; a policy is one document. Remove the ---.",
                        line=event.start_mark.line + 1,
                        column=event.start_mark.column + 1,
                    )
                    self._problems.stop_if_any()
            elif kind not in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
                node = self._node(event, "", 0)
        if isinstance(node, Scalar) and node.value is None:
            return None
        return node

    def _place(self, event: Any, path: str) -> Place:
        mark = event.start_mark
        return Place(path, self._problems.file, mark.line + 1, mark.column + 1)

    def _node(self, event: Any, path: str, depth: int) -> Node:
        place = self._place(event, path)
        check_bounds(depth, place, self._problems)
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._alias(event.anchor, place, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node: Node
        if kind == "ScalarEvent":
            node = self._scalar(event, place)
        else:
            self._refuse_tag(event, place)
            node = (
                self._sequence(place, depth)
                if kind == "SequenceStartEvent"
                else self._mapping(place, depth)
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _scalar(self, event: Any, place: Place) -> Scalar:
        if event.tag == _STR_TAG or event.tag == "!":
            return scalar_node(event.value, place)
        self._refuse_tag(event, place)
        if event.style:
            return scalar_node(event.value, place)
        value, surprise = read_plain(event.value)
        return Scalar(value, place, surprise)

    def _refuse_tag(self, event: Any, place: Place) -> None:
        if event.tag is not None:
            self._problems.add(
                place, f"The tag {event.tag} is not used in a policy; write the value plainly."
            )

    def _sequence(self, place: Place, depth: int) -> Items:
        items: list[Node] = []
        for event in self._events:
            if type(event).__name__ == "SequenceEndEvent":
                break
            if self._reached is not None:
                self._reached(event.start_mark.index)
            items.append(self._node(event, f"{place.path}[{len(items)}]", depth + 1))
        return Items(tuple(items), place)

    def _mapping(self, place: Place, depth: int) -> Fields:
        entries: dict[str, Entry] = {}
        merged: list[Entry] = []
        for event in self._events:
            if type(event).__name__ == "MappingEndEvent":
                break
            key, key_place, surprise, merges = self._key(event, place)
            value = self._node(next(self._events), key_place.path, depth + 1)
            if merges:
                merged.extend(self._merged(value, key_place))
            else:
                self._add(entries, Entry(key, value, key_place, surprise))
        for entry in merged:
            self._add(entries, entry, merged=True)
        return Fields(tuple(entries.values()), place)

    def _key(self, event: Any, parent: Place) -> tuple[str, Place, str | None, bool]:
        place = self._place(event, parent.path)
        if type(event).__name__ != "ScalarEvent":
            self._problems.add(
                place, "A key must be plain text, not an alias, a list or a mapping."
            )
            self._problems.stop_if_any()
        self._refuse_anchor(event, place)
        key: str = event.value
        scalar = self._scalar(event, place)
        merges = key == "<<" and not event.style
        surprise = scalar.surprise
        if surprise is None and not isinstance(scalar.value, str):
            surprise = f'A key is text; write "{key}".'
        return key, below(place, key), surprise, merges

    def _refuse_anchor(self, event: Any, place: Place) -> None:
        if event.anchor is not None:
            self._problems.add(
                place, f"The anchor &{event.anchor} stands on a key; move it to a value."
            )

    def _add(self, entries: dict[str, Entry], entry: Entry, *, merged: bool = False) -> None:
        first = entries.get(entry.key)
        if first is None:
            entries[entry.key] = entry
            return
        through = ", once through <<" if merged else ""
        self._problems.add(
            entry.place,
            f'"{entry.key}" is given twice{through}; it stands at line {first.place.line}, column '
            f"{first.place.column} as well. Keep one of them.",
        )

    def _merged(self, value: Node, place: Place) -> list[Entry]:
        sources = value.items if isinstance(value, Items) else (value,)
        entries: list[Entry] = []
        for source in sources:
            if not isinstance(source, Fields):
                self._problems.add(place, "<< takes a mapping, or a list of mappings.")
                continue
            entries.extend(source.entries)
        return entries

    def _alias(self, name: str, place: Place, depth: int) -> Node:
        if name not in self._anchors:
            self._problems.add(place, f"*{name} has no anchor &{name} before it.")
            self._problems.stop_if_any()
        target = self._anchors[name]
        if target is None:
            self._problems.add(place, f"*{name} stands inside the value that it names.")
            self._problems.stop_if_any()
        assert target is not None
        return self._expanded(target, place, depth)

    def _expanded(self, node: Node, place: Place, depth: int) -> Node:
        """Copy an anchored value to where its alias stands, counting."""
        check_bounds(depth, place, self._problems)
        self._aliased += 1
        if self._aliased > _MAX_ALIASED:
            self._problems.add(
                place,
                f"The aliases stand for more than {_MAX_ALIASED} values; write them out.",
            )
            self._problems.stop_if_any()
        if isinstance(node, Scalar):
            return Scalar(node.value, place, node.surprise)
        if isinstance(node, Items):
            return Items(
                tuple(
                    self._expanded(item, below(place, index), depth + 1)
                    for index, item in enumerate(node.items)
                ),
                place,
            )
        return Fields(
            tuple(
                Entry(
                    entry.key,
                    self._expanded(entry.value, below(place, entry.key), depth + 1),
                    below(place, entry.key),
                    entry.surprise,
                )
                for entry in node.entries
            ),
            place,
        )
