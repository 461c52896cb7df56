"""The door of the integrations: transparent to the framework, strict about what runs."""

import asyncio
import traceback
from decimal import Decimal

import pytest

from adjudge._arguments.proposal import Admitted, InvalidArguments, ProposedCall
from adjudge._enforcement.cancel import CancelToken
from adjudge._types import CallContext, Outcome, Principal, ToolMetadata
from adjudge._values import FrozenDict

ALLOW = {"decision": "allow"}


async def test_the_result_is_the_frameworks_own_object(bench, govern):
    """Law 1: what the continuation returns is handed back untouched, whatever it is."""
    result = object()
    guard = bench.guard(ALLOW)

    call = await govern(guard, ProposedCall("f", {}), lambda _: result)

    assert call.result.value is result
    assert call.text is None


async def test_unchanged_text_is_handed_on_byte_for_byte(bench, govern):
    """Law 1: an allowed call gets the model's own string."""
    text = '{ "b" : 1.50, "a":"\\u00e9" }'
    guard = bench.guard(ALLOW)

    call = await govern(guard, ProposedCall("f", text), lambda effective: effective)

    assert call.result.value.text == text
    assert call.result.value.changed is False
    assert call.result.value.args == {"b": 1.5, "a": "é"}


async def test_a_transform_hands_on_the_rewritten_text(bench, govern):
    """What was judged is what the framework is given, as text and as values."""
    guard = bench.guard({"decision": "transform", "transform": {"path": "args.a", "set": "é"}})

    call = await govern(guard, ProposedCall("f", '{"a": 1, "b": [2]}'), lambda effective: effective)

    assert call.result.value.text == '{"a": "é", "b": [2]}'
    assert call.result.value.changed is True
    assert call.result.value.args == {"a": "é", "b": [2]}


async def test_the_arguments_handed_on_are_fresh(bench, govern):
    """Clause 29: a body that changes its arguments changes nobody else's."""
    guard = bench.guard(ALLOW)

    call = await govern(
        guard, ProposedCall("f", {"a": [1]}), lambda effective: effective.args["a"].append(2)
    )

    assert call.request.args == {"a": [1]}


class Odd(Exception):
    """An exception with a history."""


def raise_with_history(_):
    """Raise an exception that has a cause and a context."""
    try:
        raise KeyError("inner")
    except KeyError as inner:
        raise Odd("outer") from inner


async def test_the_bodys_result_is_handed_on_untouched(bench, govern):
    """Law 1: what the continuation returns comes back, the same object, whatever it is."""
    guard = bench.guard(ALLOW)

    for result in ({"rows": [1, (2,)]}, [object()], None, ValueError("returned")):
        call = await govern(guard, ProposedCall("f", {}), lambda _, result=result: result)

        assert call.result.value is result


async def test_the_bodys_exception_is_raised_unchanged(bench, govern):
    """Law 1: the same object, with the cause, context and notes that it had."""
    guard = bench.guard(ALLOW)

    with pytest.raises(Odd) as raised:
        await govern(guard, ProposedCall("f", {}), raise_with_history)

    assert isinstance(raised.value.__cause__, KeyError)
    assert raised.value.__context__ is raised.value.__cause__
    assert bench.terminals == ["action.failed"]
    assert bench.last.body["error"] == "Odd: outer"


async def test_an_exception_without_a_history_gets_none(bench, govern):
    """Law 1: nothing of ours becomes the context of the body's exception."""
    error = Odd("alone")

    def body(_):
        raise error

    guard = bench.guard(ALLOW)
    with pytest.raises(Odd) as raised:
        await govern(guard, ProposedCall("f", {}), body)

    assert raised.value is error
    assert (error.__cause__, error.__context__, error.__suppress_context__) == (None, None, False)
    assert "body" in "".join(traceback.format_tb(error.__traceback__))


def test_even_stop_iteration_passes_through_the_sync_door(bench):
    """A body's StopIteration is no end of anything of ours."""
    error = StopIteration("mine")

    def body(_):
        raise error

    with pytest.raises(StopIteration) as raised:
        bench.guard(ALLOW).govern_call_sync(ProposedCall("f", {}), body)

    assert raised.value is error
    assert bench.terminals == ["action.failed"]


class Pause(Exception):
    """A framework's control flow."""


class HardPause(BaseException):
    """A framework's control flow that is no Exception."""


