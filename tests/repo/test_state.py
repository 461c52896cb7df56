"""Law 8: core keeps no state in its modules, so that two guards share nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._tree import ROOT, core

MUTABLE_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS = frozenset(
    {"bytearray", "dict", "list", "set"}
    | {"Counter", "OrderedDict", "defaultdict", "deque"}
    | {"WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
    | {"ContextVar", "Event", "Lock", "Queue", "RLock", "SimpleQueue", "local"}
    | {"count", "cycle"}
)
CACHES = frozenset({"cache", "lru_cache"})


def test_core_keeps_no_state_in_its_modules() -> None:
    """No module of core has a mutable global, a `global` statement or a process-wide cache.

    A table is a tuple, a frozenset, a `MappingProxyType`, or annotated with a read-only type
    (`Mapping[...]`, `Sequence[...]`), which the type checker holds its readers to.
    """
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in core().modules()
        for line, what in _state(ast.parse(path.read_text(encoding="utf-8")))
    ]

    assert not found, "\n".join(found)


def _state(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            read_only = isinstance(statement, ast.AnnAssign) and _is_read_only(statement.annotation)
            if ast.unparse(target) != "__all__" and _is_mutable(statement.value) and not read_only:
                yield statement.lineno, ast.unparse(target)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, "global " + ", ".join(node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if _called(decorator) in CACHES:
                    yield node.lineno, f"@{_called(decorator)} {node.name}"


def _is_mutable(value: ast.expr) -> bool:
    return isinstance(value, MUTABLE_DISPLAYS) or (
        isinstance(value, ast.Call) and _called(value) in MUTABLE_CALLS
    )


def _is_read_only(annotation: ast.expr) -> bool:
    written = ast.unparse(annotation).removeprefix("Final[")
    return written.startswith(("Mapping[", "Sequence[", "Collection["))


def _called(node: ast.expr) -> str:
    """Return the last name of what is called or named: `lru_cache` of `functools.lru_cache(8)`."""
    function = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(function).rpartition(".")[2]
