"""Read and check the operands of a policy's tests, as far as the text allows (clauses 7 and 9).

An operand that no value could ever be tested against is a problem here, not a test that quietly
never holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge._values import FrozenDict, FrozenList, kind_of
from adjudge.policy._locations import host_pattern_problem
from adjudge.policy._model import AllOf, Always, Leaf, Match, Not, Path, Ref
from adjudge.policy._patterns.pattern import UnsafePattern
from adjudge.policy._patterns.shared import Patterns
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, Scalar, kind_of_node
from adjudge.policy._reading.paths import PathProblem, parse_reference
from adjudge.policy._reading.suggest import did_you_mean, listed
from adjudge.policy._reading.values import (
    check_key,
    is_number,
    read_bool,
    read_json_value,
    read_scalar,
    read_text,
)
from adjudge.policy._reading.words import ELEMENT, KIND_AT, NEGATED, ORDERING

__all__ = ["OperandReader"]

_WITHOUT_REF = ("matches", "glob", "exists", "size", "each", "some", "normalized")
_OF_SIZE = (*ORDERING, "eq", "ne", "in", "not_in", "between", "not_between")
_OF_NORMALIZED = ("eq", "in", "matches")


class OperandReader:
    """Reads operands; `element_match` reads the predicate of a quantifier.

    Everywhere `name` is the operator as the policy has it, `ne` where the leaf will be an `eq`.
    """

    def __init__(
        self, problems: Problems, patterns: Patterns, element_match: Callable[[Node], Match]
    ) -> None:
        self._problems = problems
        self._patterns = patterns
        self._element_match = element_match
        self._readers: dict[str, Callable[[Node, str], Any]] = {
            "eq": self._equal,
            "in": self._members,
            **dict.fromkeys(ORDERING, self._ordered),
            "between": self._between,
            "matches": self._pattern,
            "starts_with": self._affixes,
            "ends_with": self._affixes,
            "contains": self._equal,
            "contains_any": self._members,
            "contains_all": self._members,
            "exists": self._bool,
            "size": self._size,
            "each": self._quantified,
            "some": self._quantified,
            "glob": self._text,
            "under": self._directory,
            "host_in": self._hosts,
            "normalized": self._normalized,
        }

    def read(self, leaf: Leaf, node: Node) -> Match:
        """Finish a leaf with its operand; a negated operator becomes `not` over what it negates."""
        operator = NEGATED.get(leaf.operator, leaf.operator)
        operand = self._operand(leaf.path, operator, node, leaf.operator)
        positive = Leaf(leaf.path, operator, operand, leaf.place)
        return Not(positive) if operator != leaf.operator else positive

    def _operand(self, path: Path, operator: str, node: Node, name: str) -> Any:
        only = node.entries[0] if isinstance(node, Fields) and len(node.entries) == 1 else None
        if only is not None and only.key == "ref":
            return self._ref(path, operator, only, name)
        if only is not None and only.key == "literal" and operator not in _WITHOUT_REF:
            operand = self._literal(operator, only.value, name)
        elif operator == "eq" and _kind_at(path) == "bool" and not _is_null(node):
            # YAML 1.1's words for bools are no surprise where only a bool or null can stand.
            return self._bool(node, name)
        else:
            operand = self._readers[operator](node, name)
        self._check_kind(path, operator, operand, node)
        if path.root == "tool" and operator in ("eq", "in") and not isinstance(node, Fields):
            self._check_tool_names(operand, node)
        return operand

    def _check_tool_names(self, operand: Any, node: Node) -> None:
        """Refuse what is meant as a pattern and would be compared as a name that no tool has."""
        for name in operand if isinstance(operand, list) else (operand,):
            if isinstance(name, str) and "*" in name:
                self._problems.add(
                    node.place,
                    f"tool is compared with {name!r} as text, so the * stands for itself; "
                    f"write tool.glob: {name!r} for a pattern.",
                )

    def _wrong(self, node: Node, name: str, meant: str) -> None:
        if isinstance(node, Scalar) and node.surprise is not None:
            self._problems.add(node.place, node.surprise)
            return
        self._problems.add(
            node.place, f"The operand of {name} is {meant}, not {kind_of_node(node)}."
        )

    def _ref(self, path: Path, operator: str, entry: Entry, name: str) -> Ref | None:
        if operator in _WITHOUT_REF:
            self._problems.add(entry.place, f"{name} takes no ref; write the operand itself.")
        elif path.root == ELEMENT:
            self._problems.add(
                entry.place, "A test of an element takes no ref; write the operand itself."
            )
        text = read_text(entry.value, self._problems, meant="A ref")
        try:
            return Ref(parse_reference(text)) if text is not None else None
        except PathProblem as error:
            self._problems.add(entry.place, str(error))
            return None

    def _literal(self, operator: str, node: Node, name: str) -> Any:
        """Read a value in which nothing is a ref and mappings are plain objects."""
        if operator in ("eq", "contains"):
            return read_json_value(node, self._problems)
        if operator in ("in", "contains_any", "contains_all"):
            return self._members(node, name, literal=True)
        return self._readers[operator](node, name)

    def _value(self, node: Node) -> Any:
        """Read a JSON value in which no mapping may look like a ref."""
        if isinstance(node, Items):
            return FrozenList(self._value(item) for item in node.items)
        if not isinstance(node, Fields):
            return read_json_value(node, self._problems)
        keys = [entry.key for entry in node.entries]
        if keys in (["ref"], ["literal"]):
            self._problems.add(
                node.place,
                f"{keys[0]} stands alone as the whole operand, never inside a list or an object; "
                f"if an object with the key {keys[0]} is meant, wrap the whole operand: "
                "{literal: ...}.",
            )
        for entry in node.entries:
            check_key(entry, self._problems)
        return FrozenDict({entry.key: self._value(entry.value) for entry in node.entries})

    def _equal(self, node: Node, name: str) -> Any:
        if not isinstance(node, Fields):
            return self._value(node)
        keys = [entry.key for entry in node.entries]
        self._problems.add(
            node.place,
            f"The operand of {name} is a bare mapping. Write {{literal: {{...}}}} for an object, "
            "or {ref: args.other} for a value of the call."
            + (f" {did_you_mean(keys[0], ('ref', 'literal'))}" if len(keys) == 1 else ""),
        )
        return None

    def _members(self, node: Node, name: str, *, literal: bool = False) -> FrozenList:
        if not isinstance(node, Items) or not node.items:
            self._wrong_list(node, name, "a list of at least one value, or a ref")
            return FrozenList()
        if name in ("in", "not_in"):
            for item in node.items:
                if isinstance(item, Scalar) and item.value is None and item.surprise is None:
                    self._problems.add(
                        item.place,
                        f"null is no member of {name}; test for absence with exists: false.",
                    )
        if literal:
            return FrozenList(read_json_value(item, self._problems) for item in node.items)
        return FrozenList(self._value(item) for item in node.items)

    def _wrong_list(self, node: Node, name: str, meant: str) -> None:
        if isinstance(node, Items):
            self._problems.add(
                node.place, f"The operand of {name} is {meant}; an empty list settles nothing."
            )
        else:
            self._wrong(node, name, meant)

    def _ordered(self, node: Node, name: str) -> Any:
        plain, value = read_scalar(node, self._problems)
        if plain and (is_number(value) or isinstance(value, str)):
            return value
        if not isinstance(node, Scalar) or node.surprise is None:
            self._wrong(node, name, "a finite number or a string")
        return None

    def _between(self, node: Node, name: str) -> FrozenList:
        if not isinstance(node, Items) or len(node.items) != 2:
            self._wrong(node, name, "a list of two, [low, high]")
            return FrozenList()
        low, high = (self._ordered(item, name) for item in node.items)
        if low is not None and high is not None:
            if kind_of(low) != kind_of(high):
                self._problems.add(
                    node.place,
                    f"The ends of {name} must be of one kind; low is a {kind_of(low)} and high a "
                    f"{kind_of(high)}.",
                )
            elif low > high:
                self._problems.add(
                    node.place,
                    f"The low end of {name} is above the high one; write [{high}, {low}] if that "
                    "is meant.",
                )
        return FrozenList((low, high))

    def _bool(self, node: Node, name: str) -> bool:
        return read_bool(node, self._problems, meant=f"The operand of {name}")

    def _text(self, node: Node, name: str, *, empty: bool = False) -> str | None:
        return read_text(node, self._problems, meant=f"The operand of {name}", empty=empty)

    def _pattern(self, node: Node, name: str) -> str | None:
        text = self._text(node, name, empty=True)
        try:
            if text is not None:
                self._patterns.checked(text)
        except UnsafePattern as error:
            self._problems.add(node.place, str(error))
        return text

    def _affixes(self, node: Node, name: str) -> Any:
        if not isinstance(node, Items):
            return self._text(node, name, empty=True)
        if not node.items:
            self._wrong_list(node, name, "a string, or a list of at least one")
        return FrozenList(self._text(item, name, empty=True) for item in node.items)

    def _directory(self, node: Node, name: str) -> str | None:
        text = self._text(node, name)
        if text is not None and "\0" in text:
            self._problems.add(node.place, "The name of a directory holds no NUL.")
        return text

    def _hosts(self, node: Node, name: str) -> FrozenList:
        if not isinstance(node, Items) or not node.items:
            self._wrong_list(node, name, 'a list of hosts, as in ["example.com", "*.example.com"]')
            return FrozenList()
        hosts = []
        for item in node.items:
            host = self._text(item, name)
            problem = host_pattern_problem(host) if host is not None else None
            if problem is not None:
                self._problems.add(item.place, problem)
            hosts.append(host)
        return FrozenList(hosts)

    def _quantified(self, node: Node, name: str) -> Match:
        if isinstance(node, Fields):
            return self._element_match(node)
        self._wrong(node, name, 'a mapping of tests of the element, as in {".": {gt: 0}}')
        return Always()

    def _size(self, node: Node, name: str) -> Match:
        return self._tests_of_result(node, name, _OF_SIZE, kind="number")

    def _normalized(self, node: Node, name: str) -> Match:
        if isinstance(node, Fields):
            return self._tests_of_result(node, name, _OF_NORMALIZED, kind="string")
        self._wrong(node, name, "a mapping, as in {eq: ...}, {in: [...]} or {matches: ...}")
        return Always()

    def _tests_of_result(
        self, node: Node, name: str, operators: tuple[str, ...], *, kind: str
    ) -> Match:
        """Read tests of what `size` or `normalized` makes of a value, as tests of an element."""
        result = Path(ELEMENT, (), ELEMENT)
        if not isinstance(node, Fields):
            return self._test_of_kind(Leaf(result, "eq", None, node.place), node, name, kind)
        if not node.entries:
            self._wrong(node, name, f"a mapping of at least one of {listed(operators)}")
        parts = []
        for entry in node.entries:
            if entry.key in operators:
                leaf = Leaf(result, entry.key, None, entry.place)
                parts.append(self._test_of_kind(leaf, entry.value, name, kind))
            else:
                self._problems.add(
                    entry.place,
                    f'"{entry.key}" cannot stand in {name}. {did_you_mean(entry.key, operators)}',
                )
        if len(parts) == 1:
            return parts[0]
        return AllOf(tuple(parts)) if parts else Always()

    def _test_of_kind(self, leaf: Leaf, node: Node, name: str, kind: str) -> Match:
        match = self.read(leaf, node)
        positive = match.part if isinstance(match, Not) else match
        assert isinstance(positive, Leaf)
        operand = positive.operand
        members = operand if isinstance(operand, FrozenList) else (operand,)
        for member in members:
            if member is not None and not isinstance(member, Ref) and kind_of(member) != kind:
                self._problems.add(
                    node.place,
                    f"Within {name} a {kind} is tested, which no {kind_of(member)} fits.",
                )
        return match

    def _check_kind(self, path: Path, operator: str, operand: Any, node: Node) -> None:
        """Refuse an operand of a kind that no value at this path can have."""
        expected = _kind_at(path)
        if expected is None or operator not in ("eq", "in") or operand is None:
            return
        members = operand if operator == "in" else (operand,)
        for member in members:
            if kind_of(member) not in (expected, "null"):
                is_list = operator == "eq" and isinstance(node, Items)
                shown = ".".join(map(str, (path.root, *path.steps)))
                hint = f" Write {shown}.in." if is_list else ""
                self._problems.add(
                    node.place,
                    f"{shown} is a {expected}, which no {kind_of(member)} equals.{hint}",
                )
                return


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _kind_at(path: Path) -> str | None:
    return "bool" if path.root == "given" else KIND_AT.get((path.root, *path.steps))
