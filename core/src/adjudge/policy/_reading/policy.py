"""Read a whole policy from its nodes: version, defaults, predicates, tools and rules.

Collects every problem of the policy; what it returns is meant only if there was none.
"""

from __future__ import annotations

from adjudge._types import Verdict
from adjudge._values import FrozenDict
from adjudge.policy._model import Defaults, PolicySource, Rule, ToolDeclaration
from adjudge.policy._reading.matches import MatchReader
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, Scalar, kind_of_node
from adjudge.policy._reading.rules import read_rule, read_verdict
from adjudge.policy._reading.values import (
    check_key,
    read_bool,
    read_fields_of,
    read_text,
    read_texts,
    read_whole,
    read_word,
)
from adjudge.policy._reading.words import ALWAYS, COMBINING, OPERATORS
from adjudge.policy._work import Work

__all__ = ["VERSION", "read_fields"]

VERSION = 1
_SECTIONS = ("version", "defaults", "predicates", "tools", "rules")
_OF_DEFAULTS = ("on_no_match", "on_missing_shadow")
_OF_TOOL = ("reversible", "cost", "scope", "labels", "blast_radius_hint", "isolation", "namespace")


def read_fields(node: Fields, problems: Problems, work: Work) -> PolicySource:
    """Read the policy's mapping; a policy without rules is one that its defaults decide."""
    sections = read_fields_of(node, _SECTIONS, problems, meant="A policy")
    version = _read_version(sections.get("version"), problems)
    defaults = _read_defaults(sections.get("defaults"), problems)
    predicates = _read_predicate_nodes(sections.get("predicates"), problems)
    matches = MatchReader(predicates, problems, work.patterns)
    return PolicySource(
        version=version,
        defaults=defaults,
        rules=_read_rules(sections.get("rules"), matches, problems, work),
        tools=_read_tools(sections.get("tools"), problems),
        predicates=FrozenDict({name: matches.predicate(name) for name in predicates}),
        file=problems.file,
    )


def _is_left_empty(entry: Entry | None) -> bool:
    """Tell whether a section is missing or holds nothing (`rules:` and no more)."""
    return entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None)


def _read_version(entry: Entry | None, problems: Problems) -> int:
    if entry is None:
        return VERSION
    version = read_whole(entry.value, problems, meant="version")
    if version is not None and version != VERSION:
        problems.add(entry.value.place, f"There is no version {version}; write version: {VERSION}.")
    return VERSION


def _read_defaults(entry: Entry | None, problems: Problems) -> Defaults:
    if entry is None or _is_left_empty(entry):
        return Defaults()
    fields = read_fields_of(entry.value, _OF_DEFAULTS, problems, meant="defaults")
    verdicts: dict[str, Verdict] = {}
    for name, each in fields.items():
        verdict = read_verdict(each.value, problems, meant=name)
        if verdict is Verdict.TRANSFORM:
            problems.add(
                each.value.place, f"{name} cannot be transform, because a default rewrites nothing."
            )
        elif verdict is not None:
            verdicts[name] = verdict
    return Defaults(**verdicts)


def _entries(entry: Entry | None, problems: Problems, meant: str) -> tuple[Entry, ...]:
    if entry is None or _is_left_empty(entry):
        return ()
    if not isinstance(entry.value, Fields):
        problems.add(entry.value.place, f"{meant}, not {kind_of_node(entry.value)}.")
        return ()
    for each in entry.value.entries:
        check_key(each, problems)
        if not each.key:
            problems.add(each.place, "A name must not be empty.")
    return entry.value.entries


def _read_predicate_nodes(entry: Entry | None, problems: Problems) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for each in _entries(entry, problems, "predicates is a mapping of names to matches"):
        if each.key == ALWAYS:
            problems.add(
                each.place, "always is the rule for everything; call the predicate otherwise."
            )
        elif each.key in OPERATORS or each.key in COMBINING:
            problems.add(
                each.place,
                f'"{each.key}" is a word of the policy language; call the predicate otherwise.',
            )
        nodes[each.key] = each.value
    return nodes


def _read_tools(entry: Entry | None, problems: Problems) -> FrozenDict:
    return FrozenDict(
        {
            each.key: _read_tool(each, problems)
            for each in _entries(
                entry, problems, "tools is a mapping of tools' names to what they are"
            )
        }
    )


def _read_tool(entry: Entry, problems: Problems) -> ToolDeclaration:
    fields = read_fields_of(entry.value, _OF_TOOL, problems, meant=f'The tool "{entry.key}"')
    stated: dict[str, object] = {}
    namespace: str | None = None
    for name, each in fields.items():
        if name == "reversible":
            stated[name] = read_bool(each.value, problems, meant=name)
        elif name == "cost":
            stated[name] = read_word(each.value, ("low", "medium", "high"), problems, meant=name)
        elif name in ("scope", "labels"):
            stated[name] = read_texts(each.value, problems, meant=name)
        elif name == "blast_radius_hint":
            stated[name] = read_whole(each.value, problems, meant=name)
        elif name == "isolation":
            stated[name] = read_text(each.value, problems, meant=name)
        else:
            namespace = read_text(each.value, problems, meant=name)
    return ToolDeclaration(entry.key, namespace, FrozenDict(stated), entry.place)


def _read_rules(
    entry: Entry | None, matches: MatchReader, problems: Problems, work: Work
) -> tuple[Rule, ...]:
    if entry is None or _is_left_empty(entry):
        return ()
    if not isinstance(entry.value, Items):
        problems.add(
            entry.value.place, f"rules is a list of rules, not {kind_of_node(entry.value)}."
        )
        return ()
    rules = []
    for order, node in enumerate(work.over(entry.value.items, Work.READING)):
        if isinstance(node, Fields):
            rules.append(read_rule(node, order, matches, problems))
        else:
            problems.add(node.place, f"A rule is a mapping, not {kind_of_node(node)}.")
    _refuse_duplicate_ids(rules, problems)
    return tuple(rules)


def _refuse_duplicate_ids(rules: list[Rule], problems: Problems) -> None:
    first_of: dict[str, Rule] = {}
    for rule in rules:
        first = first_of.setdefault(rule.id, rule)
        if first is not rule:
            place = first.place
            where = f"line {place.line}, column {place.column}" if place.line else place.path
            problems.add(
                rule.place,
                f'The id "{rule.id}" is taken by the rule at {where}; every rule has its own.',
            )
