"""YAML text is read as written: surprises, duplicates, aliases, tags are problems with a place."""

import builtins

import pytest

from adjudge.errors import PolicyCompileError
from adjudge.policy._reading import yaml_source
from adjudge.policy._reading.nodes import MAX_SLOW_TEXT
from adjudge.policy._reading.source import read_policy


def problems_of(text):
    """Give what is wrong with a YAML policy."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy(text, file="policy.yaml")
    return caught.value.problems


def match_of(text):
    """Read a policy of one rule with these tests; give its match."""
    return read_policy(f"rules: [{{match: {{{text}}}}}]").rules[0].match


@pytest.mark.needs_yaml
def test_a_leaf_stands_at_its_key():
    """Clause 33: line and column, from 1, and the path within the policy."""
    policy = read_policy("rules:\n  - match:\n      args.x: 5\n", file="policy.yaml")
    place = policy.rules[0].match.place

    assert ("policy.yaml", 3, 7) == (place.file, place.line, place.column)
    assert "rules[0].match.args.x" == place.path


@pytest.mark.needs_yaml
@pytest.mark.parametrize(
    "written",
    ["no", "on", "0123", "1e3", "12:30", "1_000", "0x1F", ".inf", "~", "2024-01-01", "y"],
)
@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ('rules:\n- {{id: r, match: {{"args.x": {}}}}}\n', "match.args.x"),
        ('rules:\n- {{id: r, match: {{"args.x.in": [{}]}}}}\n', "match.args.x.in[0]"),
        ("rules:\n- {{id: r, match: {{args.x.gt: {}}}}}\n", "match.args.x.gt"),
        ("rules:\n- {{id: r, match: {{args.x.matches: {}}}}}\n", "match.args.x.matches"),
        ("rules:\n- {{id: r, match: {{args.x.eq: {{literal: [{}]}}}}}}\n", "literal[0]"),
        ("rules:\n- {{id: r, match: always, reason: {}}}\n", "reason"),
        ("rules:\n- {{id: r, match: always, description: {}}}\n", "description"),
        ("rules:\n- {{id: r, match: always, priority: {}}}\n", "priority"),
        (
            "rules:\n- {{id: r, match: always, decision: approve_required, approvers: [{}]}}\n",
            "approvers[0]",
        ),
        (
            "rules:\n- {{match: always, id: r, verdict: transform, transform: {{set: {{a: {}}}}}}}",
            "transform.set.a",
        ),
    ],
)
def test_a_surprise_is_a_problem_where_text_or_a_number_is_meant(written, policy, path):
    """A scalar that readers take for different things is refused with what to write."""
    (problem,) = problems_of(policy.format(written))

    assert problem.startswith(("policy.yaml:2:", "policy.yaml:3:"))
    assert 'rule "r"' in problem
    assert f"{path}: " in problem
    assert f'"{written}"' in problem


@pytest.mark.needs_yaml
@pytest.mark.parametrize("written", ["no", "on", "0123", "1e3", "12:30", "~", "2024-01-01", ""])
def test_a_quoted_scalar_is_text(written):
    """Whatever is quoted is text, in either kind of quotes."""
    assert written == match_of(f'args.x: "{written}"').operand
    assert written == match_of(f"args.x: '{written}'").operand
    assert written == match_of(f"args.x: !!str {written!r}").operand


@pytest.mark.needs_yaml
@pytest.mark.parametrize("written", ["no", "off", "false", "False"])
def test_yaml_words_for_a_bool_are_taken_where_only_a_bool_can_stand(written):
    """`reversible: no` says one thing only."""
    policy = read_policy(f"tools: {{t: {{reversible: {written}}}}}")

    assert policy.tools["t"].fields["reversible"] is False
    assert match_of(f"declared.reversible: {written}").operand is False
    assert match_of(f"args.x.exists: {written}").operand is False
    assert match_of(f"given.x: {written}").operand is False


@pytest.mark.needs_yaml
def test_the_key_on_of_an_obligation_needs_no_quotes():
    """A key of the policy language is read as written, though YAML 1.1 takes `on` for a bool."""
    policy = read_policy("rules: [{match: always, obligations: [{id: tell, on: always}]}]")

    assert "always" == policy.rules[0].obligations[0].on


@pytest.mark.needs_yaml
@pytest.mark.parametrize(
    "text",
    [
        "tools:\n  no: {cost: low}\n",
        "tools:\n  1: {cost: low}\n",
        "predicates:\n  yes: {tool: x}\n",
        "rules:\n- match: {args.x: {literal: {on: 1}}}\n",
        "rules:\n- {match: always, obligations: [{id: a, params: {0x1F: 1}}]}\n",
    ],
)
def test_a_key_of_ones_own_that_is_no_plain_text_is_a_problem(text):
    """A name that YAML takes for a bool or a number must be quoted."""
    (problem,) = problems_of(text)

    assert problem.startswith("policy.yaml:2:")
    assert '"' in problem


@pytest.mark.needs_yaml
@pytest.mark.parametrize(
    ("text", "place", "other"),
    [
        ("rules: []\nversion: 1\nrules: []\n", "3:1: rules", "line 1, column 1"),
        (
            "rules:\n- id: r\n  decision: deny\n  match: always\n  decision: allow\n",
            '5:3: rule "r", decision',
            "line 3, column 3",
        ),
        (
            "rules:\n- id: r\n  match:\n    args.x: 1\n    'args.x': 2\n",
            '5:5: rule "r", match.args.x',
            "line 4, column 5",
        ),
        ("rules:\n- {id: r, match: {args.x: {gt: 1, gt: 2}}}\n", "2:35", "line 2, column 28"),
    ],
)
def test_a_key_given_twice_is_a_problem_with_both_places(text, place, other):
    """Clause 4: of duplicate keys none wins."""
    (problem,) = problems_of(text)

    assert problem.startswith(f"policy.yaml:{place}")
    assert other in problem


@pytest.mark.needs_yaml
def test_a_merge_key_must_not_give_a_key_again():
    """A key that also comes through << is given twice, whichever the merge would let win."""
    problems = problems_of(
        "tools: {t: &t {cost: low}, u: {<<: *t, cost: high}, v: {<<: [*t, {cost: high}]}}"
    )

    assert 2 == len(problems)
    assert all("once through <<" in problem for problem in problems)


@pytest.mark.needs_yaml
def test_a_merge_key_adds_what_is_not_there():
    """Anchors, aliases and merges mean what YAML says as long as nothing is given twice."""
    policy = read_policy("tools: {t: &t {cost: high}, u: {<<: *t, reversible: false}, v: *t}")

    assert {"cost": "high", "reversible": False} == policy.tools["u"].fields
    assert {"cost": "high"} == policy.tools["v"].fields


@pytest.mark.needs_yaml
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("version: *x", "no anchor"),
        ("rules: &a [*a]", "inside the value"),
        ("tools: {<<: 5}", "takes a mapping"),
        ("&a version: 1", "stands on a key"),
        ("? [a]\n: 1", "key must be plain text"),
        ("version: !!int 1", "tag"),
        ("rules: !!python/name:os.system []", "tag"),
        ("version: 1\n---\nversion: 1\n", "second document"),
        ("rules: [", "no YAML"),
        ("rules:\n\t- x", "no YAML"),
        ("a: b: c", "no YAML"),
        ("a: \x01", "no YAML"),
        ('version: "\\ud800"', "surrogate"),
    ],
)
def test_what_a_policy_does_not_use_of_yaml_is_a_problem(text, word):
    """Tags, anchors out of place, several documents and broken text are named."""
    assert any(word in problem for problem in problems_of(text))


@pytest.mark.needs_yaml
def test_a_broken_text_is_told_where():
    """A syntax error has a line and a column."""
    (problem,) = problems_of("version: 1\nrules: [{match: always}\n")

    assert problem.startswith("policy.yaml:3:1: ")


@pytest.mark.needs_yaml
def test_an_alias_bomb_is_a_problem():
    """Aliases of aliases are counted while they are put in place."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]

    (problem,) = problems_of("\n".join(levels))

    assert "aliases" in problem


