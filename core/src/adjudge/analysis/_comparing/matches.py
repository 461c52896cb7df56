"""Walking the `match` of a rule: its leaves, what they read, and parts put in another's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from adjudge.policy._match import literal_tools
from adjudge.policy._model import AllOf, AnyOf, Leaf, Match, Not, Path, PolicySource, Ref, Rule

__all__ = ["inner_match", "leaves_of", "may_concern", "mentioned_tools", "paths_of", "with_leaves"]

Steps = tuple[str | int, ...]


def leaves_of(match: Match) -> Iterator[Leaf]:
    """Give every leaf, but not those about the elements inside a quantifier."""
    if isinstance(match, Leaf):
        yield match
    elif isinstance(match, Not):
        yield from leaves_of(match.part)
    elif isinstance(match, AllOf | AnyOf):
        for part in match.parts:
            yield from leaves_of(part)


def inner_match(leaf: Leaf) -> Match | None:
    """Give the match about the element, of `each`, `some`, `size` and `normalized`."""
    return leaf.operand if isinstance(leaf.operand, Leaf | Not | AllOf | AnyOf) else None


def full_path(path: Path) -> Steps:
    """Give a path as one tuple, its root first."""
    return (path.root, *path.steps)


def paths_of(leaf: Leaf) -> Iterator[Steps]:
    """Give what a leaf reads of the request, its operand included."""
    yield full_path(leaf.path)
    if isinstance(leaf.operand, Ref):
        yield full_path(leaf.operand.path)
    if reads_files(leaf):
        yield ("resolved",)


def reads_files(leaf: Leaf) -> bool:
    """Whether a leaf, or a leaf about the element inside it, compares resolved paths."""
    inner = inner_match(leaf)
    return leaf.operator == "under" or (
        inner is not None and any(map(reads_files, leaves_of(inner)))
    )


def with_leaves(match: Match, change: Callable[[Leaf], Match]) -> Match:
    """Give the match with something else in the place of each leaf."""
    if isinstance(match, Leaf):
        return change(match)
    if isinstance(match, Not):
        return replace(match, part=with_leaves(match.part, change))
    if isinstance(match, AllOf | AnyOf):
        return replace(match, parts=tuple(with_leaves(part, change) for part in match.parts))
    return match


def may_concern(rule: Rule, tool: str | None) -> bool:
    """Whether a rule can be anything but false of a tool; None is one that no rule names."""
    named = literal_tools(rule.match)
    return named is None or tool in named


def mentioned_tools(source: PolicySource) -> set[str]:
    """Give the tools that a policy names as text, in its rules and in `tools:`."""
    named = set(source.tools)
    for rule in source.rules:
        named |= literal_tools(rule.match) or set()
    return named
