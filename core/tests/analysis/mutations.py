"""Changes a generated policy in one place, as a person might by mistake."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from properties.vocabulary import BOOLS, LISTS, NUMBERS, PATHS, TEXTS

VALUES = [*NUMBERS, *TEXTS, *PATHS, *BOOLS, *LISTS]
OPERATORS = [
    ("gt", "ge"),
    ("lt", "le"),
    ("gt", "lt"),
    ("starts_with", "ends_with"),
    ("in", "not_in"),
    ("eq", "ne"),
    ("each", "some"),
    ("contains_any", "contains_all"),
    ("all_of", "any_of"),
    ("between", "not_between"),
]
FORBIDDEN = ("approvers", "timeout_seconds", "transform")


def mutated(policy: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Give a copy with one thing changed; it may not compile, or mean the same."""
    changed = copy.deepcopy(policy)
    rules = changed["rules"]
    if not rules or draw.random() < 0.08:
        name = draw.choice(["on_no_match", "on_missing_shadow"])
        verdict = draw.choice(["allow", "deny", "dry_run", "approve_required"])
        changed.setdefault("defaults", {})[name] = verdict
        return changed
    place = draw.randrange(len(rules))
    draw.choice([_verdict, _drop, _swap, _priority, _negate, _value, _value, _operator, _part])(
        rules, place, draw
    )
    return changed


def _verdict(rules: list[Any], place: int, draw: random.Random) -> None:
    rules[place]["decision"] = draw.choice(["allow", "deny", "dry_run"])
    for name in FORBIDDEN:
        rules[place].pop(name, None)


def _drop(rules: list[Any], place: int, draw: random.Random) -> None:
    rules.pop(place)


def _swap(rules: list[Any], place: int, draw: random.Random) -> None:
    other = draw.randrange(len(rules))
    rules[place], rules[other] = rules[other], rules[place]


def _priority(rules: list[Any], place: int, draw: random.Random) -> None:
    rules[place]["priority"] = draw.choice([20, -20, 0])


def _negate(rules: list[Any], place: int, draw: random.Random) -> None:
    match = rules[place]["match"]
    rules[place]["match"] = match if match == "always" else {"not": match}


def _value(rules: list[Any], place: int, draw: random.Random) -> None:
    spots = [
        (holder, key)
        for holder, key, value in _spots(rules[place]["match"])
        if not isinstance(value, dict)
    ]
    if spots:
        holder, key = draw.choice(spots)
        same_kind = [value for value in VALUES if type(value) is type(holder[key])]
        holder[key] = draw.choice(same_kind or VALUES)


def _operator(rules: list[Any], place: int, draw: random.Random) -> None:
    spots = [spot for spot in _spots(rules[place]["match"]) if isinstance(spot[1], str)]
    draw.shuffle(spots)
    for holder, key, value in spots:
        for one, other in OPERATORS:
            for before, after in ((one, other), (other, one)):
                if key == before or key.endswith(f".{before}"):
                    del holder[key]
                    holder[key.removesuffix(before) + after] = value
                    return


def _part(rules: list[Any], place: int, draw: random.Random) -> None:
    spots = [(holder, key) for holder, key, _ in _spots(rules[place]["match"]) if len(holder) > 1]
    if spots:
        holder, key = draw.choice(spots)
        del holder[key]


def _spots(node: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Give each mapping or list with each key of it and what stands there."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items) if isinstance(node, dict | list) else ():
        yield node, key, value
        if isinstance(value, dict | list):
            yield from _spots(value)
