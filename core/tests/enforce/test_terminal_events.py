"""Law 7: one terminal event for each attempt, whatever fails; law 4: whatever fails, denies."""

import asyncio
from types import SimpleNamespace

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import auto_approve
from adjudge._enforcement.tools import tool
from adjudge._ledger.entries import MemoryLedger
from adjudge._types import CallContext, Decision, Outcome, Principal, Verdict
from adjudge.policy import compile_policy

ANA = Principal("user", "ana")


class OddPolicy:
    """A policy that works until `evaluate` is asked for a decision."""

    def __init__(self, **odd):
        self._inner = compile_policy({"version": 1, "rules": []})
        self._odd = odd

    def __getattr__(self, name):
        if name in self._odd:
            return self._odd[name]
        return getattr(self._inner, name)


def raises(*_args, **_kwargs):
    """Raise, whatever is asked."""
    raise RuntimeError("broken")


async def test_a_policy_that_cannot_be_evaluated_denies(bench, check):
    """A policy object that misbehaves denies, with the cause in the decision and the record."""
    guard = bench.guard(policy=object.__new__(OddPolicy))
    guard._settings.policy.__dict__.update(_inner=SimpleNamespace(id="p"), _odd={})

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


@pytest.mark.parametrize("part", ["paths_to_resolve", "metadata_for"])
async def test_a_policy_whose_parts_raise_denies(bench, check, part):
    """Whichever part of a policy raises, the call is denied and recorded."""
    guard = bench.guard(policy=OddPolicy(**{part: raises}))

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.DENIED
    assert "broken" in call.result.error
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


@pytest.mark.parametrize(
    "text",
    ['{"text": "a", "text": "b"}', '{"text": NaN}', '{"text": "\\ud800"}', '{"text": 1e999}'],
)
async def test_text_that_a_strict_reader_refuses_is_denied(bench, check, text):
    """Clause 2: what only a lenient parser accepts is denied under any policy."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", text)

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "refused_arguments")
    assert bench.ran == []
    assert bench.kinds == ["step.proposed", "action.denied"]
    assert bench.body("step.proposed")["arguments_text"] == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"x", {1: 2}, "\ud800"])
async def test_values_that_are_no_json_are_denied(bench, check, value):
    """Clauses 1 and 2: Python values are held to the same as text."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", {"text": value})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "refused_arguments")
    assert bench.ran == []
    assert bench.kinds == ["step.proposed", "action.denied"]


@pytest.mark.parametrize("args", [None, ["a"], 3])
async def test_arguments_that_are_no_object_are_denied(bench, check, args):
    """What is neither text nor a mapping is denied, not raised."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", args)

    assert call.result.code == "refused_arguments"
    assert bench.terminals == ["action.denied"]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '"x"', "3", '{"text": "a'])
async def test_text_that_is_no_object_fails_without_a_verdict(bench, check, text):
    """Design, section 3: `check` is its own framework for text that is no JSON object."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", text)

    assert (call.outcome, call.result.code) == (Outcome.FAILED, "invalid_arguments")
    assert bench.ran == []
    assert bench.kinds == ["step.proposed", "action.failed"]


