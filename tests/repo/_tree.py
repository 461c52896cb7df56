"""The tree as the repository tests see it: its root, its distributions, its files.

Nothing here is a list of names: a new folder under `integrations/` is found, and then held to the
same rules as the others.
"""

from __future__ import annotations

import configparser
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Distribution:
    """One buildable folder."""

    folder: Path

    @property
    def project(self) -> dict[str, Any]:
        """The `[project]` table."""
        table: dict[str, Any] = read_toml(self.folder / "pyproject.toml")["project"]
        return table

    @property
    def name(self) -> str:
        """The name on the package index, `adjudge-openai-agents`."""
        return str(self.project["name"])

    @property
    def package(self) -> str:
        """The import name, `adjudge_openai_agents`."""
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        """The folder of the import package."""
        return self.folder / "src" / self.package

    def modules(self) -> list[Path]:
        """Every Python file of the import package."""
        return sorted(self.source.rglob("*.py"))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def distributions() -> list[Distribution]:
    """Return every member of the workspace, core first."""
    members = read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["workspace"]["members"]
    return [
        Distribution(found.parent)
        for member in members
        for found in sorted(ROOT.glob(f"{member}/pyproject.toml"))
    ]


def core() -> Distribution:
    """Return the distribution that all others build on."""
    return Distribution(ROOT / "core")


def conformance() -> Distribution:
    """Return the distribution of the shared suite."""
    return Distribution(ROOT / "tests" / "conformance")


def integrations() -> list[Distribution]:
    """Return every distribution under `integrations/`."""
    return [each for each in distributions() if each.folder.parent.name == "integrations"]


def frameworks() -> list[Distribution]:
    """Return the integrations that the conformance suite judges; the others are with a service."""
    return [
        each for each in integrations() if (each.folder / "tests/test_conformance.py").is_file()
    ]


def tracked_files() -> list[Path]:
    """Return what git tracks or would track, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted({Path(name) for name in listed.split("\0") if name and (ROOT / name).exists()})


def tox_ini() -> configparser.RawConfigParser:
    """Return tox.ini, with nothing substituted."""
    parser = configparser.RawConfigParser()
    parser.read_string((ROOT / "tox.ini").read_text(encoding="utf-8"))
    return parser


def names(value: str) -> list[str]:
    """Split a comma-separated list of tox.ini."""
    return [name.strip() for name in value.split(",") if name.strip()]
