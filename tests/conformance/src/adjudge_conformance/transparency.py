"""Law 1: a run under a policy that allows everything is the ungoverned run, to the byte.

Two ungoverned runs are compared first. Where they differ the framework is not repeatable, and the
case says nothing (it is void, which is a failure) unless the driver scrubs that field and says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Protocol

__all__ = ["differences_when_governed"]


class _Take(Protocol):
    def __call__(self, name: str, *, governed: bool) -> Mapping[str, Any]: ...


def differences_when_governed(
    take: _Take, scrubs: Mapping[str, str], *, runs: int | None
) -> list[str]:
    """Compare three takes of a run; `take` gives requests, what ran, problems and transcript.

    `runs` is the number of bodies that must start, so that a run in which nothing happened is not
    taken for a transparent one; None leaves that to the framework.
    """
    first, again = take("first", governed=False), take("again", governed=False)
    unsteady = _differences(first, again, scrubs)
    if unsteady:
        return [f"void, two ungoverned runs differ: {line}" for line in unsteady]
    problems = [f"ungoverned: {problem}" for problem in first["problems"]]
    if not first["requests"]:
        problems.append("ungoverned: nothing was sent to the model")
    if runs is not None and len(first["ran"]) != runs:
        problems.append(f"ungoverned: {runs} bodies should start: {first['ran']}")
    governed = take("governed", governed=True)
    return problems + [f"governed: {line}" for line in _differences(first, governed, scrubs)]


def _differences(
    one: Mapping[str, Any], other: Mapping[str, Any], scrubs: Mapping[str, str]
) -> list[str]:
    found = []
    for part in ("requests", "ran", "problems"):
        left, right = (_unordered(part, take[part], scrubs) for take in (one, other))
        if left != right:
            found.append(f"{part}: {_first_difference(left, right)}")
    was, is_now = (_flat(take["transcript"], "transcript", scrubs) for take in (one, other))
    found += [
        f"{path}: {was.get(path, 'absent')} is now {is_now.get(path, 'absent')}"
        for path in sorted(was.keys() | is_now.keys())
        if was.get(path) != is_now.get(path)
    ]
    return found


def _unordered(part: str, lines: list[str], scrubs: Mapping[str, str]) -> list[str]:
    """Parallel agents ask and parallel tools run in any order; each text must be the same."""
    if part == "requests" and any(name.startswith("request.") for name in scrubs):
        lines = [json.dumps(_flat(json.loads(line), "request", scrubs)) for line in lines]
    return sorted(lines)


def _first_difference(left: list[str], right: list[str]) -> str:
    gone = [line for line in left if line not in right]
    new = [line for line in right if line not in left]
    return f"{len(left)} and {len(right)}; missing {gone[:1]}, new {new[:1]}"


def _flat(value: Any, path: str, scrubs: Mapping[str, str]) -> dict[str, str]:
    """A JSON value as paths and the JSON texts of scalars, without what is scrubbed."""
    return {
        where: json.dumps(scalar)
        for where, scalar in _scalars(value, path)
        if not any(fnmatchcase(where, pattern) for pattern in scrubs)
    }


def _scalars(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _scalars(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _scalars(item, f"{path}.{index}")
    else:
        yield path, value
