"""Lint: which findings a policy has, and which it has not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adjudge import PolicyLayer, ToolSet, compile_policy, deny, tool
from adjudge.analysis import FINDING_CODES, Finding, lint
from adjudge.cli._init import TEMPLATE
from adjudge.errors import PolicyCompileError

ROOT = Path(__file__).parents[3]
PAY = {"tool": "pay"}


def rule(verdict: str, match: Any, **more: Any) -> dict[str, Any]:
    """Write a rule."""
    return {"match": match, "decision": verdict, **more}


def allow(**match: Any) -> dict[str, Any]:
    """Write a rule that allows."""
    return rule("allow", {**PAY, **_dotted(match)})


def refuse(**match: Any) -> dict[str, Any]:
    """Write a rule that denies."""
    return rule("deny", {**PAY, **_dotted(match)})


def _dotted(match: dict[str, Any]) -> dict[str, Any]:
    return {f"args.{name}" if name.islower() else name: value for name, value in match.items()}


CAP = rule("transform", PAY, transform={"path": "args.n", "set": 1})


def found(*rules: dict[str, Any], tools: Any = None, **policy: Any) -> list[tuple[str, str]]:
    """Lint a policy of these rules, called r0 and so on; give codes and rules."""
    numbered = [{"id": f"r{number}", **each} for number, each in enumerate(rules)]
    findings = lint(compile_policy({"version": 1, "rules": numbered, **policy}), tools=tools)
    return [(finding.code, finding.rule or "") for finding in findings]


SHADOWS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "the same again": ([allow(), allow()], [("shadowed", "r1")]),
    "a narrower number": ([refuse(n={"gt": 5}), refuse(n={"gt": 10})], [("shadowed", "r1")]),
    "a number of a set": ([refuse(n={"gt": 5}), allow(n={"in": [6, 7]})], [("shadowed", "r1")]),
    "an interval": (
        [refuse(n={"between": [1, 9]}), refuse(n={"ge": 2, "lt": 9})],
        [("shadowed", "r1")],
    ),
    "two together": (
        [refuse(n={"le": 5}), refuse(n={"gt": 5}), allow(n={"between": [1, 9]})],
        [("unreachable", "r2")],
    ),
    "two lists together": (
        [refuse(s={"in": ["a"]}), refuse(s={"in": ["b", "c"]}), refuse(s={"in": ["a", "b"]})],
        [("unreachable", "r2")],
    ),
    "everything": (
        [rule("deny", "always"), allow(), refuse()],
        [("shadowed", "r1"), ("shadowed", "r2")],
    ),
    "a longer prefix": (
        [refuse(p={"starts_with": "/etc"}), refuse(p={"starts_with": ["/etc/a", "/etc/b"]})],
        [("shadowed", "r1")],
    ),
    "a name in the prefix": (
        [refuse(p={"starts_with": "/etc"}), refuse(p="/etc/passwd")],
        [("shadowed", "r1")],
    ),
    "a longer suffix": (
        [refuse(p={"ends_with": "/x"}), refuse(p={"ends_with": "/y/x"})],
        [("shadowed", "r1")],
    ),
    "a longer part": (
        [refuse(p={"contains": "rm"}), refuse(p={"contains": "rm -rf", "starts_with": "x"})],
        [("shadowed", "r1")],
    ),
    "a glob and a prefix": (
        [refuse(p={"starts_with": "/a/"}), refuse(p={"glob": "/a/**/b"})],
        [("shadowed", "r1")],
    ),
    "a glob as a prefix": (
        [refuse(p={"glob": "/a/**"}), refuse(p={"starts_with": "/a/b"})],
        [("shadowed", "r1")],
    ),
    "a pattern and its texts": (
        [refuse(p={"matches": "^(read|write)$"}), refuse(p={"in": ["read", "write"]})],
        [("shadowed", "r1")],
    ),
    "texts and their pattern": (
        [refuse(p={"in": ["a", "b", "a\n", "b\n"]}), refuse(p={"matches": "^[ab]$"})],
        [("shadowed", "r1")],
    ),
    "a pattern in permitting position": (
        [allow(p="a"), allow(p={"matches": "^a$"})],
        [("shadowed", "r1")],
    ),
    "the same pattern": (
        [refuse(p={"matches": "a+b"}), refuse(p={"matches": "a+b"}, n=1)],
        [("shadowed", "r1")],
    ),
    "subdomains": (
        [refuse(u={"host_in": ["*.evil.io"]}), refuse(u={"host_in": ["a.evil.io", "*.b.evil.io"]})],
        [("shadowed", "r1")],
    ),
    "sizes": ([refuse(s={"size": {"gt": 3}}), refuse(s={"size": 5})], [("shadowed", "r1")]),
    "elements": (
        [
            refuse(s={"some": {".": {"gt": 3}}}),
            refuse(s={"some": {".": {"gt": 5}}}),
        ],
        [("shadowed", "r1")],
    ),
    "presence": ([refuse(s={"exists": True}), refuse(s={"gt": 1})], [("shadowed", "r1")]),
    "presence of a holder": (
        [refuse(s={"exists": True}), rule("deny", {**PAY, "args.s.t": 1})],
        [("shadowed", "r1")],
    ),
    "the same ref": (
        [refuse(s={"gt": {"ref": "args.t"}}), refuse(s={"gt": {"ref": "args.t"}}, n=1)],
        [("shadowed", "r1")],
    ),
    "any of": (
        [rule("deny", {**PAY, "any_of": [{"args.n": 1}, {"args.m": 2}]}), refuse(n=1)],
        [("shadowed", "r1")],
    ),
    "a priority": (
        [
            refuse(n=1),
            rule("allow", PAY, priority=5),
            rule("deny", {**PAY, "tool.namespace": None}),
        ],
        [("shadowed_in_own_namespace", "r0"), ("shadowed", "r2")],
    ),
    "one of several tools": (
        [rule("deny", {"tool.in": ["pay", "buy"]}), refuse(), rule("deny", {"tool": "buy"})],
        [("shadowed", "r1"), ("shadowed", "r2")],
    ),
    "each of several tools": (
        [refuse(), rule("deny", {"tool": "buy"}), rule("allow", {"tool.in": ["pay", "buy"]})],
        [("unreachable", "r2")],
    ),
    "an allow above a denial": (
        [allow(), refuse(n={"gt": 5})],
        [("shadowed_in_own_namespace", "r1")],
    ),
    "a transform that applies": ([CAP, allow(m=1)], [("shadowed", "r1")]),
}

NO_SHADOWS: dict[str, list[dict[str, Any]]] = {
    "a wider number": [refuse(n={"gt": 10}), refuse(n={"gt": 5})],
    "another path": [refuse(n={"gt": 5}), refuse(m={"gt": 5})],
    "another tool": [refuse(), rule("deny", {"tool": "buy"})],
    "an error of the first": [refuse(n={"gt": 5}), refuse(n={"exists": True})],
    "a foreign kind": [refuse(n={"in": [1, 2]}), refuse(n="a")],
    "absence": [refuse(n={"le": 5}), refuse(n={"gt": 5}), refuse()],
    "a part of a text, or an element": [
        refuse(p={"contains": "rm"}),
        refuse(p={"contains": "rm -rf"}),
    ],
    "a rewrite of its argument": [CAP, refuse(n=1)],
    "too long a text for the pattern": [
        refuse(p={"matches": "^abc"}),
        refuse(p={"starts_with": "abc"}),
    ],
    "another end of text": [
        rule("allow", {**PAY, "args.q.matches": "^a$"}),
        rule("deny", {**PAY, "args.q.in": ["a\n"]}),
    ],
    "a transform met in doubt": [
        rule(
            "transform",
            {**PAY, "not": {"args.t.in": ["g"]}},
            transform={"path": "args.n", "set": 1},
        ),
        rule("deny", {**PAY, "args.t.exists": False}),
    ],
    "a newline at the end": [refuse(p="a"), refuse(p={"matches": "^a$"})],
    "an object for a text": [refuse(s={"contains": "a"}), refuse(s={"size": 1})],
    "a namespace": [
        rule("deny", {**PAY, "tool.namespace": "a"}),
        rule("deny", {**PAY, "tool.namespace": "b"}),
    ],
}


@pytest.mark.parametrize("name", SHADOWS)
def test_a_rule_that_never_decides_is_found(name: str) -> None:
    """Clauses 14, 15 and 19: what is asked before it always decides."""
    rules, expected = SHADOWS[name]

    assert expected == found(*rules)


@pytest.mark.parametrize("name", NO_SHADOWS)
def test_a_rule_that_can_decide_is_not_found(name: str) -> None:
    """Errors, absence, namespaces and rewrites leave a rule something to decide."""
    assert [] == found(*NO_SHADOWS[name])


def bystander(request: Any, context: Any) -> Any:
    """Deny nothing."""
    return deny("never") if request.tool == "" else None


def test_a_python_rule_may_rewrite_anything() -> None:
    """Clause 19: what it rewrites can bring out a restriction, and never an allow."""
    rules = [
        {"id": "a", **refuse(n={"gt": 5})},
        {"id": "b", **refuse(n={"gt": 9})},
        {"id": "c", **allow(n={"gt": 9})},
    ]
    bundle = compile_policy({"rules": rules}, python_rules=[bystander])

    assert [("shadowed", "c")] == [(each.code, each.rule) for each in lint(bundle)]


def test_a_rewrite_of_another_layer_counts() -> None:
    """Clause 20: the transforms of all layers are joined, and every layer judges the result."""
    shadowed = {"rules": [{"id": "a", **refuse(n={"gt": 5})}, {"id": "b", **refuse(n={"gt": 9})}]}
    alone = compile_policy([PolicyLayer("one", shadowed)])
    beside = compile_policy([PolicyLayer("one", shadowed), PolicyLayer("two", {"rules": [CAP]})])

    assert ["one:b"] == [each.rule for each in lint(alone)]
    assert () == lint(beside)


CONDITIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "numbers apart": ({"args.n": {"gt": 5, "lt": 3}}, ["contradiction"]),
    "two values": ({"all_of": [{"args.s": "a"}, {"args.s": "b"}]}, ["contradiction"]),
    "two tools": ({"all_of": [{"tool": "a"}, {"tool": "b"}]}, ["contradiction"]),
    "two kinds": ({"all_of": [{"args.s.gt": 1}, {"args.s.matches": "^a$"}]}, ["contradiction"]),
    "a holder that is text": ({"args.s": "a", "args.s.t": 1}, ["contradiction"]),
    "prefixes apart": (
        {"all_of": [{"args.s.starts_with": "a"}, {"args.s.starts_with": "b"}]},
        ["contradiction"],
    ),
    "a value out of its list": (
        {"args.n": 1, "not": {"args.n.in": [1, 2]}},
        ["contradiction"],
    ),
    "hosts apart": (
        {"all_of": [{"args.u.host_in": ["a.io"]}, {"args.u.host_in": ["*.b.io"]}]},
        ["contradiction"],
    ),
    "a negative size": ({"args.s.size": {"lt": 0}}, ["never_true"]),
    "half a size": ({"args.s.size": {"gt": 2, "lt": 3}}, ["never_true"]),
    "an impossible element": ({"args.s": {"some": {".": {"gt": 2, "lt": 2}}}}, ["never_true"]),
    "elements and their denial": (
        {"args.s": {"each": {".": {"gt": 2}}, "some": {".": {"lt": 1}}}},
        ["contradiction"],
    ),
    "capitals in the normal form": ({"args.s.normalized": {"matches": "DROP"}}, ["never_true"]),
    "presence and absence": (
        {"all_of": [{"args.s.exists": True}, {"args.s.exists": False}]},
        ["contradiction"],
    ),
    "a tool that is nothing": ({"tool.exists": False}, ["never_true"]),
    "a branch": (
        {"any_of": [{"args.n": {"gt": 5, "lt": 3}}, {"args.m": 1}]},
        ["contradiction"],
    ),
    "any text": ({"args.s.starts_with": ""}, ["always_true"]),
    "any match": ({"args.s.matches": ".*"}, ["always_true"]),
    "any glob": ({"args.s.glob": "**"}, ["always_true"]),
    "any size": ({"args.s.size": {"ge": 0}}, ["always_true"]),
    "both sides": ({"any_of": [{"args.n.gt": 5}, {"args.n.le": 5}]}, ["always_true"]),
    "given or not": ({"given.n.in": [True, False]}, ["always_true"]),
    "a tool that is there": ({"tool.exists": True}, ["always_true"]),
    "not the impossible": ({"tool": "a", "not": {"args.n": {"gt": 5, "lt": 3}}}, ["always_true"]),
    "plain": ({"args.n": {"gt": 3, "lt": 5}}, []),
    "present": ({"args.n.exists": True}, []),
    "not equal": ({"tool": "pay", "args.n.ne": 1}, []),
    "one number between": ({"args.n": {"gt": 1, "lt": 2}}, []),
    "two prefixes": (
        {"all_of": [{"args.s.starts_with": "a"}, {"args.s.starts_with": "ab"}]},
        [],
    ),
    "a holder that is absent": ({"args.s.t.exists": False, "args.s.exists": False}, []),
    "a list and an element": ({"args.s.contains": "a", "args.s[0]": "b"}, []),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_that_settle_nothing_are_found(name: str) -> None:
    """Never true, never false, or neither; told once, at the widest part that it holds of."""
    match, expected = CONDITIONS[name]

    assert expected == [code for code, _ in found(rule("deny", match))]


def test_a_contradiction_names_the_conditions_that_exclude_each_other() -> None:
    """And no others."""
    match = {**PAY, "args.n": {"gt": 5, "lt": 3}, "args.m": 1}
    (finding,) = lint(compile_policy({"rules": [rule("deny", match)]}))

    assert "args.n.gt: 5 and args.n.lt: 3 together" in finding.message
    assert "args.m" not in finding.message


LOOSE: dict[str, tuple[str, Any, bool]] = {
    "path prefix": ("args.path.starts_with", "/srv", True),
    "path part": ("args.file_name.contains", "reports", True),
    "path pattern": ("args.path.matches", "^/srv/", True),
    "path glob": ("args.path.glob", "/srv/**", True),
    "path by its operand": ("args.x.starts_with", "/srv/", True),
    "url prefix": ("args.url.starts_with", "https://api.example.com", True),
    "url part": ("args.webhookUrl.contains", "example.com", True),
    "url pattern": ("args.url.matches", r"https://example\.com/", True),
    "url any host": ("args.url.matches", r"^https://.*example\.com/", True),
    "url glob": ("args.url.glob", "https://*.example.com/**", True),
    "host suffix": ("args.host.ends_with", "example.com", True),
    "host pattern": ("args.host.matches", r"example\.com$", True),
    "command prefix": ("args.command.starts_with", "git ", True),
    "command pattern": ("args.cmd.matches", "^ls", True),
    "command anywhere": ("args.command.contains_any", ["ls", "cat"], True),
    "address suffix": ("args.to.ends_with", "acme.example", True),
    "address part": ("args.email.contains", "@acme.example", True),
    "an element's prefix": ("args.paths", {"each": {".": {"starts_with": "/srv"}}}, True),
    "tool part": ("tool.matches", "read", True),
    "lines": ("args.command.matches", "(?m)^ls$", True),
    "under": ("args.path.under", "/srv", False),
    "hosts": ("args.url.host_in", ["example.com"], False),
    "one file": ("args.path", "/srv/x", False),
    "whole pattern": ("args.path.matches", r"^notes/[\w-]+\.md$", False),
    "either whole": ("args.command.matches", r"\A(ls|pwd)\Z|^id$", False),
    "a group of anchors": ("args.command.matches", "(^ls$|^pwd$)", False),
    "an open middle of a path": ("args.path.matches", r"^/srv/.*\.txt$", True),
    "a set with a dot": ("args.path.matches", r"\A/srv/[\w./-]+\.md\Z", True),
    "a middle without a slash": ("args.path.matches", r"^/srv/[^/]+\.txt$", False),
    "an open host": ("args.url.matches", r"^https?://(.+\.)?example\.com(/.*)?$", True),
    "a host up to a slash": ("args.url.matches", r"^https://[^/]+\.example\.com/x$", True),
    "a closed host": ("args.url.matches", r"^https://[a-z-]+\.example\.com/.*\.html$", False),
    "an extension": ("args.path.ends_with", ".md", False),
    "an extension's pattern": ("args.path.matches", r"\.md$", False),
    "a host that is closed": ("args.url.starts_with", "https://example.com/", False),
    "a pattern with a closed host": ("args.url.matches", r"^https://example\.com/", False),
    "a domain": ("args.host.ends_with", ".example.com", False),
    "a mail domain": ("args.to.ends_with", ["@acme.example"], False),
    "a tool's prefix": ("tool.starts_with", "read_", False),
    "a harmless text": ("args.title.contains", "x", False),
    "a scope": ("declared.scope.contains", "read", False),
}


@pytest.mark.parametrize("name", LOOSE)
def test_an_allow_by_a_part_of_a_text_is_found(name: str) -> None:
    """Where what stands around the part decides what is touched."""
    path, operand, loose = LOOSE[name]
    key = {} if path.startswith("tool") else PAY

    assert ([("loose_match", "r0")] if loose else []) == found(
        rule("allow", {**key, path: operand})
    )


def test_a_denial_by_a_part_of_a_text_is_no_finding() -> None:
    """It only denies more; under a negation it lets past, and is one."""
    prefix = {"args.path.starts_with": "/srv"}

    assert [] == found(rule("deny", {**PAY, **prefix}))
    assert [("loose_match", "r0")] == found(rule("deny", {**PAY, "not": prefix}))
    assert [] == found(rule("allow", {**PAY, "args.n": 1, "not": prefix}))


def test_what_is_tied_beside_it_makes_a_part_harmless() -> None:
    """`under` beside a prefix of the same path is enough."""
    match = {**PAY, "all_of": [{"args.path.under": "/srv"}, {"args.path.starts_with": "/srv/a"}]}

    assert [] == found(rule("allow", match))


SCHEMAS = [
    {
        "name": "pay",
        "parameters": {
            "type": "object",
            "properties": {
                "n": {},
                "to": {},
                "x": {"default": 1},
                "y": {"type": ["null", "string"]},
            },
            "required": ["to", "y"],
        },
    }
]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([refuse(n={"gt": 5}), allow()], ["r0"]),
        ([refuse(y={"gt": "a"}), allow()], ["r0"]),
        ([refuse(to={"contains": "a"}), allow()], []),
        ([refuse(x={"gt": 5}), allow()], []),
        ([refuse(n={"gt": 5}), allow(n={"le": 5})], []),
        ([refuse(n={"gt": 5}), refuse(n={"exists": False}), allow()], []),
        (
            [
                rule("deny", {**PAY, "any_of": [{"args.n.gt": 5}, {"args.n.exists": False}]}),
                allow(),
            ],
            [],
        ),
        ([rule("deny", {**PAY, "args.n.not_in": [1]}), allow()], ["r0"]),
        ([rule("deny", {**PAY, "not": {"args.to.in": ["a"]}}), allow()], []),
        ([rule("allow", {**PAY, "args.n.ne": 5})], ["r0"]),
        ([rule("approve_required", {**PAY, "args.n.gt": 5}), allow()], ["r0"]),
        ([refuse(n={"gt": 5})], []),
    ],
)
def test_an_argument_that_may_be_left_out_is_asked_about(
    rules: list[dict[str, Any]], expected: list[str]
) -> None:
    """Clause 8: where the schema makes it optional, and the call may run without it."""
    codes = [("absent_argument", name) for name in expected]

    assert codes == [each for each in found(*rules, tools=SCHEMAS) if each[0] == "absent_argument"]


def test_without_a_schema_nothing_is_known_to_be_optional() -> None:
    """But a negated condition in a rule for all tools meets every call without the argument."""
    negated = {"not": {"args.path.under": "/srv"}}

    assert [] == found(refuse(n={"gt": 5}), allow())
    assert [] == found(rule("deny", {**PAY, **negated}))
    assert [("absent_argument", "r0")] == found(rule("deny", negated))
    assert [] == found(rule("deny", {**negated, "args.path.exists": True}))


@tool(scope=("read",))
def look(path: str, depth: int | None = None) -> str:
    """Look."""
    return path


@tool()
def wipe() -> None:
    """Wipe."""


def test_a_tool_set_is_a_tool_list() -> None:
    """Its names, its optional arguments and what its tools declare are known."""
    tools = ToolSet([look, wipe])
    reading = rule("allow", {"declared.scope.contains": "read"})

    assert [("missing_tool", "")] == found(reading, tools=tools)
    assert [("absent_argument", "r0"), ("missing_tool", "")] == found(
        rule("deny", {"tool": "look", "args.depth.gt": 3}), reading, tools=tools
    )


def test_tools_that_are_not_there_are_found() -> None:
    """By name, by pattern, and in `tools:`."""
    rules = [
        rule("allow", {"tool": "pya"}),
        rule("deny", {"tool.in": ["pay", "gone"]}),
        rule("deny", {"tool.starts_with": "delete_"}),
        rule("deny", {"not": {"tool": "pays"}}),
    ]
    findings = found(*rules, tools=["pay"])

    assert [("unknown_tool", f"r{number}") for number in range(4)] == findings[:4]
    assert [("unknown_tool", "")] == [
        each for each in found_with_tools_section() if each[0] == "unknown_tool"
    ]


def found_with_tools_section() -> list[tuple[str, str]]:
    """Lint a policy that declares a tool which the list does not have."""
    policy = {"tools": {"old": {"reversible": False}}, "rules": [rule("allow", PAY)]}
    return [(each.code, each.rule or "") for each in lint(compile_policy(policy), tools=["pay"])]


def test_tools_that_no_rule_speaks_of_are_found() -> None:
    """A rule for all tools speaks of a tool if it may let it run."""
    catching = rule("deny", {"args.x": 1})

    assert [("missing_tool", "")] == found(allow(), catching, tools=["pay", "other"])
    assert [] == found(allow(), rule("approve_required", "always"), tools=["pay", "other"])
    assert [] == found(rule("allow", {"tool.starts_with": "pa"}), tools=["pay"])


@pytest.mark.parametrize(
    "tools",
    [
        ["pay"],
        [{"name": "pay"}],
        [{"type": "function", "function": {"name": "pay", "parameters": {}}}],
        [{"name": "pay", "inputSchema": {"properties": None, "required": 3}}],
        [{"name": "pay", "input_schema": {"properties": {"x": None}}}],
        [{"name": "pay", "parameters": []}],
    ],
)
def test_tools_may_be_given_in_any_usual_form(tools: list[Any]) -> None:
    """Names, OpenAI's two forms, MCP's and Anthropic's; a schema that says nothing is none."""
    assert [] == found(allow(), tools=tools)


