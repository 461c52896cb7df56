"""One call's arguments: as the model sent them, as they are judged, and as the body gets them.

PydanticAI validates before it calls. What is judged is the JSON projection of exactly the values
that the body gets, and those objects run. Where a policy or a person rewrites an argument, that one
is validated by the tool's own validator, and what comes of it is judged again and runs.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.toolsets import ToolsetTool

from adjudge import ArgumentsRefused
from adjudge.integration import (
    Admitted,
    FrozenDict,
    InvalidArguments,
    canonical_json,
    freeze_object,
    normalise,
    project_object,
    thaw,
)
from adjudge_pydantic_ai._binding import source_of

__all__ = ["CallArguments", "validation_text"]


class CallArguments:
    """The arguments of one call of a tool; `values` are what the framework's validation gave."""

    def __init__(
        self,
        tool: ToolsetTool[Any],
        values: dict[str, Any],
        ctx: RunContext[Any],
        *,
        is_text: bool,
        rewritable: bool = True,
    ) -> None:
        self._tool, self._ctx = tool, ctx
        self._original = values
        self._is_text = is_text
        self._rewritable = rewritable
        self._server_schema = tool.tool_def.parameters_json_schema if _is_mcp(tool) else None
        self._sent: FrozenDict | None = None
        self._judged = FrozenDict()
        self._values: dict[str, _Kept] = {}

    def validate(self, args: FrozenDict) -> Admitted:
        """Project the values of the call, later those of a rewriting.

        Raises `InvalidArguments` for a rewriting that the tool does not take, and
        `ArgumentsRefused` for values that have no JSON meaning.
        """
        if self._sent is None:
            self._sent = args
            self._judged = self._keep(self._original).judged
        if canonical_json(args) == canonical_json(self._sent):  # a guard may look twice
            return Admitted(self._judged, self._given(args))
        return Admitted(self._keep(self._validated(args), rewritten=True).judged)

    async def values_of(self, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the values behind judged arguments; None where they have changed since."""
        kept = self._values.get(canonical_json(args))
        if kept is None:  # whatever the guard says is what runs
            kept = self._keep(self._validated(freeze_object(args)), rewritten=True)
        if kept.rewritten:
            await self._ask_validator(kept.values)
        return kept.values if canonical_json(project_object(kept.values)) == kept.seen else None

    def _keep(self, values: dict[str, Any], *, rewritten: bool = False) -> _Kept:
        projected = project_object(values)
        judged = projected
        if self._server_schema is not None:
            # The server fills in its own defaults; the scalars it gets as they are.
            found = normalise(self._server_schema, projected, coerce=False)
            if rewritten and found.problems:
                raise InvalidArguments(found.problems[0])
            judged = found.args
        kept = _Kept(values, judged, canonical_json(projected), rewritten)
        self._values[canonical_json(judged)] = kept
        return kept

    def _given(self, sent: FrozenDict) -> frozenset[str]:
        """Name the arguments that the model itself sent, by the function's own names."""
        names = frozenset(self._judged)
        if self._envelope(names) is not None:
            return names if sent else frozenset()
        described = self._tool.tool_def.parameters_json_schema.get("properties", {})
        given = names & sent.keys()
        if sent.keys() - names:
            # What the model calls otherwise (an alias): the schema does not know it by our name.
            given |= {name for name in names if name not in described}
        return given

    def _envelope(self, names: frozenset[str]) -> str | None:
        """Name the one model argument whose fields the model writes without naming it."""
        described = self._tool.tool_def.parameters_json_schema.get("properties", {})
        if len(names) == 1 and not names & described.keys() and names.isdisjoint(self._sent or {}):
            return next(iter(names))
        return None

    def _validated(self, args: FrozenDict) -> dict[str, Any]:
        if not self._rewritable:
            raise InvalidArguments(
                "the call is executed elsewhere, with the arguments that the model wrote"
            )
        unchanged = {
            name
            for name, value in args.items()
            if name in self._judged and canonical_json(value) == canonical_json(self._judged[name])
        }
        fresh = self._validate(self._merged(args, unchanged))
        # What nobody rewrote stays the very object that was judged: validators need not be
        # idempotent.
        return {
            name: self._original[name] if name in unchanged and name in self._original else value
            for name, value in fresh.items()
        }

    def _merged(self, args: FrozenDict, unchanged: set[str]) -> dict[str, Any]:
        """Take what the model sent, but for the arguments that differ from the judged ones."""
        sent = self._sent or FrozenDict()
        envelope = self._envelope(frozenset(self._judged))
        if envelope is not None and args.keys() == {envelope}:
            flat: dict[str, Any] = thaw(sent if envelope in unchanged else args[envelope])
            return flat
        gone = {self._written(name) for name in self._judged if name not in unchanged}
        kept = {name: value for name, value in sent.items() if name not in gone}
        kept |= {self._written(name): args[name] for name in args if name not in unchanged}
        merged: dict[str, Any] = thaw(FrozenDict(kept))
        return merged

    def _written(self, name: str) -> str:
        """Give the name by which the model writes an argument, where it can be told."""
        described = self._tool.tool_def.parameters_json_schema.get("properties", {})
        ours = [each for each in self._judged if each not in described]
        theirs = [each for each in described if each not in self._judged]
        return theirs[0] if ours == [name] and len(theirs) == 1 else name

    def _validate(self, merged: dict[str, Any]) -> dict[str, Any]:
        validator, context = self._tool.args_validator, self._ctx.validation_context
        try:
            if self._is_text:
                values = validator.validate_json(
                    json.dumps(merged, default=_as_text), context=context
                )
            else:
                values = validator.validate_python(merged, context=context)
        except ValidationError as error:
            raise InvalidArguments(validation_text(error)) from None
        if not isinstance(values, dict):
            raise InvalidArguments(f"they became a {type(values).__name__}")
        return values

    async def _ask_validator(self, values: dict[str, Any]) -> None:
        """Ask the tool's own `args_validator` about rewritten arguments."""
        validator = self._tool.args_validator_func
        if validator is None:
            return
        try:
            answer = validator(self._ctx, **values)
            if inspect.isawaitable(answer):
                await answer
        except (ModelRetry, ToolFailed, CallDeferred, ApprovalRequired) as error:
            raise InvalidArguments(f"{type(error).__name__}: {error}") from None


class _Kept(NamedTuple):
    """The values behind judged arguments, and what their projection was when they were judged."""

    values: dict[str, Any]
    judged: FrozenDict
    seen: str
    rewritten: bool


def validation_text(error: Exception) -> str:
    """Say what a validation found, without what was sent, which may be secret."""
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"args.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)


def _is_mcp(tool: ToolsetTool[Any]) -> bool:
    """Whether the tool is one of an MCP server, without importing what its extra needs."""
    module = sys.modules.get("pydantic_ai.mcp")
    return module is not None and isinstance(source_of(tool), module.MCPToolset)


def _as_text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise ArgumentsRefused("A rewritten argument holds a secret, which JSON text cannot carry.")
