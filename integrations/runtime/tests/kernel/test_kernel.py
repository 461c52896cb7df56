"""The kernel's loop: its tools are governed, its quotas hold, and its record is complete."""

import pytest

from adjudge import (
    CallContext,
    MemoryRunStore,
    Principal,
    SessionExists,
    SQLiteSessionStore,
    UnknownSession,
    auto_approve,
)
from adjudge_runtime.kernel import Budgets, Decision, IllegalTransition, RunState


async def test_a_session_runs_to_its_answer(desk, look, done):
    """The model acts, reads what came of it, and answers."""
    d = desk(look("x"), done)

    result = await d.run()

    assert (True, "the answer") == (result.succeeded, result.answer)
    assert [("look", "x")] == d.ran
    assert "[goal] find out\n" == d.read[0]
    assert "observation: saw x" in d.read[1]


async def test_a_model_may_be_async(desk, done):
    """A coroutine function chooses as a function does."""
    d = desk()

    async def model(text):
        return done

    d.kernel._model = model

    assert (await d.run()).succeeded


async def test_a_denial_is_told_to_the_model(desk, propose, done):
    """What the policy denies does not run, and the model reads why."""
    d = desk(propose("erase", what="all"), done)

    await d.run()

    assert [] == d.ran
    assert "error: [denied] never erase" in d.read[1]


async def test_an_unknown_tool_is_told_to_the_model(desk, propose, done):
    """A tool that is not there is an observation, and the session goes on."""
    d = desk(propose("teleport"), done)

    result = await d.run()

    assert result.succeeded
    assert "[denied] unknown tool" in d.read[1]
    assert "unknown_tool" == result.steps[0].code


async def test_a_failure_of_a_tool_is_told_to_the_model(desk, propose, done):
    """A body that raises fails its step alone."""
    d = desk(propose("fail"), done)

    result = await d.run()

    assert result.succeeded
    assert "error: [error] ValueError: broken" in d.read[1]


@pytest.mark.parametrize("arguments", ['{"what": "a", "what": "b"}', "[1]", "{"])
async def test_arguments_that_are_refused_run_nothing(desk, done, arguments):
    """The model's own text is parsed strictly, once, by the guard."""
    d = desk(Decision("act", "on", tool="look", arguments=arguments), done)

    result = await d.run()

    assert [] == d.ran
    assert result.steps[0].error is not None


async def test_each_call_is_made_for_the_sessions_user(desk, look, done):
    """The policy sees the user of the session, and its tenant and session as extra."""
    d = desk(look(), done)

    await d.run()

    proposed = next(event.body for event in d.events if event.kind == "step.proposed")
    assert {"kind": "user", "id": "ana", "name": None} == proposed["principal"]


async def test_a_policy_reads_the_tenant(desk, look, done):
    """`context.extra.tenant` is that of the session."""
    match = {"context.extra.tenant": "other"}
    rules = [{"id": "ours", "match": match, "decision": "allow"}]
    d = desk(look(), done, look(), done, rules=rules)

    await d.run("s")
    await d.create("other", tenant="other")
    await d.run("other")

    assert [("look", "a")] == d.ran


async def test_the_caller_may_be_said_otherwise(desk, look, done):
    """`caller` gives the identity of each session; what it raises denies."""

    def caller(session):
        if session.user_id == "nobody":
            raise LookupError("who?")
        return CallContext(Principal("service", f"for-{session.user_id}"))

    d = desk(look(), done, look(), done, caller=caller)

    await d.run()
    await d.create("n", user_id="nobody")
    await d.run("n")

    proposed = next(event.body for event in d.events if event.kind == "step.proposed")
    assert "for-ana" == proposed["principal"]["id"]
    assert [("look", "a")] == d.ran


