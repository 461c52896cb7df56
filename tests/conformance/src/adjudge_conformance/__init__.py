"""The shared suite that every integration of Adjudge passes.

Subclass `Conformance` and name a `Driver`; `README.md` shows a whole one. The facts come from the
suite's own tools, sink and model service, never from what a driver says of itself.
"""

import pytest

# Before the modules that assert are imported, or a failure shows no values.
pytest.register_assert_rewrite(
    "adjudge_conformance._contract",
    "adjudge_conformance.ledger",
    "adjudge_conformance.noticing",
    "adjudge_conformance.run_stores",
    "adjudge_conformance.servers",
    "adjudge_conformance.session_stores",
    "adjudge_conformance.suite",
    "adjudge_conformance.worker",
)

from adjudge_conformance.case import Case  # noqa: E402 (see above)
from adjudge_conformance.driver import (  # noqa: E402
    Agent,
    Driver,
    Gap,
    GivenAnswer,
    Outcome,
    Scene,
    Style,
)
from adjudge_conformance.suite import CaseFailed, Conformance  # noqa: E402
from adjudge_conformance.tools import SuiteTool  # noqa: E402

__all__ = [
    "Agent",
    "Case",
    "CaseFailed",
    "Conformance",
    "Driver",
    "Gap",
    "GivenAnswer",
    "Outcome",
    "Scene",
    "Style",
    "SuiteTool",
]
