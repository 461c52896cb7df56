"""Paths and their operators, as the policy language writes them (clauses 3 and 5)."""

import pytest

from adjudge.policy._reading.paths import (
    PathProblem,
    parse_argument_path,
    parse_leaf,
    parse_reference,
)
from adjudge.policy._reading.suggest import is_one_edit_apart
from adjudge.policy._reading.words import OPERATORS


def read(text, **options):
    """Give root, steps and operator of a key."""
    path, operator = parse_leaf(text, **options)
    return path.root, path.steps, operator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tool", ("tool", (), None)),
        ("tool.in", ("tool", (), "in")),
        ("tool.namespace", ("tool.namespace", (), None)),
        ("tool.namespace.matches", ("tool.namespace", (), "matches")),
        ("args.x", ("args", ("x",), None)),
        ("args.x.gt", ("args", ("x",), "gt")),
        ("args.size", ("args", ("size",), None)),
        ("args.items.size", ("args", ("items",), "size")),
        ("args.items[0].sku", ("args", ("items", 0, "sku"), None)),
        ("args.items[12].in", ("args", ("items", 12), "in")),
        ('args["a.b"]', ("args", ("a.b",), None)),
        ("args['a.b'].in", ("args", ("a.b",), "in")),
        ('args["a\\"b"]', ("args", ('a"b',), None)),
        ('args["size"]', ("args", ("size",), None)),
        ('args.item["size"]', ("args", ("item", "size"), None)),
        ('args.item["size"].gt', ("args", ("item", "size"), "gt")),
        ("args.item.size.width", ("args", ("item", "size", "width"), None)),
        ("args.my-key", ("args", ("my-key",), None)),
        ("args.user name", ("args", ("user name",), None)),
        ("given.x", ("given", ("x",), None)),
        ("injected.user.id.eq", ("injected", ("user", "id"), "eq")),
        ("declared.scope.contains_any", ("declared", ("scope",), "contains_any")),
        ("declared.labels[0]", ("declared", ("labels", 0), None)),
        ("context.environment", ("context", ("environment",), None)),
        ("context.principal.id.in", ("context", ("principal", "id"), "in")),
        ("context.extra.tenant", ("context", ("extra", "tenant"), None)),
        ("context.extra.size", ("context", ("extra", "size"), None)),
        ("context.extra.x.size", ("context", ("extra", "x"), "size")),
        ("context.labels.contains", ("context", ("labels",), "contains")),
        ("context.trusted.total.gt", ("context", ("trusted", "total"), "gt")),
    ],
)
def test_a_key_is_read_as_path_and_operator(text, expected):
    """Clause 5: a trailing segment is an operator only if a key stands before it."""
    assert expected == read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".", (".", (), None)),
        (".sku.in", (".", ("sku",), "in")),
        ('.["size"]', (".", ("size",), None)),
        (".items.size", (".", ("items",), "size")),
        (".[0]", (".", (0,), None)),
        ('.["a.b"]', (".", ("a.b",), None)),
    ],
)
def test_the_element_of_a_quantifier_is_a_dot(text, expected):
    """Inside each and some a path begins with the element; operators follow the same rule."""
    assert expected == read(text, element=True)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("arg.x", '"args.x"'),
        ("Tool", '"tool"'),
        ("contxt.environment", '"context.environment"'),
        ("amount", "args.x"),
        ("gt", "args.amount.gt"),
        ("always", "match: always"),
        ("args", "args.NAME"),
        ("args[0]", "index where a key"),
        ("args.", "empty"),
        ("args..x", "empty"),
        ("args.x[-1]", "from 0"),
        ("args.x[01]", "from 0"),
        ("args.x[a]", "from 0"),
        ('args["x', "from 0"),
        ('args["\\q"]', "JSON string"),
        ('args["\\ud800"]', "JSON string"),
        ("tool.x", "Known are"),
        ("tool.matchs", '"matches"'),
        ("tool.Matches", '"matches"'),
        ("tool.in.in", "no keys"),
        ("tool.namespaces", '"namespace"'),
        ("declared.costs", '"cost"'),
        ("declared.cost.high", "below"),
        ("declared.scope.x", "below"),
        ("context.env", "context.extra.env"),
        ("context.enviroment", '"environment"'),
        ("context.principal", "say which key"),
        ("context.principal.role", "context.principal"),
        ("context.extra", "say which key"),
        ("context.workspace.x", "below"),
        ("given.x.y", "below"),
        (".x", "inside each and some"),
    ],
)
def test_an_unknown_path_is_refused_with_a_suggestion(text, word):
    """Clause 4: unknown roots and keys are compile errors that suggest the nearest word."""
    with pytest.raises(PathProblem) as caught:
        parse_leaf(text)

    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("args.x.GT", '"args.x.gt"'),
        ("args.x.In", '"args.x.in"'),
        ("args.x.matchs", '"args.x.matches"'),
        ("args.x.mathces", '"args.x.matches"'),
        ("args.x.sizes", '"args.x.size"'),
        ("args.page.site", '"args.page.size"'),
        ("args.x.contain", '"args.x.contains"'),
        ("args.x.sizes.gt", '"args.x.size"'),
        ("context.extra.x.exist", '"context.extra.x.exists"'),
    ],
)
def test_a_near_miss_of_an_operator_is_refused(text, suggestion):
    """Clause 5: what differs from an operator in case, or by one edit, must be quoted."""
    with pytest.raises(PathProblem) as caught:
        parse_leaf(text)

    assert f"Did you mean {suggestion}?" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("args.sizes", ("sizes",)),
        ("args.Matches", ("Matches",)),
        ('args.x["sizes"]', ("x", "sizes")),
        ("args.x['GT']", ("x", "GT")),
        ("args.x.gtt", ("x", "gtt")),
        ("args.x.inn", ("x", "inn")),
        ("args.page.site.url", ("page", "site", "url")),
        ("context.extra.sizes", ("extra", "sizes")),
    ],
)
def test_a_key_that_only_resembles_an_operator_is_a_key(text, steps):
    """Clause 5: a first key, a quoted key and a near miss of a short operator are keys."""
    assert (steps, None) == read(text)[1:]