@pytest.mark.parametrize(
    ("budgets", "kind", "asked"),
    [
        (Budgets(max_steps=3), "steps", 3),
        (Budgets(max_tokens=25), "tokens", 3),
        (Budgets(max_cost_micros=30), "cost", 2),
        (Budgets(deadline_seconds=1), "deadline", 1),
    ],
)
async def test_a_quota_ends_the_session_before_the_next_model_call(
    desk, look, budgets, kind, asked
):
    """Each quota is looked at before the model is asked, and the session fails with it."""
    d = desk(budgets=budgets, tool_costs={"look": 10})
    d.moves = [look(used=(5, 5), cost=5)] * 20
    ask = d.kernel._model

    def model(text):
        d.clock.pass_seconds(1)
        return ask(text)

    d.kernel._model = model

    result = await d.run()

    assert (RunState.FAILED, kind) == (result.state, result.breach.kind)
    assert asked == len(d.read) == len(d.ran)
    assert (10 * asked, 15 * asked) == (result.tokens_used, result.cost_micros)


async def test_a_denied_call_costs_what_the_model_cost(desk, propose, done):
    """The cost of a tool is counted where its body started."""
    d = desk(propose("erase", what="x", cost=3), done, tool_costs={"erase": 1_000})

    assert 3 == (await d.run()).cost_micros


async def test_quotas_count_over_the_whole_life(desk, look, question):
    """A session that waited does not begin its quotas anew."""
    d = desk(look(), question, look(), look(), budgets=Budgets(max_steps=3))

    await d.run()
    result = await d.run(resume_answer="yes")

    assert ("steps", 3) == (result.breach.kind, len(d.read))


async def test_a_question_waits_for_its_answer(desk, question, done):
    """The session waits, refuses to go on without an answer, and shows it to the model."""
    d = desk(question, done)

    first = await d.run()
    with pytest.raises(ValueError, match="resume_answer"):
        await d.run()
    second = await d.run(resume_answer="go ahead")

    assert (RunState.WAITING_INPUT, "may I?") == (first.state, first.question)
    assert (RunState.COMPLETED, None) == (second.state, second.question)
    assert "observation: go ahead" in d.read[1]


async def test_suspending_does_not_answer_a_question(desk, question, done):
    """A session that is put aside while it waits, waits when it is taken up."""
    d = desk(question, done)
    await d.run()

    suspended = await d.kernel.suspend("s")
    with pytest.raises(ValueError, match="resume_answer"):
        await d.run()
    result = await d.run(resume_answer="yes")

    assert RunState.SUSPENDED is suspended.state
    assert result.succeeded
    assert 2 == len(d.read)


async def test_a_session_can_stop_between_two_calls(desk, look, done):
    """`suspend_when` is asked before each model call; the next run goes on from there."""
    d = desk(look("one"), look("two"), done)

    first = await d.run(suspend_when=lambda: len(d.ran) == 1)
    second = await d.run()

    assert (RunState.SUSPENDED, RunState.COMPLETED) == (first.state, second.state)
    assert [("look", "one"), ("look", "two")] == d.ran


async def test_a_cancelled_session_is_over(desk, question):
    """Nothing happens to it any more."""
    d = desk(question)
    await d.run()

    cancelled = await d.kernel.cancel("s")

    assert RunState.CANCELLED is cancelled.state
    for again in (d.run(resume_answer="yes"), d.kernel.cancel("s"), d.kernel.suspend("s")):
        with pytest.raises(IllegalTransition):
            await again


async def test_an_answer_to_no_question_is_an_error(desk, done):
    """Nothing runs on an answer that nobody asked for."""
    d = desk(done)

    with pytest.raises(ValueError, match="asked nothing"):
        await d.run(resume_answer="yes")
    assert [] == d.read


async def test_what_the_model_raises_is_raised(desk, look, done):
    """The session stays as it was, and goes on when it is run again."""
    d = desk(look(), OSError("gone"), done)

    with pytest.raises(OSError, match="gone"):
        await d.run()
    result = await d.run()

    assert result.succeeded
    assert [("look", "a")] == d.ran


async def test_a_model_that_decides_nothing_is_an_error(desk):
    """An answer that is no Decision runs nothing."""
    d = desk("look at it")

    with pytest.raises(TypeError):
        await d.run()
    assert [] == d.ran


