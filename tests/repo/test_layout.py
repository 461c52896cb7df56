"""The shape of the repository: what stands at the top, and how long a file may be."""

from __future__ import annotations

from ._tree import ROOT, distributions, read_toml, tracked_files

TOP_LEVEL = {
    ".ci",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "core",
    "docs",
    "examples",
    "integrations",
    "pyproject.toml",
    "tests",
    "tox.ini",
}
LONGEST_SOURCE_FILE = 450
LONGEST = {
    ".ci/run": 40,
    "CONTRIBUTING.md": 150,
    "README.md": 150,
    "tox.ini": 150,
}


def length(name: str) -> int:
    """Return the number of lines of a file, given relative to the root."""
    return len((ROOT / name).read_text(encoding="utf-8").splitlines())


def test_the_top_level_is_exactly_this() -> None:
    """A newcomer sees the same seventeen entries, whatever is added below them."""
    assert TOP_LEVEL == {path.parts[0] for path in tracked_files()}


def test_the_workflow_that_runs_ci_is_present() -> None:
    """What runs on a pull request is `.ci/run` and nothing else."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")

    assert "run: .ci/run" in workflow


def test_files_that_people_read_whole_stay_short() -> None:
    """The files of `LONGEST` keep to their limits."""
    too_long = {name: length(name) for name, limit in LONGEST.items() if length(name) > limit}

    assert {} == too_long


def test_no_source_file_is_too_long_to_read() -> None:
    """A file past the limit holds more than one idea, and is split by idea."""
    modules = [module for each in distributions() for module in each.modules()]
    lengths = {str(module.relative_to(ROOT)): length(str(module)) for module in modules}

    assert {} == {name: n for name, n in lengths.items() if n > LONGEST_SOURCE_FILE}


def test_tools_are_configured_at_the_root_alone() -> None:
    """A distribution's pyproject.toml holds packaging metadata and no tool's settings but those."""
    tools = {
        each.name: set(read_toml(each.folder / "pyproject.toml").get("tool", {}))
        for each in distributions()
    }

    assert {} == {name: found for name, found in tools.items() if found - {"hatch", "uv"}}
