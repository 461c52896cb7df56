"""Read a policy from text or a dict: the door to the reader.

YAML comes through the `yaml` extra; JSON, TOML and dicts need the standard library alone.
Whatever the format, the same reader judges the same tree, so a policy means the same in all of
them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Literal

from adjudge.errors import PolicyCompileError
from adjudge.policy._model import PolicySource
from adjudge.policy._reading.data_source import nodes_of
from adjudge.policy._reading.json_source import JsonSyntax, read_json
from adjudge.policy._reading.nodes import (
    FASTER,
    MAX_SLOW_TEXT,
    Fields,
    Node,
    Problems,
    kind_of_node,
)
from adjudge.policy._reading.policy import read_fields
from adjudge.policy._reading.yaml_source import has_yaml, read_yaml
from adjudge.policy._work import Work

__all__ = ["MAX_TEXT", "parse", "read_policy"]

Format = Literal["yaml", "json", "toml"]

# What tomllib does with a dotted key grows with the square of its segments.
_ENDLESS_KEY = re.compile(
    r"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}"""
)
MAX_TEXT = 64 * 1024 * 1024
_FORMAT_OF_SUFFIX: Mapping[str, Format] = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
}


def read_policy(
    source: str | bytes | Mapping[str, Any],
    *,
    format: Format | None = None,
    file: str | None = None,
    work: Work | None = None,
) -> PolicySource:
    """Read and check one policy.

    `format` is taken from the suffix of `file` where it is not given; text of neither is JSON if
    it begins with `{` and reads as JSON, else YAML. `file` is also the name that problems are
    reported under. Raises `PolicyCompileError` with every problem found.
    """
    problems = Problems(file=file)
    work = work or Work()
    node = parse(source, format, file, problems, work)
    if node is None or (isinstance(node, Fields) and not node.entries):
        problems.add_text("The policy is empty; the least that it can say is version: 1.")
        problems.stop_if_any()
    if not isinstance(node, Fields):
        assert node is not None
        problems.add(
            node.place,
            "A policy is a mapping of version, defaults, predicates, tools and rules, not "
            f"{kind_of_node(node)}.{_advice(source)}",
        )
        problems.stop_if_any()
    assert isinstance(node, Fields)
    policy = read_fields(node, problems, work)
    problems.stop_if_any()
    return policy


def _advice(source: object) -> str:
    """Tell who gave a file's name in place of its text what to call."""
    if isinstance(source, str) and PurePath(source.strip()).suffix.lower() in _FORMAT_OF_SUFFIX:
        return " If that is a file, read it with load_policy_file."
    return ""


def parse(
    source: str | bytes | Mapping[str, Any],
    wanted: Format | None,
    file: str | None,
    problems: Problems,
    work: Work | None = None,
) -> Node | None:
    """Give the tree of a text or a mapping, whatever it is about; None if it holds nothing.

    What is no text of its format raises `PolicyCompileError`.
    """
    if isinstance(source, Mapping):
        return nodes_of(source, problems)
    if not isinstance(source, str | bytes):
        raise PolicyCompileError(
            f"A policy is text, bytes or a mapping, not a {type(source).__name__}. "
            "Read a file with load_policy_file."
        )
    text = _decoded(source, problems)
    reached = None if work is None else work.through(len(text), Work.PARSING)
    if not text.strip():
        return None
    chosen = wanted or (_FORMAT_OF_SUFFIX.get(PurePath(file).suffix.lower()) if file else None)
    if chosen == "yaml":
        return read_yaml(text, problems, reached)
    if chosen == "json":
        return _parse_json(text, problems, reached)
    if chosen == "toml":
        return _parse_toml(text, problems)
    if chosen is not None:
        raise PolicyCompileError(f'The format is "yaml", "json" or "toml", not {chosen!r}.')
    return _parse_unnamed(text, problems, reached)


def _decoded(source: str | bytes, problems: Problems) -> str:
    if len(source) > MAX_TEXT:
        problems.add_text(f"The policy is longer than {MAX_TEXT // 1024 // 1024} MiB.")
        problems.stop_if_any()
    if isinstance(source, bytes):
        try:
            source = source.decode("utf-8")
        except UnicodeDecodeError as error:
            problems.add_text(
                f"The policy is no UTF-8 text (byte {error.start}); save it in that encoding."
            )
            problems.stop_if_any()
    assert isinstance(source, str)
    try:
        source.encode()
    except UnicodeEncodeError:
        problems.add_text("The policy holds a lone surrogate; it must be Unicode text.")
        problems.stop_if_any()
    return source.removeprefix("\ufeff")


def _parse_json(
    text: str, problems: Problems, reached: Callable[[int], None] | None
) -> Node | None:
    try:
        return read_json(text, problems, reached)
    except JsonSyntax as error:
        problems.add_text(f"This is no JSON: {error}", line=error.line, column=error.column)
        problems.stop_if_any()
        return None


def _parse_unnamed(
    text: str, problems: Problems, reached: Callable[[int], None] | None
) -> Node | None:
    if not text.lstrip().startswith("{"):
        return read_yaml(text, problems, reached)
    try:
        return read_json(text, problems, reached)
    except JsonSyntax:
        # A YAML mapping may begin with a brace as well.
        if has_yaml():
            return read_yaml(text, problems, reached)
    return _parse_json(text, problems, reached)


def _parse_toml(text: str, problems: Problems) -> Node | None:
    if len(text) > MAX_SLOW_TEXT:
        problems.add_text(
            f"A policy in TOML has at most {MAX_SLOW_TEXT // 1024 // 1024} MiB: its parser is "
            f"slow. {FASTER}"
        )
        problems.stop_if_any()
    endless = _ENDLESS_KEY.search(text)
    if endless is not None:
        line = text.count("\n", 0, endless.start()) + 1
        problems.add_text(
            "A key has more than 200 segments; no policy needs that.", line=line, column=1
        )
        problems.stop_if_any()
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        problems.add_text(f"This is no TOML: {error}.")
    except RecursionError:
        problems.add_text("This TOML is nested too deeply.")
    else:
        return nodes_of(data, problems)
    problems.stop_if_any()
    return None
