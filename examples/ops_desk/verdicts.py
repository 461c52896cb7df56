"""Compare what happened with what a reader of the policy expects.

Verdicts, rules and outcomes come from the audit log on disk; changes come from two snapshots of the
desk; what the model saw comes from the requests that it really received. Every difference is one
sentence in `problems`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scenario import TURNS, Step


def read_calls(audit_log: Path) -> list[dict[str, Any]]:
    """Gather the audit log by governed call, in the order of the proposals."""
    calls: dict[int, dict[str, Any]] = {}
    for line in audit_log.read_text().splitlines():
        event = json.loads(line)
        if event["kind"].startswith(("run.", "step.usage")):
            continue  # of the run, not of a call
        call = calls.setdefault(event["seq"], {})
        body = event["body"]
        if event["kind"] == "step.proposed":
            call |= {key: body[key] for key in ("tool", "args", "call_id")}
        elif event["kind"] == "policy.evaluated":
            call |= {key: body[key] for key in ("verdict", "reason", "matched_rules")}
            call["executed_args"] = body.get("effective_args")
        elif event["kind"].startswith("approval."):
            call.setdefault("approval", []).append(event["kind"].removeprefix("approval."))
        elif event["kind"].startswith("action."):
            call["outcome"] = event["kind"].removeprefix("action.")
    return [calls[seq] for seq in sorted(calls)]


def changes_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Say what is different: files written or removed (None), refunds and mails added."""
    files = {
        name: after["files"].get(name)
        for name in sorted(before["files"].keys() | after["files"].keys())
        if before["files"].get(name) != after["files"].get(name)
    }
    return {
        "files": files,
        "refunds": after["refunds"][len(before["refunds"]) :],
        "mails": after["mails"][len(before["mails"]) :],
    }


def expected_changes() -> dict[str, Any]:
    """Add up what the steps may change."""
    total: dict[str, Any] = {"files": {}, "refunds": [], "mails": []}
    for step in steps():
        total["files"] |= step.changes.get("files", {})
        total["refunds"] += step.changes.get("refunds", [])
        total["mails"] += step.changes.get("mails", [])
    return total


def steps() -> list[Step]:
    """Give every proposal of the scenario, in order."""
    return [step for turn in TURNS for step in turn]


def is_of(call: dict[str, Any], step: Step) -> bool:
    """Whether a recorded call is the step's; the record holds the tool's defaults besides."""
    return call["tool"] == step.tool and step.args.items() <= call["args"].items()


def problems(
    calls: list[dict[str, Any]], changes: dict[str, Any], seen: dict[str, str]
) -> list[str]:
    """List every difference between the run and the expectation; empty means that the policy held.

    `seen` maps the proposals' call ids (`call_0`, `call_1`, ... in order) to what the model was
    told.
    """
    found = []
    waiting = list(calls)
    for number, step in enumerate(steps()):
        name = f"{step.tool}({json.dumps(step.args)})"
        call = next((c for c in waiting if is_of(c, step)), None)
        if call is None:
            found.append(f"{name}: the record has no such call.")
            continue
        waiting.remove(call)
        for key, wanted in (("verdict", step.verdict), ("outcome", step.outcome)):
            if call.get(key) != wanted:
                found.append(f"{name}: {key} is {call.get(key)}, expected {wanted}.")
        if step.rule not in call.get("matched_rules", []):
            found.append(f"{name}: decided by {call.get('matched_rules')}, expected {step.rule}.")
        if step.sees not in seen.get(f"call_{number}", "(nothing)"):
            found.append(
                f"{name}: the model saw {seen.get(f'call_{number}')!r}, expected {step.sees!r}."
            )
    found += [f"{call['tool']}: recorded, but nobody proposed it." for call in waiting]
    if changes != expected_changes():
        found.append(f"the world changed by {changes}, expected {expected_changes()}.")
    return found
