"""Read the call and the context of one test case: the request that a guard would have made of it.

What the file says once for all its cases (`tools:`, `context:`) is filled in here; a key of the
case stands in place of the file's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata
from adjudge._values import EMPTY, FrozenDict
from adjudge.policy._model import Place
from adjudge.policy._reading.nodes import Entry, Fields, Problems, Scalar
from adjudge.policy._reading.suggest import did_you_mean
from adjudge.policy._reading.values import (
    check_key,
    read_bool,
    read_fields_of,
    read_object,
    read_text,
    read_texts,
    read_whole,
    read_word,
)

__all__ = ["AvailableTool", "Surroundings", "read_call"]

_OF_CALL = ("tool", "namespace", "args", "given", "injected", "declared", "resolved")
_OF_CONTEXT = (
    "principal",
    "environment",
    "workspace",
    "extra",
    "session",
    "correlation_id",
    "step_seq",
    "timestamp",
)
_OF_PRINCIPAL = ("kind", "id", "name")
_OF_DECLARED = (
    "cost",
    "reversible",
    "scope",
    "blast_radius_hint",
    "has_shadow",
    "isolation",
    "labels",
)
_SOMEBODY = Principal("user", "tester")
_WORKSPACE = "/workspace"


@dataclass(frozen=True, slots=True)
class AvailableTool:
    """A tool that there is: where it comes from, what it declares, and the arguments that it has.

    `args` is None where that is not said.
    """

    namespace: str | None
    declared: ToolMetadata
    args: frozenset[str] | None = None


class Surroundings:
    """What a file says once: the tools that there are, and the context of every call."""

    def __init__(self, tools: Entry | None, context: Entry | None, problems: Problems) -> None:
        self.problems = problems
        self.tools: dict[str, AvailableTool] | None = None
        self.context: Mapping[str, Any] = {} if context is None else self.read_context(context)
        if tools is not None:
            self.tools = self._read_tools(tools)

    def _read_tools(self, entry: Entry) -> dict[str, AvailableTool]:
        if not isinstance(entry.value, Fields) or not entry.value.entries:
            self.problems.add(
                entry.value.place, "tools is a mapping of tools' names to what they declare."
            )
            return {}
        tools = {}
        for each in entry.value.entries:
            check_key(each, self.problems)
            known = (*_OF_DECLARED, "namespace", "args")
            meant = f'The tool "{each.key}"'
            fields = read_fields_of(each.value, known, self.problems, meant=meant)
            namespace = self.text(fields.pop("namespace", None), "namespace")
            args = fields.pop("args", None)
            names = None if args is None else read_texts(args.value, self.problems, meant="args")
            tools[each.key] = AvailableTool(
                namespace, self._metadata(fields), None if names is None else frozenset(names)
            )
        return tools

    def _metadata(self, fields: Mapping[str, Entry]) -> ToolMetadata:
        stated: dict[str, Any] = {}
        for name, each in fields.items():
            if name in ("reversible", "has_shadow"):
                stated[name] = read_bool(each.value, self.problems, meant=name)
            elif name == "cost":
                words = ("low", "medium", "high")
                stated[name] = read_word(each.value, words, self.problems, meant=name)
            elif name in ("scope", "labels"):
                stated[name] = read_texts(each.value, self.problems, meant=name)
            elif name == "blast_radius_hint":
                stated[name] = read_whole(each.value, self.problems, meant=name)
            else:
                stated[name] = self.text(each, name)
        return ToolMetadata(**stated)

    def declared_by(self, entry: Entry | None, tool: Entry, name: str) -> ToolMetadata | None:
        """Give what the tool of a call declares: by the case, by the file, or as `@tool()` does."""
        node = None if entry is None else entry.value
        if isinstance(node, Scalar) and node.value is None and node.surprise is None:
            return None
        if self.tools is not None and name not in self.tools:
            self.problems.add(
                tool.value.place,
                f'The tools of this file have no "{name}". {did_you_mean(name, self.tools)} A tool '
                "of which nothing is known is written declared: null.",
            )
            return None
        if node is not None:
            fields = read_fields_of(node, _OF_DECLARED, self.problems, meant="declared")
            return self._metadata(fields)
        return ToolMetadata() if self.tools is None else self.tools[name].declared

    def check_arguments(self, args: Entry | None, tool: str) -> None:
        """Refuse arguments that the tool does not have, as far as the file says which it has."""
        known = None if self.tools is None or tool not in self.tools else self.tools[tool].args
        if known is None or args is None or not isinstance(args.value, Fields):
            return
        for each in args.value.entries:
            if each.key not in known:
                self.problems.add(
                    each.place,
                    f'The tool "{tool}" of this file has no argument "{each.key}". '
                    f"{did_you_mean(each.key, sorted(known))}",
                )

    def read_context(self, entry: Entry) -> dict[str, Any]:
        """Read what is stated of a context."""
        stated: dict[str, Any] = {}
        fields = read_fields_of(entry.value, _OF_CONTEXT, self.problems, meant="context")
        for name, each in fields.items():
            if name == "principal":
                stated[name] = self._principal(each)
            elif name in ("extra", "session"):
                stated[name] = self.mapping(each, name)
            elif name == "step_seq":
                stated[name] = read_whole(each.value, self.problems, meant=name) or 0
            elif name == "timestamp":
                stated[name] = self._timestamp(each)
            else:
                stated[name] = self.text(each, name)
        return stated

    def _principal(self, entry: Entry) -> Principal:
        fields = read_fields_of(entry.value, _OF_PRINCIPAL, self.problems, meant="principal")
        if not isinstance(entry.value, Fields):
            return _SOMEBODY
        missing = [name for name in ("kind", "id") if name not in fields]
        if missing:
            self.problems.add(
                entry.place,
                f"A principal has a kind and an id; {' and '.join(missing)} is missing.",
            )
            return _SOMEBODY
        kinds = ("user", "service", "agent")
        kind = read_word(fields["kind"].value, kinds, self.problems, meant="kind")
        return Principal(
            cast("Any", kind or "user"),
            self.text(fields["id"], "id") or "",
            self.text(fields.get("name"), "name"),
        )

    def _timestamp(self, entry: Entry) -> datetime:
        text = self.text(entry, "timestamp") or ""
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            if text:
                self.problems.add(
                    entry.value.place,
                    'timestamp is a moment with its offset, as in "2026-01-31T12:00:00+00:00".',
                )
            return ExecutionContext(_SOMEBODY).timestamp
        return moment

    def text(self, entry: Entry | None, meant: str) -> str | None:
        """Read text that may be missing."""
        return None if entry is None else read_text(entry.value, self.problems, meant=meant)

    def mapping(self, entry: Entry | None, meant: str) -> Mapping[str, Any]:
        """Read a JSON object that may be missing."""
        return read_object(entry, self.problems, meant=meant) or EMPTY


def read_call(
    call: Entry | None, context: Entry | None, case: Place, surroundings: Surroundings
) -> tuple[ActionRequest, frozenset[str]] | None:
    """Give the request of a case and the paths that cannot be resolved; None after a problem."""
    problems = surroundings.problems
    own = {} if context is None else surroundings.read_context(context)
    if call is None:
        problems.add(case, "The case has no call; say which tool is called, with which args.")
        return None
    fields = read_fields_of(call.value, _OF_CALL, problems, meant="call")
    tool = fields.get("tool")
    if tool is None:
        if isinstance(call.value, Fields):
            problems.add(call.place, "The call has no tool.")
        return None
    name = surroundings.text(tool, "tool")
    if name is None:
        return None
    args = surroundings.mapping(fields.get("args"), "args")
    surroundings.check_arguments(fields.get("args"), name)
    resolved, unresolvable = _read_resolved(fields.get("resolved"), surroundings)
    namespace = surroundings.text(fields.get("namespace"), "namespace")
    if namespace is None and surroundings.tools is not None and name in surroundings.tools:
        namespace = surroundings.tools[name].namespace
    stated = {"principal": _SOMEBODY, "workspace": _WORKSPACE, **surroundings.context, **own}
    request = ActionRequest(
        tool=name,
        args=args,
        declared=surroundings.declared_by(fields.get("declared"), tool, name),
        context=ExecutionContext(**stated),
        namespace=namespace,
        given=_read_given(fields.get("given"), args, problems),
        injected=surroundings.mapping(fields.get("injected"), "injected"),
        resolved=resolved,
    )
    return request, unresolvable


def _read_given(
    entry: Entry | None, args: Mapping[str, Any], problems: Problems
) -> frozenset[str] | None:
    if entry is None:
        return None
    names = read_texts(entry.value, problems, meant="given")
    for name in names:
        if name not in args:
            problems.add(
                entry.value.place,
                f'given says that the model sent "{name}", which is not in args. '
                f"{did_you_mean(name, args)}",
            )
    return frozenset(names)


def _read_resolved(
    entry: Entry | None, surroundings: Surroundings
) -> tuple[Mapping[str, str], frozenset[str]]:
    """Read what paths resolve to; null is said of one that cannot be resolved."""
    stated = surroundings.mapping(entry, "resolved")
    resolved = {path: to for path, to in stated.items() if isinstance(to, str)}
    unresolvable = frozenset(path for path, to in stated.items() if to is None)
    if entry is not None and len(resolved) + len(unresolvable) < len(stated):
        surroundings.problems.add(
            entry.value.place,
            "resolved is a mapping of paths to absolute paths, or to null where one cannot be "
            "resolved.",
        )
    return FrozenDict(resolved), unresolvable
