"""Single calls in the SDK's own loop: what is judged, what runs, and who is told what."""

import asyncio
import json
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    RunContextWrapper,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    UserError,
    function_tool,
    tool_namespace,
)
from agents.tool_context import ToolContext
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from adjudge import CallContext, Principal
from adjudge_openai_agents import govern

DONE = ["step.proposed", "policy.evaluated", "action.completed"]


def one_call(stage, guard, tool, text, **options):
    """Run an agent that calls a governed tool once; give what the model was told."""
    stage.script(a=[(tool.name, text)])
    stage.run(govern(stage.agent("a", tools=[tool]), guard), **options)
    return stage.said


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


class Parcel(BaseModel):
    weight: int
    label: Annotated[str, AfterValidator(str.strip), AfterValidator(str.lower)] = "plain"


def spied(ran):
    """Make a tool whose parameters a JSON Schema does not say all of."""

    @function_tool
    def send(parcel: Parcel, price: Decimal = Decimal("1.10"), speed: Speed = Speed.SLOW) -> str:
        """Send a parcel."""
        ran.append((parcel, price, speed))
        return "sent"

    return send


class TestArguments:
    def test_what_the_function_gets_is_judged(self, stage, guard_of, record):
        """Law 5: validators, defaults and models are applied before a rule reads an argument."""
        ran = []
        rule = {
            "id": "no-prod",
            "match": {"tool": "send", "args.parcel.label": "prod", "args.speed": "slow"},
            "decision": "deny",
            "reason": "not there",
        }

        text = '{"parcel": {"weight": "3", "label": " PROD"}}'

        told = one_call(stage, guard_of(rule), spied(ran), text)

        assert ["[denied] not there"] == told
        assert [] == ran
        assert {
            "parcel": {"weight": 3, "label": "prod"},
            "price": "1.10",
            "speed": "slow",
        } == json.loads(json.dumps(record.bodies("step.proposed")[0]["args"], default=str))

    def test_an_unchanged_call_is_validated_from_the_models_own_text(self, stage, guard_of):
        """Law 1: the function gets the objects that it would get ungoverned."""
        ran = []

        one_call(stage, guard_of(), spied(ran), '{"parcel": {"weight": 3, "label": " B "}}')

        assert [(Parcel(weight=3, label="b"), Decimal("1.10"), Speed.SLOW)] == ran

    def test_a_transform_replaces_its_own_argument_alone(self, stage, guard_of):
        """Law 5: what was not rewritten is validated from what the model sent, once."""
        ran = []

        class Letter(BaseModel):
            text: Annotated[str, AfterValidator(lambda text: text + "!")]

        @function_tool
        def post(letter: Letter, amount: Decimal, key: SecretStr) -> str:
            """Post a letter."""
            ran.append((letter.text, amount, key.get_secret_value()))
            return "posted"

        rule = {
            "id": "less",
            "match": {"tool": "post"},
            "decision": "transform",
            "transform": {"path": "args.amount", "set": 2},
        }

        text = '{"letter": {"text": "hi"}, "amount": "5.50", "key": "hunter2"}'

        one_call(stage, guard_of(rule), post, text)

        assert [("hi!", Decimal(2), "hunter2")] == ran

    def test_a_transform_that_the_function_rejects_denies(self, stage, guard_of):
        """Clause 19: what fails the tool's own parameters denies."""
        ran = []
        rule = {
            "id": "odd",
            "match": {"tool": "send"},
            "decision": "transform",
            "transform": {"path": "args.parcel", "set": "none"},
        }

        told = one_call(stage, guard_of(rule), spied(ran), '{"parcel": {"weight": 3}}')

        assert told[0].startswith("[denied] ")
        assert [] == ran

    def test_a_secret_is_judged_as_a_secret(self, stage, guard_of, record):
        """A secret equals nothing, and stays out of the record."""

        @function_tool
        def login(key: SecretStr) -> str:
            """Log in."""
            return "in"

        rule = {"id": "k", "match": {"args.key": "hunter2"}, "decision": "allow"}

        told = one_call(stage, guard_of(rule, rest="deny"), login, '{"key": "hunter2"}')

        assert told[0].startswith("[denied] ")
        assert "hunter2" not in str([event.body for event in record.events])

    def test_an_alias_is_the_models_name_for_an_argument(self, stage, guard_of):
        """Rules name the function's parameter, whatever the model calls it."""
        ran = []

        @function_tool
        def pay(amount: Annotated[int, Field(alias="amount-cents")], to: str) -> str:
            """Pay."""
            ran.append((amount, to))
            return "paid"

        rule = {
            "id": "r",
            "match": {"args.amount.gt": 5},
            "decision": "transform",
            "transform": {"path": "args.to", "set": "bank"},
        }

        one_call(stage, guard_of(rule), pay, '{"amount-cents": 7, "to": "bo"}')

        assert [(7, "bank")] == ran

    def test_what_the_model_sent_is_known_by_the_functions_own_names(self, stage, guard_of):
        """Paths: `given` tells what was sent, also where the model writes another name for it."""
        ran = []

        @function_tool
        def lift(weight: Annotated[int, Field(alias="kg")] = 1, height: int = 1) -> str:
            """Lift a weight."""
            ran.append((weight, height))
            return "lifted"

        rule = {"id": "no-choice", "match": {"given.weight": True}, "decision": "deny"}

        chosen = one_call(stage, guard_of(rule), lift, '{"kg": 5}')
        left = one_call(stage, guard_of(rule), lift, '{"height": 2}')

        assert [["[denied] not permitted by policy"], ["lifted"]] == [chosen, left]
        assert [(1, 2)] == ran

    def test_arguments_beyond_the_parameters_cannot_permit(self, stage, guard_of):
        """Law 5: what the function never gets is not judged."""

        @function_tool(strict_mode=False)
        def wipe(disk: str) -> str:
            """Wipe a disk."""
            return "wiped"

        rule = {"id": "sure", "match": {"args.approved": True}, "decision": "allow"}

        told = one_call(stage, guard_of(rule, rest="deny"), wipe, '{"disk": "a", "approved": true}')

        assert told[0].startswith("[denied] ")

    def test_a_validator_that_fails_otherwise_denies(self, stage, guard_of):
        """Law 4: an error of a validator that is no rejection ends in a denial."""
        ran = []

        def look_up(value: str) -> str:
            raise LookupError(value)

        class Payee(BaseModel):
            name: Annotated[str, BeforeValidator(look_up)]

        @function_tool
        def pay(to: Payee) -> str:
            """Pay."""
            ran.append(to)
            return "paid"

        told = one_call(stage, guard_of(), pay, '{"to": {"name": "bo"}}')

        assert told[0].startswith("[denied] ")
        assert [] == ran

    def test_rejected_arguments_are_on_record_without_their_values(self, stage, guard_of, record):
        """The framework answers, and the error on record does not repeat what was sent."""
        one_call(stage, guard_of(), spied([]), '{"parcel": {"weight": "hunter2"}}')

        assert ["step.proposed", "action.failed"] == record.kinds
        failed = record.bodies("action.failed")[0]
        assert "invalid_arguments" == failed["code"]
        assert "args.parcel.weight" in failed["error"]
        assert "hunter2" not in failed["error"]

    def test_a_call_is_on_record_under_the_models_own_id(self, stage, guard_of, record):
        """The record names each call as the wire does."""
        one_call(stage, guard_of(), spied([]), '{"parcel": {"weight": 3}}')

        assert stage.ids == [record.bodies("step.proposed")[0]["call_id"]]

    def test_no_text_is_no_arguments(self, stage, guard_of, record):
        """The SDK reads an empty text as an empty object, and so is it judged."""

        @function_tool
        def ping(times: int = 1) -> str:
            """Ping."""
            return f"pong {times}"

        assert ["pong 1"] == one_call(stage, guard_of(), ping, "")
        assert {"times": 1} == record.bodies("step.proposed")[0]["args"]

    def test_open_ended_parameters_are_judged_by_their_names(self, stage, guard_of):
        """`*args` and `**kwargs` are a list and an object of those names."""

        @function_tool(strict_mode=False)
        def tag(name: str, *words: str, **marks: int) -> str:
            """Tag a thing."""
            return f"{name} {words} {marks}"

        rule = {"id": "r", "match": {"args.marks.level.gt": 3}, "decision": "deny", "reason": "no"}
        text = '{"name": "n", "words": ["a"], "marks": {"level": %d}}'

        assert ["n ('a',) {'level': 3}"] == one_call(stage, guard_of(rule), tag, text % 3)

    def test_a_method_and_a_callable_object_are_read_like_functions(self, stage, guard_of):
        """Whatever the SDK decorates is judged on its own parameters."""

        class Desk:
            def open(self, drawer: int = 2) -> str:
                """Open a drawer."""
                return f"opened {drawer}"

            def __call__(self, drawer: int = 3) -> str:
                """Open a drawer."""
                return f"opened {drawer}"

        rule = {"id": "r", "match": {"args.drawer": 3}, "decision": "deny", "reason": "locked"}
        desk = Desk()

        assert ["opened 2"] == one_call(stage, guard_of(rule), function_tool(desk.open), "{}")
        called = function_tool(desk, name_override="desk")
        assert ["[denied] locked"] == one_call(stage, guard_of(rule), called, "{}")


