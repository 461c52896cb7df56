"""Events of a host's own on the record of the calls, and calls of `check` that stand in a run."""

import json

import pytest

from adjudge._enforcement.places import CallPlace
from adjudge._enforcement.runs import GovernedRun
from adjudge._enforcement.tools import ToolSet, tool
from adjudge._record.chain import hash_chained_sink
from adjudge._record.sinks import required_sink
from adjudge._record.verification import verify_chain
from adjudge._types import ApprovalDecision, Outcome
from adjudge._values import freeze_object
from adjudge.errors import GovernError, RecordError
from adjudge.policy import compile_policy

ALLOW = {"decision": "allow"}
ASK = {"decision": "approve_required"}
GRANT = ApprovalDecision(True, "ana", "fine")


class Suspended(BaseException):
    """How a host leaves a body whose inside waits."""


class TestHostEvents:
    @pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
    async def test_an_event_stands_between_those_of_the_calls(self, bench, sync):
        """It has a number of its own, and what the guard's events have in common."""
        guard = bench.guard(ALLOW)
        await guard.check("note", {"text": "a"})
        if sync:
            guard.record_event_sync("step.usage", {"input_tokens": 3})
        else:
            await guard.record_event("step.usage", {"input_tokens": 3})
        await guard.check("note", {"text": "b"})

        event = bench.events[3]
        assert ("step.usage", {"input_tokens": 3}) == (event.kind, dict(event.body))
        assert (guard.correlation_id, guard.policy.id) == (event.correlation_id, event.bundle_id)
        assert [0, 0, 0, 1, 2, 2, 2] == [each.seq - bench.events[0].seq for each in bench.events]

    async def test_secrets_in_it_are_redacted(self, bench):
        """It goes the way of every event."""
        guard = bench.guard(ALLOW)

        await guard.record_event("run.started", {"password": "hunter2"})

        assert "hunter2" not in repr(bench.events)

    @pytest.mark.parametrize(
        "kind", ["action.completed", "policy.evaluated", "step.proposed", "approval.granted", "x"]
    )
    async def test_what_became_of_a_call_only_adjudge_records(self, bench, kind):
        """Law 7: no host can forge a terminal event."""
        with pytest.raises(ValueError, match=r"own|two words"):
            await bench.guard(ALLOW).record_event(kind, {})

        assert [] == bench.events

    async def test_a_required_sink_that_refuses_it_is_an_error(self, bench):
        """What cannot be recorded is not passed over."""

        def refuse(event):
            raise OSError("full")

        guard = bench.guard(ALLOW, sinks=[required_sink(refuse)])

        with pytest.raises(RecordError):
            await guard.record_event("run.started", {})

    async def test_the_chain_holds_with_it(self, bench, tmp_path):
        """What a verifier accepts is what was written."""
        log = tmp_path / "audit.jsonl"
        guard = bench.guard(ALLOW, sinks=[hash_chained_sink(log)])
        await guard.record_event("run.started", {"task": "x"})
        await guard.check("note", {"text": "a"})

        result = verify_chain(log)

        assert (True, 4, ()) == (result.intact, result.lines, result.open_proposals)
        assert "run.started" == json.loads(log.read_text().splitlines()[0])["kind"]


