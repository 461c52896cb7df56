"""Handoffs: judged before their callback runs and the agent changes; a denial ends the run."""

import copy
import dataclasses
import pickle

import pytest
from agents import (
    Agent,
    AgentsException,
    Handoff,
    ModelBehaviorError,
    RunContextWrapper,
    function_tool,
    handoff,
)
from pydantic import BaseModel

from adjudge import (
    AdjudgeError,
    ApprovalDecision,
    CallContext,
    GovernedCall,
    GovernError,
    Outcome,
    Principal,
    Verdict,
)
from adjudge_openai_agents import HandoffDenied, govern

TO_B = {"tool": "transfer_to_b"}
DENY = {"id": "stay", "match": TO_B, "decision": "deny", "reason": "stay here"}


class Ticket(BaseModel):
    reason: str
    level: int = 1


@pytest.fixture
def called():
    """What the callback got."""
    return []


@pytest.fixture
def starts(stage, called):
    """Make an agent that hands off to another, with a ticket."""

    def make(text='{"reason": "refund", "level": 2}', *, api="chat", **options) -> Agent:
        stage.script(api, a=[("transfer_to_b", text)], b=[])
        item = handoff(
            stage.agent("b"),
            on_handoff=lambda _context, ticket: called.append(ticket),
            input_type=Ticket,
            **options,
        )
        return stage.agent("a", handoffs=[item])

    return make


def plain(stage) -> Agent:
    """Make an agent that names another in its handoffs."""
    stage.script(a=[("transfer_to_b", "{}")], b=[])
    return stage.agent("a", handoffs=[stage.agent("b")])


