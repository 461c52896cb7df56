"""What is judged is what runs: arguments on their way from the model's text to the body."""

from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr
from pydantic_ai import ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.tools import DeferredToolRequests

from adjudge_pydantic_ai import govern

DENIED = "[denied] not permitted by policy"


def one_call(stage, guard, tool, text, **fields):
    """Run an agent that calls a governed tool once; give what the model was told."""
    name = tool.name if isinstance(tool, Tool) else tool.__name__
    stage.script(a=[(name, text)])
    stage.run(govern(stage.agent(tools=[tool], **fields), guard))
    return stage.said


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


class Parcel(BaseModel):
    weight: int
    label: Annotated[str, AfterValidator(str.strip), AfterValidator(str.lower)] = "plain"


@pytest.fixture
def send(ran):
    """A tool whose parameters a JSON Schema does not say all of."""

    def send(parcel: Parcel, price: Decimal = Decimal("1.10"), speed: Speed = Speed.SLOW) -> str:
        """Send a parcel."""
        ran.append((parcel, price, speed))
        return "sent"

    return send


class TestJudged:
    def test_what_the_function_gets_is_judged(self, stage, guard_of, send, ran, record):
        """Law 5: validators, defaults and models are applied before a rule reads an argument."""
        rule = {
            "id": "no-prod",
            "match": {"tool": "send", "args.parcel.label": "prod", "args.speed": "slow"},
            "decision": "deny",
            "reason": "not there",
        }
        text = '{"parcel": {"weight": "3", "label": " PROD"}}'

        assert ["[denied] not there"] == one_call(stage, guard_of(rule), send, text)
        assert [] == ran
        assert {
            "parcel": {"weight": 3, "label": "prod"},
            "price": "1.10",
            "speed": "slow",
        } == record.bodies("step.proposed")[0]["args"]

    def test_validation_happens_once(self, stage, guard_of, ran):
        """Law 5: the very objects that were judged run; a validator is not asked again."""
        count = iter(range(10))

        def number(_: object) -> int:
            return next(count)

        def pick(n: Annotated[int, BeforeValidator(number)]) -> str:
            """Pick."""
            ran.append(n)
            return "picked"

        rule = {"id": "first", "match": {"args.n": 0}, "decision": "allow"}

        assert ["picked"] == one_call(stage, guard_of(rule, rest="deny"), pick, '{"n": 5}')
        assert [0] == ran

    def test_a_parameter_that_is_one_model_is_judged_by_its_name(self, stage, guard_of, ran):
        """A model that is the only parameter is written without its name, and judged with it."""

        def post(parcel: Parcel) -> str:
            """Post."""
            ran.append(parcel)
            return "posted"

        rule = {"id": "heavy", "match": {"args.parcel.weight.gt": 5}, "decision": "deny"}

        assert ["posted"] == one_call(stage, guard_of(rule), post, '{"weight": 3}')
        assert [DENIED] == one_call(stage, guard_of(rule), post, '{"weight": 9}')
        assert [Parcel(weight=3)] == ran

    def test_given_names_what_the_model_sent(self, stage, guard_of, send, ran):
        """Paths: a default is judged, and known not to be the model's choice."""
        rule = {"id": "choice", "match": {"given.price": True}, "decision": "deny"}

        assert [DENIED] == one_call(
            stage, guard_of(rule), send, '{"parcel": {"weight": 1}, "price": 1}'
        )
        assert ["sent"] == one_call(stage, guard_of(rule), send, '{"parcel": {"weight": 1}}')

    def test_an_alias_is_the_models_name_for_an_argument(self, stage, guard_of, ran):
        """Rules name the function's parameter, whatever the model calls it."""

        def lift(kg: Annotated[int, Field(alias="how-heavy")] = 1, height: int = 1) -> str:
            """Lift."""
            ran.append((kg, height))
            return "lifted"

        rule = {"id": "choice", "match": {"given.kg": True}, "decision": "deny"}

        assert [DENIED] == one_call(stage, guard_of(rule), lift, '{"how-heavy": 5}')
        assert ["lifted"] == one_call(stage, guard_of(rule), lift, '{"height": 2}')

    def test_a_secret_is_judged_as_a_secret(self, stage, guard_of, record):
        """A secret equals nothing, and stays out of the record."""

        def login(key: SecretStr) -> str:
            """Log in."""
            return "in"

        rule = {"id": "k", "match": {"args.key": "hunter2"}, "decision": "allow"}

        told = one_call(stage, guard_of(rule, rest="deny"), login, '{"key": "hunter2"}')

        assert told[0].startswith("[denied] ")
        assert "hunter2" not in str([event.body for event in record.events])

    def test_an_unvalidated_tool_is_judged_as_its_body_sees_it(self, stage, guard_of, ran):
        """Design 3: a tool made of a bare schema gets the model's values, and so does the rule."""

        def take(**args: Any) -> str:
            ran.append(args)
            return "taken"

        schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}
        tool = Tool.from_schema(take, name="take", description="Take.", json_schema=schema)
        rule = {"id": "text", "match": {"args.n": "7"}, "decision": "deny"}

        assert [DENIED] == one_call(stage, guard_of(rule), tool, '{"n": "7"}')
        assert ["taken"] == one_call(stage, guard_of(rule), tool, '{"m": 1}')
        assert [{"m": 1}] == ran

    def test_json_that_is_no_object_runs_nothing(self, stage, guard_of, ran, record):
        """Law 5: what no validator rejects and no rule can read is denied."""

        def take(**args: Any) -> str:
            ran.append(args)
            return "taken"

        tool = Tool.from_schema(take, name="take", description="Take.", json_schema={})

        told = one_call(stage, guard_of(), tool, "[1, 2]")

        assert told[0].startswith("[denied] ")
        assert [] == ran
        assert ["action.denied"] == record.ends

    def test_values_without_a_json_meaning_are_denied(self, stage, guard_of, ran, record):
        """Clause 1: an argument that no rule could read stops the call."""

        class Odd:
            pass

        def use(odd: Annotated[Any, AfterValidator(lambda _: Odd())]) -> str:
            """Use."""
            ran.append(odd)
            return "used"

        assert one_call(stage, guard_of(), use, '{"odd": 1}')[0].startswith("[denied] ")
        assert [] == ran
        assert ["refused_arguments"] == [each["code"] for each in record.bodies("action.denied")]


