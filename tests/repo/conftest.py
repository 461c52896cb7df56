"""The option that chooses which documentation pages run: those that need one framework, or none."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--needs`."""
    parser.addoption(
        "--needs",
        metavar="FRAMEWORK",
        help="run the pages marked `<!-- needs: FRAMEWORK -->` instead of those without a mark",
    )
