"""Every code block of the documentation runs.

A page runs in its own process and its own empty folder. Pages marked `<!-- needs: FRAMEWORK -->`
run in that framework's environment (`--needs FRAMEWORK`), the others in `docs`; together they are
all pages, which is a test of its own. A page that only its own test can run, because it stands for
somebody else's code, names it: `<!-- run by: PATH -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import _page
from ._tree import ROOT, distributions, names, tox_ini

_RUN_BY = re.compile(r"^<!-- run by: (?P<test>\S+) -->$", re.MULTILINE)
_NEEDS = re.compile(r"^<!-- needs: (?P<framework>[a-z-]+) -->$", re.MULTILINE)


def pages() -> list[Path]:
    """Return every page that shows code to a user."""
    readmes = [ROOT / "README.md", *(each.folder / "README.md" for each in distributions())]
    examples = sorted((ROOT / "examples").rglob("*.md"))
    return [*readmes, *sorted((ROOT / "docs").rglob("*.md")), *examples]


def run_by(page: Path) -> Path | None:
    """Return the test that runs a page in our place, if there is one."""
    marked = _RUN_BY.search(page.read_text(encoding="utf-8"))
    return marked and ROOT / marked["test"]


def needs(page: Path) -> str | None:
    """Return the framework that a page needs, if it needs one."""
    marked = _NEEDS.search(page.read_text(encoding="utf-8"))
    return marked and marked["framework"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `page` the pages that the chosen environment has to run."""
    if "page" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--needs", default=None)
        selected = [p for p in pages() if needs(p) == chosen and not run_by(p)]
        metafunc.parametrize("page", selected, ids=[str(p.relative_to(ROOT)) for p in selected])


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a folder, with the commands of this environment in reach of `bash` blocks."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.run(
        [sys.executable, _page.__file__, str(page)],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def test_page_runs(page: Path, tmp_path: Path) -> None:
    """Every block of the page runs, in order, in an empty folder."""
    ran = run(page, tmp_path)

    assert 0 == ran.returncode, ran.stdout
    assert ran.stdout.endswith(f"{_page.ALL_RAN}\n"), ran.stdout


def test_the_environments_together_run_every_page() -> None:
    """`docs` runs the pages without a mark, each framework's environment those with its name."""
    tox = tox_ini()
    commands = "\n".join(tox.get(name, "commands", fallback="") for name in tox.sections())
    frameworks = {needs(page) for page in pages()} - {None}

    assert "docs" in names(tox["tox"]["env_list"])
    own = "docs: pytest {posargs:tests/repo/test_docs.py}"
    assert own in tox["testenv"]["commands"].split("\n")
    assert frameworks == set(re.findall(r"tests/repo/test_docs\.py --needs ([^\s}]+)", commands))


def test_a_page_that_is_run_elsewhere_is_run() -> None:
    """The test that a page names is one of a distribution, and reads that page."""
    for page in pages():
        test = run_by(page)
        if test:
            assert page.parent / "tests" == test.parent
            assert page.name in test.read_text(encoding="utf-8")


def test_a_failing_block_fails_its_page(tmp_path: Path) -> None:
    """A block that raises ends the run, with its place in the page."""
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nassert 1 == 2\n```\n", encoding="utf-8")

    ran = run(page, tmp_path)

    assert 1 == ran.returncode
    assert f'File "{page}", line 4' in ran.stdout


def test_a_block_that_exits_does_not_pass_for_the_rest_of_its_page(tmp_path: Path) -> None:
    """A page that ends early ends without the line that says that every block ran."""
    page = tmp_path / "page.md"
    page.write_text("```python\nraise SystemExit(0)\n```\n", encoding="utf-8")

    ran = run(page, tmp_path)

    assert 0 == ran.returncode
    assert _page.ALL_RAN not in ran.stdout


def test_a_policy_that_does_not_compile_fails_its_page(tmp_path: Path) -> None:
    """A block with `rules:` is compiled, and not just parsed."""
    page = tmp_path / "page.md"
    page.write_text('```json\n{"rules": [{"id": 1}]}\n```\n', encoding="utf-8")

    ran = run(page, tmp_path)

    assert 1 == ran.returncode
    assert "PolicyCompileError" in ran.stdout
