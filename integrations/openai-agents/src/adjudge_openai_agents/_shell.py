"""Shells that run here: `ShellTool` with an executor, and `LocalShellTool`.

Judged is what the request carries: `commands`, `timeout_ms` and `max_output_length`; for a
`LocalShellTool` `command`, `env`, `timeout_ms`, `user` and `working_directory`. What the model left
out is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar

from agents import (
    LocalShellCommandRequest,
    LocalShellTool,
    ShellActionRequest,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
)

from adjudge import GovernedCall
from adjudge.integration import Effective, ProposedCall
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._body import TypedBody, govern_copy

__all__ = ["GovernedLocalShell", "GovernedShell", "govern_local_shell_tool", "govern_shell_tool"]

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_NUMBER = {"type": "integer"}
_NOT_EXECUTED = 126
"""The exit code by which shells say that a command was found and may not be executed."""


def _object(required: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [required],
    }


class GovernedShell(TypedBody):
    """The governed way to a shell; a denial is the output of a command that was not executed."""

    schema: ClassVar[Mapping[str, Any]] = _object(
        "commands", {"commands": _TEXTS, "timeout_ms": _NUMBER, "max_output_length": _NUMBER}
    )

    def __init__(self, tool: ShellTool, binding: Binding) -> None:
        super().__init__(tool.name, binding)
        self._executor: Any = tool.executor

    def proposal(self, action: ShellActionRequest, call_id: str | None) -> ProposedCall:
        """Say what is judged."""
        held = {field.name: getattr(action, field.name) for field in fields(action)}
        return self._proposed(held, call_id)

    def proposed(self, raw: ShellActionRequest, call_id: str) -> ProposedCall:
        """Say what is judged of the action."""
        return self.proposal(raw, call_id)

    async def __call__(self, request: ShellCommandRequest) -> str | ShellResult:
        """Judge one call, and run the commands that may run."""
        data = request.data

        def run(effective: Effective) -> Any:
            left_out: dict[str, Any] = {field.name: None for field in fields(data.action)}
            action = replace(data.action, **(left_out | effective.args))
            # The raw call would still say what was rewritten.
            raw = None if effective.changed else data.raw
            return self._executor(replace(request, data=replace(data, action=action, raw=raw)))

        call = self.proposal(data.action, data.call_id)
        return await self._mediate(call, run, request.ctx_wrapper)  # type: ignore[no-any-return]

    def _said(self, call: GovernedCall) -> ShellResult:
        outcome = ShellCallOutcome("exit", _NOT_EXECUTED)
        return ShellResult([ShellCommandOutput(stdout=call.text or "", outcome=outcome)])


class GovernedLocalShell(TypedBody):
    """The governed way to a local shell; a denial is the command's output."""

    schema: ClassVar[Mapping[str, Any]] = _object(
        "command",
        {
            "command": _TEXTS,
            "env": {"type": "object", "additionalProperties": _TEXT},
            "timeout_ms": _NUMBER,
            "user": _TEXT,
            "working_directory": _TEXT,
        },
    )

    def __init__(self, tool: LocalShellTool, binding: Binding) -> None:
        super().__init__(tool.name, binding)
        self._executor = tool.executor

    def proposal(self, action: Any, call_id: str | None) -> ProposedCall:
        """Say what is judged of the action of a `LocalShellCall`."""
        return self._proposed(_held(action), call_id)

    async def __call__(self, request: LocalShellCommandRequest) -> str:
        """Judge one call, and run the command that may run."""
        data = request.data

        def run(effective: Effective) -> Any:
            left_out: dict[str, Any] = dict.fromkeys(_held(data.action))
            action = data.action.model_copy(update=left_out | effective.args)
            return self._executor(replace(request, data=data.model_copy(update={"action": action})))

        call = self.proposal(data.action, data.call_id)
        return await self._mediate(call, run, request.ctx_wrapper)  # type: ignore[no-any-return]


def _held(action: Any) -> dict[str, Any]:
    """Give what an action holds; the client checks nothing, so values may be of any kind."""
    held: dict[str, Any] = action.model_dump(exclude={"type"}, warnings=False)
    return held


def govern_shell_tool(tool: ShellTool, binding: Binding) -> ShellTool:
    """Give a governed copy of a shell tool that has an executor."""
    return govern_copy(tool, "executor", binding, GovernedShell)


def govern_local_shell_tool(tool: LocalShellTool, binding: Binding) -> LocalShellTool:
    """Give a governed copy of a local shell tool."""
    return govern_copy(tool, "executor", binding, GovernedLocalShell)