@pytest.mark.parametrize("tools", ["pay", {"name": "pay"}, [1], [""], [{}], [None]])
def test_what_is_no_tool_list_is_refused(tools: Any) -> None:
    """With a sentence that says what one is."""
    with pytest.raises(PolicyCompileError, match="tool"):
        lint(compile_policy({"rules": [allow()]}), tools=tools)


def test_predicates_that_no_rule_uses_are_found() -> None:
    """Also one that only another unused one names."""
    predicates = {"used": {"args.x": 1}, "idle": {"args.y": 1}, "idler": {"all_of": ["idle"]}}
    rules = [rule("deny", {"not": {"all_of": ["used", PAY]}, "tool": "buy"})]

    assert [("unused_predicate", "")] * 2 == found(*rules, predicates=predicates)


def test_a_decision_by_the_time_is_advised_against() -> None:
    """The timestamp is what the caller says it is."""
    match = {**PAY, "context.timestamp.gt": "2026-01-01"}

    assert [("timestamp", "r0")] == found(rule("deny", match))


def test_findings_can_be_left_out_by_their_code() -> None:
    """One code, several, and none that there is not."""
    bundle = compile_policy({"rules": [allow(), allow()]})

    assert () == lint(bundle, ignore=["shadowed"])
    assert () == lint(bundle, ignore="shadowed")
    with pytest.raises(ValueError, match="nonsense"):
        lint(bundle, ignore=["nonsense"])