class TestVerdicts:
    def test_an_allowed_one_happens(self, stage, starts, guard_of, called, record):
        """The callback gets its input once, the other agent ends the run, the record has it."""
        result = stage.run(govern(starts(), guard_of()))

        assert ("b is done.", [Ticket(reason="refund", level=2)]) == (result.final_output, called)
        assert ["step.proposed", "policy.evaluated", "action.completed"] == record.kinds
        proposed = record.bodies("step.proposed")[0]
        assert ("transfer_to_b", {"reason": "refund", "level": 2}) == (
            proposed["tool"],
            proposed["args"],
        )

    def test_a_denied_one_ends_the_run(self, stage, starts, guard_of, called, record):
        """The callback never runs and the agent never changes; the exception says why."""
        with pytest.raises(HandoffDenied) as caught:
            stage.run(govern(starts(), guard_of(DENY)))

        assert "[denied] stay here" == str(caught.value)
        assert Verdict.DENY is caught.value.call.decision.verdict
        assert [] == called
        assert "action.denied" == record.kinds[-1]
        assert 1 == len(stage.sent)

    def test_one_to_an_agent_named_plainly_is_judged(self, stage, guard_of):
        """Law 3: an agent in `handoffs` is a way to change the agent, whatever it takes."""
        with pytest.raises(HandoffDenied, match="stay here"):
            stage.run(govern(plain(stage), guard_of(DENY)))
        assert "b is done." == stage.run(govern(plain(stage), guard_of())).final_output

    def test_one_is_denied_by_default(self, stage, guard_of):
        """A handoff of which the policy says nothing does not happen."""
        with pytest.raises(HandoffDenied):
            stage.run(govern(plain(stage), guard_of(rest="deny")))

    def test_its_arguments_are_judged(self, stage, starts, guard_of, called):
        """A rule reads the input, with the defaults of its type."""
        rule = {"id": "r", "match": {**TO_B, "args.level": 1}, "decision": "deny", "reason": "low"}

        with pytest.raises(HandoffDenied, match="low"):
            stage.run(govern(starts('{"reason": "refund"}'), guard_of(rule)))
        assert [] == called

    def test_a_transform_rewrites_what_the_callback_gets(self, stage, starts, guard_of, called):
        """Law 5: the callback gets the rewritten input."""
        rule = {
            "id": "r",
            "match": TO_B,
            "decision": "transform",
            "transform": {"path": "args.level", "set": 5},
        }

        stage.run(govern(starts(), guard_of(rule)))

        assert [Ticket(reason="refund", level=5)] == called

    def test_a_transform_that_the_callback_cannot_take_denies(
        self, stage, starts, guard_of, called
    ):
        """Clause 19: what fails the schema of the input denies."""
        rule = {
            "id": "r",
            "match": TO_B,
            "decision": "transform",
            "transform": {"path": "args.level", "set": "high"},
        }

        with pytest.raises(HandoffDenied):
            stage.run(govern(starts(), guard_of(rule)))
        assert [] == called

    def test_a_dry_run_previews_and_ends_the_run(self, stage, starts, guard_of, called):
        """The exception has the preview, which no model sees."""
        rule = {"id": "r", "match": TO_B, "decision": "dry_run"}
        guard = guard_of(rule, shadows={"transfer_to_b": lambda reason, level: f"to b: {reason}"})

        with pytest.raises(HandoffDenied) as caught:
            stage.run(govern(starts(), guard))

        assert '[dry_run] not executed; preview: "to b: refund"' == str(caught.value)
        assert Outcome.PREVIEWED is caught.value.call.outcome
        assert [] == called

    def test_a_dry_run_without_a_shadow_denies(self, stage, starts, guard_of, called):
        """Nothing is previewed by chance."""
        with pytest.raises(HandoffDenied, match=r"\[denied\] "):
            stage.run(govern(starts(), guard_of({"id": "r", "match": TO_B, "decision": "dry_run"})))
        assert [] == called

    @pytest.mark.parametrize("granted", [True, False])
    def test_approval_is_asked_for(self, stage, starts, guard_of, called, granted):
        """A handler's yes lets it happen; its no ends the run."""

        async def answer(_request) -> ApprovalDecision:
            return ApprovalDecision(granted=granted, approver="ana")

        rule = {"id": "r", "match": TO_B, "decision": "approve_required"}
        agent = govern(starts(), guard_of(rule, on_approval=answer))

        if granted:
            stage.run(agent)
        else:
            with pytest.raises(HandoffDenied):
                stage.run(agent)
        assert granted == bool(called)

    @pytest.mark.parametrize("api", ["chat", "responses"])
    def test_a_streamed_run_is_governed(self, stage, starts, guard_of, called, api):
        """So it is where the answers are streamed, over both APIs."""
        with pytest.raises(HandoffDenied):
            stage.run_streamed(govern(starts(api=api), guard_of(DENY)))
        assert [] == called


