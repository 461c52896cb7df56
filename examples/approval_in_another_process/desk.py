"""What both programs share: the tool, the policy, the guard, the scripted model, and the printing.

Nothing here knows of a framework. `run` starts a run that waits for a person, and goes on with it
in another process; all that the two have in common is a folder.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adjudge import (
    ApprovalDecision,
    PendingApproval,
    SQLiteLedger,
    ToolGuard,
    compile_policy,
    hash_chained_sink,
    pause_approval,
    verify_chain,
)
from adjudge_conformance.wire import Exchange, Script, ScriptedCall, ScriptedServer, Turn

MODEL = "desk-model"
TASK = "Settle order 7."
POLICY = compile_policy(
    {
        "version": 1,
        "rules": [
            {
                "id": "large-refunds",
                "match": {"tool": "refund", "args.amount.gt": 500},
                "decision": "approve_required",
                "approvers": ["finance-lead"],
                "timeout_seconds": 86400,
                "reason": "refunds over 500 are approved by finance",
            },
            {"id": "refunds", "match": {"tool": "refund"}, "decision": "allow"},
        ],
    }
)

Start = Callable[["Desk", str], tuple[bytes, Sequence[PendingApproval]]]
Resume = Callable[["Desk", str, bytes, Mapping[str, ApprovalDecision]], str]


@dataclass(frozen=True)
class Desk:
    """The folder in which the refunds are made, and in which a run that waits is kept."""

    folder: Path

    def tool(self) -> Callable[..., str]:
        """Give the tool: it pays, by a line in a file."""

        def refund(order: int, amount: float) -> str:
            """Refund money to the customer of an order."""
            with self.refunds.open("a") as file:
                file.write(f"order {order}: {amount:.2f}\n")
            return f"refunded {amount:.2f} on order {order}"

        return refund

    def guard(self) -> ToolGuard:
        """Make the guard, the same in each process: what waits is in the ledger's file."""
        return ToolGuard(
            policy=POLICY,
            on_approval=pause_approval(SQLiteLedger(self.folder / "ledger.db")),
            sinks=[hash_chained_sink(self.folder / "audit.jsonl", required=True)],
        )

    @property
    def refunds(self) -> Path:
        """Where the refunds that were really made stand."""
        return self.folder / "refunds.txt"

    @property
    def run(self) -> Path:
        """Where the framework's own state of the run is kept; it may be in anybody's hands."""
        return self.folder / "run.json"

    @property
    def questions(self) -> Path:
        """Where the ids of what is asked are kept; these are for the people who may answer."""
        return self.folder / "questions.json"


@contextmanager
def scripted_model(desk: Desk) -> Iterator[Exchange]:
    """Serve a model that proposes one large refund, and then says what it was told."""
    turns = [Turn((ScriptedCall("refund", '{"order": 7, "amount": 900}', id="call_1"),))]
    script = Script({MODEL: [*turns, Turn(text="I am done with order 7.")]})
    with ScriptedServer() as server:
        yield server.open(script, api="responses", log=desk.folder / "requests.jsonl")


def run(start: Start, resume: Resume) -> None:
    """Do what the command line says: begin the run and let it wait, or go on with it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=["start", "resume"])
    parser.add_argument("folder", type=Path, help="what the two processes have in common")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--grant", action="store_true")
    answer.add_argument("--refuse", action="store_true")
    options = parser.parse_args()
    if options.step == "resume" and not (options.grant or options.refuse):
        parser.error("resume needs an answer: --grant or --refuse")
    desk = Desk(options.folder)
    if options.step == "resume" and not desk.run.exists():
        parser.error(f"nothing waits in {desk.folder}; start there first")
    desk.folder.mkdir(parents=True, exist_ok=True)
    with scripted_model(desk) as exchange:
        if options.step == "start":
            _begin(desk, exchange, start)
        else:
            _go_on(desk, exchange, resume, granted=options.grant)


def _begin(desk: Desk, exchange: Exchange, start: Start) -> None:
    saved, questions = start(desk, exchange.base_url)
    desk.run.write_bytes(saved)
    desk.questions.write_text(json.dumps([each.id for each in questions]))
    for each in questions:
        args = json.dumps(dict(each.decision.effective_args or {}))
        _say(f"{each.request.tool}({args}) waits for a person: {each.decision.reason}")
    _say(f"refunds made: {_refunds(desk)}")
    _say(f"what waits is kept in {', '.join(sorted(p.name for p in desk.folder.iterdir()))}")


def _go_on(desk: Desk, exchange: Exchange, resume: Resume, *, granted: bool) -> None:
    answer = ApprovalDecision(granted, "finance-lead", "" if granted else "too much")
    answers = dict.fromkeys(json.loads(desk.questions.read_text()), answer)
    _say(f"the finance lead {'grants' if granted else 'refuses'} it")
    said = resume(desk, exchange.base_url, desk.run.read_bytes(), answers)
    _say(f"the model was told: {exchange.requests[-1].outputs['call_1']}")
    _say(f"the agent says: {said}")
    _say(f"refunds made: {_refunds(desk)}")
    record = verify_chain(desk.folder / "audit.jsonl")
    _say(f"the record {'verifies' if record.intact else f'is broken: {record.reason}'}")
    for line in (desk.folder / "audit.jsonl").read_text().splitlines():
        print(f"    {json.loads(line)['kind']}")


def _say(text: str) -> None:
    print(f"process {os.getpid()}: {text}")


def _refunds(desk: Desk) -> str:
    made = desk.refunds.read_text().splitlines() if desk.refunds.exists() else []
    return "; ".join(made) or "none"