@pytest.mark.needs_yaml
def test_a_finding_says_where() -> None:
    """File, line and column of the rule or of the condition."""
    text = "rules:\n  - match: {tool: pay}\n  - match: {tool: pay}\n"
    (finding,) = lint(compile_policy(text, file="p.yaml"))

    assert ("p.yaml:3:5", ("rule_0",)) == (finding.where, finding.related)
    assert "(line 2)" in finding.message


def test_every_code_is_documented() -> None:
    """The page that tells how to lint has each code."""
    page = (ROOT / "docs" / "how-to" / "lint-a-policy.md").read_text("utf-8")

    assert [] == [code for code in FINDING_CODES if f"`{code}`" not in page]


# What these show is a policy that is too wide.
LOOSE_ON_PURPOSE = ("lint-a-policy.md", "compare-two-policies.md")


def _policies_of_pages() -> list[tuple[str, str, str]]:
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
    return [
        (f"{page.name}:{number}", block["format"], block["text"])
        for page in sorted(pages)
        if page.name not in LOOSE_ON_PURPOSE
        for number, block in enumerate(
            re.finditer(
                r"^```(?P<format>yaml|json|toml)[^\n]*\n(?P<text>.*?)^```",
                page.read_text("utf-8"),
                re.MULTILINE | re.DOTALL,
            )
        )
        if "rules" in block["text"] and "adjudge_tests" not in block["text"]
    ]


