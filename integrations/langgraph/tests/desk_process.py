"""A run of several processes: `python desk_process.py FOLDER [fan-out] [dies]` starts it.

The graph's checkpoints and the ledger are files in the folder; what ran is in a file as well, with
the process that ran it, which `dies` in the body of the note. Another process goes on with
`Desk(folder)`.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph_desk import GO, ONE, builder_of, told
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from adjudge import ApprovalDecision, SQLiteLedger, ToolGuard, compile_policy, pause_approval
from adjudge_langgraph import govern, pending, resume

RULES = [
    {"id": "large", "match": {"tool": "pay", "args.amount.gt": 100}, "decision": "deny"},
    {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required"},
    {"id": "rest", "match": "always", "decision": "allow"},
]
CALLS = [("note", {"text": "x"}), ("pay", {"amount": 1}), ("pay", {"amount": 2})]
ANSWERS = {
    "granted": ApprovalDecision(True, "ana"),
    "refused": ApprovalDecision(False, "ana", "no"),
    "edited": ApprovalDecision(True, "ana", edited_args={"amount": 7}),
    "edited-too-far": ApprovalDecision(True, "ana", edited_args={"amount": 700}),
}


class Desk:
    """The run in a folder, in this process."""

    def __init__(self, folder: Path, *, dies: bool = False) -> None:
        self.folder, self._dies = folder, dies

    def start(self, *, fan_out: bool) -> None:
        """Run until the graph waits."""
        if fan_out:
            (self.folder / "fan-out").touch()
        with self._graph() as graph:
            # Else the checkpoint before a call may not be there yet when the process dies.
            graph.invoke(GO, ONE, durability="sync")
            asked = {str(each.request.args["amount"]): each.id for each in pending(graph, ONE)}
        (self.folder / "asked.json").write_text(json.dumps(asked))

    def go_on(self) -> list[str]:
        """Go on as after a crash, refuse whatever waits, and give what the model is told."""
        with self._graph() as graph:
            graph.invoke(None, ONE)
            refused = {each.id: ANSWERS["refused"] for each in pending(graph, ONE)}
            return told(resume(graph, ONE, refused))

    def answer(self, answer: str, *amounts: int) -> list[int]:
        """Go on with an answer about some payments, and give those that then wait."""
        ids = json.loads((self.folder / "asked.json").read_text())
        given = {ids[str(amount)]: ANSWERS[answer] for amount in amounts}
        with self._graph() as graph:
            resume(graph, ONE, given)
            return _waiting(graph)

    def resume_natively(self) -> list[int]:
        """Go on with what the graph alone is resumed with."""
        with self._graph() as graph:
            asked = graph.get_state(ONE).interrupts
            graph.invoke(Command(resume={each.id: {"approved": True} for each in asked}), ONE)
            return _waiting(graph)

    @property
    def ran(self) -> list[Any]:
        """What ran, in order, with the process."""
        return [json.loads(line) for line in (self.folder / "ran.jsonl").read_text().splitlines()]

    @property
    def bodies(self) -> list[Any]:
        """What ran, in no order."""
        return sorted((name, value) for name, value, _ in self.ran)

    @contextmanager
    def _graph(self) -> Iterator[Any]:
        """Build the graph anew, on the files."""
        guard = ToolGuard(
            policy=compile_policy({"version": 1, "rules": RULES}),
            on_approval=pause_approval(SQLiteLedger(self.folder / "ledger.sqlite")),
        )
        fan_out = (self.folder / "fan-out").exists()
        builder = builder_of(ToolNode(self._tools()), *CALLS, fan_out=fan_out)
        file = str(self.folder / "checkpoints.sqlite")
        with guard, SqliteSaver.from_conn_string(file) as saver:
            yield govern(builder.compile(checkpointer=saver), guard)

    def _tools(self) -> list[Any]:
        def ran(name: str, value: Any) -> str:
            with (self.folder / "ran.jsonl").open("a") as log:
                log.write(json.dumps([name, value, os.getpid()]) + "\n")
            return f"{name} {value}"

        @tool
        def note(text: str) -> str:
            """Take a note."""
            done = ran("note", text)
            if self._dies:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        @tool
        def pay(amount: int) -> str:
            """Pay."""
            return ran("pay", amount)

        return [note, pay]


def _waiting(graph: Any) -> list[int]:
    return sorted(each.request.args["amount"] for each in pending(graph, ONE))


if __name__ == "__main__":
    Desk(Path(sys.argv[1]), dies="dies" in sys.argv).start(fan_out="fan-out" in sys.argv)