class TestPlaces:
    async def test_a_paused_call_of_check_goes_on_in_its_run(self, bench, desk):
        """Clause 24: what waited is found by its place, and runs once."""
        guard, run = desk.guard(ASK), GovernedRun()
        args = {"to": "x", "amount": 1}

        async def call(within):
            return await guard.check("pay", args, place=CallPlace("c1", within, "clerk", "/c0"))

        paused = await call(run)
        reopened = await desk.reopen(guard, {paused.pending.id: GRANT})
        done = await call(reopened)
        again = await call(reopened)

        assert (Outcome.PENDING, Outcome.COMPLETED) == (paused.outcome, done.outcome)
        assert "c1" == paused.pending.call_id
        assert Outcome.PENDING == again.outcome
        assert [args] == bench.ran

    async def test_a_call_is_found_again_by_where_it_stands(self, bench, desk):
        """Its id alone does not do: agents, and calls inside of others, may have the same ones."""
        guard, run = desk.guard(ASK), GovernedRun()
        args = {"to": "x", "amount": 1}
        paused = await guard.check("pay", args, place=CallPlace("c1", run, "clerk", "/c0"))

        found = run.entry_at("pay", "c1", agent="clerk", parent="/c0")

        assert paused.pending.id == found.id
        assert None is run.entry_at("pay", "c1", agent="clerk")
        assert None is run.entry_at("pay", "c1", agent="other", parent="/c0")
        assert None is run.entry_at("pay", "c2", agent="clerk", parent="/c0")
        assert None is run.entry_at("note", "c1", agent="clerk", parent="/c0")

    async def test_one_that_cannot_wait_is_denied(self, bench, desk):
        """Law 4: nothing is entered that nobody would go on with."""
        guard, run = desk.guard(ASK), GovernedRun()
        place = CallPlace("c1", run, may_pause=False)

        denied = await guard.check("pay", {"to": "x", "amount": 1}, place=place)

        assert (Outcome.DENIED, "cannot_pause") == (denied.outcome, denied.result.code)
        assert ((), []) == (await guard.waiting(run.id), bench.ran)

    @pytest.mark.parametrize("pauses", [True, False], ids=["pauses", "asks"])
    async def test_a_host_may_deny_before_anybody_is_asked(self, bench, desk, pauses):
        """A person's answer to what cannot run is not asked for."""
        asked, judged = [], []

        def refuse(request):
            judged.append(dict(request.args))
            return "stale", "it is too late"

        guard = desk.guard(ASK) if pauses else bench.guard(ASK, on_approval=asked.append)
        place = CallPlace("c1", GovernedRun(), before_asking=refuse)

        denied = await guard.check("pay", {"to": "x", "amount": 1}, place=place)

        assert ("stale", "[denied] it is too late") == (denied.result.code, denied.text)
        assert [{"to": "x", "amount": 1}] == judged
        assert [] == asked == bench.ran
        assert not [event for event in bench.events if event.kind.startswith("approval.")]

    async def test_what_fails_before_asking_denies(self, bench, desk):
        """Law 4: nobody is asked, and nothing runs."""
        place = CallPlace("c1", GovernedRun(), before_asking=lambda request: 1 / 0)

        denied = await desk.guard(ASK).check("pay", {"to": "x", "amount": 1}, place=place)

        assert (Outcome.DENIED, []) == (denied.outcome, bench.ran)
        assert "ZeroDivisionError" in denied.text

    async def test_an_unknown_tool_keeps_the_id_of_its_call(self, bench):
        """The record says which of the model's calls named no tool."""
        guard = bench.guard(ALLOW)

        denied = await guard.check("nothing", {}, place=CallPlace("c7"))

        assert Outcome.DENIED == denied.outcome
        assert "c7" == bench.events[0].body["call_id"]

    async def test_a_body_may_leave_by_the_control_flow_of_its_host(self, bench, desk):
        """Law 6: a body that suspends itself is no failure, and its exception passes."""

        async def leaves(to: str) -> str:
            raise Suspended

        functions = [tool()(leaves)]
        guard, run = desk.guard(ALLOW, tools=functions), GovernedRun()
        place = CallPlace("c1", run, control_flow=(Suspended,))

        with pytest.raises(Suspended):
            await guard.check("leaves", {"to": "x"}, place=place)

        assert "action.suspended" == bench.events[-1].kind


