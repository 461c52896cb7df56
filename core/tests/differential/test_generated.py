"""Generated policies in lynx's language, generated calls: each difference has its clause."""

from __future__ import annotations

from dataclasses import replace

from differential.explain import explain
from differential.lynx_policies import lynx_policies
from differential.outcomes import SeedPolicy
from hypothesis import event, given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.trying import examples

from adjudge._types import ActionRequest, ToolMetadata

POLICIES = examples(1000)


def as_the_seed_has_it(request: ActionRequest) -> ActionRequest:
    """Give a request without what lynx has no word for, such as a tool's namespace."""
    context = request.context
    return replace(
        request,
        namespace=None,
        given=None,
        declared=request.declared or ToolMetadata(),
        context=replace(context, environment=context.environment or "test"),
    )


@settings(max_examples=POLICIES)
@given(lynx_policies(), st.lists(requests().map(as_the_seed_has_it), min_size=3, max_size=3))
def test_every_difference_from_the_seed_is_explained_by_a_clause(
    policy: SeedPolicy, calls: list[ActionRequest]
) -> None:
    """Adjudge decides as lynx does, except where a clause of semantics.md says otherwise."""
    for call in calls:
        clauses = explain(policy, call)
        event("clauses " + ", ".join(map(str, clauses)) if clauses else "the same")