class TestTransparency:
    @pytest.mark.parametrize("make", ["plain", "ticket"])
    def test_a_run_in_which_all_is_allowed_is_the_run_ungoverned(
        self, stage, starts, guard_of, make
    ):
        """Law 1: the same bytes to the models, the same items, the same last agent."""

        def outcome(governing):
            result = stage.run(governing(plain(stage) if make == "plain" else starts()))
            items = [item.type for item in result.new_items]
            return stage.sent, result.final_output, items, result.last_agent.name

        assert outcome(lambda agent: agent) == outcome(lambda agent: govern(agent, guard_of()))

    @pytest.mark.parametrize("text", ["{", "[1]", '{"level": 2}', '{"reason": "r", "level": "2"}'])
    def test_input_that_the_sdk_rejects_gets_its_own_answer(
        self, stage, starts, guard_of, called, record, text
    ):
        """Law 2: what the framework says of invalid arguments is what it says ungoverned."""
        with pytest.raises(ModelBehaviorError):
            stage.run(starts(text))
        with pytest.raises(ModelBehaviorError):
            stage.run(govern(starts(text), guard_of()))

        assert [] == called
        assert "action.failed" == record.kinds[-1]

    def test_input_that_only_a_lenient_parser_reads_is_denied(
        self, stage, starts, guard_of, called, record
    ):
        """Clause 2: of two values for one name none is judged."""
        with pytest.raises(HandoffDenied):
            stage.run(govern(starts('{"reason": "a", "reason": "b"}'), guard_of()))

        assert [] == called
        assert "refused_arguments" == record.bodies("action.denied")[0]["code"]

    def test_text_that_nobody_reads_is_denied(self, stage, guard_of):
        """Clause 2: a handoff without input may not be talked to in what is no JSON."""
        stage.script(a=[("transfer_to_b", "please")], b=[])
        agent = stage.agent("a", handoffs=[stage.agent("b")])

        with pytest.raises(HandoffDenied):
            stage.run(govern(agent, guard_of()))

    def test_no_text_is_no_input(self, stage, guard_of, record):
        """Models leave the text empty where there is nothing to say."""
        stage.script(a=[("transfer_to_b", "")], b=[])

        stage.run(govern(stage.agent("a", handoffs=[stage.agent("b")]), guard_of()))

        assert {} == record.bodies("step.proposed")[0]["args"]

    def test_a_failing_callback_ends_the_run_as_ungoverned(self, stage, guard_of, record):
        """Law 1: the callback's own exception reaches the caller."""

        def fail(_context) -> None:
            raise LookupError("no desk")

        stage.script(a=[("transfer_to_b", "{}")], b=[])
        item = handoff(stage.agent("b"), on_handoff=fail)

        with pytest.raises(LookupError, match="no desk"):
            stage.run(govern(stage.agent("a", handoffs=[item]), guard_of()))
        assert "action.failed" == record.kinds[-1]

    def test_the_list_of_handoffs_still_knows_its_agents(self, guard_of):
        """An application that looks for an agent in the list finds it."""
        one, other = Agent(name="one"), Agent(name="other")
        agent = govern(Agent(name="a", handoffs=[one]), guard_of())

        assert one in agent.handoffs
        assert other not in agent.handoffs
        assert agent.handoffs == agent.handoffs[:]
        agent.handoffs.remove(one)
        assert [] == agent.handoffs

    def test_a_plain_handoff_follows_its_agents_name(self, stage, guard_of, record):
        """The SDK makes such handoffs anew before each request, and so does the guard."""
        stage.script(a=[("transfer_to_c", "{}")], b=[])
        inner = stage.agent("b")
        agent = govern(stage.agent("a", handoffs=[inner]), guard_of())
        inner.name, inner.handoff_description = "c", "Now c."

        stage.run(agent)

        assert "transfer_to_c" == record.bodies("step.proposed")[0]["tool"]
        assert b"Now c." in stage.sent[0]


class TestContext:
    def test_the_caller_is_asked_for(self, stage, guard_of):
        """Clause 26: `context=` gets the SDK's run context of the handoff."""

        def who(context: RunContextWrapper) -> CallContext:
            return CallContext(Principal("user", context.context))

        rule = {"id": "r", "match": {"context.principal.id": "ana"}, "decision": "allow"}
        agent = govern(plain(stage), guard_of(rule, rest="deny"), context=who)

        assert "b is done." == stage.run(agent, context="ana").final_output
        with pytest.raises(HandoffDenied):
            stage.run(agent, context="bo")


