"""The README's driver is a whole one: a third party's integration is tested with it as it is."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parent / "README.md"


def driver_of_the_readme():
    """Give the one Python block of the README."""
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return block


def run_suite(folder, driver):
    """Run the suite where only the third party's files are, and give what pytest says."""
    for file in (HERE / "third_party").glob("*.py"):
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_acme.py").write_text(driver, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_driver_is_shorter_than_fifty_lines():
    """A third party needs fewer than fifty lines, opting in included."""
    assert len(driver_of_the_readme().splitlines()) < 50


def test_third_party_passes_with_its_declared_gaps(tmp_path):
    """The README's driver gives the whole suite for a framework that we do not know."""
    done = run_suite(tmp_path, driver_of_the_readme())

    assert 0 == done.returncode, done.stdout
    assert re.search(r"\d\d+ passed, \d+ xfailed", done.stdout)


def test_third_party_that_does_not_govern_fails(tmp_path):
    """The same driver, without the guard, fails."""
    ungoverned = driver_of_the_readme().replace("govern(agent, guard)", "agent")

    assert 1 == run_suite(tmp_path, ungoverned).returncode
