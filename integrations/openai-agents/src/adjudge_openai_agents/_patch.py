"""`ApplyPatchTool`: every change to a file is judged on its own, before the editor makes it.

Judged are `type` (`create_file`, `update_file` or `delete_file`), `path`, `diff`, and `move_to`
where the model says it. A denial is the failure of that change; the others of the call go on.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any, ClassVar

from agents import ApplyPatchOperation, ApplyPatchResult, ApplyPatchTool, RunContextWrapper

from adjudge import GovernedCall
from adjudge.integration import Effective, EntryState, ProposedCall, canonical_json
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._body import TypedBody, govern_copy
from adjudge_openai_agents._runs import frame_of

__all__ = ["GovernedEditor", "govern_apply_patch_tool"]

_TEXT = {"type": "string"}
_FIRST = {EntryState.ANSWERED: 0, EntryState.PAUSED: 1}

# The operations of the call that the SDK is about to run in this task, each with the call's id.
_ASKED: ContextVar[tuple[tuple[ApplyPatchOperation, str], ...]] = ContextVar(
    "adjudge_asked_operations", default=()
)


class GovernedEditor(TypedBody):
    """An editor whose every change is judged; it has the three methods that the SDK calls."""

    schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "type": {"enum": ["create_file", "update_file", "delete_file"]},
            "path": _TEXT,
            "diff": _TEXT,
            "move_to": _TEXT,
        },
        "required": ["type", "path"],
    }

    def __init__(self, tool: ApplyPatchTool, binding: Binding) -> None:
        super().__init__(tool.name, binding)
        self._editor = tool.editor

    def proposal(
        self, kind: str, operation: ApplyPatchOperation, call_id: str | None
    ) -> ProposedCall:
        """Say what is judged; `kind` is the method that is called, whatever the operation says."""
        held = {name: getattr(operation, name) for name in _judged(operation)}
        return self._proposed({**held, "type": kind}, call_id)

    def proposed(self, raw: ApplyPatchOperation, call_id: str) -> ProposedCall:
        """Say what is judged of the operation."""
        return self.proposal(raw.type, raw, call_id)

    async def create_file(self, operation: ApplyPatchOperation) -> Any:
        """Create a file, if that may be."""
        return await self._edit("create_file", operation)

    async def update_file(self, operation: ApplyPatchOperation) -> Any:
        """Change a file, if that may be."""
        return await self._edit("update_file", operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> Any:
        """Delete a file, if that may be."""
        return await self._edit("delete_file", operation)

    def noting(self, setting: Any) -> Callable[..., Awaitable[bool]]:
        """Keep the id of a call, which no editor is told, where the SDK asks for an approval."""

        async def needs_approval(
            context: RunContextWrapper[Any], operation: ApplyPatchOperation, call_id: str
        ) -> bool:
            same_call = tuple(asked for asked in _ASKED.get() if asked[1] == call_id)
            _ASKED.set((*same_call, (operation, call_id)))
            answer = setting(context, operation, call_id) if callable(setting) else setting
            return bool(await answer if inspect.isawaitable(answer) else answer)

        return needs_approval

    async def _edit(self, kind: str, operation: ApplyPatchOperation) -> Any:
        context = operation.ctx_wrapper or RunContextWrapper(None)
        noted = [call_id for asked, call_id in _ASKED.get() if asked is operation]
        ids = noted or self._waiting(kind, operation, context)

        def run(effective: Effective) -> Any:
            args = effective.args
            left_out: dict[str, Any] = dict.fromkeys(_judged(operation))
            return getattr(self._editor, args["type"])(replace(operation, **(left_out | args)))

        call = self.proposal(kind, operation, ids[0] if ids else None)
        return await self._mediate(call, run, context)

    def _waiting(
        self, kind: str, operation: ApplyPatchOperation, context: RunContextWrapper[Any]
    ) -> list[str | None]:
        """Give the ids of such calls that waited: the SDK does not ask again about those."""
        run = frame_of(context, self.binding.guard).run
        args = canonical_json(self.proposal(kind, operation, None).arguments)
        alike = [
            entry
            for entry in (() if run is None else run.entries)
            if entry.tool == self.name and canonical_json(entry.args) == args
        ]
        # Equal operations differ in nothing but their ids: what was answered goes first.
        alike.sort(key=lambda entry: _FIRST.get(entry.state, len(_FIRST)))
        return [entry.call_id for entry in alike]

    def _said(self, call: GovernedCall) -> ApplyPatchResult:
        return ApplyPatchResult(status="failed", output=call.text)


def _judged(operation: ApplyPatchOperation) -> list[str]:
    """Name the fields that say what is done: all but the run's context, also those to come."""
    return [field.name for field in fields(operation) if field.name != "ctx_wrapper"]


def govern_apply_patch_tool(tool: ApplyPatchTool, binding: Binding) -> ApplyPatchTool:
    """Give a copy of the tool with a governed editor."""
    governed = govern_copy(tool, "editor", binding, GovernedEditor)
    if isinstance(governed.editor, GovernedEditor) and governed is not tool:
        governed.needs_approval = governed.editor.noting(governed.needs_approval)
    return governed