class TestGoverning:
    def test_a_lone_handoff_is_governed_in_place(self, stage, starts, guard_of, called):
        """A handoff may be governed without the agent that has it."""
        agent = starts()
        (item,) = agent.handoffs

        assert item is govern(item, guard_of(DENY))
        with pytest.raises(HandoffDenied):
            stage.run(agent)
        assert [] == called

    def test_the_agent_behind_a_lone_handoff_is_governed(self, guard_of):
        """Law 3: it is reached through the handoff."""
        inner = Agent(name="b")

        govern(handoff(inner), guard_of())

        assert Agent is not type(inner)

    def test_copies_are_governed(self, stage, starts, guard_of, called):
        """A copy of a governed handoff leads nowhere else."""
        agent = govern(starts(), guard_of(DENY))
        (item,) = agent.handoffs

        for each in (copy.copy(item), copy.deepcopy(item), dataclasses.replace(item)):
            with pytest.raises(HandoffDenied):
                stage.run(stage.agent("a", handoffs=[each]))
        assert [] == called

    def test_the_same_guard_again_changes_nothing(self, guard_of):
        """Governing twice is governing once."""
        guard = guard_of()
        item = govern(handoff(Agent(name="b")), guard)
        invoke = item.on_invoke_handoff

        assert invoke is govern(item, guard).on_invoke_handoff

    def test_another_guard_is_an_error(self, guard_of):
        """A handoff has one guard."""
        item = govern(handoff(Agent(name="b")), guard_of())

        with pytest.raises(GovernError):
            govern(item, guard_of())

    def test_a_renamed_one_is_refused(self, guard_of):
        """Fault kind 5: a policy judges the name that the model calls, and no former one."""
        guard = guard_of()
        item = govern(handoff(Agent(name="b")), guard)
        item.tool_name = "leave"

        with pytest.raises(GovernError, match="renamed"):
            govern(Agent(name="a", handoffs=[item]), guard)

    def test_without_recursion_the_handoff_is_judged_and_its_agent_left_alone(
        self, stage, guard_of
    ):
        """`recursive=False` speaks of the other agents, not of this agent's own calls."""
        agent = plain(stage)
        (inner,) = agent.handoffs
        govern(agent, guard_of(DENY), recursive=False)

        assert Agent is type(inner)
        with pytest.raises(HandoffDenied):
            stage.run(agent)

    def test_a_handoff_to_what_is_no_agent_ends_the_run(self, stage, guard_of):
        """Law 3: what takes over must be there to be governed."""

        async def invoke(_context, _text):
            return object()

        stage.script(a=[("transfer_to_b", "{}")])
        item = Handoff("transfer_to_b", "Hand off.", {}, invoke, "b")

        with pytest.raises(GovernError):
            stage.run(govern(stage.agent("a", handoffs=[item]), guard_of()))

    def test_one_of_a_clone_is_judged(self, stage, guard_of):
        """A clone with other handoffs has the guard."""
        stage.script(a=[("transfer_to_b", "{}")], b=[])
        agent = govern(stage.agent("a"), guard_of(DENY))

        with pytest.raises(HandoffDenied):
            stage.run(agent.clone(handoffs=[stage.agent("b")]))


class TestTheException:
    @pytest.fixture
    def error(self, stage, guard_of):
        """The exception of a denied handoff."""
        with pytest.raises(HandoffDenied) as caught:
            stage.run(govern(plain(stage), guard_of(DENY)))
        return caught.value

    def test_it_is_the_sdks_and_ours(self, error):
        """Whoever catches the SDK's exceptions catches it, with the run so far."""
        assert isinstance(error, AgentsException)
        assert isinstance(error, AdjudgeError)
        assert "handoff_denied" == error.code
        assert "a" == error.run_data.last_agent.name

    def test_it_carries_the_call(self, error):
        """The decision and the request are there for who wants to know more."""
        assert isinstance(error.call, GovernedCall)
        assert "transfer_to_b" == error.call.request.tool

    def test_it_pickles(self, error):
        """It may cross a process."""
        again = pickle.loads(pickle.dumps(error))

        assert (str(error), error.call.decision) == (str(again), again.call.decision)


def test_a_handoff_leaves_the_tools_of_its_turn_to_the_sdk(stage, guard_of):
    """A policy may let a handoff through and stop what the other agent then wants."""

    @function_tool
    def wipe() -> str:
        """Wipe a disk."""
        raise AssertionError

    stage.script(a=[("transfer_to_b", "{}")], b=[("wipe", "{}")])
    inner = stage.agent("b", tools=[wipe])
    rule = {"id": "go", "match": TO_B, "decision": "allow"}

    result = stage.run(govern(stage.agent("a", handoffs=[inner]), guard_of(rule, rest="deny")))

    assert "[denied] not permitted by policy" == stage.said[-1]
    assert "b is done." == result.final_output