def handwritten(invoke, **fields):
    """Make a tool with an invoker of one's own."""
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "depth": {"type": "integer", "default": 9}},
        "required": ["path"],
    }
    return FunctionTool("walk", "Walk.", schema, invoke, strict_json_schema=False, **fields)


class TestHandwrittenTools:
    def test_its_text_is_passed_on_as_it_is(self, stage, guard_of):
        """Law 1: an allowed call's text is the model's own."""
        seen = []

        async def invoke(context: ToolContext[Any], text: str) -> str:
            seen.append((type(context), context.tool_name, text))
            return "walked"

        text = '{ "path":"/a", "more": 1e1 }'

        assert ["walked"] == one_call(stage, guard_of(), handwritten(invoke), text)
        assert [(ToolContext, "walk", text)] == seen

    def test_it_gets_the_context_object_that_it_asks_for(self, stage, guard_of):
        """Law 1: the SDK reads from the invoker's signature which context it wants."""
        seen = []

        async def invoke(context: RunContextWrapper[Any], text: str) -> str:
            seen.append(type(context))
            return "walked"

        one_call(stage, guard_of(), handwritten(invoke), '{"path": "/a"}')

        assert [RunContextWrapper] == seen

    def test_its_schemas_defaults_are_judged(self, stage, guard_of):
        """A default that the schema promises is seen by rules."""

        async def invoke(context: ToolContext[Any], text: str) -> str:
            raise AssertionError

        rule = {"id": "deep", "match": {"args.depth.gt": 5}, "decision": "deny", "reason": "deep"}

        told = one_call(stage, guard_of(rule), handwritten(invoke), '{"path": "/a"}')

        assert ["[denied] deep"] == told

    @pytest.mark.parametrize("text", ["{'path': '/etc'}", "/etc", '["/etc"]'])
    def test_text_that_only_it_could_read_is_denied(self, text, stage, guard_of, record):
        """Law 3: no JSON object reaches a body of which nobody knows how it reads."""

        async def invoke(context: ToolContext[Any], text: str) -> str:
            raise AssertionError

        told = one_call(stage, guard_of(), handwritten(invoke), text)

        assert told[0].startswith("[denied] ")
        assert "refused_arguments" == record.bodies("action.denied")[0]["code"]

    def test_its_scalars_are_judged_as_sent(self, stage, guard_of):
        """What no validator stands before is judged as the body sees it."""

        async def invoke(context: ToolContext[Any], text: str) -> str:
            raise AssertionError

        rule = {"id": "low", "match": {"args.depth.lt": 5}, "decision": "allow"}

        told = one_call(
            stage,
            guard_of(rule, rest="deny"),
            handwritten(invoke),
            '{"path": "/a", "depth": "1"}',
        )

        assert told[0].startswith("[denied] ")

    def test_its_exception_ends_the_run_as_ungoverned(self, stage, guard_of, record):
        """Law 1: what it raises is the SDK's to handle, and is on record."""

        async def invoke(context: ToolContext[Any], text: str) -> str:
            raise KeyError("gone")

        tool = handwritten(invoke)
        ends = []
        for tools in ([tool], govern([tool], guard_of())):
            stage.script(a=[("walk", '{"path": "/a"}')])
            with pytest.raises(UserError) as caught:
                stage.run(stage.agent("a", tools=tools))
            ends.append((str(caught.value), repr(caught.value.__cause__)))

        assert ends[0] == ends[1]
        assert "action.failed" == record.kinds[-1]


