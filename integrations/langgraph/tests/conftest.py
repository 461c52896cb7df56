"""What the tests here share: tools, a record, and guards of a few rules."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool

from adjudge import AuditEvent, SQLiteLedger, ToolGuard, compile_policy, pause_approval
from adjudge_conformance.wire import ScriptedServer

# `graph_desk` is what the tests here share besides fixtures.
sys.path.insert(0, str(Path(__file__).parent))


class Record:
    """A sink that keeps the events, each at once."""

    never_blocks = True

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def __call__(self, event: AuditEvent) -> None:
        """Keep one."""
        self.events.append(event)

    @property
    def ends(self) -> list[str]:
        """The kinds of the events that end a call or suspend it, in order."""
        return [event.kind for event in self.events if event.kind.startswith("action.")]

    def codes(self) -> list[str]:
        """The codes of the denials."""
        return [event.body["code"] for event in self.events if event.kind == "action.denied"]


@pytest.fixture(scope="session")
def server():
    """The model service."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def record() -> Record:
    """A record of one's own."""
    return Record()


@pytest.fixture
def ran() -> list[Any]:
    """Where bodies leave their traces."""
    return []


@pytest.fixture
def note(ran):
    """A tool that nobody is asked about."""

    @tool
    def note(text: str) -> str:
        """Take a note."""
        ran.append(("note", text))
        return f"noted {text}"

    return note


@pytest.fixture
def pay(ran):
    """A tool that people are asked about."""

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(("pay", amount))
        return f"paid {amount}"

    return pay


@pytest.fixture
def guard_of(record) -> Callable[..., ToolGuard]:
    """Make a guard of rules, the last of which allows everything unless told otherwise."""
    guards = []

    def make(*rules: dict[str, Any], rest: str = "allow", **options: Any) -> ToolGuard:
        every = [*rules, {"id": "rest", "match": "always", "decision": rest}]
        policy = compile_policy({"version": 1, "rules": every})
        guards.append(ToolGuard(policy=policy, sinks=[record], **options))
        return guards[-1]

    yield make
    for guard in guards:
        guard.close()


@pytest.fixture
def pausing(guard_of, tmp_path) -> Callable[..., ToolGuard]:
    """Make a guard that has a person asked about payments."""
    asking = {"id": "pay", "match": {"tool": "pay"}, "decision": "approve_required"}

    def make(*rules: dict[str, Any]) -> ToolGuard:
        ledger = SQLiteLedger(tmp_path / "ledger.sqlite")
        return guard_of(*rules, asking, on_approval=pause_approval(ledger))

    return make
