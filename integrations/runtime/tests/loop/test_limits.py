"""Budgets, the kill switch, and what makes results shorter."""

import asyncio
import sys

import pytest

from adjudge import CancelToken, MemoryRunStore, ToolGuard, ToolSet, auto_approve, tool
from adjudge_runtime import (
    Budget,
    FinalAnswer,
    ToolCall,
    ToolCalls,
    Usage,
    agent_tool,
    compose_compressors,
    dedup_compressor,
    external_filter_compressor,
    identity_compressor,
    route_compressor,
    truncate_compressor,
)
from adjudge_runtime.models import ModelReplyError

from .scripted import DONE, Script, call, policy

STEP = ToolCall("echo", {}, usage=Usage(6, 7, cost_micros=100))


class TestCaps:
    """Caps are looked at before each model call."""

    @pytest.mark.parametrize(
        ("budget", "error", "steps"),
        [
            (Budget(steps=0), "step budget exhausted (0)", 0),
            (Budget(steps=2), "step budget exhausted (2)", 2),
            (Budget(tokens=20), "token budget exhausted (20)", 2),
            (Budget(tokens=13), "token budget exhausted (13)", 1),
            (Budget(input_tokens=7), "input token budget exhausted (7)", 2),
            (Budget(output_tokens=7), "output token budget exhausted (7)", 1),
            (Budget(cost_micros=101), "cost budget exhausted (101)", 2),
            (
                Budget(cost_micros=10, cost=lambda usage: usage.input_tokens),
                "cost budget exhausted (10)",
                2,
            ),
        ],
    )
    async def test_stop_the_next_model_call(self, world, budget, error, steps):
        """A cap that is reached stops the next model call, and nothing that was chosen before."""
        agent = Script(STEP)

        result = await world.run(agent, budget=budget)

        assert ("budget_exhausted", error, steps) == (
            result.code,
            result.error,
            result.steps_taken,
        )
        assert (steps, steps) == (len(agent.seen), len(world.ran))

    async def test_time_is_a_cap(self, world):
        """After the duration no model is asked."""

        @tool()
        async def slow():
            await asyncio.sleep(0.03)

        result = await world.run(
            Script(call("slow")), tools=ToolSet([slow]), budget=Budget(duration_seconds=0.02)
        )

        assert ("duration budget exhausted (0.02s)", 1) == (result.error, result.steps_taken)

    async def test_an_answer_over_the_cap_is_an_answer(self, world):
        """What was paid for is given."""
        result = await world.run(
            Script(FinalAnswer("done", Usage(90, 90))), budget=Budget(tokens=1)
        )

        assert ("done", Usage(90, 90)) == (result.final_answer, result.usage)

    async def test_who_says_nothing_is_not_capped(self, world):
        """An agent without usage has none."""
        result = await world.run(Script(call("echo"), DONE), budget=Budget(tokens=1))

        assert ("done", None) == (result.final_answer, result.usage)

    async def test_a_model_call_that_hangs_is_cut_off(self, world):
        """A model call takes no longer than the step time-out."""
        result = await world.run(
            Script(asyncio.Event().wait), budget=Budget(step_timeout_seconds=0.01)
        )

        assert ("step_timeout", "agent.step timed out after 0.01s") == (
            result.code,
            result.error,
        )

    @pytest.mark.parametrize("late", [DONE, call("echo"), OSError("closed")])
    async def test_what_comes_after_it_was_cut_off_is_not_used(self, world, late):
        """An agent that takes no notice of the time-out has still taken too long."""

        async def deaf():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if isinstance(late, Exception):
                    raise late from None
                return late

        result = await world.run(Script(deaf), budget=Budget(step_timeout_seconds=0.01))

        assert ("step_timeout", None, []) == (result.code, result.final_answer, world.ran)

    async def test_a_model_call_that_fails_counts_with_what_it_used(self, world):
        """Tokens of a reply of which nothing was used are spent, as the error says."""
        failure = ModelReplyError("cut off", usage=Usage(6, 7))
        price = Budget(cost=lambda usage: 10)

        result = await world.run(Script(STEP, failure), budget=price)

        assert ("agent_failed", Usage(12, 14, cost_micros=20)) == (result.code, result.usage)
        assert [6, 12] == [body["total_input"] for body in world.bodies("step.usage")]

    async def test_an_error_that_cannot_say_what_it_used_is_still_the_one_that_is_told(self, world):
        """How a run ends is a value, whatever an agent's own exception does when it is asked."""

        class OddError(Exception):
            @property
            def usage(self):
                raise LookupError("unknown")

        result = await world.run(Script(OddError("cut off")))

        assert ("agent_failed", None) == (result.code, result.usage)
        assert "OddError: cut off" in result.error

    async def test_model_calls_that_fail_use_up_the_budget_of_a_run(self, world):
        """A run that is tried again and again spends no more than its budget."""
        kept = {"store": MemoryRunStore(), "run_id": "r", "budget": Budget(tokens=20)}
        failing = Script(ModelReplyError("cut off", usage=Usage(6, 7)))

        codes = [(await world.run(failing, **kept)).code for _ in range(3)]
        more = await world.run(Script(DONE), **{**kept, "budget": Budget(tokens=30)})
        again = await world.run(Script(DONE), **kept)

        assert ["agent_failed", "agent_failed", "budget_exhausted"] == codes
        assert (2, "done") == (len(failing.seen), more.final_answer)
        assert Usage(12, 14) == more.usage == again.usage

    @pytest.mark.parametrize(
        "cost",
        [
            lambda usage: 1 / 0,
            lambda usage: "much",
            lambda usage: None,
            lambda usage: -1,
            lambda usage: float("nan"),
        ],
        ids=["raises", "text", "none", "negative", "nan"],
    )
    async def test_a_price_that_fails_ends_the_run(self, world, cost):
        """What something costs must be known before it is used (law 4)."""
        result = await world.run(Script(STEP), budget=Budget(cost_micros=10, cost=cost))

        assert "budget_failed" == result.code
        assert [] == world.ran

    @pytest.mark.parametrize(
        ("own", "micros"),
        [(None, 6 + 6), (lambda usage: 50, 6 + 50)],
        ids=["the-run's", "its-own"],
    )
    async def test_an_agent_inside_of_a_tool_has_its_price(self, world, own, micros):
        """What a nested agent uses is priced by its own budget, or else by that of the run."""
        nested = agent_tool(
            Script(FinalAnswer("helped", Usage(6, 7))),
            name="helper",
            tools=world.tools,
            budget=Budget(cost=own),
        )
        ask = ToolCall("helper", {"task": "help"}, usage=Usage(6, 7))
        budget = Budget(cost_micros=micros, cost=lambda usage: usage.input_tokens)

        result = await world.run(Script(ask, DONE), tools=ToolSet([nested]), budget=budget)

        assert (f"cost budget exhausted ({micros})", micros) == (
            result.error,
            result.usage.cost_micros,
        )

    async def test_a_price_that_fails_inside_of_a_tool_ends_the_run(self, world):
        """What a nested agent spent unknown to anybody is not spent twice."""
        nested = agent_tool(Script(STEP), name="helper", tools=world.tools)
        agent = Script(ToolCall("helper", {"task": "help"}), DONE)

        result = await world.run(
            agent, tools=ToolSet([nested]), budget=Budget(cost=lambda usage: None)
        )

        assert ("budget_failed", []) == (result.code, world.ran)
        assert 1 == len(agent.seen)