@pytest.mark.parametrize("signal", [Pause, HardPause])
async def test_control_flow_is_suspension_and_passes(bench, govern, signal):
    """Fault kind 7: a body that suspends itself is neither failed nor swallowed."""
    error = signal("wait")

    def body(_):
        raise error

    guard = bench.guard(ALLOW)
    with pytest.raises(signal) as raised:
        await govern(guard, ProposedCall("f", {}, control_flow=(Pause, HardPause)), body)

    assert raised.value is error
    assert bench.kinds[-1] == "action.suspended"
    assert bench.terminals == []


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"a": 1'])
async def test_text_that_is_no_object_is_the_frameworks_to_answer(bench, govern, text):
    """Clause 2: the continuation gets the untouched text, and nothing is judged."""
    guard = bench.guard({"decision": "deny"})

    call = await govern(guard, ProposedCall("f", text), lambda effective: ("bad", effective.text))

    assert (call.outcome, call.result.code) == (Outcome.FAILED, "invalid_arguments")
    assert call.result.value == ("bad", text)
    assert bench.kinds == ["step.proposed", "action.failed"]


async def test_the_frameworks_own_error_for_invalid_text_is_raised_again(bench, govern):
    """Law 1: what the framework raises about invalid arguments is what it raises."""

    def body(effective):
        raise Odd(effective.text)

    guard = bench.guard(ALLOW)
    with pytest.raises(Odd):
        await govern(guard, ProposedCall("f", "{"), body)

    assert bench.last.body["code"] == "invalid_arguments"


async def test_invalid_text_is_refused_where_the_framework_would_not(bench, govern):
    """A continuation that does not vouch for rejecting bad text never sees it."""
    guard = bench.guard(ALLOW)

    call = await govern(guard, ProposedCall("f", "{", rejects_invalid_text=False), bench.ran.append)

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "refused_arguments")
    assert bench.ran == []


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1, "a": 2}', '{"a": "\\udc00"}'])
async def test_text_that_only_a_lenient_parser_accepts_is_denied(bench, govern, text):
    """Clause 2: denied under any policy, and the continuation is not called."""
    guard = bench.guard(ALLOW)

    call = await govern(guard, ProposedCall("f", text), bench.ran.append)

    assert call.result.code == "refused_arguments"
    assert bench.ran == []


async def test_a_forged_injected_value_is_denied(bench, govern):
    """Clause 2, fault B021: what only the framework injects may not come from the model."""
    guard = bench.guard(ALLOW)
    proposed = ProposedCall("f", {"x": 1, "user": "admin"}, injected={"user": "eve"})

    call = await govern(guard, proposed, bench.ran.append)

    assert call.result.code == "refused_arguments"
    assert bench.ran == []


async def test_injected_values_are_judged_and_stay_out_of_the_arguments(bench, govern):
    """`injected.*` is for rules alone."""
    guard = bench.guard({"match": {"injected.user": "eve"}, "decision": "allow"})
    proposed = ProposedCall("f", {"x": 1}, injected={"user": "eve"})

    call = await govern(guard, proposed, lambda effective: effective.args)

    assert call.result.value == {"x": 1}


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "force": {"type": "boolean", "default": True}},
    "required": ["n"],
}


async def test_defaults_of_the_schema_are_judged(bench, govern):
    """Fault kind 2: a default that is filled in later is judged now."""
    guard = bench.guard({"match": {"args.force": True}, "decision": "deny"}, ALLOW)

    call = await govern(guard, ProposedCall("f", '{"n": 1}', schema=SCHEMA), bench.ran.append)

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


async def test_given_says_what_the_model_sent(bench, govern):
    """Clause 3: `given.*` is false for what a default filled in."""
    guard = bench.guard(
        {"match": {"given.n": True, "given.force": False}, "decision": "allow"},
    )

    call = await govern(guard, ProposedCall("f", '{"n": 1}', schema=SCHEMA), lambda _: "ran")

    assert call.result.value == "ran"


async def test_what_an_enforced_schema_rejects_never_gets_a_verdict(bench, govern):
    """Design, section 3: the framework answers, and the record says invalid_arguments."""
    guard = bench.guard({"decision": "deny"})
    proposed = ProposedCall("f", '{"n": "x"}', schema=SCHEMA, schema_is_enforced=True)

    call = await govern(guard, proposed, lambda effective: effective.text)

    assert (call.outcome, call.result.value) == (Outcome.FAILED, '{"n": "x"}')
    assert bench.kinds == ["step.proposed", "action.failed"]