class TestTheSdksOwnWays:
    def test_a_result_stays_the_object_that_it_is(self, stage, guard_of):
        """Law 1: the run's items hold what the function returned, and no text of it."""
        rows = [{"order": 1}]

        @function_tool
        def orders() -> list[dict[str, int]]:
            """List the orders."""
            return rows

        stage.script(a=[("orders", "{}")])
        result = stage.run(govern(stage.agent("a", tools=[orders]), guard_of()))

        (item,) = [item for item in result.new_items if item.type == "tool_call_output_item"]
        assert item.output is rows

    def test_a_failure_formatter_answers_as_ungoverned(self, stage, guard_of, record):
        """Law 1: the tool's own failure function sees the body's own exception."""
        seen = []

        def formatted(context: RunContextWrapper[Any], error: Exception) -> str:
            seen.append((type(context), repr(error)))
            return "it went wrong"

        @function_tool(failure_error_function=formatted)
        def fail() -> str:
            """Fail."""
            raise OSError("disk")

        assert ["it went wrong"] == one_call(stage, guard_of(), fail, "{}")
        assert [(ToolContext, "OSError('disk')")] == seen
        assert "OSError: disk" == record.bodies("action.failed")[0]["error"]

    def test_without_a_formatter_the_run_ends_as_ungoverned(self, stage, guard_of, record):
        """Law 1: so it is for a tool that lets its exceptions through."""

        @function_tool(failure_error_function=None)
        def fail() -> str:
            """Fail."""
            raise OSError("disk")

        ends = []
        for tools in ([fail], govern([fail], guard_of())):
            stage.script(a=[("fail", "{}")])
            with pytest.raises(UserError) as caught:
                stage.run(stage.agent("a", tools=tools))
            ends.append((str(caught.value), repr(caught.value.__cause__)))

        assert ends[0] == ends[1]
        assert "action.failed" == record.kinds[-1]

    def test_a_denial_does_not_reach_the_failure_formatter(self, stage, guard_of):
        """A denial is an answer and no failure."""

        @function_tool(failure_error_function=lambda _c, _e: "it went wrong")
        def fail() -> str:
            """Fail."""
            raise OSError("disk")

        assert ["[denied] not permitted by policy"] == one_call(
            stage, guard_of(rest="deny"), fail, "{}"
        )

    def test_a_time_out_cancels_the_body_and_is_on_record(self, stage, guard_of, record):
        """Law 1: the tool's own time limit covers the body; what it stopped is cancelled."""

        @function_tool(timeout=0.05)
        async def wait() -> str:
            """Wait."""
            await asyncio.Event().wait()
            return "never"

        told = one_call(stage, guard_of(), wait, "{}")

        assert "timed out" in told[0]
        assert "action.cancelled" == record.kinds[-1]

    def test_guardrails_come_before_and_after(self, stage, guard_of, record):
        """Law 1: guardrails keep their places; one that rejects leaves nothing to judge."""
        order = []

        def before(data) -> ToolGuardrailFunctionOutput:
            order.append("input")
            if "stop" in data.context.tool_arguments:
                return ToolGuardrailFunctionOutput.reject_content("stopped")
            return ToolGuardrailFunctionOutput.allow()

        def after(data) -> ToolGuardrailFunctionOutput:
            order.append(f"output {data.output}")
            return ToolGuardrailFunctionOutput.allow()

        @function_tool(
            tool_input_guardrails=[ToolInputGuardrail(before)],
            tool_output_guardrails=[ToolOutputGuardrail(after)],
        )
        def echo(text: str) -> str:
            """Echo."""
            order.append("body")
            return text

        guard = guard_of()

        assert ["hi"] == one_call(stage, guard, echo, '{"text": "hi"}')
        assert ["input", "body", "output hi"] == order
        assert ["stopped"] == one_call(stage, guard, echo, '{"text": "stop"}')
        assert DONE == record.kinds

    def test_arguments_that_a_guardrail_rewrites_are_those_judged(self, stage, guard_of):
        """Law 5: whatever changes them before the body is judged."""

        def rewrite(data) -> ToolGuardrailFunctionOutput:
            data.context.tool_call.arguments = '{"text": "secret"}'
            return ToolGuardrailFunctionOutput.allow()

        @function_tool(tool_input_guardrails=[ToolInputGuardrail(rewrite)])
        def echo(text: str) -> str:
            """Echo."""
            return text

        rule = {"id": "s", "match": {"args.text": "secret"}, "decision": "deny", "reason": "no"}

        assert ["[denied] no"] == one_call(stage, guard_of(rule), echo, '{"text": "hi"}')

    def test_a_run_that_is_cancelled_cancels_the_call(self, stage, guard_of, record):
        """Cancellation is never swallowed, and is on record."""
        started = asyncio.Event()

        @function_tool
        async def wait() -> str:
            """Wait."""
            started.set()
            await asyncio.Event().wait()
            return "never"

        stage.script(a=[("wait", "{}")])
        agent = govern(stage.agent("a", tools=[wait]), guard_of())

        async def cancelled() -> None:
            from agents import RunConfig, Runner

            run = asyncio.ensure_future(
                Runner.run(agent, "Go.", run_config=RunConfig(tracing_disabled=True))
            )
            await started.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

        asyncio.run(cancelled())

        assert "action.cancelled" == record.kinds[-1]

    def test_stopping_on_the_first_tool_makes_a_denial_the_final_output(self, stage, guard_of):
        """Law 1: `tool_use_behavior` holds for whatever a tool answers."""

        @function_tool
        def look() -> str:
            """Look."""
            return "seen"

        stage.script(a=[("look", "{}")])
        agent = stage.agent("a", tools=[look], tool_use_behavior="stop_on_first_tool")

        result = stage.run(govern(agent, guard_of(rest="deny")))

        assert "[denied] not permitted by policy" == result.final_output

    def test_a_tool_that_is_not_enabled_is_not_offered(self, stage, guard_of):
        """Law 1: `is_enabled` is asked as ungoverned."""

        @function_tool(is_enabled=lambda _context, agent: agent.name == "b")
        def look() -> str:
            """Look."""
            return "seen"

        stage.script(a=[], b=[])
        guard = guard_of()
        for name in ("a", "b"):
            stage.run(govern(stage.agent(name, tools=[look]), guard))

        assert [b"null", True] == [stage.offered[0], b"look" in stage.offered[1]]

    def test_a_session_remembers_a_denial(self, stage, guard_of):
        """Law 1: a session keeps what the model was told."""

        @function_tool
        def look() -> str:
            """Look."""
            return "seen"

        stage.script(a=[("look", "{}")])
        session = SQLiteSession("s")
        agent = govern(stage.agent("a", tools=[look]), guard_of(rest="deny"))

        stage.run(agent, session=session)
        items = asyncio.run(session.get_items())
        session.close()

        assert ["[denied] not permitted by policy"] == [
            item["output"] for item in items if item.get("type") == "function_call_output"
        ]

    def test_a_namespace_of_the_sdk_is_the_tools_namespace(self, guard_of, record):
        """`tool.namespace` is what `tool_namespace` grouped the tool under."""

        @function_tool
        def look() -> str:
            """Look."""
            return "seen"

        rule = {
            "id": "r",
            "match": {"tool": "look", "tool.namespace": "crm"},
            "decision": "allow",
        }
        (grouped,) = tool_namespace(name="crm", description="Customers.", tools=[look])
        governed = govern([look, grouped], guard_of(rule, rest="deny"))
        context = ToolContext(None, tool_name="look", tool_call_id="c", tool_arguments="{}")

        told = [asyncio.run(tool.on_invoke_tool(context, "{}")) for tool in governed]

        assert ["[denied] not permitted by policy", "seen"] == told

    def test_the_run_context_reaches_the_function(self, stage, guard_of, record):
        """What the SDK injects is no argument."""

        @function_tool
        def who(context: RunContextWrapper[str], greeting: str) -> str:
            """Greet."""
            return f"{greeting} {context.context}"

        assert ["hi ana"] == one_call(stage, guard_of(), who, '{"greeting": "hi"}', context="ana")
        assert {"greeting": "hi"} == record.bodies("step.proposed")[0]["args"]