class TestRepetition:
    """The same call over and over."""

    @pytest.mark.parametrize(
        "again",
        [
            ToolCall("order", {"count": 1, "note": {"a": 1, "b": 2}}),
            ToolCall("order", '{"note": {"b": 2, "a": 1}, "count": 1}'),
            ToolCall("order", {"count": 1.0, "note": {"a": 1, "b": 2}}),
            ToolCall("order", '{"count": 10e-1, "note": {"a": 1.0, "b": 2}}'),
        ],
    )
    async def test_is_cut_off(self, world, again):
        """The same call, however it is written, is proposed so often and no more."""
        first = ToolCall("order", {"count": 1, "note": {"a": 1, "b": 2}})
        agent = Script(first, again, again)

        result = await world.run(agent, budget=Budget(max_repeated_calls=2))

        expected = "repeated call limit exhausted (2): order with identical args"
        assert ("repeated_call", expected, 2) == (result.code, result.error, result.steps_taken)

    async def test_a_number_is_the_same_however_deep(self, world):
        """Within lists too, and with a sign that means nothing."""
        first, again = [{"a": [-0.0, 1e2]}], [{"a": [0, 100]}]
        agent = Script(call("nothing", n=first), call("nothing", n=again))

        result = await world.run(agent, budget=Budget(max_repeated_calls=1))

        assert ("repeated_call", 1) == (result.code, result.steps_taken)

    async def test_counts_calls_side_by_side(self, world):
        """Calls of one step count one after the other, and none of them runs then."""
        agent = Script(ToolCalls((call("echo"), call("echo"))))

        result = await world.run(agent, budget=Budget(max_repeated_calls=1))

        assert "repeated_call" == result.code
        assert [] == world.ran

    async def test_counts_over_the_whole_run(self, world):
        """Two calls that take turns are a loop as well."""
        agent = Script(call("echo"), call("echo", text="b"), call("echo"), DONE)

        result = await world.run(agent, budget=Budget(max_repeated_calls=1))

        assert ("repeated_call", 2) == (result.code, result.steps_taken)

    @pytest.mark.parametrize("other", [True, "1", 1.5, [1], None])
    async def test_kinds_are_strict(self, world, other):
        """True is not 1, nor is a text that says it."""
        agent = Script(call("nothing", n=1), call("nothing", n=other), DONE)

        result = await world.run(agent, budget=Budget(max_repeated_calls=1))

        assert "done" == result.final_answer


