"""One call's arguments: as the model sent them, as they are judged, and as the function gets them.

A tool made by `@function_tool` is judged on the JSON projection of what its own parameters make of
the model's text. The SDK then gets that text itself, or with the rewritten arguments replaced.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from agents import FunctionTool
from agents.exceptions import ModelBehaviorError
from agents.function_schema import FuncSchema, function_schema
from pydantic import ValidationError

from adjudge import ArgumentsRefused
from adjudge.integration import (
    Admitted,
    FrozenDict,
    InvalidArguments,
    canonical_json,
    project_object,
    thaw,
)
from adjudge_openai_agents._owned import CallValues

__all__ = ["ValidatedArguments", "parameters_of"]


def parameters_of(tool: FunctionTool) -> FuncSchema:
    """Read the parameters of the function behind a decorated tool."""
    function: Any = tool.__wrapped__
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = function.__call__
    return function_schema(
        function, name_override=tool.name, use_docstring_info=False, strict_json_schema=False
    )


class ValidatedArguments:
    """The arguments of one call of a decorated tool."""

    def __init__(self, parameters: FuncSchema) -> None:
        self._parameters = parameters
        self._sent: FrozenDict | None = None
        self._judged = FrozenDict()
        self._values: dict[str, CallValues] = {}

    def validate(self, args: FrozenDict) -> Admitted:
        """Project what the function would get of what the model sent, later of a rewriting.

        Raises `InvalidArguments` for what the function's parameters reject.
        """
        if self._sent is not None:
            return self._projected(self._merged(args))
        self._sent = args
        admitted = self._projected(args)
        self._judged = admitted.args
        return admitted

    def values_of(self, args: Mapping[str, Any]) -> CallValues | None:
        """Give the validated values behind judged arguments; None for arguments that are none."""
        return self._values.get(canonical_json(args))

    def text(self, args: Mapping[str, Any]) -> str:
        """Write rewritten arguments as the text that the SDK is to validate."""
        return json.dumps(self._merged(args), default=_as_text)

    def _projected(self, args: Mapping[str, Any]) -> Admitted:
        try:
            values = self._parameters.params_pydantic_model(**thaw(args))
            positional, named = self._parameters.to_call_args(values)
        except ValidationError as error:
            # What was sent stays out of the text; it may be secret.
            found = error.errors(include_url=False, include_input=False)
            said = [f"args.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found]
            raise InvalidArguments("; ".join(said)) from None
        except ModelBehaviorError as error:
            raise InvalidArguments(str(error)) from None
        # The fields are the function's own names, whatever aliases the model wrote.
        projected = project_object(vars(values))
        self._values[canonical_json(projected)] = CallValues(
            positional, named, self._parameters.takes_context
        )
        return Admitted(projected, frozenset(values.model_fields_set))

    def _merged(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Take what the model sent, but for the arguments that differ from the judged ones."""
        sent: Mapping[str, Any] = self._sent or {}
        fields = self._parameters.params_pydantic_model.model_fields
        merged: dict[str, Any] = {}
        for name, value in args.items():
            sent_name = (name in fields and fields[name].alias) or name
            if name not in self._judged or canonical_json(value) != canonical_json(
                self._judged[name]
            ):
                merged[sent_name] = value
            elif sent_name in sent:
                merged[sent_name] = sent[sent_name]
        return merged


def _as_text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise ArgumentsRefused("A rewritten argument holds a secret, which JSON text cannot carry.")
