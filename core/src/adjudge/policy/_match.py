"""From a `Match` to a closure, in one of its two readings.

A match is compiled in one *reading*, as a permitting or as a restricting rule (a transform in
both), because absence, the end of a text and the namespace of a tool mean the stricter thing in
each (clauses 8, 11 and 13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from adjudge._types import ActionRequest
from adjudge._values import OpaqueValue, kind_of
from adjudge.errors import PolicyCompileError
from adjudge.policy import _locations
from adjudge.policy._faults import Answer, Fault, spell, wrong_kind
from adjudge.policy._fused import ArgumentTest, all_arguments, is_argument_test
from adjudge.policy._kleene import Matcher, all_of, any_of, first_fault, negation
from adjudge.policy._model import AllOf, Always, AnyOf, Leaf, Match, Not, Place, Ref
from adjudge.policy._operators import TESTS, BadOperand, Test, json_kind, normal_form
from adjudge.policy._patterns.pattern import SubjectTooLong, UnsafePattern
from adjudge.policy._patterns.shared import Patterns
from adjudge.policy._subjects import Subject, operand_first, referred, subject

__all__ = [
    "Halves",
    "Matcher",
    "Reading",
    "compile_halves",
    "compile_match",
    "compile_part",
    "literal_tools",
    "within",
]

_ANY = "a JSON value"
_OF_TOOL = ("tool", "tool.namespace")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a part of a match is to be read.

    `permitting` is the rule's reading, `odd` the polarity of this part. `namespaces` holds what
    `tools:` declares; `namespaced` says that a leaf of the same conjunction names the tool's
    namespace.
    """

    permitting: bool
    namespaces: Mapping[str, str]
    odd: bool = False
    namespaced: bool = False
    element: str = "."
    normalized: bool = False
    patterns: Patterns = field(default_factory=Patterns)

    @property
    def in_permitting_position(self) -> bool:
        """Whether making a leaf true here can only help a permitting rule to match."""
        return self.permitting is not self.odd

    @property
    def absent(self) -> bool:
        """What a leaf answers of an absent value (clause 8)."""
        return self.odd and self.permitting


class Halves(NamedTuple):
    """A match as a conjunction of what it says of the tool's name and namespace, and the rest."""

    whole: Matcher
    of_tool: Matcher
    rest: Matcher


def compile_match(match: Match, reading: Reading) -> Matcher:
    """Compile a whole match."""
    return compile_halves(match, reading).whole


def compile_halves(
    match: Match, reading: Reading, *, known: frozenset[str] | None = None
) -> Halves:
    """Compile a whole match, and each half of it.

    With `known` the matchers are only ever asked about these tools, so the leaves of the outermost
    conjunction that name them are left out; what they say of the namespace is not.
    """
    parts = list(_conjuncts(match))
    reading = _within(parts, reading)
    of_tool: list[Matcher] = []
    if known is not None:
        named = [part for part in parts if _literal_tools_of(part) is not None]
        parts = [part for part in parts if _literal_tools_of(part) is None]
        if named and reading.in_permitting_position and not reading.namespaced:
            of_tool.append(_in_own_namespace(reading.namespaces))
    of_tool += [compile_part(part, reading) for part in parts if _is_of_tool(part)]
    rest = _conjunction([part for part in parts if not _is_of_tool(part)], reading)
    return Halves(all_of([*of_tool, *rest]), all_of(of_tool), all_of(rest))


def within(match: Match, reading: Reading) -> Reading:
    """Give the reading of the parts of a match: whether one of them says the namespace."""
    return _within(_conjuncts(match), reading)


def _within(parts: Iterable[Match], reading: Reading) -> Reading:
    namespaced = any(map(_names_namespace, parts))
    # Nearly always the reading is the same, and copying it is half the work of compiling a rule.
    return reading if namespaced is reading.namespaced else replace(reading, namespaced=namespaced)


def literal_tools(match: Match) -> frozenset[str] | None:
    """Give the only tools of which a match can be anything but false; None if it names none."""
    tools: frozenset[str] | None = None
    for part in _conjuncts(match):
        named = _literal_tools_of(part)
        if named is not None:
            tools = named if tools is None else tools & named
    return tools


def _conjuncts(match: Match) -> Iterator[Match]:
    if isinstance(match, AllOf):
        for part in match.parts:
            yield from _conjuncts(part)
    elif not isinstance(match, Always):
        yield match


def _literal_tools_of(part: Match) -> frozenset[str] | None:
    if not isinstance(part, Leaf) or part.path.root != "tool":
        return None
    if part.operator == "eq" and isinstance(part.operand, str):
        return frozenset((part.operand,))
    if part.operator == "in" and isinstance(part.operand, list | tuple):
        return frozenset(name for name in part.operand if isinstance(name, str)) or None
    return None


