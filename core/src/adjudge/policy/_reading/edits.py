"""Read a transform: one edit, or a list of edits that are applied in order (clause 19)."""

from __future__ import annotations

from typing import Any, Literal

from adjudge.policy._model import Edit
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, kind_of_node
from adjudge.policy._reading.paths import PathProblem, parse_argument_path
from adjudge.policy._reading.suggest import listed
from adjudge.policy._reading.values import read_bool, read_fields_of, read_json_value, read_text

__all__ = ["read_edits"]

_KINDS: tuple[Literal["set", "append", "delete"], ...] = ("set", "append", "delete")


def read_edits(node: Node, problems: Problems) -> tuple[Edit, ...]:
    """Read what stands under `transform:`."""
    if not isinstance(node, Items):
        edit = _read_edit(node, problems)
        return (edit,) if edit is not None else ()
    if not node.items:
        problems.add(node.place, "A transform has at least one edit.")
    edits = (_read_edit(item, problems) for item in node.items)
    return tuple(edit for edit in edits if edit is not None)


def _read_edit(node: Node, problems: Problems) -> Edit | None:
    fields = read_fields_of(node, ("path", "jsonpath", *_KINDS), problems, meant="A transform")
    if not isinstance(node, Fields):
        return None
    stated = [kind for kind in _KINDS if kind in fields]
    if len(stated) != 1:
        said = f"it has {listed(stated)}" if stated else "it has none"
        problems.add(
            node.place,
            f"An edit has exactly one of {listed(_KINDS)}, and {said}; several edits are a list.",
        )
        return None
    kind = stated[0]
    path = _read_path(fields, problems)
    value = _read_value(kind, path, fields[kind], problems)
    return None if path is None else Edit(kind, path, value, node.place)


def _read_path(fields: dict[str, Entry], problems: Problems) -> tuple[str | int, ...] | None:
    if "path" in fields and "jsonpath" in fields:
        problems.add(fields["jsonpath"].place, "path and jsonpath are the same thing; write path.")
    entry = fields.get("path") or fields.get("jsonpath")
    if entry is None:
        return ()
    text = read_text(entry.value, problems, meant=entry.key)
    try:
        return parse_argument_path(text) if text is not None else None
    except PathProblem as error:
        problems.add(entry.value.place, str(error))
        return None


def _read_value(
    kind: str, path: tuple[str | int, ...] | None, entry: Entry, problems: Problems
) -> Any:
    if kind != "set" and path == ():
        problems.add(
            entry.place, f"{kind} needs a path that says which argument, as in path: args.limit."
        )
    if kind == "delete":
        if not read_bool(entry.value, problems, meant="delete"):
            problems.add(entry.value.place, "delete: false does nothing; write delete: true.")
        return True
    node = entry.value
    if isinstance(node, Fields) and [each.key for each in node.entries] == ["literal"]:
        return read_json_value(node.entries[0].value, problems)
    if isinstance(node, Fields) and [each.key for each in node.entries] == ["ref"]:
        problems.add(
            node.place,
            "A transform writes what stands here and takes no ref; an object with the key ref is "
            "written {literal: {ref: ...}}.",
        )
    if kind == "set" and path == () and not isinstance(node, Fields):
        problems.add(
            node.place,
            f"This replaces all arguments and must be a mapping, not {kind_of_node(node)}; say "
            "which argument is meant with path: args.NAME.",
        )
    return read_json_value(node, problems)
