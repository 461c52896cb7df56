"""Every code block of the documentation runs.

A page runs in its own process and its own empty folder. Pages marked `<!-- needs: FRAMEWORK -->`
run in that framework's environment (`--needs FRAMEWORK`), the others in `docs`; together they are
all pages, which is a test of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import _page
from ._tree import ROOT, distributions, tox_ini

_NEEDS = re.compile(r"^<!-- needs: (?P<framework>[a-z-]+) -->$", re.MULTILINE)


def pages() -> list[Path]:
    """Return every page that shows code to a user."""
    readmes = [ROOT / "README.md", *(each.folder / "README.md" for each in distributions())]
    examples = sorted((ROOT / "examples").rglob("*.md"))
    return [*readmes, *sorted((ROOT / "docs").rglob("*.md")), *examples]


def needs(page: Path) -> str | None:
    """Return the framework that a page needs, if it needs one."""
    marked = _NEEDS.search(page.read_text(encoding="utf-8"))
    return marked and marked["framework"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `page` the pages that the chosen environment has to run."""
    if "page" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--needs", default=None)
        selected = [page for page in pages() if needs(page) == chosen]
        metafunc.parametrize("page", selected, ids=[str(p.relative_to(ROOT)) for p in selected])


def test_page_runs(page: Path, tmp_path: Path) -> None:
    """Every block of the page runs, in order, in an empty folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ran = subprocess.run(
        [sys.executable, _page.__file__, str(page)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == ran.returncode, ran.stdout


def test_the_environments_together_run_every_page() -> None:
    """Each framework that a page needs is one whose environment runs that framework's pages."""
    tox = tox_ini()
    commands = [tox.get(section, "commands", fallback="") for section in tox.sections()]
    run = {found for text in commands for found in re.findall(r"--needs ([a-z-]+)", text)}
    unmarked = [text for text in commands if "tests/repo/test_docs.py}" in text]

    assert 1 == len(unmarked)
    assert {needs(page) for page in pages()} - {None} == run


def test_a_failing_block_fails_its_page(tmp_path: Path) -> None:
    """The runner reports a block that raises; a page cannot pass by not being run."""
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nassert 1 == 2\n```\n", encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, _page.__file__, str(page)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == ran.returncode
    assert f'File "{page}", line 4' in ran.stderr
