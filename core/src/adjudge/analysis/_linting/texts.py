"""Whether one text can give every answer that is asked of it, as far as that can be refuted.

From each certain answer come facts (it begins with one of these, it does not contain that); two
facts that exclude each other refute. Where nothing excludes, a text is taken to be possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adjudge.analysis._linting.conditions import FALSE, TRUE, Condition
from adjudge.analysis._linting.regexes import Certain
from adjudge.policy._locations import host_matches
from adjudge.policy._operators import normal_form

__all__ = ["Asked", "candidates_of", "text_is_refuted"]

Asked = tuple[Condition, int]


def candidates_of(condition: Condition) -> Sequence[Any] | None:
    """Give the only values of which a condition can be true, if it names them all."""
    operator, operand = condition.operator, condition.operand
    if not condition.evaluable:
        return None
    if operator in ("eq", "in") and operand is not None:
        if condition.part.reading.normalized:
            operand = normal_form(operand)
        return tuple(operand) if operator == "in" else (operand,)
    if operator == "glob" and "*" not in operand:
        return (operand,)
    if operator == "matches":
        texts = condition.certain.texts
        return None if texts is None else sorted(texts)
    return None


def text_is_refuted(asked: Sequence[Asked], *, in_normal_form: bool) -> bool:
    """Whether no text gives all these answers. Each mask holds possible answers only."""
    facts = _Facts()
    for condition, allowed in asked:
        if allowed == TRUE:
            facts.holds(condition)
        elif allowed == FALSE:
            facts.fails(condition)
    return facts.conflict(in_normal_form=in_normal_form) or _hosts_conflict(asked)


class _Facts:
    """What is certain of one text; each entry of the first three is a choice of several."""

    def __init__(self) -> None:
        self.starts: list[tuple[str, ...]] = []
        self.ends: list[tuple[str, ...]] = []
        self.has: list[tuple[str, ...]] = []
        self.not_starts: list[str] = []
        self.not_ends: list[str] = []
        self.lacks: list[str] = []
        self.low: list[tuple[str, bool]] = []
        self.high: list[tuple[str, bool]] = []
        self.impossible = False

    def holds(self, condition: Condition) -> None:
        """Add what a true answer says."""
        operator, operand = condition.operator, condition.operand
        if not condition.evaluable:
            return
        if operator == "starts_with":
            self.starts.append(_several(operand))
        elif operator == "ends_with":
            self.ends.append(_several(operand))
        elif operator == "contains":
            self.has.append((operand,))
        elif operator == "contains_all":
            self.has += [(each,) for each in operand if isinstance(each, str)]
        elif operator == "contains_any":
            self.has.append(tuple(each for each in operand if isinstance(each, str)))
        elif operator == "glob":
            self._found(_certain_of_glob(operand))
        elif operator == "matches":
            self._found(condition.certain)
        elif isinstance(operand, str):
            self._ordered(operator, operand, holds=True)
        elif operator == "between":
            self.low.append((operand[0], True))
            self.high.append((operand[1], True))

    def _found(self, certain: Certain) -> None:
        if certain.prefix:
            self.starts.append((certain.prefix,))
        if certain.suffix:
            self.ends.append((certain.suffix,))
        self.has += [(fragment,) for fragment in certain.fragments]

    def fails(self, condition: Condition) -> None:
        """Add what a false answer says."""
        operator, operand = condition.operator, condition.operand
        if not condition.evaluable:
            return
        if operator == "starts_with":
            self.not_starts += _several(operand)
        elif operator == "ends_with":
            self.not_ends += _several(operand)
        elif operator == "contains":
            self.lacks.append(operand)
        elif operator == "contains_any":
            self.lacks += [each for each in operand if isinstance(each, str)]
        elif operator == "contains_all" and len(operand) == 1:
            self.lacks += operand
        elif operator == "glob":
            self._not_found(_certain_of_glob(operand))
        elif operator == "matches":
            self._not_found(condition.certain)
        elif isinstance(operand, str):
            self._ordered(operator, operand, holds=False)

    def _not_found(self, certain: Certain) -> None:
        if certain.everywhere:
            self.impossible = True
        elif not certain.exactly or certain.texts is not None:
            return
        elif certain.prefix:
            self.not_starts.append(certain.prefix)
        elif certain.suffix:
            self.not_ends.append(certain.suffix)
        else:
            self.lacks += certain.fragments

    def _ordered(self, operator: str, operand: str, *, holds: bool) -> None:
        opposite = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
        if operator not in opposite:
            return
        operator = operator if holds else opposite[operator]
        bounds = self.low if operator in ("gt", "ge") else self.high
        bounds.append((operand, operator in ("ge", "le")))

    def conflict(self, *, in_normal_form: bool) -> bool:
        """Whether two of the facts exclude each other."""
        return (
            self.impossible
            or _apart(self.starts, str.startswith)
            or _apart(self.ends, str.endswith)
            or _excluded(self.starts, self.not_starts, str.startswith)
            or _excluded(self.ends, self.not_ends, str.endswith)
            or _excluded((*self.starts, *self.ends, *self.has), self.lacks, str.__contains__)
            or "" in (*self.not_starts, *self.not_ends, *self.lacks)
            or any(_is_empty_range(low, high) for low in self.low for high in self.high)
            or (in_normal_form and self._is_in_no_normal_form())
        )

    def _is_in_no_normal_form(self) -> bool:
        """Whether a capital letter must be in it: a case-folded text has none of ASCII."""
        choices = (*self.starts, *self.ends, *self.has)
        return any(
            all(any("A" <= char <= "Z" for char in text) for text in several) for several in choices
        )


def _several(operand: Any) -> tuple[str, ...]:
    return tuple(operand) if isinstance(operand, list | tuple) else (operand,)


def _apart(choices: Sequence[tuple[str, ...]], holds: Any) -> bool:
    """Whether two choices have no members of which one is the beginning (or end) of the other."""
    return any(
        not any(holds(a, b) or holds(b, a) for a in one for b in other)
        for index, one in enumerate(choices)
        for other in choices[index + 1 :]
    )


def _excluded(choices: Iterable[tuple[str, ...]], refused: Sequence[str], holds: Any) -> bool:
    """Whether every member of some choice brings with it what is refused."""
    return any(
        all(any(holds(text, each) for each in refused) for text in several) for several in choices
    )


def _is_empty_range(low: tuple[str, bool], high: tuple[str, bool]) -> bool:
    return low[0] > high[0] or (low[0] == high[0] and not (low[1] and high[1]))


def _certain_of_glob(pattern: str) -> Certain:
    """Say what is certain about the texts that a glob fits."""
    if "*" not in pattern:
        return Certain(prefix=pattern, suffix=pattern)
    pieces = [piece for piece in pattern.split("*") if piece]
    prefix = pattern.split("*", 1)[0]
    suffix = pattern.rsplit("*", 1)[1]
    if not pieces:
        return Certain(everywhere=len(pattern) > 1)
    # Only `**` stands for any text: "lit**", "**lit" and "**lit**" say one thing.
    stars = pattern.removeprefix(prefix).removesuffix(suffix)
    one_run = len(pieces) == 1 and (bool(prefix) != bool(suffix)) and set(stars) == {"*"}
    around = (
        len(pieces) == 1
        and not prefix
        and not suffix
        and pattern.startswith("**")
        and pattern.endswith("**")
    )
    return Certain(
        prefix=prefix,
        suffix=suffix,
        fragments=tuple(pieces),
        exactly=(one_run and len(stars) > 1) or around,
    )


def _hosts_conflict(asked: Sequence[Asked]) -> bool:
    """Whether the lists of hosts exclude each other, of a text that one of them accepts."""
    accepted = [
        condition.operand
        for condition, allowed in asked
        if condition.operator == "host_in" and condition.evaluable and allowed == TRUE
    ]
    if not accepted:
        return False
    # What one list accepts is a URL, so another answers it with true or false alone.
    refused = [
        entry
        for condition, allowed in asked
        if condition.operator == "host_in" and condition.evaluable and not allowed & TRUE
        for entry in condition.operand
    ]
    return any(all(_covered(entry, refused) for entry in entries) for entries in accepted) or any(
        not any(_meet(a, b) for a in one for b in other)
        for index, one in enumerate(accepted)
        for other in accepted[index + 1 :]
    )


def _plain(entry: str) -> str:
    return entry.lower().removesuffix(".")


def _covered(entry: str, entries: Iterable[str]) -> bool:
    host = _plain(entry)
    if not host.startswith("*."):
        return host_matches(host, tuple(entries))
    others = map(_plain, entries)
    return any(other.startswith("*.") and host[1:].endswith(other[1:]) for other in others)


def _meet(one: str, other: str) -> bool:
    """Whether some host can fit both entries; a subdomain of one name may be one of the other."""
    return _covered(one, (other,)) or _covered(other, (one,))
