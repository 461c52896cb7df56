"""Read match expressions: tests, `all_of`, `any_of`, `not`, names of predicates, `always`.

What comes out is a `Match` with every operand checked as far as the text alone allows (clauses 4,
5, 7 and 9) and with named predicates put in place. It decides nothing about requests.
"""

from __future__ import annotations

from adjudge.policy._model import AllOf, Always, AnyOf, Leaf, Match, Not, Path
from adjudge.policy._patterns.shared import Patterns
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, Scalar, kind_of_node
from adjudge.policy._reading.operands import OperandReader
from adjudge.policy._reading.paths import PathProblem, parse_leaf
from adjudge.policy._reading.suggest import did_you_mean
from adjudge.policy._reading.words import ALWAYS, COMBINING, ELEMENT, OPERATORS, ROOTS

__all__ = ["MAX_LEAVES", "MAX_MATCH_DEPTH", "MatchReader"]

MAX_LEAVES = 10_000
MAX_MATCH_DEPTH = 64


class MatchReader:
    """Reads matches of one policy; it knows the named predicates and reads each of them once."""

    def __init__(self, predicates: dict[str, Node], problems: Problems, patterns: Patterns) -> None:
        self._nodes = predicates
        self._problems = problems
        self._read: dict[str, Match] = {}
        self._reading: list[str] = []
        self._depth = 0
        self._sizes: dict[int, tuple[Match, int, int]] = {}
        self._operands = OperandReader(problems, patterns, self._element_match)
        self._leaves: dict[tuple[str, bool], tuple[Path, str | None]] = {}

    def read(self, node: Node) -> Match:
        """Read what stands under `match:`, or in a combination."""
        match = self._match(node, element=False)
        self._check_size(match, node)
        return match

    def predicate(self, name: str) -> Match:
        """Give a named predicate, reading it if nobody has yet."""
        if name not in self._read:
            self._reading.append(name)
            self._read[name] = self.read(self._nodes[name])
            self._reading.pop()
        return self._read[name]

    def _match(self, node: Node, *, element: bool) -> Match:
        if self._depth >= MAX_MATCH_DEPTH:
            self._problems.add(
                node.place,
                f"With its predicates in place this is more than {MAX_MATCH_DEPTH} levels deep.",
            )
            return Always()
        self._depth += 1
        match = self._match_of(node, element=element)
        self._depth -= 1
        return match

    def _match_of(self, node: Node, *, element: bool) -> Match:
        if isinstance(node, Fields):
            return self._conjunction(node, element=element)
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.surprise is None:
            return self._named(node, element=element)
        hint = (
            " Write all_of: [...] for several that must all hold."
            if isinstance(node, Items)
            else ""
        )
        self._problems.add(
            node.place,
            "A match is a mapping of tests or the name of a predicate, not "
            f"{kind_of_node(node)}.{hint}",
        )
        return Always()

    def _named(self, node: Scalar, *, element: bool) -> Match:
        name: str = node.value
        if name == ALWAYS:
            return Always()
        if element:
            self._problems.add(
                node.place,
                f'Inside a quantifier stand tests of ".", the element; the predicate "{name}" is '
                "about the whole call.",
            )
        elif name in self._reading:
            round_trip = " -> ".join((*self._reading[self._reading.index(name) :], name))
            self._problems.add(node.place, f"The predicate is defined by itself: {round_trip}.")
        elif name not in self._nodes:
            self._problems.add(
                node.place,
                f'There is no predicate "{name}". {did_you_mean(name, (*self._nodes, ALWAYS))}',
            )
        else:
            return self.predicate(name)
        return Always()

    def _conjunction(self, node: Fields, *, element: bool) -> Match:
        if not node.entries:
            self._problems.add(
                node.place,
                "This match is empty. A rule for everything is written match: always."
                if not element
                else 'This predicate is empty; test the element, as in {".": {gt: 0}}.',
            )
            return Always()
        return _all(tuple(self._entry(entry, element=element) for entry in node.entries))

    def _entry(self, entry: Entry, *, element: bool) -> Match:
        if entry.key in ("all_of", "any_of"):
            return self._combination(entry, element=element)
        if entry.key == "not":
            return Not(self._match(entry.value, element=element))
        if entry.key in ROOTS and entry.key != "tool":
            self._problems.add(entry.place, _bare_root(entry))
            return Always()
        try:
            path, operator = self._leaf(entry.key, element=element)
        except PathProblem as error:
            self._problems.add(entry.place, self._combining_hint(entry.key) or str(error))
            return Always()
        if operator is not None:
            return self._operands.read(Leaf(path, operator, None, entry.place), entry.value)
        return self._equality_or_operators(Leaf(path, "eq", None, entry.place), entry)

    def _leaf(self, key: str, *, element: bool) -> tuple[Path, str | None]:
        """Read the key of a test; most rules of a policy have the same few."""
        known = self._leaves.get((key, element))
        if known is None:
            known = self._leaves[key, element] = parse_leaf(key, element=element)
        return known

    def _combining_hint(self, key: str) -> str | None:
        if key.lower().replace("-", "_") in (*COMBINING, "all", "any", "none_of"):
            return f'"{key}" is no key of a match. {did_you_mean(key, COMBINING)}'
        return None

    def _combination(self, entry: Entry, *, element: bool) -> Match:
        node = entry.value
        if not isinstance(node, Items) or not node.items:
            what = "an empty list" if isinstance(node, Items) else kind_of_node(node)
            self._problems.add(
                entry.place,
                f"{entry.key} takes a list of at least one match, not {what}.",
            )
            return Always()
        parts = tuple(self._match(item, element=element) for item in node.items)
        return AllOf(parts) if entry.key == "all_of" else AnyOf(parts)

    def _equality_or_operators(self, leaf: Leaf, entry: Entry) -> Match:
        node = entry.value
        if not isinstance(node, Fields):
            return self._operands.read(leaf, node)
        keys = [each.key for each in node.entries]
        if keys in (["ref"], ["literal"]):
            return self._operands.read(leaf, node)
        if not keys:
            self._problems.add(
                node.place,
                "This mapping is empty; write operators, or {literal: {}} for an empty object.",
            )
            return Always()
        parts = []
        for each in node.entries:
            if each.key in OPERATORS:
                parts.append(
                    self._operands.read(Leaf(leaf.path, each.key, None, each.place), each.value)
                )
            else:
                self._problems.add(each.place, _no_operator(leaf, each.key))
        return _all(tuple(parts)) if parts else Always()

    def _element_match(self, node: Node) -> Match:
        return self._match(node, element=True)

    def _check_size(self, match: Match, node: Node) -> None:
        leaves, depth = self._measure(match)
        if leaves > MAX_LEAVES:
            self._problems.add(
                node.place,
                f"With its predicates in place this has more than {MAX_LEAVES} tests.",
            )
        if depth > MAX_MATCH_DEPTH:
            self._problems.add(
                node.place,
                f"With its predicates in place this is more than {MAX_MATCH_DEPTH} levels deep.",
            )

    def _measure(self, match: Match) -> tuple[int, int]:
        """Count leaves and levels; shared predicates are measured once, which keeps this cheap."""
        known = self._sizes.get(id(match))
        if known is not None:
            return known[1], known[2]
        if isinstance(match, AllOf | AnyOf):
            measured = [self._measure(part) for part in match.parts]
            leaves, depth = sum(n for n, _ in measured), 1 + max(d for _, d in measured)
        elif isinstance(match, Not):
            leaves, depth = self._measure(match.part)
            depth += 1
        elif isinstance(match, Leaf) and isinstance(
            match.operand, AllOf | AnyOf | Not | Leaf | Always
        ):
            leaves, depth = self._measure(match.operand)
            leaves, depth = leaves + 1, depth + 1
        else:
            leaves, depth = 1, 1
        self._sizes[id(match)] = (match, leaves, depth)
        return leaves, depth


def _all(parts: tuple[Match, ...]) -> Match:
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _bare_root(entry: Entry) -> str:
    inner = "NAME"
    if isinstance(entry.value, Fields) and entry.value.entries:
        inner = entry.value.entries[0].key
    return (
        f'"{entry.key}" names everything below it and cannot be tested itself. Quote the whole '
        f'path as one key: "{entry.key}.{inner}".'
    )


def _no_operator(leaf: Leaf, key: str) -> str:
    if leaf.path.root == "tool" and key == "namespace":
        return 'Quote the whole path as one key: "tool.namespace".'
    place = f'"{leaf.path.text}.{key}"' if leaf.path.root != ELEMENT else f'".{key}"'
    return (
        f'"{key}" is no operator. {did_you_mean(key, OPERATORS)} A key below it is written in one '
        f"with the path, {place}; an object to be equal to is written {{literal: {{...}}}}."
    )
