"""The reference pages are complete: every public name, and every code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from ._tree import ROOT, core

REFERENCE = ROOT / "docs" / "reference"
PUBLIC = (
    "__init__.py",
    "analysis/__init__.py",
    "integration.py",
    "shadows/__init__.py",
    "testing.py",
)
IN_CODE = re.compile(r"`([^`]+)`")
WORD = re.compile(r"\w+")
CODE = re.compile(r"[a-z]+(_[a-z]+)*")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    """What a module names in `__all__` has its line in `docs/reference/api.md`."""
    missing = set(_public_names(module)) - _named_in("api.md")

    assert set() == missing


def test_every_code_is_in_the_reference() -> None:
    """What a result or an exception can have as its code is in `docs/reference/codes.md`."""
    written = {code for module in core().modules() for code in _codes(module.read_text("utf-8"))}

    assert {"denied", "timed_out", "record", "policy_changed"} <= written
    assert set() == written - _named_in("codes.md")


def test_the_reference_has_no_code_that_does_not_exist() -> None:
    """The first column of the tables of `codes.md` names codes of core alone."""
    page = (REFERENCE / "codes.md").read_text("utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    listed = {code for row in rows for code in IN_CODE.findall(row.split("|")[1])}
    source = "\n".join(module.read_text("utf-8") for module in core().modules())

    assert set() == {code for code in listed if f'"{code}"' not in source}


def _named_in(page: str) -> set[str]:
    text = (REFERENCE / page).read_text("utf-8")
    return {word for code in IN_CODE.findall(text) for word in WORD.findall(code)}


def _public_names(module: str) -> list[str]:
    tree = ast.parse((core().source / module).read_text("utf-8"))
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    names: list[str] = ast.literal_eval(lists[0])
    return names


def _codes(source: str) -> Iterator[str]:
    """Yield what stands as a code: of a refusal, of a result, or of an exception class."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield from _codes_of_call(node)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
            yield from _texts(node.value)


def _codes_of_call(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func).rpartition(".")[2]
    place = {"Refusal": 0, "_Failed": 0, "tell": 0, "ActionResult": 3}.get(name)
    if place is not None and len(call.args) > place:
        yield from _texts(call.args[place])
    if place is not None:
        for keyword in call.keywords:
            if keyword.arg == "code":
                yield from _texts(keyword.value)


def _texts(within: ast.expr) -> Iterator[str]:
    for node in ast.walk(within):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and CODE.fullmatch(value):
            yield value
