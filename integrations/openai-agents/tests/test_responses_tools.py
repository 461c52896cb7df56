"""Function tools in the ways of the Responses API alone: found later, grouped, called by programs.

A program at the provider calls tools as well; the SDK gets those calls as any others.
"""

import json

import pytest
from agents import (
    FunctionTool,
    ProgrammaticToolCallingTool,
    ToolGuardrailFunctionOutput,
    ToolOutputGuardrail,
    ToolSearchTool,
    UserError,
    function_tool,
    tool_namespace,
)
from pydantic import BaseModel

from adjudge_conformance.wire import ScriptedCall
from adjudge_openai_agents import govern

DENIED = "[denied] not here"


class Counted(BaseModel):
    number: int


@pytest.fixture
def ran():
    """Where the bodies leave their trace."""
    return []


def finder(ran, **options):
    """Make a tool that is found later."""

    @function_tool(**options)
    def find(key: str) -> str:
        """Find a customer."""
        ran.append(key)
        return "found"

    return find


def counter(ran, **options):
    """Make a tool that answers with an object."""

    @function_tool(**options)
    def count(upto: int) -> Counted:
        """Count."""
        ran.append(upto)
        return Counted(number=upto)

    return count


PROGRAM = ScriptedCall(
    "program", "", id="prog_1", item={"type": "program", "code": "count(3)", "fingerprint": "f"}
)
BY_PROGRAM = {"caller": {"type": "program", "caller_id": "prog_1"}}


class TestNamespaces:
    def run(self, stage, guard, ran):
        """Run a namespaced tool, found by a search."""
        item = {"namespace": "crm"}
        stage.script("responses", a=[ScriptedCall("find", '{"key": "ana"}', item=item)])
        tools = tool_namespace(
            name="crm", description="Customers.", tools=[finder(ran, defer_loading=True)]
        )
        stage.run(govern(stage.agent("a", tools=[*tools, ToolSearchTool()]), guard))
        return stage.said

    def test_it_is_judged_in_its_namespace(self, stage, guard_of, ran):
        """Clause 13: the SDK's namespace is the policy's."""
        rule = {
            "id": "r",
            "match": {"tool": "find", "tool.namespace": "crm"},
            "decision": "deny",
            "reason": "not here",
        }

        assert [DENIED] == self.run(stage, guard_of(rule), ran)
        assert [] == ran

    def test_it_runs_where_its_namespace_is_allowed(self, stage, guard_of, ran):
        """Clause 13: a permitting rule says which namespace it means."""
        rule = {"id": "r", "match": {"tool": "find", "tool.namespace": "crm"}, "decision": "allow"}

        assert ["found"] == self.run(stage, guard_of(rule, rest="deny"), ran)
        assert ["ana"] == ran


class TestToolsFoundLater:
    @pytest.mark.parametrize(("decision", "said"), [("allow", "found"), ("deny", "[denied] ")])
    def test_it_is_judged_under_its_name(self, stage, guard_of, ran, decision, said):
        """A tool that the model searches for is governed as any other, and in no namespace."""
        item = {"namespace": "find"}
        stage.script("responses", a=[ScriptedCall("find", '{"key": "ana"}', item=item)])
        agent = stage.agent("a", tools=[finder(ran, defer_loading=True), ToolSearchTool()])
        rule = {"id": "r", "match": {"tool": "find"}, "decision": decision}

        stage.run(govern(agent, guard_of(rule, rest="deny")))

        assert stage.said[0].startswith(said)
        assert (["ana"] if decision == "allow" else []) == ran

    def test_the_requests_are_as_ungoverned(self, stage, guard_of, ran):
        """Law 1: schema, namespace and deferral reach the model to the byte."""

        def sent(governing):
            stage.script(
                "responses",
                a=[ScriptedCall("find", '{"key": "ana"}', item={"namespace": "crm"})],
            )
            tools = tool_namespace(
                name="crm", description="Customers.", tools=[finder(ran, defer_loading=True)]
            )
            stage.run(governing(stage.agent("a", tools=[*tools, ToolSearchTool()])))
            return stage.sent

        assert sent(lambda agent: agent) == sent(lambda agent: govern(agent, guard_of()))


