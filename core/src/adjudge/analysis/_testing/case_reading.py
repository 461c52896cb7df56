"""Read test cases from YAML, JSON, TOML or a mapping, as strictly as policies are read.

Unknown keys, names that are given twice and cases that expect nothing are problems with their
place and the nearest known word; a file without cases is one as well. All problems are reported
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from adjudge._types import Verdict
from adjudge._values import EMPTY, FrozenDict
from adjudge.analysis._call_reading import Surroundings, read_call
from adjudge.analysis._testing.cases import Expectation, Merge, PolicyCase, PolicyTests
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, kind_of_node
from adjudge.policy._reading.rules import read_verdict
from adjudge.policy._reading.source import parse
from adjudge.policy._reading.values import (
    check_key,
    read_fields_of,
    read_object,
    read_text,
    read_texts,
    read_whole,
    read_word,
)

__all__ = ["MARK", "read_policy_tests"]

MARK = "adjudge_tests"
"""The key that says that a file holds test cases, and in which version of the format."""

_VERSION = 1
_SECTIONS = (MARK, "policy", "layers", "merge", "tools", "context", "cases")
_OF_CASE = ("name", "call", "context", "expect")
_OF_EXPECT = (
    "verdict",
    "rule",
    "default",
    "rules",
    "args",
    "reason",
    "approvers",
    "obligations",
)
_DEFAULTS: tuple[Literal["on_no_match"], Literal["on_missing_shadow"]] = (
    "on_no_match",
    "on_missing_shadow",
)


def read_policy_tests(
    source: str | bytes | Mapping[str, Any],
    *,
    format: Literal["yaml", "json", "toml"] | None = None,
    file: str | None = None,
) -> PolicyTests:
    """Read and check the cases of one text or mapping.

    `format` and `file` are those of `compile_policy`. Raises `PolicyCompileError` with every
    problem found; that there is no case is one.
    """
    problems = Problems(file=file)
    node = parse(source, format, file, problems)
    if node is None:
        problems.add_text(f"The file is empty; it begins with {MARK}: 1 and has cases.")
        problems.stop_if_any()
    assert node is not None
    sections = read_fields_of(node, _SECTIONS, problems, meant="A file of policy tests")
    if isinstance(node, Fields):
        _check_mark(node, sections, problems)
    tests = _read_sections(node, sections, problems)
    problems.stop_if_any()
    return tests


def _check_mark(node: Fields, sections: Mapping[str, Entry], problems: Problems) -> None:
    entry = sections.get(MARK)
    if entry is None:
        problems.add(
            node.place, f"It does not say that it holds policy tests; begin it with {MARK}: 1."
        )
        return
    version = read_whole(entry.value, problems, meant=MARK)
    if version is not None and version != _VERSION:
        problems.add(entry.value.place, f"There is no version {version}; write {MARK}: {_VERSION}.")


def _read_sections(node: Node, sections: Mapping[str, Entry], problems: Problems) -> PolicyTests:
    if "policy" in sections and "layers" in sections:
        problems.add(
            sections["layers"].place, "The cases are of one policy or of layers; keep one of them."
        )
    if "merge" in sections and "layers" not in sections:
        problems.add(sections["merge"].place, "merge combines layers, and there are none.")
    surroundings = Surroundings(sections.get("tools"), sections.get("context"), problems)
    merge = _read_merge(sections.get("merge"), problems)
    policy = sections.get("policy")
    return PolicyTests(
        cases=_read_cases(node, sections.get("cases"), surroundings, problems),
        file=problems.file,
        policy=None if policy is None else read_text(policy.value, problems, meant="policy"),
        layers=_read_layers(sections.get("layers"), problems),
        merge=merge,
        tools=surroundings.tools,
    )


def _read_merge(entry: Entry | None, problems: Problems) -> Merge:
    if entry is not None:
        word = read_word(entry.value, get_args(Merge), problems, meant="merge")
        for known in get_args(Merge):
            if known == word:
                merge: Merge = known
                return merge
    return "strict_overrides_loose"


def _read_layers(entry: Entry | None, problems: Problems) -> Mapping[str, str]:
    if entry is None:
        return EMPTY
    if not isinstance(entry.value, Fields) or not entry.value.entries:
        problems.add(
            entry.value.place,
            "layers is a mapping of layers' names to files, as in {org: org.yaml, team: "
            f"team.yaml}}, not {_kind(entry.value)}.",
        )
        return EMPTY
    layers: dict[str, str] = {}
    for each in entry.value.entries:
        check_key(each, problems)
        layers[each.key] = read_text(each.value, problems, meant="A layer's file") or ""
    return FrozenDict(layers)


def _kind(node: Node) -> str:
    if isinstance(node, Fields) and not node.entries:
        return "an empty one"
    return kind_of_node(node)


def _read_cases(
    node: Node, entry: Entry | None, surroundings: Surroundings, problems: Problems
) -> tuple[PolicyCase, ...]:
    if entry is None:
        problems.add(node.place, "It has no cases, so there is nothing to check.")
        return ()
    if not isinstance(entry.value, Items) or not entry.value.items:
        told = "an empty list" if isinstance(entry.value, Items) else kind_of_node(entry.value)
        problems.add(
            entry.value.place,
            f"cases is a list of at least one case, not {told}; there is nothing to check.",
        )
        return ()
    cases: dict[str, PolicyCase] = {}
    for item in entry.value.items:
        case = _read_case(item, surroundings, problems)
        if case is None:
            continue
        first = cases.setdefault(case.name, case)
        if first is not case and case.name:
            problems.add(
                case.place,
                f'The name "{case.name}" is taken by the case at {_spot(first)}; every case has '
                "its own.",
            )
    return tuple(cases.values())


def _spot(case: PolicyCase) -> str:
    place = case.place
    return f"line {place.line}, column {place.column}" if place.line else place.path


def _read_case(node: Node, surroundings: Surroundings, problems: Problems) -> PolicyCase | None:
    fields = read_fields_of(node, _OF_CASE, problems, meant="A case")
    if not isinstance(node, Fields):
        return None
    call = read_call(fields.get("call"), fields.get("context"), node.place, surroundings)
    expect = _read_expect(fields.get("expect"), node, problems)
    name = _read_name(fields.get("name"), node, problems)
    if call is None or expect is None:
        return None
    request, unresolvable = call
    return PolicyCase(name, request, expect, unresolvable, node.place)


def _read_name(entry: Entry | None, node: Fields, problems: Problems) -> str:
    if entry is None:
        problems.add(node.place, "The case has no name; say in a few words what it shows.")
        return ""
    name = read_text(entry.value, problems, meant="name") or ""
    if not name.isprintable():
        problems.add(entry.value.place, "A name is one line without control characters.")
    return name


def _read_expect(entry: Entry | None, case: Fields, problems: Problems) -> Expectation | None:
    if entry is None:
        problems.add(
            case.place,
            "The case expects nothing; say at least the verdict, as in expect: deny.",
        )
        return None
    node = entry.value
    if not isinstance(node, Fields):
        verdict = read_verdict(node, problems, meant="expect")
        return None if verdict is None else Expectation(verdict, place=entry.place)
    fields = read_fields_of(node, _OF_EXPECT, problems, meant="expect")
    if "verdict" not in fields:
        problems.add(entry.place, "expect does not say which verdict; add verdict: deny, or so.")
        return None
    verdict = read_verdict(fields["verdict"].value, problems, meant="verdict")
    if verdict is None:
        return None
    _refuse_contradictions(fields, verdict, problems)
    return Expectation(
        verdict=verdict,
        rule=_optional_text(fields, "rule", problems),
        default=_read_default(fields.get("default"), problems),
        rules=_optional_texts(fields, "rules", problems),
        args=read_object(fields.get("args"), problems, meant="args"),
        reason=_optional_text(fields, "reason", problems, empty=True),
        approvers=_optional_texts(fields, "approvers", problems),
        obligations=_optional_texts(fields, "obligations", problems),
        place=entry.place,
    )


def _refuse_contradictions(
    fields: Mapping[str, Entry], verdict: Verdict, problems: Problems
) -> None:
    naming = [fields[name] for name in ("rule", "default", "rules") if name in fields]
    for extra in naming[1:]:
        problems.add(
            extra.place, f"{naming[0].key} says already what decided; keep one of the two."
        )
    if verdict is Verdict.DENY and "args" in fields:
        problems.add(fields["args"].place, "A call that is denied runs with no arguments.")
    if verdict is not Verdict.APPROVE_REQUIRED and "approvers" in fields:
        problems.add(
            fields["approvers"].place, f"Nobody is asked where the verdict is {verdict}; remove it."
        )


def _optional_text(
    fields: Mapping[str, Entry], name: str, problems: Problems, *, empty: bool = False
) -> str | None:
    entry = fields.get(name)
    return None if entry is None else read_text(entry.value, problems, meant=name, empty=empty)


def _optional_texts(
    fields: Mapping[str, Entry], name: str, problems: Problems
) -> tuple[str, ...] | None:
    entry = fields.get(name)
    return None if entry is None else read_texts(entry.value, problems, meant=name)


def _read_default(
    entry: Entry | None, problems: Problems
) -> Literal["on_no_match", "on_missing_shadow"] | None:
    if entry is None:
        return None
    word = read_word(entry.value, _DEFAULTS, problems, meant="default")
    return next((known for known in _DEFAULTS if known == word), None)
