"""Policies of any honest size are read; a few words that stand for billions of values are not."""

from __future__ import annotations

import gc
import json
from types import MappingProxyType

import pytest

from adjudge.errors import PolicyCompileError
from adjudge.policy import PolicyLayer, compile_policy
from adjudge.policy._patterns.shared import Patterns
from adjudge.policy._reading import nodes


def test_a_policy_of_600_000_values_is_read():
    """Values that are all written out are no bomb, however many there are."""
    many = list(range(600_000))

    compiled = compile_policy({"rules": [{"match": {"args.x.in": many}, "decision": "deny"}]})

    assert many == compiled.source.rules[0].match.operand


def test_a_few_lists_that_stand_for_billions_are_a_problem():
    """Lists that stand in several places are counted each time, before they fill the memory."""
    bomb = ["x"] * 10
    for _ in range(30):
        bomb = [bomb] * 10

    with pytest.raises(PolicyCompileError, match="stand in several places"):
        compile_policy({"rules": [{"match": {"args.x.in": bomb}, "decision": "deny"}]})


def test_one_part_may_stand_in_many_rules():
    """Parts of a dict that several rules share are what a program writes, and are read."""
    match = MappingProxyType({"args.x": {"in": (1, 2, 3)}})
    rules = [{"match": match, "decision": "deny"} for _ in range(2_000)]

    assert 2_000 == len(compile_policy({"rules": rules}).source.rules)


TEXTS = {
    "dict": {"rules": [{"match": {"args.x.in": list(range(50))}}]},
    "json": json.dumps({"rules": [{"match": {"args.x.in": list(range(50))}}]}),
    "toml": f"[[rules]]\nmatch = {{'args.x.in' = {list(range(50))}}}\n",
}


@pytest.mark.parametrize("form", [*TEXTS, pytest.param("yaml", marks=pytest.mark.needs_yaml)])
def test_there_is_a_greatest_number_of_values(form, monkeypatch):
    """In every format the values are counted while they are read."""
    monkeypatch.setattr(nodes, "MAX_NODES", 40)
    options = {} if form == "dict" else {"format": form}

    with pytest.raises(PolicyCompileError, match="more than 40 values"):
        compile_policy(TEXTS.get(form, TEXTS["json"]), **options)


RULES = [{"match": {"args.x": n}, "decision": "deny"} for n in range(2_000)]


def test_progress_rises_to_the_whole():
    """What is told begins below the whole, never falls and ends with it; the total stays."""
    told = []

    compile_policy(
        json.dumps({"rules": RULES}),
        format="json",
        progress=lambda done, of: told.append((done, of)),
    )

    assert {1000} == {of for _, of in told}
    assert sorted(set(told)) == told
    assert (1000, 1000) == told[-1]
    assert 100 < len(told)


@pytest.mark.needs_yaml
def test_progress_is_told_while_yaml_is_parsed():
    """Most of the time of a YAML policy is the parsing of its text."""
    text = "rules:\n" + "- {match: {args.x: 1}, decision: deny}\n" * 2_000
    told = []

    compile_policy(text, format="yaml", progress=lambda done, _: told.append(done))

    assert 100 < sum(0 < done < 450 for done in told)


def test_progress_of_layers_begins_anew_with_each():
    """Each layer is told from its beginning to its end."""
    told = []

    compile_policy(
        [PolicyLayer("a", {"rules": RULES}), PolicyLayer("b", {"rules": RULES})],
        progress=lambda done, _: told.append(done),
    )

    assert 2 == told.count(1000)


def test_progress_changes_nothing():
    """The bundle is the same whether or not anybody listens."""
    source = {"rules": RULES}

    assert compile_policy(source).id == compile_policy(source, progress=lambda *_: None).id


def test_the_collector_of_the_process_is_left_alone():
    """Who forks, or goes by `gc.isenabled()`, in the middle of compiling finds it as ever."""
    found = set()

    compile_policy({"rules": RULES}, progress=lambda *_: found.add(gc.isenabled()))

    assert {gc.isenabled()} == found


def test_one_pattern_in_many_rules_is_compiled_once():
    """The patterns of a policy are kept while it is compiled, each by its position (clause 11)."""
    patterns = Patterns()

    assert patterns.checked("a$") is patterns.checked("a$")
    assert patterns.compiled("^a", permitting=True) is patterns.compiled("^a", permitting=False)
    assert patterns.compiled("a$", permitting=True).search("a\n") is False
    assert patterns.compiled("a$", permitting=False).search("a\n") is True