class TestPrograms:
    def run(self, stage, guard, tool):
        """Let a program at the provider call a tool."""
        call = ScriptedCall(tool.name, '{"upto": 3}', item=BY_PROGRAM)
        stage.script("responses", a=[(PROGRAM, call)])
        tools = [tool, ProgrammaticToolCallingTool()]
        agent = stage.agent("a", tools=tools)
        stage.run(govern(agent, guard, ungoverned=["programmatic_tool_calling"]))
        return json.loads(stage.said[0])

    def test_its_calls_are_judged(self, stage, guard_of, ran):
        """Law 3: the program runs at the provider, the tool here; a denial is the SDK's error."""
        tool = counter(ran, allowed_callers=["programmatic"])
        rule = {"id": "r", "match": {"args.upto": 3}, "decision": "deny", "reason": "not here"}

        assert {"error": DENIED} == self.run(stage, guard_of(rule), tool)
        assert [] == ran

    def test_its_calls_run(self, stage, guard_of, ran):
        """An allowed one gets the tool's own object."""
        tool = counter(ran, allowed_callers=["programmatic"])

        assert {"number": 3} == self.run(stage, guard_of(), tool)
        assert [3] == ran


SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}


class TestOutputSchemas:
    @pytest.mark.parametrize("options", [{"output_type": Counted}, {"output_json_schema": SCHEMA}])
    def test_a_denial_passes(self, stage, guard_of, ran, options):
        """The SDK would end the run over a text that is no such object; a denial is none."""
        stage.script("responses", a=[("count", '{"upto": 3}')])
        tool = counter(ran, **options)

        stage.run(govern(stage.agent("a", tools=[tool]), guard_of(rest="deny")))

        assert ["[denied] not permitted by policy"] == stage.said
        assert [] == ran

    @pytest.mark.parametrize("options", [{"output_type": Counted}, {"output_json_schema": SCHEMA}])
    def test_an_answer_is_as_ungoverned(self, stage, guard_of, ran, options):
        """Law 1: the tool's own answer is held to its schema."""

        def sent(governing):
            stage.script("responses", a=[("count", '{"upto": 3}')])
            stage.run(governing(stage.agent("a", tools=[counter(ran, **options)])))
            return stage.sent

        assert sent(lambda agent: agent) == sent(lambda agent: govern(agent, guard_of()))
        assert [3, 3] == ran

    def test_an_answer_that_breaks_the_schema_ends_the_run_as_ungoverned(self, stage, guard_of):
        """Only the guard's own texts pass, and no look-alike of the tool's."""

        async def invoke(_context, _text) -> str:
            return "[denied] not here"

        tool = FunctionTool("count", "Count.", {}, invoke, output_json_schema=SCHEMA)
        stage.script("responses", a=[("count", '{"upto": 3}')])

        with pytest.raises(UserError):
            stage.run(govern(stage.agent("a", tools=[tool]), guard_of()))

    def test_the_tools_own_guardrails_see_its_answers(self, stage, guard_of, ran):
        """What an application checks is checked."""
        tool = counter(ran, output_type=Counted)
        seen = []

        def check(data) -> ToolGuardrailFunctionOutput:
            seen.append(data.output)
            return ToolGuardrailFunctionOutput.reject_content("checked")

        tool.tool_output_guardrails = [ToolOutputGuardrail(check)]
        stage.script("responses", a=[("count", '{"upto": 3}')])

        stage.run(govern(stage.agent("a", tools=[tool]), guard_of()))

        assert ([Counted(number=3)], ["checked"]) == (seen, stage.said)