async def test_the_chain_is_complete_despite_compaction(desk, look, done):
    """Every step is in the chain, with who, when and what came of it, however little is shown."""
    d = desk(*[look(f"thing {n} " + "x" * 50) for n in range(11)], done, scratchpad_max_tokens=60)

    result = await d.run()
    steps = await d.kernel.execution_chain("s")

    assert result.compactions > 3
    assert len(result.steps) < 6
    assert result.steps == (await d.kernel.load("s")).steps
    assert list(range(1, 13)) == [step.step for step in steps]
    assert {("s", "t", "ana")} == {(s.session_id, s.tenant, s.user_id) for s in steps}
    assert d.ran == [(s.tool, s.arguments["what"]) for s in steps if s.kind == "act"]
    assert all(step.ok and step.duration_micros is not None for step in steps)


async def test_a_summarizer_that_fails_ends_nothing(desk, look, done):
    """The pad stays as it is, the failure is in the chain, and the session goes on."""

    def summarize(steps):
        raise OSError("no model")

    d = desk(look(), look(), look(), done, scratchpad_max_tokens=10, summarize=summarize)

    result = await d.run()

    kinds = [record.kind for record in await d.chain.load("session/s")]
    assert (True, 4, 0) == (result.succeeded, len(result.steps), result.compactions)
    assert "pad.compaction_failed" in kinds


async def test_a_session_that_ended_is_an_episode(desk, propose, look, done):
    """Its tools are its tags, its steps those of its whole life."""
    d = desk(look(), propose("erase", what="x"), done, scratchpad_max_tokens=10)

    await d.run()

    (found,) = d.kernel.episodic.recall(["look"], tenant="t")
    assert (("erase", "look"), 3, "completed") == (found.tags, found.steps, found.outcome)


async def test_runs_are_on_the_record(desk, look, done):
    """The guard's own record says that a session was taken up, and what came of it."""
    d = desk(look(), done)

    await d.run()

    kinds = [event.kind for event in d.events]
    assert ("session.run_started", "session.run_ended") == (kinds[0], kinds[-1])
    assert "completed" == d.events[-1].body["state"]


async def test_approval_in_place_runs_the_call(desk, propose, done):
    """A handler that grants lets the body run."""
    d = desk(propose("pay", amount=3), done, guard={"on_approval": auto_approve()})

    await d.run()

    assert [("pay", 3)] == d.ran


async def test_a_session_id_is_given_once(desk):
    """A second session of one id is an error, and so is running one that is not there."""
    d = desk()
    await d.create()

    with pytest.raises(SessionExists):
        await d.create()
    with pytest.raises(UnknownSession):
        await d.kernel.run("other")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tool_costs": {"look": 1.5}},
        {"scratchpad_max_tokens": 0},
        {"keep_recent": -1},
    ],
)
async def test_settings_that_are_none_are_errors(desk, wrong):
    """A kernel that could not mean anything is not made."""
    with pytest.raises(ValueError):
        desk(**wrong)


async def test_stores_of_different_lives_are_refused(desk, tmp_path):
    """A session that outlives its chain could not go on."""
    with pytest.raises(ValueError, match="outlives"):
        desk(store=SQLiteSessionStore(tmp_path / "s.db"), chain=MemoryRunStore())


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "wait"},
        {"kind": "act"},
        {"kind": "ask"},
        {"kind": "finish"},
        {"kind": "act", "tool": "x", "answer": "y"},
        {"kind": "ask", "question": "x", "arguments": {}},
        {"kind": "act", "tool": "x", "tokens_in": -1},
        {"kind": "act", "tool": "x", "cost_micros": 0.5},
        {"kind": "act", "tool": "x", "arguments": {"y": object()}},
    ],
)
def test_a_decision_that_does_not_fit_together_is_an_error(wrong):
    """Kind, fields and counts are checked when a decision is made."""
    with pytest.raises(ValueError):
        Decision(**{"thought": "t", **wrong})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"max_steps": 0}, ValueError),
        ({"max_tokens": 1.5}, TypeError),
        ({"max_cost_micros": True}, TypeError),
        ({"deadline_seconds": float("inf")}, ValueError),
    ],
)
def test_a_quota_that_is_none_is_an_error(wrong, error):
    """Quotas are positive, money and counts are whole."""
    with pytest.raises(error):
        Budgets(**wrong)