class TestRefused:
    @pytest.mark.parametrize(
        "text",
        [
            '{"parcel": {"weight": 1, "weight": 2}}',
            '{"parcel": {"weight": 1}, "price": NaN}',
            '{"parcel": {"weight": 1e999}}',
            '{"parcel": {"weight": 1, "label": "\\ud800"}}',
        ],
    )
    def test_refused_text_is_denied_and_runs_nothing(
        self, text, stage, guard_of, send, ran, record
    ):
        """Clause 2: what a lenient parser takes is denied under any policy, once."""
        told = one_call(stage, guard_of(), send, text)

        assert 1 == len(told)
        assert told[0].startswith("[denied] args")
        assert [] == ran
        assert ["step.proposed", "action.denied"] == record.kinds

    def test_rejected_arguments_get_no_verdict(self, stage, guard_of, send, ran, record):
        """Design 3: what the framework's validation rejects it answers itself, as ungoverned."""
        texts = ('{"parcel": {"weight": "heavy"}}', '{"parcel": {"weight": 1}}')
        told = []
        for guard in (None, guard_of(rest="deny")):
            stage.script(a=[("send", texts[0])])
            agent = stage.agent(tools=[send])
            stage.run(agent if guard is None else govern(agent, guard))
            told.append(stage.said)

        assert told[0] == told[1]
        assert ["step.proposed", "action.failed"] == record.kinds
        assert "invalid_arguments" == record.bodies("action.failed")[0]["code"]
        assert "heavy" not in record.bodies("action.failed")[0]["error"]
        assert [] == ran

    @pytest.mark.parametrize(
        "error", [ModelRetry("other"), ToolFailed("no")], ids=["retry", "failed"]
    )
    def test_what_the_tools_own_validator_rejects_gets_no_verdict(
        self, error, stage, guard_of, ran, record
    ):
        """Design 3: the tool's own `args_validator` is part of the validation."""

        def check(ctx: RunContext[Any], n: int) -> None:
            raise error

        def pick(n: int) -> str:
            """Pick."""
            ran.append(n)
            return "picked"

        one_call(stage, guard_of(), Tool(pick, args_validator=check), '{"n": 1}')

        assert [] == ran
        assert ["step.proposed", "action.failed"] == record.kinds

    def test_the_model_cannot_send_what_the_framework_injects(self, stage, guard_of, ran, record):
        """B021: the run context is no argument, and one that is sent is rejected."""

        def wipe(ctx: RunContext[str], disk: str) -> str:
            """Wipe."""
            ran.append((ctx.deps, disk))
            return "wiped"

        one_call(stage, guard_of(), wipe, '{"ctx": {"deps": "root"}, "disk": "a"}')

        assert [] == ran
        assert ["action.failed"] == record.ends

    def test_each_retry_is_a_proposal_of_its_own(self, stage, guard_of, send, ran, record):
        """Law 6: the model's corrected call is judged like any other."""
        stage.script(a=[("send", "{}"), ("send", '{"parcel": {"weight": 1}}')])

        stage.run(govern(stage.agent(tools=[send]), guard_of()))

        assert 1 == len(ran)
        assert ["action.failed", "action.completed"] == record.ends


class TestDeferredByAValidator:
    """A validator that hands a call out of the run does so past the execution (B032)."""

    @pytest.mark.parametrize("deferral", [ApprovalRequired, CallDeferred])
    def test_a_denial_wins(self, deferral, stage, guard_of, ran, record):
        """B032: a denied call is never queued for anybody."""
        result = self.run(stage, guard_of(rest="deny"), deferral, ran)

        assert "a is done." == result.output
        assert ["step.proposed", "policy.evaluated", "action.denied"] == record.kinds
        assert [] == ran

    @pytest.mark.parametrize("deferral", [ApprovalRequired, CallDeferred])
    def test_an_allowed_call_is_queued(self, deferral, stage, guard_of, ran, record):
        """Law 1: where the policy allows the call, the tool's own deferral holds."""
        result = self.run(stage, guard_of(), deferral, ran)

        assert isinstance(result.output, DeferredToolRequests)
        assert ["action.suspended"] == record.ends
        assert [] == ran

    def run(self, stage, guard, deferral, ran):
        """Run an agent whose tool's validator defers each call that nobody has approved."""

        def check(ctx: RunContext[Any], n: int) -> None:
            if not ctx.tool_call_approved:
                raise deferral

        def pick(n: int) -> str:
            """Pick."""
            ran.append(n)
            return "picked"

        stage.script(a=[("pick", '{"n": 1}')])
        agent = stage.agent(
            tools=[Tool(pick, args_validator=check)], output_type=[str, DeferredToolRequests]
        )
        return stage.run(govern(agent, guard))
