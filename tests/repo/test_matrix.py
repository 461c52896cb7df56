"""Every integration is tested at its oldest and newest release, and documented, like the others."""

from __future__ import annotations

import re

import pytest

from ._tree import (
    ROOT,
    Distribution,
    distributions,
    frameworks,
    integrations,
    names,
    read_toml,
    tox_ini,
)

PYTHONS = ("py311", "py312", "py313")

each_integration = pytest.mark.parametrize("integration", integrations(), ids=lambda d: d.name)
each_framework = pytest.mark.parametrize("integration", frameworks(), ids=lambda d: d.name)


def test_the_default_run_names_no_python() -> None:
    """The default run uses the Python that tox was started with, so that one Python is enough."""
    named = [name for name in names(tox_ini()["tox"]["env_list"]) if re.search(r"py3\d", name)]

    assert [] == named


def test_a_missing_interpreter_fails_the_run() -> None:
    """An environment that is skipped would be a green run that tested nothing."""
    assert "false" == tox_ini()["tox"]["skip_missing_interpreters"]


def test_the_types_of_every_distribution_are_checked() -> None:
    """Each package is named to mypy, in the one environment or the other."""
    checked = tox_ini()["testenv:types{,-crewai}"]["commands"]
    sources = {str(each.source.parent.relative_to(ROOT)) for each in distributions()}

    assert sources <= set(re.split(r"[\s:{}]+", checked))


def test_core_runs_on_every_python_of_the_matrix() -> None:
    """The matrix has core on each Python that the classifiers name."""
    expected = {f"core-{python}" for python in PYTHONS}

    assert expected <= set(_matrix())


@each_integration
def test_an_integration_runs_at_its_oldest_and_newest(integration: Distribution) -> None:
    """The matrix has both ends of the range, and the default run the newest."""
    folder = integration.folder.name
    expected = {f"{folder}-oldest-py311", f"{folder}-newest-py313"}

    assert expected <= set(_matrix())
    assert folder in names(tox_ini()["tox"]["env_list"])
    assert tox_ini().has_option("newest", folder)


@each_framework
def test_a_framework_has_its_row_in_the_demo(integration: Distribution) -> None:
    """The demo has an environment for the framework."""
    (demo,) = (name for name in tox_ini().sections() if name.endswith("-demo}"))

    assert integration.folder.name in names(demo.removeprefix("testenv:{").partition("}")[0])


@each_framework
def test_a_framework_is_tried_on_the_latest_release(integration: Distribution) -> None:
    """The canary has an environment for the framework."""
    canaries = names(tox_ini()["tox"]["labels"].partition("canary =")[2].partition("\n")[0])

    assert f"{integration.folder.name}-canary" in canaries


@each_integration
def test_an_integration_is_documented(integration: Distribution) -> None:
    """It has a README of its own and a how-to page."""
    page = ROOT / "docs" / "how-to" / f"{integration.folder.name}.md"

    assert (integration.folder / "README.md").is_file()
    assert page.is_file()


@each_integration
def test_an_integration_is_named_after_its_folder(integration: Distribution) -> None:
    """Folder, distribution and import package tell each other; a plug-in begins with its host."""
    folder = integration.folder.name

    assert integration.name == ("pytest-adjudge" if folder == "pytest" else f"adjudge-{folder}")
    assert (integration.source / "__init__.py").is_file()


@pytest.mark.parametrize("distribution", distributions(), ids=lambda d: d.name)
def test_every_distribution_carries_the_licence(distribution: Distribution) -> None:
    """The copy (a symbolic link cannot be built) is equal to the one at the root."""
    assert (ROOT / "LICENSE").read_bytes() == (distribution.folder / "LICENSE").read_bytes()


def test_every_development_requirement_has_a_lower_bound() -> None:
    """Resolving to the floors would else install the oldest release that ever was."""
    groups = read_toml(ROOT / "pyproject.toml")["dependency-groups"]
    written = [entry for group in groups.values() for entry in group if isinstance(entry, str)]

    assert [] == [entry for entry in written if not re.search(r">=|==", entry)]


def _matrix() -> list[str]:
    labels = tox_ini()["tox"]["labels"]
    return names(labels.partition("matrix =")[2])