def test_two_operators_in_a_row_are_refused():
    """Clause 5: an unquoted operator name before another operator is told how to be written."""
    with pytest.raises(PathProblem) as caught:
        parse_leaf("args.items.contains.contains_any")

    assert "args.items.contains: {contains_any: ...}" in str(caught.value)
    assert 'args.items["contains"].contains_any' in str(caught.value)


def test_a_path_inside_a_quantifier_must_be_about_the_element():
    """A path of the whole call cannot stand inside each or some."""
    with pytest.raises(PathProblem, match=r'begins with "\."'):
        parse_leaf("args.x", element=True)


def test_an_operator_alone_inside_a_quantifier_is_told_where_to_stand():
    """An operator without the element before it is answered with the right spelling."""
    with pytest.raises(PathProblem) as caught:
        parse_leaf("gt", element=True)

    assert '{".": {gt: ...}}' in str(caught.value)


@pytest.mark.parametrize("operator", ["starts_with", "size", "in", "ends_with"])
def test_an_operator_directly_after_the_element_is_refused(operator):
    """Clause 5: read as a key, a condition on the element would be an error of every call."""
    with pytest.raises(PathProblem) as caught:
        parse_leaf(f".{operator}", element=True)

    assert f'{{".": {{{operator}: ...}}}}' in str(caught.value)
    assert f'.["{operator}"]' in str(caught.value)


def test_a_reference_is_a_path_without_operator():
    """Clause 9: a ref names a value of the call."""
    assert ("extra", "tenant") == parse_reference("context.extra.tenant").steps


@pytest.mark.parametrize("text", [".", ".x", "args.x.gt", "args", "nothing.x"])
def test_a_reference_to_anything_but_a_value_is_refused(text):
    """Clause 9: a ref is never on the element, takes no operator and must be a known path."""
    with pytest.raises(PathProblem):
        parse_reference(text)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("args", ()),
        ("$.args", ()),
        ("$.args.sql", ("sql",)),
        ("args.sql", ("sql",)),
        ("args.items[0].size", ("items", 0, "size")),
        ("args.a.contain", ("a", "contain")),
        ('args["a.b"]', ("a.b",)),
    ],
)
def test_a_transform_path_leads_below_the_arguments(text, steps):
    """Clause 19: nested paths and indexes; no segment of a transform's path is an operator."""
    assert steps == parse_argument_path(text)


@pytest.mark.parametrize("text", ["context.x", "$.sql", "sql", "args[0]", "$args.x", "args.x["])
def test_a_transform_path_elsewhere_is_refused(text):
    """Clause 19: only arguments are rewritten."""
    with pytest.raises(PathProblem):
        parse_argument_path(text)


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("size", "size", False),
        ("siz", "size", True),
        ("sizes", "size", True),
        ("site", "size", True),
        ("isze", "size", True),
        ("sezi", "size", False),
        ("szie", "size", True),
        ("saxe", "size", False),
        ("sz", "size", False),
        ("", "a", True),
        ("matchess", "matches", True),
        ("xsize", "size", True),
    ],
)
def test_one_edit_is_a_letter_more_less_other_or_swapped(word, other, expected):
    """One edit is one letter inserted, left out, replaced or swapped with its neighbour."""
    assert expected == is_one_edit_apart(word, other)
    assert expected == is_one_edit_apart(other, word)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_can_follow_a_key(operator):
    """Clause 5: each operator of the language is one after an argument."""
    assert ("args", ("x",), operator) == read(f"args.x.{operator}")