class TestKillSwitch:
    """A token that anybody may trip."""

    async def test_nothing_is_asked_after_it(self, world):
        """A run that is cancelled before it begins asks nobody."""
        token, agent = CancelToken(), Script(DONE)
        token.cancel("enough")

        result = await world.run(agent, cancel=token)

        assert ("cancelled", "cancelled: enough", []) == (result.code, result.error, agent.seen)
        assert [{"reason": "enough", "at": "step_boundary"}] == world.bodies("run.cancelled")

    async def test_it_is_read_before_each_body(self, world):
        """What the model chose before it was tripped does not begin."""
        token = CancelToken()

        async def trip():
            token.cancel("enough")
            return call("echo")

        result = await world.run(Script(trip), cancel=token)

        assert ("cancelled", []) == (result.code, world.ran)
        assert "pre_execute" == world.bodies("run.cancelled")[0]["at"]
        assert "cancelled" == world.bodies("action.denied")[0]["code"]

    async def test_it_is_read_after_an_approval(self, world):
        """A grant does not start what was cancelled meanwhile."""
        token = CancelToken()
        grant = auto_approve()

        async def late(request):
            token.cancel("enough")
            return await grant(request)

        await world.run(Script(call("pay", amount=1)), cancel=token, on_approval=late)

        assert [] == world.ran

    async def test_beside_a_guard_it_is_read_before_each_call(self, world):
        """With a guard of the caller's the run's own token stops its calls."""
        token = CancelToken()

        async def trip():
            token.cancel("enough")
            return call("echo")

        result = await world.run(Script(trip), cancel=token, guard=ToolGuard(policy=policy()))

        assert ("cancelled", []) == (result.code, world.ran)

    async def test_one_that_fails_counts_as_tripped(self, world):
        """A kill switch that cannot be read stops the run (law 4)."""

        class Broken:
            reason = ""

            @property
            def cancelled(self):
                raise OSError("gone")

        assert "cancelled" == (await world.run(Script(DONE), cancel=Broken())).code

    async def test_a_cancelled_run_can_go_on(self, world):
        """A call that was stopped before its body is still to run."""
        store, token = MemoryRunStore(), CancelToken()
        kept = {"store": store, "run_id": "r"}

        async def trip():
            token.cancel("enough")
            return call("echo")

        await world.run(Script(trip), cancel=token, **kept)
        result = await world.run(Script(call("erase"), DONE), **kept)

        assert ("done", [("echo", "hi")]) == (result.final_answer, world.ran)


