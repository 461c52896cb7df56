"""The bench on which one cell is tried: its script, its scene, its guard and its traces.

Everything is in files under one folder, so that a second process finds it again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge import (
    ActionRequest,
    ApprovalDecision,
    ApprovalRequest,
    AuditEvent,
    CallContext,
    Obligation,
    PolicyLayer,
    Principal,
    SQLiteLedger,
    ToolDef,
    ToolGuard,
    ToolMetadata,
    ToolSet,
    compile_policy,
    pause_approval,
)
from adjudge_conformance.case import Case, Proposal
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Agent, Scene
from adjudge_conformance.spies import Spies, append_line, read_lines
from adjudge_conformance.tools import SIBLING, SuiteTool, suite_tools
from adjudge_conformance.wire import Script, ScriptedCall, Turn

__all__ = ["EVERYTHING", "HELPER", "MAIN", "Bench", "policy_of", "script_of"]

MAIN = "main"
HELPER = "helper"
EVERYTHING: Mapping[str, Any] = {
    "version": 1,
    "rules": [{"id": "everything", "match": "always", "decision": "allow"}],
}
_SIBLING_RULE = {
    "id": "suite-sibling",
    "priority": 1_000_000,
    "match": {"tool": SIBLING},
    "decision": "allow",
}


def script_of(cell: Cell, *, helper_argument: str) -> Script:
    """What the models of a cell say; in a parallel cell each turn has an unrelated call besides."""
    turns = {MAIN: _turns(cell, cell.case.proposes, cell.case.final, helper_argument)}
    if cell.case.helper:
        turns[HELPER] = _turns(cell, cell.case.helper, "The helper is done.", helper_argument)
    return Script(turns)


def _turns(
    cell: Cell, proposed: tuple[tuple[Proposal, ...], ...], final: str, helper_argument: str
) -> list[Turn]:
    turns = []
    for number, proposals in enumerate(proposed):
        calls = [_call(proposal, helper_argument) for proposal in proposals]
        if cell.parallel:
            calls.append(ScriptedCall(SIBLING, json.dumps({"key": f"turn {number}"})))
        turns.append(Turn(tuple(calls)))
    return [*turns, Turn(text=final)]


def _call(proposal: Proposal, helper_argument: str) -> ScriptedCall:
    if proposal.to_helper is not None:
        return ScriptedCall(HELPER, json.dumps({helper_argument: proposal.to_helper}))
    return ScriptedCall(proposal.tool, proposal.argument_text, proposal.id)


def policy_of(case: Case, *, resumed: bool = False) -> dict[str, Any] | list[PolicyLayer]:
    """The policy of a case, with a rule for the unrelated calls of its parallel cells."""
    first = (case.resume_policy if resumed else None) or case.policy or EVERYTHING
    layers = [
        {**policy, "rules": [*policy["rules"], _SIBLING_RULE]} for policy in (first, *case.layers)
    ]
    if len(layers) == 1:
        return layers[0]
    return [PolicyLayer(f"layer{number}", policy) for number, policy in enumerate(layers)]


@dataclass(frozen=True)
class Bench:
    """One folder in which one run of a cell leaves its traces."""

    cell: Cell
    folder: Path

    @property
    def spies(self) -> Spies:
        """What the bodies and shadows saw."""
        return Spies(self.folder / "spies.jsonl")

    @property
    def wire_log(self) -> Path:
        """The file of the requests."""
        return self.folder / "requests.jsonl"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The audit events in the order in which the guard's sink got them."""
        return read_lines(self.folder / "events.jsonl")

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What the approver was asked, in order."""
        return read_lines(self.folder / "asked.jsonl")

    def scene(self, *, resumed: bool = False) -> Scene:
        """The agent of the cell, with tools that leave their traces here."""
        made = self._tools()
        names = (*self.cell.case.tools, *((SIBLING,) if self.cell.parallel else ()))
        tools = tuple(made[name] for name in names)
        helpers = (Agent(HELPER, "Help.", tools),) if self.cell.case.helper else ()
        agent = Agent(MAIN, "Keep the notes and the money.", tools, helpers)
        caller = self._caller(resumed=resumed)
        return Scene(agent, "Please do what is to be done.", self.cell.api, caller)

    def guard(self, guard_class: type[ToolGuard], *, resumed: bool = False) -> ToolGuard:
        """The guard of the cell: its policy, its approver, and a sink that writes here."""
        case = self.cell.case
        pauses = case.kind == "pause"
        ledger = SQLiteLedger(self.folder / "ledger.sqlite") if pauses else None
        made = self._tools().values()
        return guard_class(
            policy=compile_policy(policy_of(case, resumed=resumed)),
            tools=ToolSet(_definition(each) for each in made),
            shadows={each.name: each.shadow for each in made if each.shadow is not None},
            principal=Principal(kind="user", id="ana"),
            environment="test",
            workspace=str(self.folder),
            on_approval=pause_approval(ledger) if ledger else self._approver(),
            sinks=(_Record(self.folder / "events.jsonl"),),
            ledger=ledger,
            obligations={"note": self._note, "fail": _fail},
        )

    def _caller(self, *, resumed: bool) -> CallContext | str | None:
        case = self.cell.case
        caller = (case.resume_caller if resumed else None) or case.caller
        if caller is None or isinstance(caller, str):
            return caller
        who = Principal(kind="user", id=caller.id)
        return CallContext(who, caller.environment, str(self.folder), caller.extra)

    def _note(self, obligation: Obligation, request: ActionRequest, _: object) -> None:
        """Note that the obligation was met, and whether the body had started by then."""
        args = json.loads(json.dumps(request.args, default=str))
        seen = [(s.kind, s.tool, s.args) for s in self.spies.sightings]
        when = "after" if ("body", request.tool, args) in seen else "before"
        self.spies.saw("obligation", f"{obligation.id} {when} {request.tool}", args)

    def _tools(self) -> dict[str, SuiteTool]:
        return suite_tools(self.spies, coroutines=self.cell.coroutines)

    def _approver(self) -> Callable[[ApprovalRequest], Awaitable[Any]]:
        waiting = list(self.cell.case.answers)

        async def approver(request: ApprovalRequest) -> Any:
            args = json.loads(json.dumps(request.request.args, default=str))
            append_line(self.folder / "asked.jsonl", {"tool": request.request.tool, "args": args})
            answer = next(a for a in waiting if a.is_about(request.request.tool, args))
            waiting.remove(answer)
            if answer.does == "hang":
                await asyncio.Event().wait()
            if answer.does == "raise":
                raise RuntimeError("the approver is out")
            if answer.does == "true":
                return True
            return ApprovalDecision(
                granted=answer.does != "refuse",
                approver="ana",
                reason=answer.reason,
                edited_args=answer.args if answer.does == "edit" else None,
            )

        return approver


class _Record:
    """A sink that has written each event before the call goes on, also when that is cancelled."""

    never_blocks = True

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, event: AuditEvent) -> None:
        call = [event.correlation_id, event.seq]
        line = {"call": call, "kind": event.kind, "body": event.body}
        append_line(self._path, json.loads(json.dumps(line, default=str)))


def _fail(*_: object) -> None:
    raise RuntimeError("the obligation cannot be met")


def _definition(made: SuiteTool) -> ToolDef:
    metadata = ToolMetadata(**made.metadata, has_shadow=made.shadow is not None)
    return ToolDef(made.name, made.function.__doc__ or "", made.function, made.shadow, metadata)
