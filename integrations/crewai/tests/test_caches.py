"""Results that a crew keeps: served to a call that was judged, and no other."""

import pytest
from crewai.hooks import InterceptionPoint
from crewai.hooks.dispatch import register, unregister
from crewai.tools import ToolFailure, tool

from adjudge import ApprovalDecision, CallContext, Principal
from adjudge_crewai import adjudge_hooks, govern, governed

NO = {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "notes are kept"}
ERASE = ("erase", '{"name": "a"}')


def cached(both, erase, *calls):
    """A crew that keeps results, and a model that makes calls."""
    other = ("look", '{"at": "x"}')
    both.script(a=[each for call in calls for each in (call, other)])

    def look(at: str) -> str:
        """Look at something, so that no call repeats the last one."""
        return at

    return both.crew(both.agent(tools=[tool(erase), tool(look)]), fields={"cache": True})


def test_a_cached_result_is_served_as_ungoverned(both, guard_of, erase, ran, record):
    """A call that the policy allows gets its result out of the crew's cache."""
    crew = cached(both, erase, ERASE, ERASE)
    govern(crew, guard_of()).kickoff()
    assert [("a", False)] == ran
    assert 2 == [each["tool"] for each in record.bodies("action.completed")].count("erase")


@pytest.mark.parametrize("how", ["govern", "hooks"])
def test_a_cached_result_is_judged(both, guard_of, erase, ran, record, how):
    """A call that the policy denies gets nothing out of the crew's cache."""
    crew = cached(both, erase, ERASE, ERASE)
    rule = {"id": "once", "match": {"tool": "erase"}, "decision": "approve_required"}
    answers = iter([True, False])

    def ask(request):
        return ApprovalDecision(next(answers), "ana")

    guard = guard_of(rule, on_approval=ask)
    if how == "govern":
        govern(crew, guard).kickoff()
    else:
        with adjudge_hooks(guard):
            crew.kickoff()
    assert [("a", False)] == ran
    ends = [event for event in record.events if event.body.get("tool") == "erase"]
    assert "action.denied" == ends[-1].kind


@pytest.mark.parametrize("how", ["govern", "hooks"])
def test_what_was_cached_before_is_judged(both, guard_of, erase, ran, how):
    """A result that was kept before there was a guard is served to no call that it denies."""
    crew = cached(both, erase, ERASE)
    crew.kickoff()
    told = len(both.requests)
    guard = guard_of(NO)
    if how == "govern":
        govern(crew, guard).kickoff()
    else:
        with adjudge_hooks(guard):
            crew.kickoff()
    assert [("a", False)] == ran
    later = [request.outputs for request in both.requests[told:]]
    assert all(not text.startswith("erased") for each in later for text in each.values())


@pytest.mark.parametrize("verdict", ["deny", "dry_run", "transform"])
def test_what_is_no_plain_result_is_not_kept(both, guard_of, erase, ran, verdict):
    """A denial, a preview and the result of a rewritten call are in no cache."""
    rule = {"id": "r", "match": {"tool": "erase", "args.hard": True}, "decision": verdict}
    if verdict == "transform":
        rule["transform"] = {"jsonpath": "$.args.hard", "set": False}
    hard = ("erase", '{"name": "a", "hard": true}')
    crew = cached(both, erase, hard)
    govern(crew, guard_of(rule, shadows={"erase": lambda **args: args})).kickoff()
    cache = crew._cache_handler
    assert cache.read("erase", '{"name": "a", "hard": true}') is None
    assert "x" == cache.read("look", '{"at": "x"}')


def test_a_governed_tool_leaves_nothing_in_a_cache_that_is_not(both, guard_of, erase, ran):
    """In a crew that is not governed, a governed tool's results are not kept."""
    crew = cached(both, govern(tool(erase), guard_of()).func, ERASE, ERASE)
    crew.agents[0].tools[0] = govern(tool(erase), guard_of())
    crew.kickoff()
    assert [("a", False), ("a", False)] == ran


def test_a_result_is_served_to_whom_it_was_made_for(both, guard_of, erase, ran):
    """What one caller got is not served to another, who may get something else."""
    crew = cached(both, erase, ERASE, ERASE)
    callers = iter(["bo", "bo", "cy", "cy"])
    govern(
        crew, guard_of(), context=lambda _: CallContext(Principal("user", next(callers)))
    ).kickoff()
    assert [("a", False), ("a", False)] == ran


def test_a_denied_call_has_nothing_of_an_earlier_failure(both, guard_of, record):
    """A call that is denied failed for that reason, whatever an equal one did before it."""

    def erase(name: str) -> ToolFailure:
        """Erase a note."""
        return ToolFailure(message="locked", code="E1")

    rule = {"id": "once", "match": {"tool": "erase"}, "decision": "approve_required"}
    answers = iter([True, False])
    guard = guard_of(rule, on_approval=lambda _: ApprovalDecision(next(answers), "ana"))
    output = govern(cached(both, erase, ERASE, ERASE), guard).kickoff()
    first, second = [failure.failure for failure in output.tasks_output[0].tool_failures]
    assert ("locked", "E1") == (first.message, first.code)
    assert ("[denied] approval refused by ana", None) == (second.message, second.code)


def test_a_hook_that_calls_a_tool_gets_no_others_result(both, guard_of, erase, ran):
    """What a hook calls after a call that came out of the cache is judged and runs by itself."""
    told = []

    def after(ctx):
        if ctx.tool_name == "erase":
            told.append(crew.agents[0].tools[0].run(name="b"))

    crew = govern(cached(both, erase, ERASE, ERASE), guard_of())
    register(InterceptionPoint.POST_TOOL_CALL, after)
    try:
        crew.kickoff()
    finally:
        unregister(InterceptionPoint.POST_TOOL_CALL, after)
    assert ["erased b", "erased b"] == told
    assert [("a", False), ("b", False), ("b", False)] == ran


@pytest.mark.parametrize("way", ["set", "copied"])
def test_a_cache_function_put_in_later_keeps_nothing_unjudged(both, guard_of, erase, ran, way):
    """What decides about a cache, set on a decorated tool as CrewAI shows it, is asked by us."""

    def always(*_):
        return True

    both.script(a=[ERASE, ("erase", '{"name": "b"}'), ERASE])
    made = governed(guard_of())(erase)
    if way == "set":
        made.cache_function = always
    else:
        made = made.model_copy(update={"cache_function": always})
    both.crew(both.agent(tools=[made]), fields={"cache": True}).kickoff()
    assert ["a", "b", "a"] == [name for name, _ in ran]