class TestCompressors:
    """What makes results shorter for the model."""

    @pytest.mark.parametrize(
        ("compressor", "text", "told"),
        [
            (identity_compressor(), "abc", "abc"),
            (truncate_compressor(max_chars=3), "abc", "abc"),
            (truncate_compressor(max_chars=3), "abcd", "abcd"),
            (
                truncate_compressor(max_chars=40, keep_head_ratio=0.5),
                "a" * 50 + "b" * 50,
                "aaaaa\n[... 90 characters cut ...]\nbbbbb",
            ),
            (dedup_compressor(), "abc def\nabc def\nabc def\nb\nc\nc", "abc def [x3]\nb\nc\nc"),
            (dedup_compressor(min_run=3), "abcdefgh\nabcdefgh\nb", "abcdefgh\nabcdefgh\nb"),
            (
                compose_compressors(dedup_compressor(), lambda tool, text: text.upper()),
                "abcdefgh\nabcdefgh",
                "ABCDEFGH [X2]",
            ),
            (route_compressor({"echo": lambda tool, text: "routed"}), "abc", "routed"),
            (route_compressor({"order": lambda tool, text: "routed"}), "abc", "abc"),
            (route_compressor({None: lambda tool, text: "rest"}), "abc", "rest"),
            (
                external_filter_compressor([sys.executable, "-c", "print(input()[::-1], end='')"]),
                "abc",
                "cba",
            ),
        ],
        ids=[
            "identity",
            "short",
            "no-shorter",
            "truncate",
            "dedup",
            "dedup-few",
            "compose",
            "route",
            "no-route",
            "other-route",
            "filter",
        ],
    )
    async def test_each_does_what_it_says(self, world, compressor, text, told):
        """The conversation has what the compressor made of the result."""
        agent = Script(call("echo", text=text), DONE)

        await world.run(agent, compressor=compressor)

        assert [told] == agent.told

    @pytest.mark.parametrize(
        "compressor",
        [
            lambda tool, text: 1 / 0,
            lambda tool, text: None,
            external_filter_compressor([sys.executable, "-c", "raise SystemExit(3)"]),
            external_filter_compressor([sys.executable, "-c", ""]),
            external_filter_compressor(["there-is-no-such-program"]),
            external_filter_compressor(
                [sys.executable, "-c", "import time; time.sleep(60)"], timeout_seconds=0.05
            ),
        ],
        ids=["raises", "no-text", "exit-code", "silent", "no-program", "slow"],
    )
    async def test_one_that_fails_leaves_the_text(self, world, compressor):
        """A compressor that fails loses no result, and that is recorded."""
        agent = Script(call("echo", text="abc"), DONE)

        result = await world.run(agent, compressor=compressor)

        assert ("done", ["abc"]) == (result.final_answer, agent.told)
        assert 1 == world.events.count("step.compress_failed")

    async def test_they_see_results_alone(self, world):
        """A denial, a preview and a failure are told as they are."""
        agent = Script(call("erase"), call("write", path="a"), call("fail"), DONE)

        await world.run(agent, compressor=lambda tool, text: "short")

        assert "short" not in agent.told

    async def test_what_is_kept_is_the_short_text(self, world):
        """A resumed run tells the model what it was told before."""
        store = MemoryRunStore()

        await world.run(
            Script(call("echo", text="abc"), DONE),
            compressor=lambda tool, text: text[:1],
            store=store,
            run_id="r",
        )

        results = [each for each in await store.load("r") if each.kind == "action.result"]
        assert ["a"] == [each.body["message"] for each in results]

    @pytest.mark.parametrize(
        "make",
        [
            lambda: truncate_compressor(max_chars=0),
            lambda: truncate_compressor(keep_head_ratio=2),
            lambda: dedup_compressor(min_run=1),
            lambda: external_filter_compressor([]),
            lambda: external_filter_compressor("head -5"),
            lambda: external_filter_compressor(["head"], timeout_seconds=0),
        ],
        ids=["chars", "ratio", "run", "no-words", "text", "no-time"],
    )
    def test_what_cannot_be_one_is_an_error(self, make):
        """A compressor that means nothing is refused where it is made."""
        with pytest.raises(ValueError):
            make()