def _is_of_tool(match: Match) -> bool:
    """Whether what this says is settled by the tool's name and namespace."""
    if isinstance(match, Leaf):
        plain = match.operator in TESTS or match.operator in ("exists", "matches")
        return match.path.root in _OF_TOOL and plain and not isinstance(match.operand, Ref)
    if isinstance(match, Not):
        return _is_of_tool(match.part)
    return isinstance(match, AllOf | AnyOf) and all(map(_is_of_tool, match.parts))


def _names_namespace(part: Match) -> bool:
    return isinstance(part, Leaf) and part.path.root == "tool.namespace"


def _in_own_namespace(namespaces: Mapping[str, str]) -> Matcher:
    def is_own(request: ActionRequest, _item: Any) -> Answer:
        namespace = request.namespace
        return namespace is None or namespace == namespaces.get(request.tool)

    return is_own


def compile_part(match: Match, reading: Reading) -> Matcher:
    """Compile a part of a match, in the reading of the conjunction that it stands in."""
    if isinstance(match, Leaf):
        return _leaf(match, reading)
    if isinstance(match, Not):
        return negation(compile_match(match.part, replace(reading, odd=not reading.odd)))
    if isinstance(match, AnyOf):
        return any_of([compile_match(part, reading) for part in match.parts])
    return compile_match(match, reading)


def _conjunction(parts: Sequence[Match], reading: Reading) -> list[Matcher]:
    """Compile the parts of a conjunction; tests of arguments become one."""
    tests = [_argument_test(part, reading) for part in parts if is_argument_test(part)]
    others = [compile_part(part, reading) for part in parts if not is_argument_test(part)]
    return [all_arguments(tests), *others] if tests else others


def _argument_test(leaf: Leaf, reading: Reading) -> ArgumentTest:
    where = spell(leaf.path.root, leaf.path.steps, reading.element)
    return ArgumentTest(str(leaf.path.steps[0]), reading.absent, _value_test(leaf, where, reading))


def _leaf(leaf: Leaf, reading: Reading) -> Matcher:
    if is_argument_test(leaf):
        return all_arguments([_argument_test(leaf, reading)])
    where = spell(leaf.path.root, leaf.path.steps, reading.element)
    read = subject(leaf.path, reading.element)
    if leaf.operator == "exists":
        matcher = _exists(read, where, leaf.operand)
    elif leaf.operator == "eq" and leaf.operand is None:
        matcher = _is_absent(read, where)
    elif isinstance(leaf.operand, Ref):
        matcher = _with_reference(leaf, read, where, reading)
    elif leaf.operator in TESTS or leaf.operator == "matches":
        matcher = _with_literal(read, _value_test(leaf, where, reading), reading.absent)
    else:
        matcher = _present(read, _STRUCTURAL[leaf.operator](leaf, where, reading), reading.absent)
    if leaf.path.root == "tool" and reading.in_permitting_position and not reading.namespaced:
        in_namespace = all_of([_in_own_namespace(reading.namespaces), matcher])
        if isinstance(leaf.operand, Ref):
            return operand_first(leaf.operand, in_namespace, reading.element)
        return in_namespace
    return matcher


def _exists(read: Subject, where: str, wanted: bool) -> Matcher:
    def exists(request: ActionRequest, item: Any) -> Answer:
        value = read(request, item)
        if isinstance(value, Fault):
            return value
        if json_kind(value) is None and not isinstance(value, OpaqueValue):
            return wrong_kind(where, value, _ANY)
        return (value is not None) is wanted

    return exists


def _is_absent(read: Subject, where: str) -> Matcher:
    def is_absent(request: ActionRequest, item: Any) -> Answer:
        value = read(request, item)
        if isinstance(value, Fault):
            return value
        return wrong_kind(where, value, _ANY) if json_kind(value) is None else value is None

    return is_absent


def _value_test(leaf: Leaf, where: str, reading: Reading) -> Test:
    if leaf.operator == "matches":
        return _matches(leaf, where, reading)
    operand = normal_form(leaf.operand) if reading.normalized else leaf.operand
    try:
        return TESTS[leaf.operator](operand, where)
    except BadOperand as error:
        raise _uncompilable(leaf.place, f"The operand of {leaf.operator} is {error}.") from None


def _uncompilable(place: Place, sentence: str) -> PolicyCompileError:
    known = [str(part) for part in (place.file, place.line, place.column) if part is not None]
    return PolicyCompileError(f"{':'.join([*known, place.path])}: {sentence}")