class TestWhoIsCalling:
    @staticmethod
    def run_as(stage, guard, context, user):
        """Run one call under a `context=` callable, for a user."""

        @function_tool
        def look() -> str:
            """Look."""
            return "seen"

        stage.script(a=[("look", "{}")])
        agent: Agent[Any] = govern(stage.agent("a", tools=[look]), guard, context=context)
        stage.run(agent, context=user)
        return stage.said

    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_the_runs_own_context_says_who(self, kind, stage, guard_of, record):
        """Clause 26: the principal comes with each call, out of the SDK's run context."""

        def plain(context: RunContextWrapper[str]) -> CallContext:
            return CallContext(Principal("user", context.context))

        async def coroutine(context: RunContextWrapper[str]) -> CallContext:
            return plain(context)

        rule = {"id": "bo", "match": {"context.principal.id": "bo"}, "decision": "allow"}
        guard = guard_of(rule, rest="deny")
        context = plain if kind == "sync" else coroutine

        assert ["[denied] not permitted by policy"] == self.run_as(stage, guard, context, "ana")
        assert ["seen"] == self.run_as(stage, guard, context, "bo")
        assert ["ana", "bo"] == [body["principal"]["id"] for body in record.bodies("step.proposed")]

    @pytest.mark.parametrize(
        "answer",
        [lambda _: None, lambda _: 1 / 0, lambda _: "ana"],
        ids=["None", "exception", "text"],
    )
    def test_an_unknown_caller_is_denied(self, answer, stage, guard_of):
        """Clause 26: None, an exception and anything else deny."""
        told = self.run_as(stage, guard_of(), answer, "ana")

        assert told[0].startswith("[denied] ")


def test_the_tool_context_tells_the_rewritten_arguments(stage, guard_of):
    """Law 5: a body that reads its arguments off the context gets those that were judged."""
    read = []

    @function_tool
    def look(context: ToolContext[Any], path: str) -> str:
        """Look."""
        read.append((path, json.loads(context.tool_arguments)))
        return "seen"

    rule = {
        "id": "safe",
        "match": {"tool": "look"},
        "decision": "transform",
        "transform": {"path": "args.path", "set": "/safe"},
    }

    one_call(stage, guard_of(rule), look, '{"path": "/etc"}')

    assert [("/safe", {"path": "/safe"})] == read