async def test_what_nobody_enforces_is_judged_as_it_is(bench, govern):
    """Without a validator behind it, an odd value is judged, and errs."""
    guard = bench.guard({"match": {"args.n.gt": 5}, "decision": "deny"}, ALLOW)

    call = await govern(guard, ProposedCall("f", '{"n": "x"}', schema=SCHEMA), bench.ran.append)

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


async def test_a_transform_that_breaks_the_schema_denies(bench, govern):
    """Clause 19: what fails the tool's schema denies."""
    guard = bench.guard({"decision": "transform", "transform": {"path": "args.n", "set": "many"}})
    proposed = ProposedCall("f", '{"n": 1}', schema=SCHEMA, schema_is_enforced=True)

    call = await govern(guard, proposed, bench.ran.append)

    assert call.outcome is Outcome.DENIED
    assert "do not fit the tool" in call.text
    assert bench.ran == []


async def test_the_frameworks_validation_may_stand_in_for_the_schema(bench, govern):
    """What `validate` gives is judged; what it rejects is the framework's to answer."""

    def validate(args):
        if "n" not in args:
            raise InvalidArguments("n is missing")
        return Admitted(FrozenDict({"n": int(args["n"])}), frozenset({"n"}))

    guard = bench.guard({"match": {"args.n.gt": 5}, "decision": "deny"}, ALLOW)

    denied = await govern(guard, ProposedCall("f", '{"n": "7"}', validate=validate), len)
    invalid = await govern(
        guard, ProposedCall("f", "{}", validate=validate), lambda effective: effective.text
    )

    assert denied.outcome is Outcome.DENIED
    assert (invalid.outcome, invalid.result.value) == (Outcome.FAILED, "{}")


async def test_a_validation_that_misbehaves_denies(bench, govern):
    """Law 4: any other exception of `validate` denies."""

    def validate(_):
        raise RuntimeError("broken")

    guard = bench.guard(ALLOW)

    call = await govern(guard, ProposedCall("f", "{}", validate=validate), bench.ran.append)

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


async def test_a_rewrite_that_text_cannot_carry_denies(bench, govern):
    """Law 5: an exact decimal would become another number in JSON text."""
    from adjudge.policy import compile_policy, transform

    policy = compile_policy(
        {"version": 1, "rules": []},
        python_rules=[lambda *_: transform({"n": Decimal("0.1")})],
    )
    guard = bench.guard(policy=policy)

    call = await govern(guard, ProposedCall("f", '{"n": 1}'), bench.ran.append)

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "invalid_rewrite")
    assert bench.ran == []


async def test_an_isolation_that_nobody_provides_denies(bench, govern):
    """Clause 32: a continuation runs in place, so a tool that wants isolation is denied."""
    guard = bench.guard(ALLOW)
    declared = ToolMetadata(isolation="container")

    denied = await govern(guard, ProposedCall("f", {}, declared=declared), bench.ran.append)
    routed = await govern(
        guard, ProposedCall("f", {}, declared=declared, routes_isolation=True), lambda _: "ran"
    )

    assert (denied.outcome, denied.result.code) == (Outcome.DENIED, "isolation_unrouted")
    assert routed.result.value == "ran"
    assert bench.ran == []


async def test_a_shadow_of_the_guard_previews_a_frameworks_tool(bench, govern):
    """`shadows=` gives previews to tools that a framework owns."""
    guard = bench.guard({"decision": "dry_run"}, shadows={"f": lambda n: {"n": n}})

    call = await govern(guard, ProposedCall("f", {"n": 3}), bench.ran.append)

    assert call.text == '[dry_run] not executed; preview: {"n": 3}'
    assert bench.ran == []


async def test_has_shadow_is_what_could_really_run(bench, govern):
    """A claim to have a shadow counts for nothing without one, and the guard's own counts."""
    guard = bench.guard(
        {"match": {"declared.has_shadow": True}, "decision": "allow"},
        shadows={"has": lambda **_: 1},
    )
    claims = ToolMetadata(has_shadow=True)

    without = await govern(guard, ProposedCall("f", {}, declared=claims), lambda _: "ran")
    with_one = await govern(
        guard, ProposedCall("has", {}, declared=ToolMetadata()), lambda _: "ran"
    )

    assert without.outcome is Outcome.DENIED
    assert with_one.outcome is Outcome.COMPLETED


