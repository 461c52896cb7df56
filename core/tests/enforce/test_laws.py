"""Laws 4, 6 and 7 over generated circumstances: what can fail fails, in any combination."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.guard import ToolGuard
from adjudge._enforcement.tools import ToolSet, tool
from adjudge._ledger.entries import MemoryLedger
from adjudge._record.sinks import required_sink
from adjudge._types import ApprovalDecision, Outcome
from adjudge.policy import compile_policy

KINDS = [
    "step.proposed",
    "policy.evaluated",
    "approval.requested",
    "approval.granted",
    "obligation.required",
    "obligation.fulfilled",
    "action.completed",
    "action.denied",
]
TERMINAL = {
    *(f"action.{word}" for word in ("completed", "failed", "denied", "previewed", "cancelled")),
}
RUNS = (Outcome.COMPLETED, Outcome.FAILED)


def fail(*_args, **_kwargs):
    """Raise, whatever is asked."""
    raise OSError("broken")


APPROVALS = {
    "granted": lambda _: ApprovalDecision(True, "ana"),
    "refused": lambda _: ApprovalDecision(False, "ana"),
    "true": lambda _: True,
    "raises": fail,
    "edited": lambda _: ApprovalDecision(True, "ana", edited_args={"x": 3}),
    "edited-into-nothing": lambda _: ApprovalDecision(True, "ana", edited_args={"y": 3}),
}
OBLIGATIONS = {"works": lambda *_: None, "fails": fail}


@st.composite
def circumstances(draw):
    """Draw a policy, a call, and what goes wrong."""
    obligation = st.fixed_dictionaries(
        {
            "id": st.sampled_from(["works", "fails", "unknown"]),
            "phase": st.sampled_from(["pre", "post"]),
            "on": st.sampled_from(["execute", "always"]),
        }
    )
    verdict = draw(st.sampled_from(["allow", "deny", "dry_run", "approve_required", "transform"]))
    rule = {
        "id": "r",
        "match": draw(st.sampled_from(["always", {"args.x.gt": 1}, {"args.x.matches": "a"}])),
        "decision": verdict,
        "obligations": draw(
            st.lists(obligation, max_size=3, unique_by=lambda item: (item["id"], item["phase"]))
        ),
    }
    if verdict == "transform":
        rule["transform"] = {"path": "args.x", "set": draw(st.sampled_from([1, 2, "text"]))}
    return {
        "rule": rule,
        "args": draw(
            st.sampled_from(
                [{}, {"x": 1}, {"x": 2}, {"x": "a"}, {"y": 1}, {"x": float("nan")}, "{", '{"x": 2}']
            )
        ),
        "approval": draw(st.sampled_from(sorted(APPROVALS))),
        "paused": draw(st.booleans()),
        "ledger": draw(st.booleans()),
        "body": draw(st.sampled_from(["returns", "raises"])),
        "shadow": draw(st.sampled_from(["returns", "raises", "none"])),
        "refused": draw(st.sets(st.sampled_from(KINDS), max_size=2)),
        "required": draw(st.booleans()),
        "door": draw(st.sampled_from(["async", "sync"])),
    }


@settings(max_examples=200, deadline=None)
@given(circumstances())
def test_one_terminal_event_one_run_at_most_and_no_exception(drawn):
    """Laws 4, 6, 7: a value comes back, the body ran once or never, one event ends the call."""
    attempted, ran = [], []

    @tool()
    async def act(x: object = 0):
        ran.append(x)
        if drawn["body"] == "raises":
            raise KeyError("body")
        return "done"

    class Sink:
        never_blocks = True

        def __call__(self, event):
            attempted.append(event)
            if event.kind in drawn["refused"]:
                raise OSError("disk full")

    if drawn["shadow"] != "none":
        act.shadow(fail if drawn["shadow"] == "raises" else (lambda x: {"x": 1}))
    sink = Sink()
    ledger = MemoryLedger()
    pauses = drawn["paused"]
    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": [drawn["rule"]]}),
        tools=ToolSet.from_functions(act),
        on_approval=pause_approval(ledger) if pauses else APPROVALS[drawn["approval"]],
        ledger=ledger if drawn["ledger"] else None,
        obligations=OBLIGATIONS,
        sinks=[required_sink(sink) if drawn["required"] else sink],
    )

    async def through_async():
        call = await guard.check("act", drawn["args"])
        if call.outcome is Outcome.PENDING:
            call = await guard.resume(call.pending.id, answer_of(drawn["approval"]))
        return call

    def through_sync():
        call = guard.check_sync("act", drawn["args"])
        if call.outcome is Outcome.PENDING:
            call = guard.resume_sync(call.pending.id, answer_of(drawn["approval"]))
        return call

    with guard:
        call = asyncio.run(through_async()) if drawn["door"] == "async" else through_sync()
    kinds = [event.kind for event in attempted]

    assert sum(kind in TERMINAL for kind in kinds) == 1
    assert kinds[-1] in TERMINAL
    assert kinds[0] == "step.proposed"
    assert kinds[-1] == f"action.{call.outcome.value}"
    assert len(ran) == (call.outcome in RUNS and call.result.code != "invalid_arguments")
    if ran:
        before_body = {"step.proposed", "policy.evaluated"}
        assert not (drawn["required"] and drawn["refused"] & before_body)


def answer_of(name):
    """Give the answer that the handler of that name would give."""
    return "broken" if name == "raises" else APPROVALS[name](None)
