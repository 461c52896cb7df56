"""What a run asks for: the command line, and behind it the configuration file."""

from __future__ import annotations

import pytest

__all__ = ["add_settings", "least_coverage", "mutates"]


def add_settings(parser: pytest.Parser) -> None:
    """Add the options, and the keys of the configuration file that stand for them."""
    group = parser.getgroup("adjudge", "test cases of policies")
    group.addoption(
        "--adjudge-coverage",
        metavar="PERCENT",
        help="fail for each file of policy tests that covers less of its policy",
    )
    group.addoption(
        "--adjudge-mutate",
        action="store_true",
        default=None,
        help="fail for each file of policy tests that does not notice a mistake in its policy",
    )
    parser.addini("adjudge_coverage", "the same as --adjudge-coverage", default="")
    parser.addini("adjudge_mutate", "the same as --adjudge-mutate", type="bool", default=False)


def least_coverage(config: pytest.Config) -> float | None:
    """Give the percentage that is asked for, if one is; what is none is a usage error."""
    given = config.getoption("--adjudge-coverage")
    written = str(config.getini("adjudge_coverage") if given is None else given).strip()
    if not written and given is None:
        return None
    try:
        least = float(written)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 100:
        name = "adjudge_coverage" if given is None else "--adjudge-coverage"
        raise pytest.UsageError(f"{name} is a percentage from 0 to 100, not {written!r}.")
    return least


def mutates(config: pytest.Config) -> bool:
    """Say whether mutation is asked for."""
    given = config.getoption("--adjudge-mutate")
    return bool(config.getini("adjudge_mutate") if given is None else given)