def _with_literal(read: Subject, test: Test, absent: bool) -> Matcher:
    def holds(request: ActionRequest, item: Any) -> Answer:
        value = read(request, item)
        if value is None:
            return absent
        return value if value.__class__ is Fault else test(value)

    return holds


def _with_reference(leaf: Leaf, read: Subject, where: str, reading: Reading) -> Matcher:
    reference: Ref = leaf.operand
    source = spell(reference.path.root, reference.path.steps)
    read_operand = referred(reference, reading.element)
    absent = reading.absent

    def holds(request: ActionRequest, item: Any) -> Answer:
        operand = read_operand(request, item)
        # The operand first: what is wrong with it is never absence (clause 9).
        if isinstance(operand, Fault):
            return operand
        value = read(request, item)
        if value is None:
            return absent
        if isinstance(value, Fault):
            return value
        try:
            if leaf.operator == "under":
                test = _under_test(operand, where, request)
            else:
                test = TESTS[leaf.operator](operand, where)
        except BadOperand as error:
            return Fault("WrongKind", f"{source} is {error}")
        return test(value)

    return holds


_ValueMatcher = Callable[[Any, ActionRequest], Answer]


def _present(read: Subject, judge: _ValueMatcher, absent: bool) -> Matcher:
    def holds(request: ActionRequest, item: Any) -> Answer:
        value = read(request, item)
        if value is None:
            return absent
        return value if isinstance(value, Fault) else judge(value, request)

    return holds


def _matches(leaf: Leaf, where: str, reading: Reading) -> Test:
    try:
        pattern = reading.patterns.compiled(leaf.operand, permitting=reading.in_permitting_position)
    except UnsafePattern as error:
        raise _uncompilable(leaf.place, str(error)) from None

    longest, plain_search = pattern.max_subject, pattern.plain_search

    def matches(value: Any) -> Answer:
        if not isinstance(value, str):
            return wrong_kind(where, value, "a string")
        if len(value) <= longest:
            return plain_search(value) is not None
        try:
            return pattern.search(value)
        except SubjectTooLong:
            return Fault(
                "SubjectTooLong",
                f"{where} is a string of {len(value)} characters, expected one that its pattern "
                "can search in bounded time",
            )

    return matches


def _under(leaf: Leaf, where: str, _reading: Reading) -> _ValueMatcher:
    directory = leaf.operand

    def lies_under(value: Any, request: ActionRequest) -> Answer:
        return _under_test(directory, where, request)(value)

    return lies_under


def _under_test(directory: Any, where: str, request: ActionRequest) -> Test:
    if not isinstance(directory, str):
        raise BadOperand(f"a {kind_of(directory)}, expected a directory")

    def lies_under(value: Any) -> Answer:
        if not isinstance(value, str):
            return wrong_kind(where, value, "a string")
        # Both are asked for before either is judged, so that one pass lists whatever is to be
        # resolved.
        path, root = request.resolved.get(value), request.resolved.get(directory)
        if "\0" in value or path is None or root is None:
            return Fault("NotResolved", f"{where} is a string, expected a path that was resolved")
        return _locations.is_under(path, root)

    return lies_under


def _size(leaf: Leaf, where: str, reading: Reading) -> _ValueMatcher:
    inner = compile_match(leaf.operand, replace(reading, element=f"{where}.size"))

    def has_size(value: Any, request: ActionRequest) -> Answer:
        if isinstance(value, str | list | tuple | Mapping):
            return inner(request, len(value))
        return wrong_kind(where, value, "a string, a list or an object")

    return has_size


def _quantifier(leaf: Leaf, where: str, reading: Reading) -> _ValueMatcher:
    inner = compile_match(leaf.operand, replace(reading, element=f"{where}[*]"))
    settled = leaf.operator == "some"

    def quantified(value: Any, request: ActionRequest) -> Answer:
        if not isinstance(value, list | tuple):
            return wrong_kind(where, value, "a list")
        answer: Answer = not settled
        for element in value:
            one = inner(request, element)
            if one is settled:
                return settled
            if isinstance(one, Fault):
                answer = first_fault(answer, one) if isinstance(answer, Fault) else one
        return answer

    return quantified


def _normalized(leaf: Leaf, where: str, reading: Reading) -> _ValueMatcher:
    inner = compile_match(leaf.operand, replace(reading, element=where, normalized=True))

    def matches_normal_form(value: Any, request: ActionRequest) -> Answer:
        if not isinstance(value, str):
            return wrong_kind(where, value, "a string")
        return inner(request, normal_form(value))

    return matches_normal_form


_STRUCTURAL: Mapping[str, Callable[[Leaf, str, Reading], _ValueMatcher]] = {
    "under": _under,
    "size": _size,
    "each": _quantifier,
    "some": _quantifier,
    "normalized": _normalized,
}