@pytest.mark.parametrize("args", [{}, {"text": "a", "typo": 1}])
async def test_arguments_that_the_signature_rejects_never_get_a_verdict(bench, check, args):
    """Design, section 3: missing and unknown arguments fail before the policy is asked."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", args)

    assert (call.outcome, call.result.code) == (Outcome.FAILED, "invalid_arguments")
    assert bench.ran == []
    assert bench.kinds == ["step.proposed", "action.failed"]


async def test_a_mapping_that_breaks_while_it_is_read_is_denied(bench, check):
    """Fault kind 1: an argument object that raises is no permission."""

    class Broken(dict):
        def items(self):
            raise RuntimeError("broken")

    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", Broken(text="x"))

    assert call.result.code == "refused_arguments"
    assert bench.terminals == ["action.denied"]


async def no_context():
    """Answer nothing."""


async def async_raising_context():
    """Raise, later."""
    raise LookupError("nobody")


@pytest.mark.parametrize(
    "source",
    [
        raises,
        async_raising_context,
        no_context,
        lambda: None,
        lambda: ANA,
        lambda: CallContext("ana"),
        lambda: CallContext(ANA, environment=3),
        lambda: CallContext(ANA, workspace=None),
        lambda: CallContext(ANA, extra={"x": object()}),
        lambda: CallContext(ANA, session={"x": float("nan")}),
    ],
    ids=[
        "raises",
        "raises-later",
        "coroutine-of-none",
        "none",
        "principal-alone",
        "principal-is-text",
        "environment-is-number",
        "no-workspace",
        "extra-is-no-json",
        "session-is-no-json",
    ],
)
async def test_a_context_that_fails_denies(bench, govern, source):
    """Clause 26: None, an exception or anything but a CallContext denies; nothing falls back."""
    guard = bench.guard({"decision": "allow"}, principal=Principal("user", "root"))

    call = await govern(guard, ProposedCall("f", {}), bench.ran.append, context=source)

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "context_failed")
    assert bench.ran == []
    assert bench.kinds == ["step.proposed", "action.denied"]
    assert bench.body("step.proposed")["principal"] is None


@pytest.mark.parametrize(
    "shadow",
    [raises, lambda **_: object(), lambda **_: float("nan"), lambda **_: {1: 2}],
    ids=["raises", "object", "nan", "number-as-key"],
)
async def test_a_shadow_that_fails_denies_and_says_so(bench, check, shadow):
    """A preview that raises or is no JSON is a denial by value."""
    guard = bench.guard({"decision": "dry_run"}, shadows={"note": shadow})

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "shadow_failed")
    assert "the shadow failed" in call.text
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


async def test_an_interrupt_passes_with_its_terminal_event(bench, check):
    """What is no Exception goes through the guard, and is on record."""

    @tool()
    def interrupt():
        raise SystemExit(3)

    guard = bench.guard({"decision": "allow"}, tools=[interrupt])

    with pytest.raises(SystemExit):
        await check(guard, "interrupt", {})

    assert bench.terminals == ["action.failed"]
    assert bench.last.body["code"] == "interrupted"


async def test_an_interrupt_that_cannot_be_named_passes_as_it_is(bench, check):
    """What goes wrong while an interrupt is put down does not take its place."""
    unnamed = type("Unnamed", (type,), {"__name__": property(raises)})

    class Interrupt(BaseException, metaclass=unnamed):
        pass

    thrown = Interrupt()

    @tool()
    def interrupt():
        raise thrown

    guard = bench.guard({"decision": "allow"}, tools=[interrupt])

    with pytest.raises(BaseException) as caught:
        await check(guard, "interrupt", {})

    assert caught.value is thrown


async def test_a_base_exception_of_a_shadow_passes_with_its_terminal_event(bench, check):
    """An interrupt before the body is recorded once, and nothing runs."""

    def shadow(**_):
        raise SystemExit(3)

    guard = bench.guard({"decision": "dry_run"}, shadows={"note": shadow})

    with pytest.raises(SystemExit):
        await check(guard, "note", {"text": "x"})

    assert bench.ran == []
    assert bench.terminals == ["action.failed"]


async def test_a_coroutine_that_is_closed_half_way_is_on_record(bench):
    """A call that is dropped while its body waits ends as cancelled."""

    @tool()
    async def wait():
        await asyncio.Event().wait()

    class InPlace:
        never_blocks = True

        def __call__(self, event):
            bench.sink(event)

    guard = bench.guard({"decision": "allow"}, tools=[wait], sinks=[InPlace()])
    running = guard.check("wait", {})
    running.send(None)

    running.close()

    assert bench.kinds == ["step.proposed", "policy.evaluated", "action.cancelled"]


async def test_a_coroutine_that_is_closed_while_the_ledger_is_written_is_on_record(bench):
    """Law 7: closing a call in a step that must end is no failure of that step."""

    class Waits(MemoryLedger):
        async def add(self, entry):
            await asyncio.Event().wait()

    class InPlace:
        never_blocks = True

        def __call__(self, event):
            bench.sink(event)

    guard = bench.guard(
        {"decision": "approve_required"},
        on_approval=auto_approve(),
        ledger=Waits(),
        sinks=[InPlace()],
    )
    running = guard.check("note", {"text": "x"})
    running.send(None)
    (step,) = asyncio.all_tasks() - {asyncio.current_task()}

    running.close()
    step.cancel()

    assert bench.kinds == ["step.proposed", "policy.evaluated", "action.cancelled"]
    assert bench.ran == []


async def test_an_answer_of_evaluate_that_is_no_decision_denies(bench, check, monkeypatch):
    """Fault kind 1: only a Decision of ours decides."""
    import dataclasses

    guard = bench.guard({"decision": "allow"})
    for answer in (True, None, "allow", {"verdict": "allow"}, Decision("permit")):
        guard._settings = dataclasses.replace(
            guard._settings, evaluate=lambda *_args, answer=answer: answer
        )

        call = await check(guard, "note", {"text": "x"})

        assert (call.outcome, call.decision.verdict) == (Outcome.DENIED, Verdict.DENY)
    assert bench.ran == []
    assert bench.terminals == ["action.denied"] * 5


async def test_an_evaluate_that_raises_denies(bench, check):
    """Law 4: a decision that fails is a denial, with its cause in the record."""
    import dataclasses

    guard = bench.guard({"decision": "allow"})
    guard._settings = dataclasses.replace(guard._settings, evaluate=raises)

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.decision.matched_rules) == (Outcome.DENIED, ("<policy_failed>",))
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]
    assert "broken" in bench.body("policy.evaluated")["reason"]


def test_an_interrupt_while_the_ending_is_made_costs_no_ending(bench):
    """Law 7: Ctrl-C after the body leaves the record closed, once, with what the body came to."""
    interrupted = []

    def redact(body):
        if "duration_ms" in body and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return body

    guard = bench.guard({"decision": "allow"}, redact=redact)
    with pytest.raises(KeyboardInterrupt):
        guard.check_sync("note", {"text": "x"})

    assert interrupted
    assert bench.terminals == ["action.completed"]
