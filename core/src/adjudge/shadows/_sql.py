"""The preview of an SQL statement; it is read as text, and no database ever sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["sql_shadow"]

# Comments and quoted text first, so that words inside them are not taken for keywords.
_TOKEN = re.compile(
    r"""--[^\n]* | /\*.*?(?:\*/|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z)
      | `[^`]*(?:`|\Z) | \[[^\]]*(?:\]|\Z) | [^\W\d]\w* | ; | \. | \S""",
    re.VERBOSE | re.DOTALL,
)
_READING = frozenset({"SELECT", "VALUES", "EXPLAIN", "SHOW", "DESCRIBE", "WITH"})
_CHANGING = frozenset(
    {
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "REPLACE",
        "DROP",
        "TRUNCATE",
        "ALTER",
        "CREATE",
        "GRANT",
    }
)
_BEFORE_TABLE = frozenset({"FROM", "INTO", "UPDATE", "TABLE", "JOIN"})
_BETWEEN = frozenset({"IF", "NOT", "EXISTS", "ONLY"})


async def sql_shadow(
    query: str, params: Sequence[Any] | Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Say which statements the text has, which tables they name, and whether rows are selected.

    `warnings` point at an UPDATE or DELETE without WHERE, and at several statements in one text.
    """
    statements = [_described(words) for words in _statements(query)]
    warnings = [
        f"{statement['operation']} without WHERE changes every row"
        for statement in statements
        if statement["operation"] in ("UPDATE", "DELETE") and not statement["has_where"]
    ]
    if len(statements) > 1:
        warnings.append(f"{len(statements)} statements in one text")
    return {
        "would_run": query,
        "parameters": len(params) if params is not None else 0,
        "statements": statements,
        "warnings": warnings,
    }


def _statements(query: str) -> list[list[str]]:
    """Split into statements of words, names and punctuation; comments and literals are left out."""
    found: list[list[str]] = [[]]
    for piece in _TOKEN.findall(query):
        if piece == ";":
            found.append([])
        elif not piece.startswith(("--", "/*", "'")):
            found[-1].append(piece)
    return [words for words in found if words]


def _described(words: list[str]) -> dict[str, Any]:
    upper = [word.upper() for word in words]
    # WITH x AS (...) DELETE ...: a changing word anywhere outweighs a reading one at the beginning.
    changing = next((word for word in upper if word in _CHANGING), None)
    first = upper[0]
    operation = first if changing is None or first not in _READING else changing
    return {
        "operation": operation,
        "changes_data": changing is not None or first not in _READING,
        "tables": sorted(set(_tables(words, upper))),
        "has_where": "WHERE" in upper,
    }


def _tables(words: list[str], upper: list[str]) -> list[str]:
    tables = []
    for index, word in enumerate(upper):
        if word not in _BEFORE_TABLE:
            continue
        start = index + 1
        while start < len(upper) and upper[start] in _BETWEEN:
            start += 1
        name = _name_at(words, start)
        if name:
            tables.append(name)
    return tables


def _name_at(words: list[str], start: int) -> str:
    """Join `schema . table`; nothing where a subquery or the end of the text stands."""
    parts: list[str] = []
    for word in words[start:]:
        if len(parts) % 2 == 0:
            if not (word[0].isalpha() or word[0] in '_"`['):
                break
        elif word != ".":
            break
        parts.append(word.strip('"`[]') if word != "." else word)
    return "".join(parts)
