"""Operators and the kinds of values that they accept (clauses 1, 3, 7 and 10)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from asking import answer, decide, rule

from adjudge._values import OpaqueValue

NAN = float("nan")


@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        ({"eq": 1}, 1.0, "true"),
        ({"eq": 1}, Decimal(1), "true"),
        ({"eq": 1}, True, "error"),
        ({"eq": True}, 1, "error"),
        ({"eq": "root"}, ["root"], "error"),
        ({"eq": [1]}, [True], "error"),
        ({"eq": [1, 3]}, [2, "x"], "false"),
        ({"eq": [1, 3]}, [1, "x"], "error"),
        ({"eq": [1, 3]}, [1, None], "error"),
        ({"eq": [1, 3]}, ["x"], "false"),
        ({"eq": [1, None]}, [1, 2], "false"),
        ({"eq": [1, None]}, [1, None], "true"),
        ({"eq": {"literal": {"a": 1}}}, {"a": "x"}, "error"),
        ({"eq": {"literal": {"a": 1}}}, {"b": "x"}, "false"),
        ({"eq": {"literal": {"a": 1, "b": 2}}}, {"b": "x", "a": 2}, "false"),
        ({"eq": 1}, NAN, "error"),
        ({"eq": [1]}, [NAN], "error"),
        ({"eq": None}, NAN, "error"),
        ({"exists": True}, NAN, "error"),
        ({"exists": True}, float("inf"), "error"),
        ({"eq": None}, "x", "false"),
        ({"in": [1, "all"]}, {}, "error"),
        ({"in": [1, "all"]}, "x", "false"),
        ({"in": [1, "all"]}, 1.0, "true"),
        ({"in": [1, "all"]}, True, "error"),
        ({"in": [[1], [2]]}, ["x"], "error"),
        ({"in": [[1], [2]]}, [2], "true"),
        ({"in": ["a"]}, "a", "true"),
        ({"gt": 5}, "9", "error"),
        ({"gt": 5}, [9], "error"),
        ({"gt": 5}, True, "error"),
        ({"gt": 5}, NAN, "error"),
        ({"gt": 5}, 5.5, "true"),
        ({"gt": 5}, Decimal("5.0"), "false"),
        ({"ge": 0.1}, Decimal("0.1"), "false"),
        ({"lt": "b"}, "a", "true"),
        ({"lt": "b"}, 1, "error"),
        ({"between": [1, 2]}, 2, "true"),
        ({"between": [1, 2]}, 2.5, "false"),
        ({"between": [1, 2]}, "1", "error"),
        ({"matches": "a.c"}, "xabcx", "true"),
        ({"matches": "a.c"}, ["abc"], "error"),
        ({"starts_with": "/tmp"}, "/tmp/x", "true"),
        ({"starts_with": ["/a", "/b"]}, "/b/x", "true"),
        ({"ends_with": ".py"}, "x.pyc", "false"),
        ({"ends_with": ".py"}, 3, "error"),
        ({"contains": "b"}, "abc", "true"),
        ({"contains": "b"}, ["a", "b", 1], "true"),
        ({"contains": "b"}, ["a", 1], "error"),
        ({"contains": "b"}, ["a"], "false"),
        ({"contains": "b"}, {"b": 1}, "true"),
        ({"contains": 1}, "1", "error"),
        ({"contains": 1}, [True], "error"),
        ({"contains": "b"}, 5, "error"),
        ({"contains_any": ["x", "b"]}, "abc", "true"),
        ({"contains_any": ["x", 1]}, "abc", "error"),
        ({"contains_any": ["b", 1]}, "abc", "true"),
        ({"contains_all": ["a", "b"]}, ["a", "b", "c"], "true"),
        ({"contains_all": ["x", 1]}, "abc", "false"),
        ({"size": 2}, "äb", "true"),
        ({"size": {"gt": 1}}, {"a": 1}, "false"),
        ({"size": 2}, 22, "error"),
        ({"each": {".": 1}}, [], "true"),
        ({"each": {".": 1}}, [1, "x"], "error"),
        ({"each": {".": 1}}, [2, "x"], "false"),
        ({"each": {".": 1}}, ["x", 2], "false"),
        ({"some": {".": {"gt": 1}}}, [2, "x"], "true"),
        ({"some": {".": {"gt": 1}}}, ["x", 2], "true"),
        ({"some": {".": {"gt": 1}}}, [1, "x"], "error"),
        ({"some": {".": 1}}, [], "false"),
        ({"some": {".": 1}}, "1", "error"),
        ({"some": {".": 1}}, {"1": 1}, "error"),
        ({"some": {".sku": "a"}}, [{"sku": "b"}, {"sku": "a"}], "true"),
        ({"glob": "/srv/*.txt"}, "/srv/a.txt", "true"),
        ({"glob": "/srv/*.txt"}, "/srv/a/b.txt", "false"),
        ({"host_in": ["*.example.com"]}, "https://a.example.com/x", "true"),
        ({"host_in": ["example.com"]}, "ftp://example.com", "error"),
        ({"host_in": ["example.com"]}, "https://example.com@evil.io/", "error"),
        ({"normalized": {"eq": "Straße"}}, "STRASSE", "true"),
        ({"normalized": {"in": ["\uff21"]}}, "a", "true"),
        ({"normalized": {"matches": "^admin"}}, "\uff21\uff24\uff2d\uff29\uff2e!", "true"),
        ({"normalized": {"eq": "a"}}, 1, "error"),
    ],
)
def test_operator(test: object, value: object, expected: str) -> None:
    """Clause 7: a value of a kind that the operator and its operand do not accept is an error."""
    assert expected == answer({"args.x": test}, {"x": value})


@pytest.mark.parametrize("operator", ["eq", "in", "gt", "contains", "size", "matches"])
def test_a_secret_equals_nothing(operator: str) -> None:
    """Every test of a secret but `exists` is an error."""
    operand = {"in": ["a"], "gt": 1, "size": 1}.get(operator, "a")

    assert "error" == answer({f"args.x.{operator}": operand}, {"x": OpaqueValue()})


def test_a_secret_is_there() -> None:
    """A secret exists, and that is all that can be asked of it."""
    assert "true" == answer({"args.x.exists": True}, {"x": OpaqueValue()})
    assert "error" == answer({"args.x.eq": None}, {"x": OpaqueValue()})


@pytest.mark.parametrize(
    ("path", "args", "expected"),
    [
        ("args.a.b", {"a": {"b": 1}}, "true"),
        ("args.a[0].b", {"a": [{"b": 1}]}, "true"),
        ("args.a[1].b", {"a": [{"b": 1}]}, "false"),
        ("args.a.b", {"a": None}, "false"),
        ("args.a.b", {}, "false"),
        ("args.a.b", {"a": "b"}, "error"),
        ("args.a.b", {"a": [1]}, "error"),
        ("args.a[0]", {"a": {"0": 1}}, "error"),
        ('args["a.b"]', {"a.b": 1}, "true"),
    ],
)
def test_path(path: str, args: dict[str, object], expected: str) -> None:
    """Clause 3: what is missing is absent; a step into what has no such steps is an error."""
    assert expected == answer({path: 1}, args)


def test_exists_does_not_excuse_a_wrong_step() -> None:
    """Clause 3: stepping into text is an error for `exists` too."""
    assert "error" == answer({"args.a.b.exists": False}, {"a": "text"})


def test_an_error_names_path_found_and_expected() -> None:
    """Clause 15: the reason names the rule, the path, the kind found and the kind expected."""
    decision = decide(rule(match={"args.orders.each": {".n.gt": 1}}), args={"orders": [{"n": "2"}]})

    assert (
        "rule 'deny' could not be judged: args.orders[*].n is a string, expected a number"
    ) == decision.reason.partition("; ")[2]
    assert ("<rule_error:deny:WrongKind>", "<default:on_no_match>") == decision.matched_rules


def test_an_error_does_not_quote_the_value() -> None:
    """The reason reaches the model and the record, so it names kinds and never values."""
    decision = decide(rule(match={"args.x.gt": 1}), args={"x": "hunter2"})

    assert "hunter2" not in decision.reason
