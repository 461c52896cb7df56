"""Arguments that a policy or a person rewrites, and arguments that change meanwhile."""

import json
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr
from pydantic_ai import ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability

from adjudge import ApprovalDecision
from adjudge_pydantic_ai import govern

DENIED = "[denied] not permitted by policy"


def one_call(stage, guard, tool, text, **fields):
    """Run an agent that calls a governed tool once; give what the model was told."""
    name = tool.name if isinstance(tool, Tool) else tool.__name__
    stage.script(a=[(name, text)])
    stage.run(govern(stage.agent(tools=[tool], **fields), guard))
    return stage.said


def rewriting(**args):
    """Give rules that set arguments, one each."""
    return [
        {
            "id": f"set-{name}",
            "match": {"not": {f"args.{name}": value}} if not isinstance(value, dict) else "always",
            "decision": "transform",
            "transform": {"path": f"args.{name}", "set": value},
        }
        for name, value in args.items()
    ]


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


class TestRewritten:
    def test_a_rewritten_argument_is_validated_and_the_others_stay(self, stage, guard_of, ran):
        """Law 5: the tool's own validator makes the new value; the others are not made again."""

        class Letter(BaseModel):
            text: Annotated[str, AfterValidator(lambda text: text + "!")]

        def post(letter: Letter, amount: Decimal, key: SecretStr) -> str:
            """Post a letter."""
            ran.append((letter.text, amount, key.get_secret_value()))
            return "posted"

        text = '{"letter": {"text": "hi"}, "amount": "5.50", "key": "hunter2"}'

        assert ["posted"] == one_call(stage, guard_of(*rewriting(amount=2)), post, text)
        assert [("hi!", Decimal(2), "hunter2")] == ran

    def test_an_argument_that_nobody_rewrote_is_not_validated_again(self, stage, guard_of, ran):
        """Law 5: the object that was judged stays the one that runs."""
        count = iter(range(10))

        def number(_: object) -> int:
            return next(count)

        def pick(n: Annotated[int, BeforeValidator(number)], m: int) -> str:
            """Pick."""
            ran.append((n, m))
            return "picked"

        one_call(stage, guard_of(*rewriting(m=2)), pick, '{"n": 5, "m": 5}')

        assert [(0, 2)] == ran

    def test_a_rewriting_is_coerced(self, stage, guard_of, ran):
        """Clause 19: the body never sees a value that its validator has not seen."""

        def pick(n: int) -> str:
            """Pick."""
            ran.append(n)
            return "picked"

        rule = {
            "id": "seven",
            "match": {"args.n": 1},
            "decision": "transform",
            "transform": {"path": "args.n", "set": "7"},
        }

        one_call(stage, guard_of(rule), pick, '{"n": 1}')

        assert [7] == ran

    def test_a_rewriting_that_the_tool_rejects_denies(self, stage, guard_of, send, ran):
        """Clause 19: what fails the tool's own parameters denies."""
        rule = {
            "id": "odd",
            "match": {"tool": "send"},
            "decision": "transform",
            "transform": {"path": "args.parcel", "set": "none"},
        }

        told = one_call(stage, guard_of(rule), send, '{"parcel": {"weight": 3}}')

        assert told[0].startswith("[denied] the rewritten arguments do not fit the tool")
        assert [] == ran

    def test_a_model_that_is_the_only_parameter_can_be_rewritten(self, stage, guard_of, ran):
        """Clause 19: what the model writes without a name is rewritten by its name."""

        def post(parcel: Parcel) -> str:
            """Post."""
            ran.append(parcel)
            return "posted"

        rule = {
            "id": "light",
            "match": {"args.parcel.weight.gt": 5},
            "decision": "transform",
            "transform": {"path": "args.parcel.weight", "set": 1},
        }

        assert ["posted"] == one_call(stage, guard_of(rule), post, '{"weight": 9, "label": "X"}')
        assert [Parcel(weight=1, label="x")] == ran

    @pytest.mark.parametrize(
        ("path", "expected"), [("args.kg", (2, 3)), ("args.height", (5, 2))], ids=["alias", "other"]
    )
    def test_an_argument_with_an_alias_can_be_rewritten(self, path, expected, stage, guard_of, ran):
        """Clause 19: the validator gets the new value by the name that the model writes."""

        def lift(kg: Annotated[int, Field(alias="how-heavy")] = 1, height: int = 1) -> str:
            """Lift."""
            ran.append((kg, height))
            return "lifted"

        rule = {
            "id": "two",
            "match": "always",
            "decision": "transform",
            "transform": {"path": path, "set": 2},
        }

        one_call(stage, guard_of(rule), lift, '{"how-heavy": 5, "height": 3}')

        assert [expected] == ran

    def test_arguments_with_several_aliases_are_not_rewritten(self, stage, guard_of, ran):
        """Law 4: where it cannot be told which is which, the call is denied."""

        def lift(
            kg: Annotated[int, Field(alias="how-heavy")] = 1,
            height: Annotated[int, Field(alias="how-high")] = 1,
        ) -> str:
            """Lift."""
            ran.append((kg, height))
            return "lifted"

        rule = {
            "id": "two",
            "match": "always",
            "decision": "transform",
            "transform": {"path": "args.kg", "set": 2},
        }

        assert one_call(stage, guard_of(rule), lift, '{"how-heavy": 5}')[0].startswith("[denied] ")
        assert [] == ran

    def test_deleting_an_argument_gives_its_default(self, stage, guard_of, send, ran):
        """Clause 19: what was taken out comes back as its default, and is judged as that."""
        rule = {
            "id": "no-price",
            "match": {"given.price": True},
            "decision": "transform",
            "transform": {"path": "args.price", "delete": True},
        }

        one_call(stage, guard_of(rule), send, '{"parcel": {"weight": 3}, "price": 9}')

        assert [Decimal("1.10")] == [price for _, price, _ in ran]

    @pytest.mark.parametrize("is_async", [False, True])
    def test_the_tools_own_validator_sees_a_rewriting(self, is_async, stage, guard_of, ran):
        """Clause 19: an `args_validator` that rejects rewritten arguments stops the call."""
        seen = []

        def check(ctx: RunContext[Any], n: int) -> None:
            seen.append(n)
            if n > 5:
                raise ModelRetry("too many")

        async def check_async(ctx: RunContext[Any], n: int) -> None:
            check(ctx, n)

        def pick(n: int) -> str:
            """Pick."""
            ran.append(n)
            return "picked"

        tool = Tool(pick, args_validator=check_async if is_async else check)
        rule = {
            "id": "more",
            "match": {"args.n.le": 5},
            "decision": "transform",
            "transform": {"path": "args.n", "set": 9},
        }

        told = one_call(stage, guard_of(rule), tool, '{"n": 1}')

        assert told[0].startswith("[denied] the rewritten arguments do not fit the tool")
        assert ([1, 9], []) == (seen, ran)

    def test_an_edit_is_validated_and_runs(self, stage, guard_of, send, ran):
        """Clause 23: what a person edits is the tool's to validate, and the policy's to judge."""

        async def edit(_: object) -> ApprovalDecision:
            return ApprovalDecision(True, "ana", edited_args={"parcel": {"weight": "2"}})

        guard = guard_of(rest="approve_required", on_approval=edit)

        assert ["sent"] == one_call(stage, guard, send, '{"parcel": {"weight": 3}, "price": 5}')
        assert [(Parcel(weight=2), Decimal("1.10"), Speed.SLOW)] == ran

    def test_the_history_keeps_what_the_model_wrote(self, stage, guard_of, send):
        """Law 1: the conversation goes on with the model's own words."""
        one_call(stage, guard_of(*rewriting(price=2)), send, '{"parcel": {"weight": 3}}')

        (call,) = stage.requests[1].body["messages"][-2]["tool_calls"]

        assert {"parcel": {"weight": 3}} == json.loads(call["function"]["arguments"])


class TestChangedMeanwhile:
    def test_arguments_that_change_while_somebody_is_asked_deny(self, stage, guard_of, ran):
        """Law 5: the values before the body are compared with the judged ones once more."""

        class Keeps(AbstractCapability[Any]):
            async def before_tool_execute(self, ctx, *, call, tool_def, args):
                kept.append(args)
                return args

        kept: list[dict[str, Any]] = []

        def send(parcel: Parcel) -> str:
            """Send."""
            ran.append(parcel)
            return "sent"

        async def grant(_: object) -> ApprovalDecision:
            kept[0]["parcel"].weight = 1000
            return ApprovalDecision(True, "ana")

        guard = guard_of(rest="approve_required", on_approval=grant)

        told = one_call(stage, guard, send, '{"weight": 3}', capabilities=[Keeps()])

        assert ["[denied] the arguments changed after they were judged"] == told
        assert [] == ran
