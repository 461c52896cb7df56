"""The policies that lynx ships compile as they did; each other decision has its clause."""

from __future__ import annotations

from typing import Any

import lynx.policy as lynx_policy
import pytest
import yaml
from differential.explain import explain
from differential.outcomes import SeedPolicy
from differential.shipped import calls_for, download, shipped_policies
from hypothesis import event, given, settings
from hypothesis import strategies as st
from properties.trying import examples

from adjudge.errors import PolicyCompileError
from adjudge.policy import compile_policy

CALLS = examples(400)


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give lynx's own policies."""
    return shipped_policies(download(tmp_path_factory.mktemp("lynx")))


@pytest.fixture(scope="session")
def read(shipped: dict[str, str]) -> dict[str, Any]:
    """Give those that compile and have rules, as what YAML makes of them."""
    whole = {
        name: yaml.safe_load(text)
        for name, text in shipped.items()
        if compiles(lynx_policy.compile_policy, text, lynx_policy.PolicyCompileError)
    }
    return {name: policy for name, policy in whole.items() if policy["rules"]}


def compiles(compile_text: Any, text: str, refusal: type[Exception]) -> bool:
    """Tell whether a policy compiles."""
    try:
        compile_text(text)
    except refusal:
        return False
    return True


def test_the_examples_are_found(shipped: dict[str, str]) -> None:
    """Lynx's three policy files are there, and the policies in its examples and pages."""
    files = {name for name in shipped if name.startswith("examples/policies/")}

    assert 3 == len(files)
    assert 60 <= len(shipped)


def test_every_shipped_policy_compiles_as_it_did(shipped: dict[str, str]) -> None:
    """What lynx compiles of its examples Adjudge compiles; what it refuses, Adjudge refuses."""
    theirs = {
        name: compiles(lynx_policy.compile_policy, text, lynx_policy.PolicyCompileError)
        for name, text in shipped.items()
    }
    ours = {
        name: compiles(compile_policy, text, PolicyCompileError) for name, text in shipped.items()
    }

    assert theirs == ours


@settings(max_examples=CALLS)
@given(st.data())
def test_every_difference_on_shipped_policies_is_explained(
    read: dict[str, Any], data: st.DataObject
) -> None:
    """Calls that go at what a policy tests are decided as lynx does, or a clause says why."""
    policy = read[data.draw(st.sampled_from(sorted(read)))]
    call = data.draw(calls_for(policy))

    clauses = explain(SeedPolicy((policy,)), call)

    event("clauses " + ", ".join(map(str, clauses)) if clauses else "the same")
