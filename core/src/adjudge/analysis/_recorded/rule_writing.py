"""Groups of recorded calls, written as rules of a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge._types import Verdict
from adjudge.analysis._recorded.boxes import (
    Box,
    Level,
    Span,
    argument_path,
    boxes_of,
    condition,
    written,
)
from adjudge.analysis._recorded.evidence import Group

__all__ = ["Levels", "rules_of"]

_CONTEXT: Mapping[Level, tuple[str, ...]] = {
    "exact": ("context.environment", "context.principal.kind", "context.principal.id"),
    "values": ("context.environment", "context.principal.kind"),
    "shape": (),
}
_VERBS: Mapping[Verdict, str] = {
    Verdict.ALLOW: "allow",
    Verdict.DRY_RUN: "preview",
    Verdict.APPROVE_REQUIRED: "ask-before",
    Verdict.TRANSFORM: "rewrite",
}


class Levels:
    """How far to generalise: a level for all, and others for a `TOOL` or a `TOOL:ARGUMENT`."""

    def __init__(self, level: Level, of: Mapping[str, Level]) -> None:
        self._level = level
        self._of = of
        self._exact: set[str] = set()

    def make_exact(self, tool: str) -> bool:
        """Generalise no call of a tool; False where none was."""
        wide = self.of_tool(tool) != "exact" or any(
            name.startswith(f"{tool}:") and level != "exact" for name, level in self._of.items()
        )
        if not wide or tool in self._exact:
            return False
        self._exact.add(tool)
        return True

    def of_tool(self, tool: str) -> Level:
        """Give the level of a tool."""
        return "exact" if tool in self._exact else self._of.get(tool, self._level)

    def of_argument(self, tool: str, name: str) -> Level:
        """Give the level of one argument."""
        if tool in self._exact:
            return "exact"
        return self._of.get(f"{tool}:{name}", self.of_tool(tool))

    def is_exact(self, tool: str, names: Sequence[str]) -> bool:
        """Whether nothing of a tool is generalised."""
        levels = [self.of_tool(tool), *(self.of_argument(tool, name) for name in names)]
        return all(level == "exact" for level in levels)


def rules_of(
    groups: Sequence[Group],
    names: Sequence[str],
    levels: Levels,
    *,
    workspace: str | None,
    taken: set[str],
) -> list[dict[str, Any]]:
    """Write the rules about one tool, in order; `names` are its arguments, `taken` the ids so far.

    What asks or previews comes before what allows, so that a wider rule cannot take its place;
    where nothing is wider, the other way round, so that no rule can err on another's values.
    """
    tool = groups[0].tool
    asks_first = not levels.is_exact(tool, names) or any(map(_leaves_open, groups))
    order = sorted(
        groups,
        key=lambda group: (
            group.verdict is not Verdict.TRANSFORM,
            (group.verdict is Verdict.ALLOW) is asks_first,
            group.verdict.value,
        ),
    )
    return [_rule(group, names, levels, workspace, taken) for group in order if group.calls]


def _leaves_open(group: Group) -> bool:
    """Whether some value of its calls is not known, so that its rule lets any value through."""
    return any(span.kind == "present" for call in group.calls.values() for span in call.values())


def _rule(
    group: Group, names: Sequence[str], levels: Levels, workspace: str | None, taken: set[str]
) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": _unused_id(group, taken),
        "description": _seen(group),
        "match": _match(group, names, levels, workspace),
        "decision": group.verdict.value,
    }
    if group.approvers:
        rule["approvers"] = list(group.approvers)
    if group.edits:
        edits = [_edit(edit) for edit in group.edits]
        rule["transform"] = edits[0] if len(edits) == 1 else edits
    return rule


def _edit(edit: Mapping[str, Any]) -> dict[str, Any]:
    path = {"path": argument_path(edit["name"])}
    return path | ({"set": written(edit["set"])} if "set" in edit else {"delete": True})


def _unused_id(group: Group, taken: set[str]) -> str:
    name = "".join(char if char.isprintable() else "_" for char in group.tool)
    base = f"{_VERBS[group.verdict]}-{name}"
    wanted, number = base, 1
    while wanted in taken:
        number += 1
        wanted = f"{base}-{number}"
    taken.add(wanted)
    return wanted


def _seen(group: Group) -> str:
    times = "seen once" if group.count == 1 else f"seen {group.count} times"
    return f"{times}, first at {', '.join(map(str, group.places))}"


def _match(
    group: Group, names: Sequence[str], levels: Levels, workspace: str | None
) -> dict[str, Any]:
    boxes = _boxes(group, names, levels, workspace)
    paths = list(boxes[0])
    common = [
        condition(path, boxes[0][path])
        for path in paths
        if len({box[path].key for box in boxes}) == 1
    ]
    differing = [path for path in paths if len({box[path].key for box in boxes}) > 1]
    ways = [_together([condition(path, box[path]) for path in differing]) for box in boxes]
    parts = [_tool(group), *common]
    if differing:
        parts.append({"any_of": ways})
    return _together(parts)


def _tool(group: Group) -> dict[str, Any]:
    name: Any = {"eq": {"literal": group.tool}} if "*" in group.tool else group.tool
    if group.namespace is not None:
        return {"tool": name, "tool.namespace": group.namespace}
    if group.verdict is Verdict.ALLOW:
        return {"tool": name}
    # A rule that restricts, or rewrites, would else hold of the tool in every namespace.
    return {"tool": name, "tool.namespace": {"exists": False}}


def _boxes(group: Group, names: Sequence[str], levels: Levels, workspace: str | None) -> list[Box]:
    rewrites = group.verdict is Verdict.TRANSFORM
    of_tool: Level = "exact" if rewrites else levels.of_tool(group.tool)
    read = _CONTEXT[of_tool]
    by_path: dict[str, Level] = dict.fromkeys(_CONTEXT["exact"], "exact")
    for name in names:
        level = levels.of_argument(group.tool, name)
        by_path[argument_path(name)] = "exact" if rewrites else level
    calls = [
        {path: call.get(path, Span("any")) if path in read else Span("any") for path in by_path}
        | {argument_path(name): call.get(f"args {name}", Span("absent")) for name in names}
        for call in group.calls.values()
    ]
    return boxes_of(calls, by_path, workspace=workspace)


def _together(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join conditions: in one mapping, or where a key occurs twice in `all_of`."""
    several = [part for part in parts if part]
    keys = [key for part in several for key in part]
    if len(keys) == len(set(keys)):
        return {key: value for part in several for key, value in part.items()}
    return {"all_of": several}
