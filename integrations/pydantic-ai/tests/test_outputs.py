"""Output functions: bodies that run on what the model gives as its answer."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    AgentRunResult,
    ModelRetry,
    PromptedOutput,
    TextOutput,
    ToolOutput,
)
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from adjudge import ApprovalDecision
from adjudge_pydantic_ai import govern


def run(agent: Agent[Any, Any], **options: Any) -> AgentRunResult[Any]:
    """Run an agent in a loop of its own."""
    return asyncio.run(agent.run("Go.", **options))


class Invoice(BaseModel):
    to: str
    amount: float = 10.0


@pytest.fixture
def invoice(ran):
    """An output function, which is a body like any other."""

    def invoice(invoice: Invoice) -> str:
        """Send an invoice."""
        ran.append(invoice)
        return f"invoiced {invoice.to}"

    return invoice


class TestOutputFunctions:
    def run(self, stage, guard, function, *texts, **options):
        """Run an agent whose model calls an output function."""
        stage.script(a=[("final_result", text) for text in texts])
        agent = stage.agent(output_type=function, retries=2)
        return stage.run(govern(agent, guard, **options))

    def test_an_allowed_one_runs(self, stage, guard_of, invoice, ran, record):
        """Law 3: an output function is judged on what it gets."""
        rule = {
            "id": "small",
            "match": {"tool": "final_result", "args.amount.le": 10},
            "decision": "allow",
        }

        result = self.run(stage, guard_of(rule, rest="deny"), invoice, '{"to": "ana"}')

        assert "invoiced ana" == result.output
        assert [Invoice(to="ana")] == ran
        assert ["step.proposed", "policy.evaluated", "action.completed"] == record.kinds

    def test_a_denied_one_does_not_run(self, stage, guard_of, invoice, ran, record):
        """Law 3: the model is asked for another answer, with the denial's text."""
        rule = {"id": "eve", "match": {"args.to": "eve"}, "decision": "deny"}

        result = self.run(stage, guard_of(rule), invoice, '{"to": "eve"}', '{"to": "bo"}')

        assert "invoiced bo" == result.output
        assert "[denied] not permitted by policy" in stage.said[0]
        assert [Invoice(to="bo")] == ran
        assert ["action.denied", "action.completed"] == record.ends

    def test_denials_end_the_run_when_the_retries_are_spent(self, stage, guard_of, invoice, ran):
        """Law 4: there is no way out but the framework's own error."""
        with pytest.raises(UnexpectedModelBehavior):
            self.run(stage, guard_of(rest="deny"), invoice, *['{"to": "eve"}'] * 4)

        assert [] == ran

    def test_refused_arguments_do_not_reach_it(self, stage, guard_of, invoice, ran, record):
        """Clause 2: the model's text is read strictly here, too."""
        self.run(stage, guard_of(), invoice, '{"to": "a", "to": "b"}', '{"to": "bo"}')

        assert [Invoice(to="bo")] == ran
        assert ["action.denied", "action.completed"] == record.ends

    def test_a_rewriting_has_no_way_to_it(self, stage, guard_of, invoice, ran):
        """Law 5: what cannot be handed on denies."""
        rule = {
            "id": "less",
            "match": {"args.to": "eve"},
            "decision": "transform",
            "transform": {"path": "args.amount", "set": 1},
        }

        self.run(stage, guard_of(rule), invoice, '{"to": "eve"}', '{"to": "bo"}')

        assert [Invoice(to="bo")] == ran

    def test_a_function_of_several_arguments_is_judged_on_them(self, stage, guard_of, ran):
        """The arguments have the names that the function gives them."""

        def pay(to: str, amount: float) -> str:
            """Pay."""
            ran.append((to, amount))
            return "paid"

        rule = {"id": "big", "match": {"args.amount.gt": 5}, "decision": "deny"}

        self.run(stage, guard_of(rule), pay, '{"to": "a", "amount": 9}', '{"to": "a", "amount": 1}')

        assert [("a", 1.0)] == ran

    def test_a_function_of_text_is_judged_as_output(self, stage, guard_of, ran, record):
        """What the model writes as text is the argument `output`."""

        def shout(text: str) -> str:
            ran.append(text)
            return text.upper()

        rule = {
            "id": "loud",
            "match": {"tool": "shout", "args.output": "a is done."},
            "decision": "allow",
        }
        stage.script(a=[])
        agent = stage.agent(output_type=TextOutput(shout))

        result = stage.run(govern(agent, guard_of(rule, rest="deny")))

        assert "A IS DONE." == result.output
        assert ["action.completed"] == record.ends

    def test_one_of_several_in_a_text_is_judged(self, stage, guard_of, invoice, ran, record):
        """Law 3: where the model picks the function in its text, the call is judged as `output`."""
        pick = {"result": {"kind": "Invoice", "data": {"to": "eve"}}}

        def other(n: int) -> int:
            """Do something else."""
            return n

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse([TextPart(json.dumps(pick))])

        rule = {"id": "eve", "match": {"tool": "output", "args.to": "eve"}, "decision": "deny"}
        agent = Agent(FunctionModel(answer), output_type=PromptedOutput([invoice, other]))

        with pytest.raises(UnexpectedModelBehavior):
            run(govern(agent, guard_of(rule)))

        assert [] == ran
        assert {"action.denied"} == set(record.ends)

    def test_what_a_function_raises_is_told_as_ungoverned(self, stage, guard_of, ran, record):
        """Law 1: its own retry is the framework's to tell."""

        def pick(n: int) -> int:
            """Pick."""
            if n < 5:
                raise ModelRetry("more")
            return n

        result = self.run(stage, guard_of(), pick, '{"n": 1}', '{"n": 7}')

        assert 7 == result.output
        assert ["action.failed", "action.completed"] == record.ends

    @pytest.mark.parametrize("name", ["final_result", "invoice"])
    def test_one_that_is_named_runs_ungoverned(self, name, stage, guard_of, invoice, record):
        """`ungoverned`: the caller has named it, by the model's name or the function's."""
        self.run(stage, guard_of(rest="deny"), invoice, '{"to": "ana"}', ungoverned=[name])

        assert [] == record.kinds

    def test_an_output_without_a_function_is_no_call(self, stage, guard_of, record):
        """Law 1: a value is not judged; nothing runs on it."""
        result = self.run(stage, guard_of(rest="deny"), ToolOutput(Invoice), '{"to": "ana"}')

        assert Invoice(to="ana") == result.output
        assert [] == record.kinds

    def test_a_person_is_asked_in_place(self, stage, guard_of, invoice, ran):
        """approve_required: a handler answers while the run waits."""

        async def grant(_: object) -> ApprovalDecision:
            return ApprovalDecision(True, "ana")

        guard = guard_of(rest="approve_required", on_approval=grant)

        self.run(stage, guard, invoice, '{"to": "ana"}')

        assert [Invoice(to="ana")] == ran

    def test_it_cannot_wait_for_an_answer_that_comes_later(self, stage, pausing, invoice, ran):
        """The framework has no pause there, so what would need one is denied."""
        with pytest.raises(UnexpectedModelBehavior):
            self.run(stage, pausing(), invoice, *['{"to": "ana"}'] * 4)

        assert [] == ran

    def test_a_model_of_the_frameworks_own_runs_as_before(self, guard_of):
        """Law 1: a whole run under a policy that allows everything is the ungoverned run."""
        outputs = []
        for guard in (None, guard_of()):
            agent = Agent(TestModel(), output_type=Invoice)
            if guard is not None:
                govern(agent, guard)
            outputs.append(run(agent).output)

        assert outputs[0] == outputs[1]
