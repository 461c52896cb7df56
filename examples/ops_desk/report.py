"""Print what one framework's agent proposed, what was decided, and what really changed."""

from __future__ import annotations

import json
from typing import Any

MARKS = {"completed": "ran", "denied": "stopped", "previewed": "previewed", "failed": "failed"}


def shortened(text: str, limit: int = 90) -> str:
    """Put a text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit] + " ..."


def print_row(row: dict[str, Any]) -> None:
    """Print one framework's run."""
    print(f"\n{row['framework']} {row['version']}")
    for call in row["calls"]:
        arguments = json.dumps(call["args"])
        asked = f" ({', '.join(call['approval'])})" if call.get("approval") else ""
        ending = MARKS.get(call.get("outcome", ""), call.get("outcome", "no ending"))
        print(f"  {call['tool']}({arguments})")
        print(f"    {call['verdict']}{asked}: {ending}; {', '.join(call['matched_rules'])}")
        print(f"    {call['reason']}")
        if call.get("executed_args") is not None:
            print(f"    executed with {json.dumps(call['executed_args'])}")
        if call.get("seen") is not None:
            print(f"    the model saw: {shortened(call['seen'])}")
    print("  changed on disk, in the database and in the outbox:")
    for name, content in row["changes"]["files"].items():
        print(f"    file {name}: {'removed' if content is None else repr(content)}")
    for order, amount, reason in row["changes"]["refunds"]:
        print(f"    refund of {amount:.2f} on order {order} ({reason})")
    for mail in row["changes"]["mails"]:
        print(f"    mail to {mail['to']}: {mail['subject']}")
    record = row["record"]
    print(f"  audit log: {record['lines']} events, {'verified' if record['intact'] else 'BROKEN'}")
    for problem in row["problems"]:
        print(f"  NOT AS THE POLICY SAYS: {problem}")
    if not row["problems"]:
        print("  everything happened as the policy says")