async def test_who_is_calling_comes_with_each_call(bench, govern):
    """Clause 26: the callable's context holds, and is on record."""
    guard = bench.guard(
        {"match": {"context.principal.id": "eve", "context.extra.tier": 2}, "decision": "allow"},
        principal=Principal("user", "root"),
    )
    eve = CallContext(Principal("user", "eve"), extra={"tier": 2})

    call = await govern(guard, ProposedCall("f", {}), lambda _: "ran", context=lambda: eve)
    denied = await govern(guard, ProposedCall("f", {}), lambda _: "ran")

    assert call.result.value == "ran"
    assert denied.outcome is Outcome.DENIED
    assert [event.body["principal"]["id"] for event in bench.events[::3]] == ["eve", "root"]


async def test_nothing_of_the_guards_own_fills_up_a_context(bench, govern):
    """Clause 26: what the callable leaves out nobody supplied, and it is asked once per call."""
    asked = []

    def who():
        asked.append("asked")
        return CallContext(Principal("user", "eve"))

    guard = bench.guard(
        {"match": {"context.environment": "prod"}, "decision": "allow"}, environment="prod"
    )

    call = await govern(guard, ProposedCall("f", {}), lambda _: "ran", context=who)

    assert call.outcome is Outcome.DENIED
    assert call.request.context.environment is None
    assert asked == ["asked"]


async def test_attempts_and_ids_are_on_record(bench, govern):
    """The provider's id and the number of the attempt stand in the record."""
    guard = bench.guard(ALLOW)

    await govern(guard, ProposedCall("f", {}, call_id="c1", attempt=2, namespace="m"), lambda _: 1)

    body = bench.body("step.proposed")
    assert (body["call_id"], body["attempt"], body["namespace"]) == ("c1", 2, "m")


async def test_a_tripped_kill_switch_denies(bench, govern):
    """A cancelled token is read immediately before the body."""
    token = CancelToken()

    async def trip(*_):
        token.cancel("stop button")

    guard = bench.guard(
        {"decision": "allow", "obligations": [{"id": "trip", "phase": "pre"}]},
        obligations={"trip": trip},
        cancel=token,
    )

    call = await govern(guard, ProposedCall("f", {}), bench.ran.append)

    assert (call.outcome, call.text) == (Outcome.DENIED, "[denied] cancelled: stop button")
    assert bench.ran == []


class OddToken:
    """A token whose answers are odd."""

    def __init__(self, answer):
        self._answer = answer
        self.reason = ""

    @property
    def cancelled(self):
        """Answer, or raise."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    "answer", [None, 0, "", OSError("gone")], ids=["none", "0", "text", "raises"]
)
async def test_a_kill_switch_that_cannot_be_read_denies(bench, govern, answer):
    """Law 4: only False lets the body run."""
    guard = bench.guard(ALLOW, cancel=OddToken(answer))

    call = await govern(guard, ProposedCall("f", {}), bench.ran.append)

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "cancelled")
    assert bench.ran == []


async def test_many_tasks_share_one_guard(bench):
    """Numbers are unique and events of one call stay in order, however calls interleave."""
    guard = bench.guard(ALLOW)

    async def run(effective):
        await asyncio.sleep(0)
        return effective.args["n"]

    calls = await asyncio.gather(
        *(guard.govern_call(ProposedCall("f", {"n": n}), run) for n in range(50))
    )
    by_call = {}
    for event in bench.events:
        by_call.setdefault(event.seq, []).append(event.kind)

    assert [call.result.value for call in calls] == list(range(50))
    assert len({call.request.context.step_seq for call in calls}) == 50
    assert set(map(tuple, by_call.values())) == {
        ("step.proposed", "policy.evaluated", "action.completed")
    }


async def test_what_failed_is_told_without_its_secrets(bench, govern):
    """Law 4: a failure's cause is in the denial that the model reads; a secret in it is not."""

    def context():
        raise RuntimeError("no session, password=hunter2")

    guard = bench.guard(ALLOW)

    call = await govern(guard, ProposedCall("f", "{}"), bench.ran.append, context=context)

    assert "RuntimeError: no session" in call.text
    assert "hunter2" not in call.text
