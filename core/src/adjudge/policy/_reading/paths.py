"""Read the paths of a policy: `args.items[0].sku.in` is a path and an operator.

Promises clause 5: a trailing segment is an operator only if a key stands before it, whatever is
quoted is a key, and a near miss of an operator is refused. It reads text only; nothing here looks
anything up.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from adjudge.policy._model import Path
from adjudge.policy._reading.suggest import did_you_mean, is_one_edit_apart, listed, nearest
from adjudge.policy._reading.words import (
    CONTEXT_KEYS,
    DECLARED_KEYS,
    ELEMENT,
    OPERATORS,
    PRINCIPAL_KEYS,
    ROOTS,
)

__all__ = ["PathProblem", "parse_argument_path", "parse_leaf", "parse_reference"]

_KEY = re.compile(
    r"""[^.\[\]"'\x00-\x20\x7f](?:[^.\[\]"'\x00-\x1f\x7f]*[^.\[\]"'\x00-\x20\x7f])?"""
)
_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
_DOUBLE_QUOTED = re.compile(r'\[("(?:[^"\\]|\\.)*")\]', re.DOTALL)
_SINGLE_QUOTED = re.compile(r"\['([^']*)'\]")

_KEYLESS_CONTEXT = ("environment", "workspace", "correlation_id", "step_seq", "timestamp")
_LISTS_OF_DECLARED = ("scope", "labels")


class PathProblem(ValueError):
    """A path that cannot be read; the text is the sentence for its author."""


@dataclass(frozen=True, slots=True)
class _Step:
    value: str | int
    quoted: bool = False

    def names_operator(self) -> bool:
        return not self.quoted and self.value in OPERATORS


def parse_leaf(text: str, *, element: bool = False) -> tuple[Path, str | None]:
    """Read the key of one test: its path, and the operator where the key ends in one.

    With `element` the path begins with `.`, the element of a quantifier. Raises `PathProblem`.
    """
    if element:
        return _parse_element(text)
    root, steps = _split_root(text)
    if root == "tool":
        return _parse_tool(text, steps)
    owned = _steps_of_the_root(text, root, steps)
    steps, operator = _split_operator(text, steps, owned)
    _check_shape(text, root, steps, owned)
    return Path(root, tuple(step.value for step in steps), text), operator


def parse_reference(text: str) -> Path:
    """Read what a `ref` points at. Raises `PathProblem`."""
    if text.startswith(ELEMENT):
        raise PathProblem(
            "A ref cannot read the element of a quantifier; it names a path such as args.other."
        )
    path, operator = parse_leaf(text)
    if operator is not None:
        raise PathProblem(
            f'A ref names a value and takes no operator; leave out ".{operator}", or quote it '
            f'(["{operator}"]) if it is a key.'
        )
    return path


def parse_argument_path(text: str) -> tuple[str | int, ...]:
    """Read where a transform writes, `args.items[0].sku`, as steps below the arguments.

    It may begin with `$.`, and no segment is an operator. Raises `PathProblem`.
    """
    plain = text.removeprefix("$.")
    root, steps = _split_root(plain)
    if root != "args":
        raise PathProblem(f'A transform rewrites arguments only; "{text}" must begin with args.')
    if steps and isinstance(steps[0].value, int):
        raise PathProblem(f'"{text}" has an index where the name of an argument must stand.')
    return tuple(step.value for step in steps)


def _split_root(text: str) -> tuple[str, list[_Step]]:
    found = re.match(r"[^.\[]*", text)
    root = found.group() if found else ""
    if root not in ROOTS:
        raise PathProblem(_unknown_root(text, root))
    return root, _split_steps(text, len(root))


def _unknown_root(text: str, root: str) -> str:
    if text.startswith(ELEMENT):
        return f'"{text}" begins with ".", which has a meaning only inside each and some.'
    if text == "always":
        return "A rule for everything is written match: always."
    if root in OPERATORS:
        return f'"{root}" is an operator and needs a path before it, as in args.amount.{root}.'
    close = nearest(root, (*ROOTS, "all_of", "any_of"))
    help_text = (
        f'Did you mean "{close}{text[len(root) :]}"?'
        if close
        else f"A path begins with one of: {listed(ROOTS)}; an argument x is args.x."
    )
    return f'"{text}" is no path: nothing is called "{root}". {help_text}'


def _split_steps(text: str, position: int) -> list[_Step]:
    steps: list[_Step] = []
    while position < len(text):
        if text[position] == ".":
            found = _KEY.match(text, position + 1)
            if found is None:
                raise PathProblem(
                    f'"{text}" has an empty or unreadable segment at character {position + 2}; '
                    'a key with dots, brackets or quotes is written ["a.b"].'
                )
            steps.append(_Step(found.group()))
        elif found := _INDEX.match(text, position):
            steps.append(_Step(int(found.group(1))))
        elif found := _DOUBLE_QUOTED.match(text, position):
            steps.append(_Step(_unquoted(text, found.group(1)), quoted=True))
        elif found := _SINGLE_QUOTED.match(text, position):
            steps.append(_Step(found.group(1), quoted=True))
        else:
            raise PathProblem(
                f'"{text}" cannot be read from character {position + 1} on: in brackets stands an '
                'index from 0 up ([0]) or a quoted key (["a.b"]), before a key stands a dot.'
            )
        position = found.end()
    return steps


def _unquoted(text: str, literal: str) -> str:
    try:
        key = json.loads(literal)
        key.encode()
    except ValueError:
        raise PathProblem(f'"{text}" has a quoted key that is no JSON string: {literal}.') from None
    return str(key)


def _parse_element(text: str) -> tuple[Path, str | None]:
    if not text.startswith(ELEMENT):
        raise PathProblem(_not_the_element(text))
    if text == ELEMENT:
        return Path(ELEMENT, (), text), None
    steps = _split_steps(text, 1 if text[1] == "[" else 0)
    if steps[0].names_operator():
        first = steps[0].value
        raise PathProblem(
            f'"{text}" names an operator where a key of the element would stand; write '
            f'{{".": {{{first}: ...}}}} to test the element, or quote a key of that name: '
            f'.["{first}"].'
        )
    steps, operator = _split_operator(text, steps, 1)
    return Path(ELEMENT, tuple(step.value for step in steps), text), operator


def _not_the_element(text: str) -> str:
    if text in OPERATORS:
        return f'Inside a quantifier the element is ".": write {{".": {{{text}: ...}}}}.'
    return f'Inside a quantifier every path begins with ".", the element; "{text}" does not.'


def _parse_tool(text: str, steps: list[_Step]) -> tuple[Path, str | None]:
    root = "tool"
    if steps and steps[0] == _Step("namespace"):
        root, steps = "tool.namespace", steps[1:]
    if not steps:
        return Path(root, (), text), None
    if len(steps) == 1 and steps[0].names_operator():
        return Path(root, (), text), str(steps[0].value)
    known = OPERATORS if root == "tool.namespace" else (*OPERATORS, "namespace")
    unknown = next(step for step in steps if not step.names_operator() or len(steps) > 1)
    raise PathProblem(
        f'"{root}" is text and has no keys; "{unknown.value}" is no operator that can stand here. '
        + did_you_mean(str(unknown.value), known)
    )


def _steps_of_the_root(text: str, root: str, steps: list[_Step]) -> int:
    """Say how many keys must come before an operator can; refuse a path that has fewer."""
    if not steps:
        raise PathProblem(f'"{text}" names everything below it; say which key, as in {root}.NAME.')
    first = steps[0].value
    if isinstance(first, int):
        raise PathProblem(f'"{text}" has an index where a key must stand.')
    if root == "declared" and first not in DECLARED_KEYS:
        raise PathProblem(f'"declared" has no "{first}". ' + did_you_mean(first, DECLARED_KEYS))
    if root != "context":
        return 1
    if first not in CONTEXT_KEYS:
        raise PathProblem(
            f'"context" has no "{first}". '
            + did_you_mean(first, CONTEXT_KEYS)
            + f" Values of your own are under context.extra.{first}."
        )
    if first not in ("principal", "extra", "trusted"):
        return 1
    if len(steps) < 2 or isinstance(steps[1].value, int):
        raise PathProblem(f'"{text}" names everything below it; say which key.')
    if first == "principal" and steps[1].value not in PRINCIPAL_KEYS:
        raise PathProblem(
            f'"context.principal" has no "{steps[1].value}". '
            + did_you_mean(steps[1].value, PRINCIPAL_KEYS)
        )
    return 2


def _split_operator(text: str, steps: list[_Step], owned: int) -> tuple[list[_Step], str | None]:
    operator = None
    if len(steps) > owned and steps[-1].names_operator():
        operator = str(steps[-1].value)
        steps = steps[:-1]
    if len(steps) > owned:
        _refuse_doubtful(text, steps[-1], operator)
    return steps, operator


def _refuse_doubtful(text: str, last: _Step, operator: str | None) -> None:
    """Refuse a last key that was probably meant as an operator (clause 5)."""
    if last.quoted or isinstance(last.value, int):
        return
    path = text.removesuffix(f".{operator}") if operator is not None else text
    before = path.removesuffix(f".{last.value}")
    if operator is not None and last.value in OPERATORS:
        raise PathProblem(
            f'"{text}" has two operators; write {before}.{last.value}: {{{operator}: ...}}, or '
            f'quote the key: {before}["{last.value}"].{operator}.'
        )
    meant = _near_miss(last.value)
    if meant is not None:
        raise PathProblem(
            f'"{last.value}" in "{text}" looks like the operator "{meant}". Did you mean '
            f'"{before}.{meant}"? If it is a key, quote it: {before}["{last.value}"].'
        )


def _near_miss(word: str) -> str | None:
    for operator in OPERATORS:
        if word.lower() == operator or (len(operator) >= 4 and is_one_edit_apart(word, operator)):
            return operator
    return None


def _check_shape(text: str, root: str, steps: list[_Step], owned: int) -> None:
    """Refuse steps below values of a fixed shape, which could never be there."""
    first = steps[0].value
    below = steps[owned:]
    if not below:
        return
    if root == "declared" and first in _LISTS_OF_DECLARED:
        if len(below) == 1 and isinstance(below[0].value, int):
            return
    elif root in ("args", "injected") or (
        root == "context" and first not in (*_KEYLESS_CONTEXT, "principal")
    ):
        return
    raise PathProblem(
        f'"{text}" goes below a value that has nothing below it: "{below[0].value}" is no '
        "operator. " + did_you_mean(str(below[0].value), OPERATORS)
    )
