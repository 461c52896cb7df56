"""What is told of a call of which not everything is known, holds whatever the rest is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.policies import layered, policy_dicts
from properties.trying import examples

from adjudge import Verdict, compile_policy, evaluate
from adjudge._values import EMPTY, FrozenDict, OpaqueValue, canonical_json
from adjudge.analysis import RecordedCall
from adjudge.analysis._recorded.recorded import UNSAID, Place
from adjudge.analysis._recorded.telling import Teller, Untold


def hidden(request, names, *, unsaid):
    """Give a request as a record has it, with these arguments redacted and the rest unsaid."""
    names = [name for name in names if request.args.get(name) is not None]
    args = {**request.args, **{name: OpaqueValue() for name in names}}
    unknown = tuple(("args", name) for name in names)
    known = replace(request, args=FrozenDict(args))
    if unsaid:
        unknown = (*unknown, *UNSAID, ("resolved",))
        context = replace(request.context, extra=EMPTY, session=None, workspace=".")
        known = replace(known, declared=None, given=None, injected=EMPTY, context=context)
    return RecordedCall(Place("x", 1), "", replace(known, resolved={}), unknown, Verdict.ALLOW)


def final(request, decision):
    """Give the arguments that would run."""
    args = request.args if decision.effective_args is None else decision.effective_args
    return canonical_json(args)


def without_python_rules(layers):
    """Tell whether what a layer says can be read."""
    return all(not layer.coded for layer in layers.layers)


several = st.lists(requests(), min_size=4, max_size=4)
some_names = st.lists(st.sampled_from(["amount", "mode", "file", "tags", "meta"]), max_size=3)


def assert_told_truly(policy, calls, names, *, unsaid):
    """Assert that what is told of each call as far as it is known is what is decided of it."""
    teller = Teller(policy)
    for call in calls:
        told = teller.tell(hidden(call, names, unsaid=unsaid))
        event("untold" if isinstance(told, Untold) else str(told.verdict))
        if not isinstance(told, Untold):
            decided = evaluate(policy, call)
            assert (decided.verdict, decided.approver_sets) == (told.verdict, told.approver_sets)
            if told.effective_args is not None and not names:
                assert final(call, decided) == final(call, told)


@settings(max_examples=examples(120))
@given(policy_dicts(), several, some_names, st.booleans())
def test_what_is_told_of_a_call_holds_whatever_was_not_recorded(policy, calls, names, unsaid):
    """Redacted arguments, and all that events do not carry."""
    assert_told_truly(compile_policy(policy), calls, names, unsaid=unsaid)


@settings(max_examples=examples(40))
@given(layered("strict_overrides_loose").filter(without_python_rules), several, some_names)
def test_so_it_is_for_layers(layers, calls, names):
    """Clause 20: defaults and floors of every layer included."""
    assert_told_truly(layers.compiled(), calls, names, unsaid=True)
