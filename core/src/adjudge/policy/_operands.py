"""Read and check the operands of a policy's tests, as far as the text alone allows (clauses 7 and 9).

An operand that no value could ever be tested against is a problem here, not a test that quietly never holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge._values import FrozenDict, FrozenList, kind_of
from adjudge.policy._locations import host_pattern_problem
from adjudge.policy._model import AllOf, Always, Leaf, Match, Not, Path, Ref
from adjudge.policy._nodes import Entry, Fields, Items, Node, Problems, Scalar, kind_of_node
from adjudge.policy._paths import PathProblem, parse_reference
from adjudge.policy._patterns import UnsafePattern, compile_pattern
from adjudge.policy._read_values import (
    check_key,
    is_number,
    read_bool,
    read_json_value,
    read_scalar,
    read_text,
)
from adjudge.policy._suggest import did_you_mean, listed
from adjudge.policy._words import ELEMENT, NEGATED, ORDERING

__all__ = ["OperandReader"]

# What a value at these paths can be; an operand of another kind could only ever be an error.
_KIND_AT: dict[tuple[str | int, ...], str] = {
    ("tool",): "string",
    ("tool.namespace",): "string",
    ("declared", "cost"): "string",
    ("declared", "reversible"): "bool",
    ("declared", "has_shadow"): "bool",
    ("declared", "blast_radius_hint"): "number",
    ("declared", "isolation"): "string",
    ("declared", "scope"): "list",
    ("declared", "labels"): "list",
    ("context", "environment"): "string",
    ("context", "workspace"): "string",
    ("context", "correlation_id"): "string",
    ("context", "step_seq"): "number",
    ("context", "principal", "kind"): "string",
    ("context", "principal", "id"): "string",
    ("context", "principal", "name"): "string",
}
_WITHOUT_REF = ("matches", "glob", "exists", "size", "each", "some", "normalized")
_OF_SIZE = (*ORDERING, "eq", "ne", "in", "not_in", "between", "not_between")
_OF_NORMALIZED = ("eq", "in", "matches")
_NUMBER = "number"
_STRING = "string"


class OperandReader:
    """Reads the operand of one test at a time; `element_match` reads the predicate of a quantifier."""

    def __init__(self, problems: Problems, element_match: Callable[[Node], Match]) -> None:
        self._problems = problems
        self._element_match = element_match
        self._readers: dict[str, Callable[[Node], Any]] = {
            "eq": self._equal,
            "in": self._members,
            "gt": self._ordered,
            "ge": self._ordered,
            "lt": self._ordered,
            "le": self._ordered,
            "between": self._between,
            "matches": self._pattern,
            "starts_with": self._affixes,
            "ends_with": self._affixes,
            "contains": self._equal,
            "contains_any": self._members,
            "contains_all": self._members,
            "exists": lambda node: read_bool(node, problems, meant="The operand of exists"),
            "size": self._size,
            "each": element_match,
            "some": element_match,
            "glob": lambda node: read_text(node, problems, meant="The operand of glob"),
            "under": self._directory,
            "host_in": self._hosts,
            "normalized": self._normalized,
        }
        self._written = ""

    def read(self, path: Path, operator: str, node: Node, *, written: str) -> Any:
        """Read what stands right of an operator; `written` is the operator as the policy has it."""
        self._written = written
        if isinstance(node, Fields) and len(node.entries) == 1:
            only = node.entries[0]
            if only.key == "ref":
                return self._ref(path, operator, only)
            if only.key == "literal" and operator not in ("size", "each", "some", "normalized"):
                return self._literal(path, operator, only.value)
        operand = self._readers[operator](node)
        self._check_kind(path, operator, operand, node)
        return operand

    def _wrong(self, node: Node, meant: str) -> None:
        if isinstance(node, Scalar) and node.surprise is not None:
            self._problems.add(node.place, node.surprise)
            return
        self._problems.add(
            node.place, f"The operand of {self._written} is {meant}, not {kind_of_node(node)}."
        )

    def _ref(self, path: Path, operator: str, entry: Entry) -> Any:
        if operator in _WITHOUT_REF:
            self._problems.add(
                entry.place, f"{self._written} takes no ref; write the operand itself."
            )
        elif path.root == ELEMENT:
            self._problems.add(
                entry.place, "A test of the element of a quantifier takes no ref; write the operand."
            )
        text = read_text(entry.value, self._problems, meant="A ref")
        try:
            return Ref(parse_reference(text))
        except PathProblem as error:
            if text != "?":
                self._problems.add(entry.place, str(error))
        return None

    def _literal(self, path: Path, operator: str, node: Node) -> Any:
        """Read a value in which nothing is a ref; mappings are plain objects."""
        if isinstance(node, Fields):
            if operator not in ("eq", "contains"):
                self._wrong(node, "no object")
            return read_json_value(node, self._problems)
        if operator in ("in", "contains_any", "contains_all"):
            operand = self._members(node, literal=True)
        elif operator in ("eq", "contains"):
            operand = read_json_value(node, self._problems)
        else:
            operand = self._readers[operator](node)
        self._check_kind(path, operator, operand, node)
        return operand

    def _value(self, node: Node) -> Any:
        """Read a JSON value in which a mapping must not look like a ref."""
        if isinstance(node, Items):
            return FrozenList(self._value(item) for item in node.items)
        if not isinstance(node, Fields):
            return read_json_value(node, self._problems)
        keys = [entry.key for entry in node.entries]
        if keys == ["ref"]:
            self._problems.add(
                node.place,
                "A ref stands alone as the whole operand, never inside a list or an object; if this is "
                "an object with a key ref, wrap the whole operand: {literal: ...}.",
            )
        elif keys == ["literal"]:
            self._problems.add(
                node.place, "literal stands around the whole operand, never inside a list or an object."
            )
        for entry in node.entries:
            check_key(entry, self._problems)
        return FrozenDict({entry.key: self._value(entry.value) for entry in node.entries})

    def _equal(self, node: Node) -> Any:
        if isinstance(node, Fields):
            keys = [entry.key for entry in node.entries]
            self._problems.add(
                node.place,
                f"The operand of {self._written} is a bare mapping. Write {{literal: {{...}}}} for an "
                "object, or {ref: args.other} for a value of the call."
                + (f" {did_you_mean(keys[0], ('ref', 'literal'))}" if len(keys) == 1 else ""),
            )
            return None
        return self._value(node)

    def _members(self, node: Node, *, literal: bool = False) -> Any:
        if not isinstance(node, Items):
            self._wrong(node, "a list of at least one value, or a ref")
            return FrozenList()
        if not node.items:
            self._wrong_because(node, "an empty list has no members, so this would never hold.")
        read = read_json_value if literal else lambda item, _: self._value(item)
        values = FrozenList(read(item, self._problems) for item in node.items)
        if self._written in ("in", "not_in"):
            for item in node.items:
                if isinstance(item, Scalar) and item.value is None and item.surprise is None:
                    self._problems.add(
                        item.place, "null is no member that a value can be; test it with exists: false."
                    )
        return values

    def _wrong_because(self, node: Node, sentence: str) -> None:
        self._problems.add(node.place, f"The operand of {self._written} cannot stand: {sentence}")

    def _ordered(self, node: Node) -> Any:
        plain, value = read_scalar(node, self._problems)
        if plain and (is_number(value) or isinstance(value, str)):
            return value
        if not isinstance(node, Scalar) or node.surprise is None:
            self._wrong(node, "a finite number or a string")
        return 0

    def _between(self, node: Node) -> Any:
        if not isinstance(node, Items) or len(node.items) != 2:
            self._wrong(node, "a list of two, [low, high]")
            return FrozenList((0, 0))
        low, high = (self._ordered(item) for item in node.items)
        if kind_of(low) != kind_of(high):
            self._wrong_because(
                node, f"low is a {kind_of(low)} and high a {kind_of(high)}; both must be of one kind."
            )
        elif low > high:
            self._wrong_because(
                node, f"low ({low}) is above high ({high}); write [{high}, {low}] if that is meant."
            )
        return FrozenList((low, high))

    def _pattern(self, node: Node) -> str:
        text = read_text(node, self._problems, meant=f"The operand of {self._written}", empty=True)
        try:
            compile_pattern(text, permitting=False)
        except UnsafePattern as error:
            if text != "?":
                self._problems.add(node.place, str(error))
        return text

    def _affixes(self, node: Node) -> Any:
        if not isinstance(node, Items):
            return read_text(node, self._problems, meant=f"The operand of {self._written}", empty=True)
        if not node.items:
            self._wrong_because(node, "an empty list has no members, so this would never hold.")
        return FrozenList(
            read_text(item, self._problems, meant=f"Each operand of {self._written}", empty=True)
            for item in node.items
        )

    def _directory(self, node: Node) -> str:
        text = read_text(node, self._problems, meant="The operand of under")
        if "\0" in text:
            self._wrong_because(node, "a directory's name holds no NUL.")
        return text

    def _hosts(self, node: Node) -> Any:
        if not isinstance(node, Items) or not node.items:
            self._wrong(node, 'a list of at least one host, as in ["example.com", "*.example.com"]')
            return FrozenList()
        hosts = []
        for item in node.items:
            host = read_text(item, self._problems, meant="Each host of host_in")
            problem = host_pattern_problem(host) if host != "?" else None
            if problem is not None:
                self._problems.add(item.place, problem)
            hosts.append(host)
        return FrozenList(hosts)

    def _size(self, node: Node) -> Match:
        return self._on_element(node, _OF_SIZE, _NUMBER)

    def _normalized(self, node: Node) -> Match:
        if not isinstance(node, Fields):
            self._wrong(node, "a mapping, as in {eq: ...}, {in: [...]} or {matches: ...}")
            return Always()
        return self._on_element(node, _OF_NORMALIZED, _STRING)

    def _on_element(self, node: Node, operators: tuple[str, ...], kind: str) -> Match:
        """Read tests of what `size` or `normalized` makes of the value, as tests of the element."""
        outer = self._written
        path = Path(ELEMENT, (), ELEMENT)
        if not isinstance(node, Fields):
            return self._test_of_kind(Leaf(path, "eq", None, node.place), node, kind, outer)
        if not node.entries:
            self._wrong_because(node, f"the mapping is empty; it takes {listed(operators)}.")
        parts = []
        for entry in node.entries:
            if entry.key in operators:
                leaf = Leaf(path, entry.key, None, entry.place)
                parts.append(self._test_of_kind(leaf, entry.value, kind, outer))
            else:
                self._problems.add(
                    entry.place,
                    f'"{entry.key}" cannot stand in {outer}. {did_you_mean(entry.key, operators)}',
                )
        self._written = outer
        if len(parts) == 1:
            return parts[0]
        return AllOf(tuple(parts)) if parts else Always()

    def _test_of_kind(self, leaf: Leaf, node: Node, kind: str, outer: str) -> Match:
        operator = NEGATED.get(leaf.operator, leaf.operator)
        operand = self.read(leaf.path, operator, node, written=leaf.operator)
        members = operand if operator in ("in", "between") else (operand,)
        if operator != "matches" and not isinstance(members, Ref):
            for member in members if members is not None else ():
                if kind_of(member) != kind:
                    self._problems.add(
                        node.place,
                        f"Within {outer} {leaf.operator} compares with a {kind}, not with a {kind_of(member)}.",
                    )
        positive = Leaf(leaf.path, operator, operand, leaf.place)
        return Not(positive) if operator != leaf.operator else positive

    def _check_kind(self, path: Path, operator: str, operand: Any, node: Node) -> None:
        """Refuse an operand whose kind no value at this path can have."""
        expected = "bool" if path.root == "given" else _KIND_AT.get((path.root, *path.steps))
        if expected is None or operator not in ("eq", "in") or operand is None:
            return
        members = operand if operator == "in" else (operand,)
        for member in members:
            if kind_of(member) != expected:
                hint = f" Write {path.text}.in." if isinstance(node, Items) and operator == "eq" else ""
                self._problems.add(
                    node.place,
                    f"{path.text} is a {expected}, which no {kind_of(member)} equals.{hint}",
                )
                return