@pytest.mark.needs_yaml
def test_the_shipped_policies_have_no_findings() -> None:
    """No false alarm: the template, the examples and every policy of the documentation."""
    examples = [
        path for path in (ROOT / "examples").rglob("policy.yaml") if ".test." not in path.name
    ]
    texts = [("init", "yaml", TEMPLATE)]
    texts += [(str(path), "yaml", path.read_text("utf-8")) for path in examples]
    alarms: list[tuple[str, Finding]] = []
    for name, kind, text in [*texts, *_policies_of_pages()]:
        bundle = compile_policy(text, format=kind)  # type: ignore[call-overload]
        alarms += [(name, finding) for finding in lint(bundle)]

    assert len(examples) >= 1
    assert [] == alarms


def test_a_large_policy_takes_seconds() -> None:
    """Rules are compared only where they share a tool and read the same."""
    rules = [
        rule("deny", {"tool": f"t{number}", "args.n.gt": number, "args.s.starts_with": "a"})
        for number in range(3000)
    ]
    bundle = compile_policy(
        {"rules": [*rules, rule("deny", {"tool": "t7", "args.n.gt": 99}), rules[11]]}
    )

    assert [("shadowed", "rule_3001")] == [(each.code, each.rule) for each in lint(bundle)]


def test_importing_adjudge_does_not_load_the_analysis() -> None:
    """What decides and enforces stays small; the command loads it when it is asked."""
    code = (
        "import sys, adjudge, adjudge.integration, adjudge.testing, adjudge.cli\n"
        "print([name for name in sys.modules if name.startswith('adjudge.analysis')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout


@pytest.mark.parametrize(
    ("shadowed", "floor"),
    [
        (refuse(n={"le": 5}), True),
        (allow(n={"le": 5}) | {"obligations": ["log"]}, True),
        (allow(n={"le": 5}), False),
        (rule("deny", PAY), False),
    ],
)
def test_a_shadowed_rule_that_holds_where_it_errs_is_said_to(
    shadowed: dict[str, Any], floor: bool
) -> None:
    """Clause 15: it never decides, and yet what errs is denied by it; removing it loosens that."""
    verdict = "allow" if shadowed["decision"] == "allow" else "dry_run"
    first = rule(verdict, shadowed["match"])
    rules = [{"id": "first", **first}, {"id": "second", **shadowed}]
    (finding,) = lint(compile_policy({"version": 1, "rules": rules}))

    assert "shadowed" == finding.code
    assert floor is ("no longer a floor (deny)" in finding.message)
