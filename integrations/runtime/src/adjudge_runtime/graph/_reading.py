"""Read a graph as strictly as a policy is read: every problem at once, each with its place.

What it gives has been checked as a whole: a line that can never be taken, a node that is never
reached and work that can never end are problems too. YAML needs the `yaml` extra; JSON and TOML
texts do without.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from adjudge import PolicyCompileError
from adjudge.integration import (
    Fields,
    Items,
    Node,
    Problems,
    UnsafePattern,
    compile_pattern,
    parse,
    read_fields_of,
    read_text,
    read_whole,
    read_word,
)
from adjudge_runtime.graph._checking import Line, check_graph
from adjudge_runtime.graph._spec import STATUSES, Edge, GraphSpec, When
from adjudge_runtime.graph._values import DONE, GraphCompileError

__all__ = ["compile_graph", "load_graph_file"]

_VERSION = 1
_SECTIONS = ("version", "start", "max_transitions", "nodes", "edges")
_OF_EDGE = ("from", "when", "to", "join")
_PATTERNS = ("answer_matches", "error_matches")
_BOUNDS = ("denials_gt", "steps_gt")
_OF_WHEN = ("status", *_PATTERNS, *_BOUNDS)


def compile_graph(
    text: str, *, file: str | None = None, nodes: Iterable[str] | None = None
) -> GraphSpec:
    """Compile a graph from its text.

    `file` is the name under which problems are reported. `nodes` are the names that there are, as
    the section of that name may say too; without either, a node is what an edge names. Raises
    `GraphCompileError` with every problem found.
    """
    if not isinstance(text, str):
        raise GraphCompileError(
            f"A graph is text, not a {type(text).__name__}. Read a file with load_graph_file."
        )
    problems = Problems(file=file or "graph")
    try:
        spec = _read(text, problems, file, None if nodes is None else tuple(nodes))
        problems.stop_if_any()
    except PolicyCompileError as error:
        raise GraphCompileError(error.problems) from None
    return spec


def load_graph_file(path: str | PathLike[str], *, nodes: Iterable[str] | None = None) -> GraphSpec:
    """Compile a graph from a file of UTF-8 text.

    Raises `OSError` for one that cannot be read and `GraphCompileError` for what is no graph.
    """
    name = fspath(path)
    try:
        text = Path(name).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise GraphCompileError(
            f"{name}: The graph is no UTF-8 text (byte {error.start}); save it in that encoding."
        ) from None
    return compile_graph(text, file=name, nodes=nodes)


def _read(
    text: str, problems: Problems, file: str | None, nodes: tuple[str, ...] | None
) -> GraphSpec:
    root = parse(text, None, file, problems)
    if not isinstance(root, Fields):
        problems.add_text(
            "A graph is a mapping with start, max_transitions and edges; there is none here."
        )
        problems.stop_if_any()
    assert isinstance(root, Fields)
    sections = read_fields_of(root, _SECTIONS, problems, meant="A graph")
    _read_version(sections.get("version"), problems)
    start = sections.get("start")
    if start is None:
        problems.add(root.place, "start is missing; write start: and the node that works first.")
    lines = _read_lines(root, sections.get("edges"), problems)
    named = _read_nodes(sections.get("nodes"), problems)
    spec_start = None if start is None else _read_name(start.value, problems, meant="start")
    bound = _read_bound(root, sections.get("max_transitions"), problems)
    # What the lines say together can be told only of lines that could be read.
    problems.stop_if_any()
    assert start is not None
    assert spec_start is not None
    assert bound is not None
    known = check_graph(
        lines, problems, start=spec_start, start_place=start.value.place, named=named, given=nodes
    )
    return GraphSpec(spec_start, bound, tuple(line.edge for line in lines), known, file)


def _read_version(entry: Any, problems: Problems) -> None:
    if entry is None:
        return
    version = read_whole(entry.value, problems, meant="version")
    if version is not None and version != _VERSION:
        problems.add(
            entry.value.place, f"There is no version {version}; write version: {_VERSION}."
        )


def _read_bound(root: Fields, entry: Any, problems: Problems) -> int | None:
    if entry is None:
        problems.add(
            root.place,
            "max_transitions is missing, and nothing else ends a loop; write max_transitions: and "
            "how many nodes may work, such as 12.",
        )
        return None
    bound = read_whole(entry.value, problems, meant="max_transitions")
    if bound is not None and bound < 1:
        problems.add(
            entry.value.place,
            f"max_transitions is {bound}; write how many nodes may work, 1 or more.",
        )
    return bound


def _read_name(node: Node, problems: Problems, *, meant: str) -> str | None:
    name = read_text(node, problems, meant=meant)
    if name == DONE:
        problems.add(node.place, f'{meant} is "{DONE}", which is the end of the work; name a node.')
        return None
    return name


def _read_nodes(entry: Any, problems: Problems) -> dict[str, Any] | None:
    """Give the names that the text says there are, with their places."""
    if entry is None:
        return None
    if not isinstance(entry.value, Items):
        problems.add(entry.value.place, "nodes is a list of names, such as [triage, fixer].")
        return None
    named: dict[str, Any] = {}
    for item in entry.value.items:
        name = _read_name(item, problems, meant="Each of nodes")
        if name in named:
            problems.add(item.place, f'The node "{name}" is named twice; name it once.')
        elif name is not None:
            named[name] = item.place
    return named


def _read_lines(root: Fields, entry: Any, problems: Problems) -> list[Line]:
    if entry is None:
        problems.add(root.place, "edges is missing; write a list such as [{from: a, to: done}].")
        return []
    if not isinstance(entry.value, Items) or not entry.value.items:
        problems.add(
            entry.value.place, "edges is a list of one edge or more, such as {from: a, to: done}."
        )
        return []
    lines = [_read_line(node, problems) for node in entry.value.items]
    return [line for line in lines if line is not None]


def _read_line(node: Node, problems: Problems) -> Line | None:
    fields = read_fields_of(node, _OF_EDGE, problems, meant="An edge")
    for key in ("from", "to"):
        if isinstance(node, Fields) and key not in fields:
            problems.add(node.place, f"{key} is missing; write {{from: NODE, to: NODE}}.")
    if "from" not in fields or "to" not in fields:
        return None
    source = _read_name(fields["from"].value, problems, meant="from")
    to = _read_targets(fields["to"].value, fields.get("join"), problems)
    join_entry = fields.get("join")
    join = None if join_entry is None else _read_name(join_entry.value, problems, meant="join")
    when = _read_when(fields["when"].value, problems) if "when" in fields else None
    if join is not None and to is not None and join in to:
        assert join_entry is not None
        problems.add(
            join_entry.value.place,
            f'"{join}" is a branch and cannot be the join as well; name another node.',
        )
    if source is None or to is None:
        return None
    return Line(Edge(source, to, join, when), node.place, fields["to"].value.place)


def _read_targets(node: Node, join: Any, problems: Problems) -> tuple[str, ...] | None:
    if not isinstance(node, Items):
        name = read_text(node, problems, meant="to")
        if join is not None:
            problems.add(
                join.place, "join brings branches together; write to: [A, B] beside it, or no join."
            )
        return None if name is None else (name,)
    names = [_read_name(item, problems, meant="Each of to") for item in node.items]
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            problems.add(
                node.items[index].place, f'The branch "{name}" is there twice; write it once.'
            )
    if len(names) < 2:
        problems.add(node.place, "A list of branches has two or more; write to: NODE for one.")
    if join is None:
        problems.add(
            node.place,
            "join is missing: branches that run side by side come together in a node; "
            "write join: NODE beside to.",
        )
    return tuple(name for name in names if name is not None)


def _read_when(node: Node, problems: Problems) -> When:
    fields = read_fields_of(node, _OF_WHEN, problems, meant="when")
    if isinstance(node, Fields) and not node.entries:
        problems.add(node.place, "when is empty; leave it out where the edge always holds.")
    values: dict[str, Any] = {}
    if "status" in fields:
        values["status"] = read_word(fields["status"].value, STATUSES, problems, meant="status")
    for key in _PATTERNS:
        if key in fields:
            values[key] = _read_pattern(fields[key].value, problems, meant=key)
    for key in _BOUNDS:
        if key in fields:
            bound = read_whole(fields[key].value, problems, meant=key)
            if bound is not None and bound < 0:
                problems.add(
                    fields[key].value.place, f"{key} is {bound}, below any count; write 0 or more."
                )
            values[key] = bound
    _refuse_contradiction(node, values, problems)
    return When(**values)


def _refuse_contradiction(node: Node, values: dict[str, Any], problems: Problems) -> None:
    """Refuse what can never hold: a node has an answer or an error, never both."""
    wants = {"succeeded": "error_matches", "failed": "answer_matches"}.get(values.get("status", ""))
    if wants in values or ("answer_matches" in values and "error_matches" in values):
        problems.add(
            node.place,
            "This can never hold: a node that succeeded has an answer and no error, one that "
            "failed an error and no answer; keep one of the two.",
        )


def _read_pattern(node: Node, problems: Problems, *, meant: str) -> str | None:
    pattern = read_text(node, problems, meant=meant)
    if pattern is None:
        return None
    try:
        compile_pattern(pattern, permitting=True)
    except UnsafePattern as error:
        problems.add(node.place, f"{meant}: {error}")
    return pattern