@pytest.mark.needs_yaml
@pytest.mark.parametrize("text", ["[" * 2000, "a: " * 1 + "{a: " * 500, "- " * 500])
def test_deep_nesting_is_a_problem_and_no_crash(text):
    """Nesting is bounded long before the interpreter is."""
    (problem,) = problems_of(text)

    assert "levels deep" in problem


@pytest.mark.needs_yaml
@pytest.mark.parametrize("text", ["", "  \n", "# nothing\n", "---\n", "null", "~", "{}"])
def test_an_empty_text_is_a_problem(text):
    """A policy that says nothing at all is no policy."""
    (problem,) = problems_of(text)

    assert "empty" in problem


def test_yaml_without_pyyaml_names_the_extra(monkeypatch):
    """Where PyYAML is missing the error says what to install."""
    original = builtins.__import__

    def without_yaml(name, *rest, **options):
        if name == "yaml":
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_yaml)

    assert "pip install 'adjudge[yaml]'" in problems_of("version: 1")[0]


def test_a_broken_brace_without_pyyaml_is_a_json_problem(monkeypatch):
    """Text that begins like JSON is reported as JSON where YAML cannot be read."""
    original = builtins.__import__

    def without_yaml(name, *rest, **options):
        if name == "yaml":
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(PolicyCompileError) as caught:
        read_policy("{version: 1}")

    assert caught.value.problems[0].startswith("policy:1:2: This is no JSON")


@pytest.mark.needs_yaml
def test_yaml_for_the_slow_parser_has_bounds_of_its_own(monkeypatch):
    """Where libyaml may read a text otherwise than PyYAML does, 64 MiB would take minutes."""
    long = 'description: "{}"\n? version\n: 1\n'

    assert "it may have 4 MiB at most" in problems_of(long.format("x" * MAX_SLOW_TEXT))[0]
    monkeypatch.setattr(yaml_source, "MAX_SLOW_NODES", 50)
    assert "more than 50 values" in problems_of(f"a: [{'1, ' * 50}? b]\n")[0]
    assert "more than 50 values" not in problems_of(f"a: [{'1, ' * 50}b]\n")[0]


@pytest.mark.needs_yaml
def test_a_long_text_that_is_no_yaml_has_the_place_of_its_error():
    """It is not read a second time by the slow parser, and libyaml knows the place as well."""
    (problem,) = problems_of(f'a: "{"x" * MAX_SLOW_TEXT}"\n b\n')

    assert problem.startswith("policy.yaml:2:2: This is no YAML: ")
