"""Permissions by a part of a text, where what stands around it decides what is touched.

Looked for in permitting position alone: in allow rules, and under a negation in those that
restrict. A value counts as security-bearing by the name of its argument or the look of the operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from adjudge._types import Verdict
from adjudge.analysis._comparing.strings import strings_for
from adjudge.analysis._linting.conditions import Steps
from adjudge.analysis._linting.findings import Finding
from adjudge.analysis._linting.regexes import certain_of, is_bound
from adjudge.analysis._linting.views import RuleView, shown_leaf
from adjudge.analysis._parts import Part, inner_part
from adjudge.policy._model import Leaf, Path

__all__ = ["loose_findings"]

_WORDS: Mapping[str, str] = {
    "path": "path file filename filepath dir directory folder dest destination src source cwd root",
    "url": "url uri link href endpoint webhook",
    "host": "host hostname domain server",
    "command": "command cmd shell script argv exec executable program sql statement",
    "address": "email mail recipient to cc bcc sender address addr",
}
_KIND_OF_WORD: Mapping[str, str] = {
    word: kind for kind, words in _WORDS.items() for word in words.split()
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CLOSED = re.compile(r"https?://[^/?#*\[\]()|]+/", re.IGNORECASE)
_INSTEAD: Mapping[str, str] = {
    "path": "Write under: DIRECTORY, which compares resolved paths by their components.",
    "url": "Write host_in: [HOST], which reads the URL as a client does.",
    "host": "Write in: [HOST, ...] with the whole names.",
    "command": r"Write in: [...] with the whole commands, or matches: '\A...\Z'.",
    "address": r"""Write in: [...], ends_with: "@DOMAIN", or matches: '\A...\Z'.""",
    "name": r"Write in: [...] with the whole names, or matches: '\A...\Z'.",
}
# An operator that ties the value as a whole, so that a part of it beside does no harm.
_WHOLE = ("eq", "in", "under", "host_in")


def loose_findings(view: RuleView) -> Iterator[Finding]:
    """Find the loose permissions of one rule."""
    if view.rule.verdict is not Verdict.TRANSFORM:
        yield from _Looking(view).below(view.readings[0], None, frozenset())


class _Looking:
    def __init__(self, view: RuleView) -> None:
        self._view = view

    def below(self, part: Part, outer: Path | None, tied: frozenset[Steps]) -> Iterator[Finding]:
        """Look at a part; `tied` are the paths that something beside it ties as a whole."""
        if part.kind == "leaf":
            yield from self._leaf(part, outer, tied)
            return
        if part.kind == "all_of":
            tied = tied | frozenset(_tied(part.parts))
        elif part.kind == "not":
            tied = frozenset()
        for each in part.parts:
            yield from self.below(each, outer, tied)

    def _leaf(self, part: Part, outer: Path | None, tied: frozenset[Steps]) -> Iterator[Finding]:
        leaf = part.match
        assert isinstance(leaf, Leaf)
        path = outer if leaf.path.root == "." and outer is not None else leaf.path
        inner = inner_part(part)
        if inner is not None:
            yield from self.below(inner, path, tied)
        elif part.reading.in_permitting_position and (path.root, *path.steps) not in tied:
            kind = _kind_of(path, leaf)
            how = None if kind is None else _looseness(kind, leaf)
            if kind is not None and how is not None:
                lets = "permits" if self._view.rule.verdict is Verdict.ALLOW else "lets past"
                yield Finding(
                    "loose_match",
                    f"{shown_leaf(leaf)} {lets} every text that {how}. {_INSTEAD[kind]}",
                    self._view.name,
                    leaf.place,
                )


def _tied(parts: Sequence[Part]) -> Iterator[Steps]:
    for part in parts:
        leaf = part.match
        if not isinstance(leaf, Leaf):
            continue
        kind = _kind_of(leaf.path, leaf)
        anchored = leaf.operator == "matches" and all(is_bound(leaf.operand))
        closed = anchored and (kind is None or _looseness(kind, leaf) is None)
        if leaf.operator in _WHOLE or closed:
            yield (leaf.path.root, *leaf.path.steps)


def _kind_of(path: Path, leaf: Leaf) -> str | None:
    """Say what sort of value this is, if others can complete it to their ends."""
    if path.root in ("tool", "tool.namespace") or path.steps[:1] == ("principal",):
        return "name"
    if path.root not in ("args", "injected") and path.steps[:1] != ("extra",):
        return None
    name = next((step for step in reversed(path.steps) if isinstance(step, str)), "")
    for word in reversed(_WORD.findall(name)):
        plain = word.lower()
        kind = _KIND_OF_WORD.get(plain) or _KIND_OF_WORD.get(plain.removesuffix("s"))
        if kind is not None:
            return kind
    return _kind_by_operand(leaf)


def _kind_by_operand(leaf: Leaf) -> str | None:
    operand = leaf.operand
    for text in operand if isinstance(operand, list) else (operand,):
        if not isinstance(text, str):
            continue
        start = text.removeprefix("^").removeprefix(r"\A")
        if re.match(r"https?(\?|:|\\:)", start):
            return "url"
        if re.match(r"\.{0,2}/|~/", start):
            return "path"
    return None


def _looseness(kind: str, leaf: Leaf) -> str | None:
    """Say what a condition leaves open, or None where it ties the value well enough."""
    operator, operand = leaf.operator, leaf.operand
    texts = [
        each
        for each in (operand if isinstance(operand, list) else [operand])
        if isinstance(each, str)
    ]
    if operator in ("contains", "contains_any", "contains_all") and texts:
        return "has this anywhere in it"
    if operator == "starts_with":
        return _open_end(kind, texts)
    if operator == "ends_with":
        return _open_start(kind, texts)
    if operator == "glob":
        return _open_glob(kind, operand)
    if operator != "matches":
        return None
    at_start, at_end = is_bound(operand)
    certain = certain_of(operand, permitting=True)
    if at_start and at_end:
        return _open_between(kind, operand, certain.prefix)
    if not at_start and not at_end:
        return "has a match anywhere in it, for the pattern is tied to neither end"
    if at_start:
        return None if _ties_host(kind, operand) else _open_end(kind, [certain.prefix])
    return _open_start(kind, [certain.suffix])


def _open_end(kind: str, texts: Sequence[str]) -> str | None:
    if kind == "name" or (kind == "url" and all(map(_CLOSED.match, texts))):
        return None
    if kind == "path":
        return "begins so, through .. or a longer name outside the directory too"
    return "begins so, whatever follows"


def _open_start(kind: str, texts: Sequence[str]) -> str | None:
    if kind in ("name", "path"):
        return None
    tied_by = {"host": ".", "address": "@"}.get(kind)
    if tied_by is not None and all(text.startswith(tied_by) for text in texts):
        return None
    return "ends so, whatever stands before it"


def _open_glob(kind: str, pattern: str) -> str | None:
    before = pattern.split("*", 1)[0]
    if kind == "path" and before and "**" in pattern:
        return "fits it, and ** spans .. as well"
    if kind == "url" and "*" in pattern and not _CLOSED.match(pattern):
        return "fits it, and * spans the end of the host"
    if kind == "command" and pattern.endswith("*"):
        return "fits it, whatever follows"
    return None


def _open_between(kind: str, pattern: str, prefix: str) -> str | None:
    """Say what is open between two tied ends, where a text that fits the pattern shows it."""
    fitting = [text for text in strings_for(pattern) if re.search(pattern, text)]
    if kind == "path" and prefix:
        climbing = [text.replace("/", "/../", 1) for text in fitting if "/" in text]
        climbing += ["/../".join(text.rsplit("/", 1)) for text in fitting if "/" in text]
        if any(re.search(pattern, text) for text in climbing):
            return "fits it, and what it has between its ends spans .. as well"
    if kind == "url":
        foreign = [
            f"{scheme}://evil.example{end}{rest}"
            for scheme, _, rest in (text.partition("://") for text in fitting)
            for end in "/?#"
        ]
        if any(re.search(pattern, text) for text in foreign):
            return "fits it, on any host"
    return None


def _ties_host(kind: str, pattern: str) -> bool:
    """Whether a pattern of URLs spells out everything up to the slash after the host."""
    if kind != "url":
        return False
    spelled = re.sub(r"\\(.)", r"\1", pattern.removeprefix("^").removeprefix(r"\A"))
    wild = re.search(r"(?<!\\)\.|\[\^|\\[DWS]", pattern)
    return wild is None and spelled.split("://", 1)[-1].count("/") >= 1
