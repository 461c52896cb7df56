"""Run the operations desk with one framework, governed, and show what really happened.

Shows: a real agent of a real framework at work on files, a database and an outbox, under
`policy.yaml`. Needs: `adjudge[yaml]`, the framework and its integration; `adjudge-conformance` for
the scripted model.

    python run.py --framework openai-agents [--json PATH] [--live --model NAME] [--policy FILE]

Without `--live` the model is a script behind a real OpenAI-compatible server on this machine, so no
key is needed. Exit code 0: what happened is what the policy says. 1: it is not. 2: bad usage.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from desk import Desk  # noqa: E402
from endpoint import Caller, Endpoint  # noqa: E402
from report import print_row  # noqa: E402
from scenario import FINAL, TASK, TURNS  # noqa: E402
from verdicts import changes_between, problems, read_calls, steps  # noqa: E402

from adjudge import (  # noqa: E402
    ApprovalDecision,
    ApprovalRequest,
    ToolGuard,
    callback_approval,
    hash_chained_sink,
    load_policy_file,
    verify_chain,
)

MODEL = "desk-model"


async def finance_lead(question: ApprovalRequest) -> ApprovalDecision:
    """Answer as the scenario's finance lead would; who is not in the scenario is refused."""
    args = dict(question.request.args)
    for step in steps():
        if step.approve is not None and step.args == args:
            return ApprovalDecision(granted=step.approve, approver="finance-lead")
    return ApprovalDecision(granted=False, approver="finance-lead", reason="not in the scenario")


@contextmanager
def scripted_model(log: Path) -> Iterator[tuple[Endpoint, Any]]:
    """Serve the scenario's proposals on loopback; what is sent there is kept in `log`."""
    from adjudge_conformance.wire import Script, ScriptedCall, ScriptedServer, Turn

    numbered = iter(range(len(steps())))
    turns = [
        Turn(
            calls=tuple(
                ScriptedCall(step.tool, json.dumps(step.args), id=f"call_{next(numbered)}")
                for step in turn
            )
        )
        for turn in TURNS
    ]
    script = Script({MODEL: [*turns, Turn(text=FINAL)]})
    with ScriptedServer() as server:
        exchange = server.open(script, api="responses", log=log)
        yield Endpoint(exchange.base_url, MODEL), exchange


def run_framework(name: str, *, policy: Path, root: Path, live: Endpoint | None) -> dict[str, Any]:
    """Run the desk under one framework and give its row of the report."""
    framework = importlib.import_module(f"frameworks.{name.replace('-', '_')}")
    desk = Desk.create(root / "desk")
    audit_log = root / "audit.jsonl"
    guard = ToolGuard(
        policy=load_policy_file(policy),
        shadows=desk.shadows(),
        on_approval=callback_approval(finance_lead),
        sinks=(hash_chained_sink(audit_log, required=True),),
    )
    caller = Caller(user="ada", tenant="acme")
    before = desk.snapshot()
    seen: dict[str, str] = {}
    if live is not None:
        answer = framework.run(desk, guard, live, caller, TASK)
    else:
        with scripted_model(root / "requests.jsonl") as (endpoint, exchange):
            answer = framework.run(desk, guard, endpoint, caller, TASK)
            for request in exchange.requests:
                seen |= request.outputs
    changes = changes_between(before, desk.snapshot())
    record = verify_chain(audit_log)
    calls = read_calls(audit_log)
    for call in calls:
        call["seen"] = seen.get(call["call_id"])
    found = [] if live else problems(calls, changes, seen)
    if not record.intact:
        found.append(f"the audit log does not verify: {record.reason}.")
    return {
        "framework": name,
        "version": importlib.metadata.version(framework.DISTRIBUTION),
        "answer": answer,
        "calls": calls,
        "changes": changes,
        "record": {"intact": record.intact, "lines": record.lines},
        "problems": found,
    }


def main(argv: list[str] | None = None) -> int:
    """Run one framework; print its row, or write it as JSON."""
    known = sorted(
        file.stem.replace("_", "-")
        for file in (HERE / "frameworks").glob("*.py")
        if file.stem != "__init__"
    )
    parser = argparse.ArgumentParser(description="One framework at the operations desk.")
    parser.add_argument("--framework", choices=known, required=True)
    parser.add_argument("--json", type=Path, help="write the row to this file")
    parser.add_argument("--policy", type=Path, default=HERE / "policy.yaml")
    parser.add_argument("--live", action="store_true", help="ask a real endpoint instead")
    parser.add_argument("--model", help="the model to ask with --live")
    options = parser.parse_args(argv)
    live = None
    if options.live:
        if not (options.model and os.environ.get("OPENAI_API_KEY")):
            parser.error("--live needs --model NAME and OPENAI_API_KEY in the environment")
        base_url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
        live = Endpoint(base_url, options.model, os.environ["OPENAI_API_KEY"])
    with tempfile.TemporaryDirectory(prefix="ops-desk-") as folder:
        row = run_framework(options.framework, policy=options.policy, root=Path(folder), live=live)
    if options.json:
        options.json.write_text(json.dumps(row, indent=1))
    print_row(row)
    return 1 if row["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