class TestOtherTools:
    async def test_a_guard_with_other_tools_keeps_one_record(self, bench):
        """The policy, the numbering and the sinks are those of the guard that it is made of."""

        async def count(to: str) -> str:
            return "1"

        guard = bench.guard({"match": {"tool": "count"}, "decision": "allow"}, tools=[])
        other = guard.with_tools(ToolSet.from_functions(tool()(count)))

        first = await guard.check("count", {"to": "x"})
        second = await other.check("count", {"to": "x"})

        assert (Outcome.DENIED, Outcome.COMPLETED) == (first.outcome, second.outcome)
        assert guard.correlation_id == other.correlation_id
        assert 1 == bench.events[-1].seq - bench.events[0].seq
        assert ((), ("count",)) == (guard.tools.names, other.tools.names)

    def test_what_are_no_tools_are_refused(self, bench):
        """A list of functions is an error where it is given."""
        with pytest.raises(GovernError, match=r"ToolSet\.from_functions"):
            bench.guard(ALLOW).with_tools([len])

    @pytest.mark.parametrize(
        ("sent", "outcome"),
        [({"to": "x"}, "completed"), ({"to": 7}, "failed"), ('{"to": "x", "n": 1}', "failed")],
        ids=["fits", "wrong kind", "too many"],
    )
    async def test_arguments_that_the_schema_rejects_get_no_verdict(self, bench, sent, outcome):
        """Section 3: what the model was not told to send is not judged, and runs nothing."""

        async def count(to: str, unit: str = "euro") -> str:
            bench.ran.append(unit)
            return to

        schema = {
            "type": "object",
            "properties": {"to": {"type": "string"}, "unit": {"type": "string", "default": "cent"}},
            "required": ["to"],
            "additionalProperties": False,
        }
        tools = ToolSet.from_functions(tool()(count))
        guard = bench.guard(ALLOW).with_tools(tools, schemas={"count": schema})

        done = await guard.check("count", sent)

        ran = ["cent"] if outcome == "completed" else []
        judged = outcome == "completed"
        assert (outcome, ran) == (done.outcome, bench.ran)
        assert judged is ("policy.evaluated" in bench.kinds)

    async def test_what_the_model_sent_is_said_only_where_it_is_not_all(self, bench):
        """Clause 2: a schema that changes a kind leaves the names as they were sent."""

        async def count(names: list[str]) -> int:
            return len(names)

        schema = {
            "type": "object",
            "properties": {"names": {"type": "array", "items": {"type": "string"}}},
            "required": ["names"],
            "additionalProperties": False,
        }
        tools = ToolSet.from_functions(tool()(count))
        guard = bench.guard(ALLOW).with_tools(tools, schemas={"count": schema})

        await guard.check("count", {"names": ["a"]})

        assert "given" not in bench.body("step.proposed")


class TestGuardsOfTheSameTools:
    """One set of tools behind one guard after the other."""

    @staticmethod
    def tools(bench):
        """Give a set with a tool that may be called with nothing."""

        async def count(most: object = 5) -> object:
            bench.ran.append(most)
            return most

        return ToolSet.from_functions(tool()(count))

    async def test_each_goes_by_what_its_policy_states_of_a_tool(self, bench):
        """Clause 13: an isolation that one policy asks for is nothing to the next guard."""
        tools = self.tools(bench)
        source = {"version": 1, "rules": [{"id": "any", "match": "always", "decision": "allow"}]}
        plain = compile_policy(source)
        isolated = compile_policy({**source, "tools": {"count": {"isolation": "vm"}}})

        done = [
            await bench.guard(policy=policy).with_tools(tools).check("count", {})
            for policy in (plain, isolated, plain)
        ]

        assert ["", "isolation_unrouted", ""] == [each.result.code for each in done]

    @pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
    async def test_each_holds_arguments_to_the_schemas_that_it_was_given(self, bench, sync):
        """A schema that is equal to the one before, and is another, has its own default."""
        tools = self.tools(bench)
        made = [
            freeze_object(
                {
                    "type": "object",
                    "properties": {"most": {"type": "boolean", "default": default}},
                    "required": [],
                    "additionalProperties": False,
                }
            )
            for default in (1, True)
        ]
        guard = bench.guard(ALLOW)
        for schemas in (None, {"count": made[0]}, {"count": made[1]}, None):
            other = guard.with_tools(tools, schemas=schemas)
            if sync:
                other.check_sync("count", {})
            else:
                await other.check("count", {})

        assert ["5", "1", "True", "5"] == [repr(each) for each in bench.ran]

    async def test_each_goes_by_its_schemas_as_they_are_when_it_is_made(self, bench):
        """Section 3: a schema that was changed since the guard before is read anew."""
        tools = self.tools(bench)
        asked = {"type": "integer"}
        schema = {
            "type": "object",
            "properties": {"most": asked},
            "required": ["most"],
            "additionalProperties": False,
        }
        guard = bench.guard(ALLOW)

        before = await guard.with_tools(tools, schemas={"count": schema}).check(
            "count", {"most": 9}
        )
        asked["type"] = "array"
        after = await guard.with_tools(tools, schemas={"count": schema}).check("count", {"most": 9})

        assert ["completed", "failed"] == [before.outcome, after.outcome]
        assert [9] == bench.ran

    async def test_each_knows_of_its_own_previews(self, bench):
        """Clause 17: whether there is a shadow is what this guard could run."""
        tools = self.tools(bench)
        rule = {"id": "seen", "match": {"declared.has_shadow": True}, "decision": "dry_run"}
        policy = compile_policy({"version": 1, "rules": [rule]})

        outcomes = [
            (await bench.guard(policy=policy, **more).with_tools(tools).check("count", {})).outcome
            for more in ({}, {"shadows": {"count": lambda most: most}}, {})
        ]

        assert ["denied", "previewed", "denied"] == outcomes
