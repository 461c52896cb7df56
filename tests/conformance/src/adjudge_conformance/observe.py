"""What was seen of one run, and what should have been: two plain values, to be compared with `==`.

Both are made of the same parts, so that a difference shows as one. Facts come from the spies, the
sink, the approver's notes and the wire; from the driver's outcome comes only how the run ended.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from adjudge_conformance._results import RESULTS
from adjudge_conformance.bench import HELPER, MAIN, Bench
from adjudge_conformance.case import Case, Expected, Proposal
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Outcome
from adjudge_conformance.tools import SIBLING
from adjudge_conformance.wire import Exchange, PastCall

__all__ = ["compared", "expected_of", "observed_of", "ran_lines", "waiting_lines"]

_DENIED = "[denied] "
_OF_CALLS = ("action.", "approval.", "obligation.", "policy.", "step.proposed")
_TERMINAL = tuple(
    f"action.{end}" for end in ("completed", "failed", "denied", "previewed", "cancelled")
)
_SIBLING_EXPECTED = Expected(
    verdict="allow", runs=1, events=("step.proposed", "policy.evaluated", "action.completed")
)


def expected_of(cell: Cell) -> dict[str, Any]:
    """What must be seen of a cell."""
    case = cell.case
    pairs = [*zip(_labels(cell), case.calls, case.expect, strict=True), *_siblings(cell)]
    ran, record, asked, told = [], [], [], {}
    for label, call, expect in pairs:
        args = expect.args or call.args or {}
        line = _line(call.tool, args)
        ran += [f"body {line}"] * expect.runs + [f"shadow {line}"] * expect.shadows
        ran += [f"obligation {name} {line}" for name in expect.obligations]
        asked += [_line(call.tool, expect.asked_args or args)] * expect.asked
        record.append(_recorded(call.tool, expect.verdict, expect.events, expect.code))
        if expect.turned_away:
            record.append(_recorded(call.tool, None, ("action.denied",), expect.turned_away))
        told[label] = _told(call, expect, args)
    return _whole(
        ran=ran,
        record=record,
        asked=asked,
        told={label: text for label, text in told.items() if text is not None},
        ends=case.final if case.ends == "final text" else None,
        problems=[],
    )


def observed_of(bench: Bench, exchange: Exchange, outcome: Outcome) -> dict[str, Any]:
    """What was seen of a run, in the shape of `expected_of`."""
    cell = bench.cell
    compared = expected_of(cell)["told"]
    told, problems = _told_on_the_wire(cell, exchange)
    return _whole(
        ran=ran_lines(bench),
        record=_record(bench.events),
        asked=[_line(question["tool"], question["args"]) for question in bench.asked],
        told={label: _cut(told.get(label), compared[label]) for label in compared},
        ends=_ending(outcome) if cell.case.ends == "final text" else None,
        problems=[*exchange.problems, *problems],
    )


def compared(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> list[str]:
    """Every difference, as the lines of a diff of two JSON texts."""
    if expected == seen:
        return []
    wanted, found = (
        json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (expected, seen)
    )
    return list(difflib.unified_diff(wanted, found, "expected", "seen", lineterm="", n=1))


def ran_lines(bench: Bench) -> list[str]:
    """Every start of a body, shadow or obligation, as a line each."""
    return [f"{seen.kind} {_line(seen.tool, seen.args)}" for seen in bench.spies.sightings]


def waiting_lines(cell: Cell, number: int) -> set[str]:
    """The starts that may not be there before the answers of a round, counted from 1, are given."""
    case = cell.case
    return {
        f"body {_line(call.tool, expect.args or call.args or {})}"
        for call, expect in zip(case.calls, case.expect, strict=True)
        if "approval.pending" in expect.events and (number == 1 or _is_asked_in(case, call, number))
    }


def _is_asked_in(case: Case, call: Proposal, number: int) -> bool:
    return any(
        answer.round >= number and answer.is_about(call.tool, call.args or {})
        for answer in case.answers
    )


def _whole(*, ran: list[str], record: list[str], asked: list[str], **rest: Any) -> dict[str, Any]:
    # Calls of one turn may start in any order, so what happened across calls has no order here.
    return {"ran": sorted(ran), "record": sorted(record), "asked": sorted(asked), **rest}


def _line(tool: str, args: Mapping[str, Any]) -> str:
    return f"{tool} {json.dumps(dict(args), sort_keys=True)}"


def _recorded(tool: str, verdict: str | None, events: Iterable[str], code: str | None) -> str:
    ending = f" ({code})" if code else ""
    return f"{tool}: {verdict or 'not judged'}: {', '.join(events)}{ending}"


def _record(events: list[dict[str, Any]]) -> list[str]:
    """One line for each governed call: tool, last verdict, kinds of events in order, last code."""
    calls: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        if event["kind"].startswith(_OF_CALLS):  # the rest is what a host says of itself
            calls.setdefault(tuple(event["call"]), []).append(event)
    lines = []
    for said in calls.values():
        bodies = [event["body"] for event in said]
        tool = next((body["tool"] for body in bodies if "tool" in body), "?")
        if tool == HELPER:
            continue  # how an agent is nested is the framework's affair
        verdicts = [body["verdict"] for body in bodies if "verdict" in body]
        codes = [e["body"].get("code") for e in said if e["kind"] in _TERMINAL]
        kinds = [event["kind"] for event in said]
        lines.append(
            _recorded(tool, verdicts[-1] if verdicts else None, kinds, *codes[-1:] or [None])
        )
    return lines


def _labels(cell: Cell) -> list[str]:
    return [f"{agent}.{turn}.{index}" for agent, turn, index, _ in _placed(cell.case)]


def _placed(case: Case) -> Iterable[tuple[str, int, int, Proposal]]:
    for agent, turns in ((MAIN, case.proposes), (HELPER, case.helper)):
        for number, proposals in enumerate(turns):
            for index, proposal in enumerate(proposals):
                if proposal.to_helper is None:
                    yield agent, number, index, proposal


def _siblings(cell: Cell) -> Iterable[tuple[str, Proposal, Expected]]:
    if cell.parallel:
        for number, proposals in enumerate(cell.case.proposes):
            call = Proposal(tool=SIBLING, args={"key": f"turn {number}"})
            yield f"{MAIN}.{number}.{len(proposals)}", call, _SIBLING_EXPECTED


def _told(call: Proposal, expect: Expected, args: Mapping[str, Any]) -> str | None:
    """The text that the model must get; None where the framework's own words stand."""
    if expect.sees is not None:
        return expect.sees
    if expect.turned_away or expect.events[-1] in ("action.denied", "approval.expired"):
        return f"{_DENIED}..."
    if expect.events[-1] == "action.completed":
        result = RESULTS[call.tool](**args)
        return result if isinstance(result, str) else None
    return None


def _cut(text: str | None, expected: str) -> str | None:
    """Leave open what the reason of a denial says, where a case does not say it."""
    if expected == f"{_DENIED}..." and text is not None and text.startswith(_DENIED):
        return expected
    return text


def _told_on_the_wire(cell: Cell, exchange: Exchange) -> tuple[dict[str, str], list[str]]:
    """What each call's tool said to the model, by place in the script, and any change of story."""
    told: dict[str, str] = {}
    problems = []
    for request in exchange.requests:
        for call in request.calls:
            label = _place_of(call, request.model, request.conversation, exchange)
            if label is None or call.output is None:
                continue
            if told.setdefault(label, call.output) != call.output:
                problems.append(f"{label} was told {told[label]!r} and later {call.output!r}")
    return told, problems


def _place_of(call: PastCall, model: str, conversation: str, exchange: Exchange) -> str | None:
    for turn in range(len(exchange.script.turns(model))):
        ids = exchange.script.ids(model, turn, conversation)
        if call.id in ids:
            return f"{model}.{turn}.{ids.index(call.id)}"
    return None


def _ending(outcome: Outcome) -> str | None:
    if outcome.raised is not None:
        return f"{type(outcome.raised).__name__}: {outcome.raised}"
    return outcome.final
