"""Who may import whom.

Core decides and knows nobody; an integration translates, through core's front door and the seam;
the suite judges. Read from the source with `ast`, and for core tried in an interpreter that has the
standard library alone.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ._tree import ROOT, Distribution, conformance, core, integrations

STANDARD = frozenset(sys.stdlib_module_names)
SEAM = frozenset({"adjudge", "adjudge.integration"})
# Who builds on another integration, through its front door and its seam: DBOS runs the agents of
# our own loop, and a LangGraph agent is made of LangChain's parts. And the one that is for
# policies, not for calls.
BUILDS_ON = {
    "adjudge_dbos": {"adjudge_runtime"},
    "adjudge_langgraph": {"adjudge_langchain", "adjudge_langchain.integration"},
    "pytest_adjudge": {"adjudge.analysis"},
}
# What core imports when it is asked to, in the modules that need it.
OPTIONAL = {
    "_record/signing.py": {"cryptography"},
    "cli/_progress.py": {"rich"},
    "cli/_terminal.py": {"rich"},
    "policy/_patterns/linear.py": {"re2"},
    "policy/_reading/yaml_events.py": {"yaml"},
    "policy/_reading/yaml_source.py": {"yaml"},
}

each_integration = pytest.mark.parametrize("integration", integrations(), ids=lambda d: d.name)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, and the names taken from it."""

    module: str
    names: tuple[str, ...]
    place: str

    @property
    def top(self) -> str:
        """The top-level package."""
        return self.module.partition(".")[0]

    @property
    def private(self) -> bool:
        """Whether a part of the path or an imported name is underscored."""
        parts = [*self.module.split("."), *self.names]
        return any(part.startswith("_") and not part.startswith("__") for part in parts)

    def __str__(self) -> str:
        return f"{self.place}: {self.module} {', '.join(self.names)}".rstrip()


def imports(path: Path) -> Iterator[Import]:
    """Yield every absolute import of a file, at any depth; a relative one stays in its package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), place)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield Import(node.module, tuple(alias.name for alias in node.names), place)


def foreign_imports(distribution: Distribution) -> list[Import]:
    """Return a distribution's imports of what is neither the standard library nor its own."""
    ours = STANDARD | {distribution.package}
    return [
        found
        for module in distribution.modules()
        for found in imports(module)
        if found.top not in ours
    ]


def test_core_imports_the_standard_library_only() -> None:
    """An exception is named in `OPTIONAL`, with its module."""
    allowed = {
        str((core().source / name).relative_to(ROOT)): tops for name, tops in OPTIONAL.items()
    }
    foreign = [
        str(found)
        for found in foreign_imports(core())
        if found.top not in allowed.get(found.place.rpartition(":")[0], set())
    ]

    assert [] == foreign


def test_core_runs_on_the_standard_library_only() -> None:
    """Every module of core imports in an interpreter that sees no installed package."""
    modules = [
        ".".join(path.relative_to(core().source.parent).with_suffix("").parts)
        for path in core().modules()
        if path.name != "__main__.py"
    ]
    names = [name.removesuffix(".__init__") for name in modules]
    script = (
        "import importlib, sys\n"
        f"sys.path.insert(0, {str(core().source.parent)!r})\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "tops = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(tops - sys.stdlib_module_names - {'adjudge', '__main__'}))\n"
    )

    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False
    )

    assert ("[]\n", "") == (ran.stdout, ran.stderr)


def test_core_names_no_integration() -> None:
    """No string of core, docstrings apart, is the name of an integration or its package."""
    known = {each.folder.name for each in integrations()}
    known |= {each.name for each in integrations()} | {each.package for each in integrations()}
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in core().modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in known
    ]

    assert [] == named


@each_integration
def test_an_integration_uses_the_front_door_and_the_seam(integration: Distribution) -> None:
    """Of ours it imports `adjudge` and `adjudge.integration`, and never another integration."""
    ours = {each.package for each in integrations()} | {"adjudge", "adjudge_conformance"}
    allowed = SEAM | BUILDS_ON.get(integration.package, set())
    wrong = [
        str(found)
        for found in foreign_imports(integration)
        if found.top in ours and found.module not in allowed
    ]

    assert [] == wrong


@each_integration
def test_an_integration_imports_no_private_name(integration: Distribution) -> None:
    """Neither of core nor of its framework."""
    assert [] == [str(found) for found in foreign_imports(integration) if found.private]


@each_integration
def test_an_integration_touches_a_private_attribute_only_with_a_reason(
    integration: Distribution,
) -> None:
    """An underscored attribute that the package does not define is another's, and may move.

    Where there is no public way, a comment on the line or right above it says why, and a test of
    the integration names the attribute.
    """
    sources = {path: path.read_text(encoding="utf-8") for path in integration.modules()}
    own = {name for text in sources.values() for name in _defined(ast.parse(text))}
    tests = "".join(path.read_text("utf-8") for path in integration.folder.glob("tests/**/*.py"))
    touched = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, text in sources.items()
        for line, name in _private_attributes(ast.parse(text))
        if name not in own and not (_is_commented(text, line) and name in tests)
    ]

    assert [] == touched


def test_the_suite_imports_no_framework() -> None:
    """The suite stands on core's public modules, pytest and pydantic."""
    allowed = {"adjudge", "pytest", "pydantic"}
    wrong = [
        str(found)
        for found in foreign_imports(conformance())
        if found.top not in allowed or found.private
    ]

    assert [] == wrong


def test_examples_import_public_names_only() -> None:
    """An example shows what a user may write."""
    files = sorted((ROOT / "examples").rglob("*.py"))

    assert [] == [str(found) for path in files for found in imports(path) if found.private]


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield every name that a module gives to something of its own: functions, fields, slots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id in {"self", "cls"}
        ):
            yield node.attr


def _private_attributes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each underscored attribute, read by a dot or by `getattr`."""
    readers = {"getattr", "setattr", "hasattr", "delattr", "__setattr__", "__getattribute__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for argument in node.args if called in readers else ():
                if isinstance(argument, ast.Constant) and _is_private(argument.value):
                    yield node.lineno, str(argument.value)


def _is_commented(text: str, line: int) -> bool:
    above, here = ["", *text.splitlines()][line - 1 : line + 1]
    return above.lstrip().startswith("#") or "  # " in here


def _is_private(name: object) -> bool:
    """Whether a name is private; those of a named tuple begin so in order not to meet a field's."""
    if not isinstance(name, str) or name in ("_asdict", "_fields", "_make", "_replace"):
        return False
    return name.startswith("_") and not name.startswith("__")
