"""What users install: each wheel and sdist, built from the tree and opened."""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import pytest

from ._tree import ROOT, Distribution, core, distributions, tracked_files


@dataclass(frozen=True, slots=True)
class Built:
    """The two archives of one distribution."""

    distribution: Distribution
    wheel: Path
    sdist: Path

    def wheel_names(self) -> set[str]:
        """Return the names of the files in the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def sdist_names(self) -> set[str]:
        """Return the names of the files in the sdist, without its top folder."""
        with tarfile.open(self.sdist) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}

    def read(self, name: str) -> str:
        """Return a file of the wheel's dist-info folder."""
        with zipfile.ZipFile(self.wheel) as archive:
            found = next(n for n in archive.namelist() if n.endswith(f".dist-info/{name}"))
            return archive.read(found).decode()

    def metadata(self) -> Message:
        """Return the core metadata of the wheel."""
        return email.message_from_string(self.read("METADATA"))


@pytest.fixture(scope="module", params=distributions(), ids=lambda d: d.name)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build one distribution of the tree."""
    distribution: Distribution = request.param
    target = tmp_path_factory.mktemp(distribution.package)
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=distribution.folder, check=True, capture_output=True)
    (wheel,) = target.glob("*.whl")
    (sdist,) = target.glob("*.tar.gz")
    return Built(distribution, wheel, sdist)


def test_wheel_has_the_whole_package_and_nothing_else(built: Built) -> None:
    """Every file of the import package is in the wheel, data and `py.typed` too, and no test is."""
    source = built.distribution.source
    expected = {
        (ROOT / path).relative_to(source.parent).as_posix()
        for path in tracked_files()
        if (ROOT / path).is_relative_to(source)
    }
    packed = {name for name in built.wheel_names() if ".dist-info/" not in name}

    assert f"{built.distribution.package}/py.typed" in expected
    assert expected == packed


def test_sdist_has_the_sources_and_no_tests(built: Built) -> None:
    """The sdist holds the package, its README and its licence, and builds without the workspace."""
    packed = built.sdist_names()
    tops = {name.partition("/")[0] for name in packed} - {""}

    assert {"src", "README.md", "LICENSE", "pyproject.toml", "PKG-INFO"} <= tops
    assert {".gitignore"} >= tops - {"src", "README.md", "LICENSE", "pyproject.toml", "PKG-INFO"}


def test_metadata_states_the_licence(built: Built) -> None:
    """The licence is an SPDX expression with its file, in metadata that every publisher accepts."""
    metadata = built.metadata()

    assert "2.4" == metadata["Metadata-Version"]
    assert "Apache-2.0" == metadata["License-Expression"]
    assert ["LICENSE"] == metadata.get_all("License-File")
    assert ">=3.11" == metadata["Requires-Python"]


def test_sdist_metadata_has_the_same_version(built: Built) -> None:
    """The sdist's metadata is written to the same standard as the wheel's."""
    with tarfile.open(built.sdist) as archive:
        member = next(m for m in archive.getmembers() if m.name.endswith("/PKG-INFO"))
        packed = archive.extractfile(member)
        assert packed is not None
        metadata = email.message_from_bytes(packed.read())

    assert "2.4" == metadata["Metadata-Version"]
    assert built.metadata()["Version"] == metadata["Version"]


NEIGHBOURS = {
    "adjudge_dbos": {"adjudge-runtime"},
    "adjudge_langgraph": {"adjudge-langchain"},
}


def test_versions_are_equal_everywhere(built: Built) -> None:
    """All distributions share one version, and what builds on another asks for that minor version.

    All but core build on core, and two on a neighbour too (`test_imports.BUILDS_ON`).
    """
    version = core().project["version"]
    major, minor, _ = version.split(".")
    requires = built.metadata().get_all("Requires-Dist") or []
    ours = {line for line in requires if line.startswith("adjudge") and "extra" not in line}
    needed = set() if built.distribution.package == "adjudge" else {"adjudge"}
    needed |= NEIGHBOURS.get(built.distribution.package, set())

    assert version == built.metadata()["Version"]
    assert {f"{name}<{major}.{int(minor) + 1},>={major}.{minor}" for name in needed} == ours


def test_core_requires_nothing() -> None:
    """Core needs the standard library alone; what else it can use is an extra."""
    project = core().project

    assert [] == project["dependencies"]
    assert {"cli", "re2", "sign", "yaml"} == set(project["optional-dependencies"])
    assert {"adjudge": "adjudge.cli:main"} == project["scripts"]
