"""The reference driver: a plain loop with `ToolGuard` and no framework, which every other one equals.

It is also the shortest whole example of an integration. Its ways are those that frameworks have: a
lenient parse, validated arguments, a tool's failure told to the model, parallel calls in one turn.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any, get_type_hints

from adjudge import GovernedCall, ToolGuard
from adjudge.integration import Effective, ProposedCall
from pydantic import ConfigDict, ValidationError, create_model

from adjudge_conformance._client import Conversation
from adjudge_conformance.driver import Driver, Gap, GivenAnswer, Outcome, Scene, Style
from adjudge_conformance.tools import SuiteTool

__all__ = ["Host", "ReferenceDriver"]

Call = tuple[str, str, str]
Told = str | GovernedCall


class HostTool:
    """A tool of the loop: the function, and a model that validates its arguments."""

    def __init__(self, tool: SuiteTool) -> None:
        self.function = tool.function
        hints = get_type_hints(tool.function)
        fields: dict[str, Any] = {
            name: (hints[name], ... if each.default is each.empty else each.default)
            for name, each in inspect.signature(tool.function).parameters.items()
        }
        self.model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        self.schema = self.model.model_json_schema()
        self.offer = {"name": tool.name, "description": inspect.getdoc(tool.function)}

    def run(self, text: str) -> Any:
        """Run the body, or give the coroutine that will; say what is wrong with the arguments."""
        try:
            valid = self.model.model_validate(json.loads(text))
        except ValidationError as error:
            return f"The arguments do not fit: {error.errors()[0]['msg']}"
        except ValueError:
            return "The arguments are not JSON."
        return self.function(**{name: getattr(valid, name) for name in type(valid).model_fields})


class Host:
    """An agent of the loop, and maybe a guard at its door."""

    def __init__(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> None:
        self.tools = {tool.name: HostTool(tool) for tool in scene.agent.tools}
        self.guard = guard
        offers = [{**tool.offer, "parameters": tool.schema} for tool in self.tools.values()]
        self.conversation = Conversation(
            scene.api, base_url, scene.agent.name, offers, scene.prompt
        )
        self.tokens = 0
        self.stream: list[str] = []

    def turns(self, *, streamed: bool) -> Generator[tuple[Call, ...], Sequence[Told], Outcome]:
        """The loop: it yields the calls of a turn and is sent what came of each."""
        while True:
            reply = self.conversation.ask(streamed=streamed)
            self.tokens += reply.tokens
            self.stream += reply.events
            if not reply.calls:
                return Outcome(final=reply.text, native=self, stream=tuple(self.stream))
            told = yield reply.calls
            pending = self.tell(reply.calls, told)
            if pending:
                return Outcome(native=(self, pending), paused=True)

    def tell(self, calls: Sequence[Call], told: Sequence[Told]) -> dict[str, str]:
        """Put the answers into the history; give the calls that wait, with their pending ids."""
        pending = {}
        for (call_id, _, _), answer in zip(calls, told, strict=True):
            if isinstance(answer, GovernedCall) and answer.pending is not None:
                pending[call_id] = answer.pending.id
            else:
                self.conversation.tell(call_id, _text_of(answer))
        return pending

    def proposed(self, call: Call) -> ProposedCall:
        """A call as the guard wants it."""
        call_id, name, text = call
        schema = self.tools[name].schema
        return ProposedCall(name, text, call_id=call_id, schema=schema, schema_is_enforced=True)

    async def call(self, call: Call) -> Told:
        """Run one call from coroutine code."""
        _, name, text = call
        if name not in self.tools:
            return f"There is no tool {name}."

        async def execute(effective: Effective | str) -> Any:
            result = self.tools[name].run(effective if isinstance(effective, str) else effective.text)
            return await result if inspect.isawaitable(result) else result

        try:
            if self.guard is None:
                return _text_of(await execute(text))
            return await self.guard.govern_call(self.proposed(call), execute=execute)
        except ValueError as error:
            return f"The tool failed: {error}"

    def call_sync(self, call: Call) -> Told:
        """Run one call from plain code."""
        _, name, text = call
        if name not in self.tools:
            return f"There is no tool {name}."
        tool = self.tools[name]
        try:
            if self.guard is None:
                return _text_of(tool.run(text))
            return self.guard.govern_call_sync(
                self.proposed(call), execute=lambda effective: tool.run(effective.text)
            )
        except ValueError as error:
            return f"The tool failed: {error}"


class ReferenceDriver(Driver[Host]):
    """The loop above, in every style."""

    name = "reference"
    styles = tuple(Style)
    apis = ("chat", "responses")
    gaps = {
        "*.nested-agent": Gap("the reference loop has one agent", "https://github.com/adjudge"),
    }

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Host:
        """Make the host."""
        return Host(scene, base_url, guard)

    def run(self, target: Host, style: Style) -> Outcome:
        """Run the loop to its end or to a pause."""
        turns = target.turns(streamed=style.streamed)
        answer: Sequence[Told] | None = None
        try:
            while True:
                calls = turns.send(answer) if answer else next(turns)
                if style.is_sync:
                    answer = [target.call_sync(call) for call in calls]
                else:
                    answer = asyncio.run(_together(target, calls))
        except StopIteration as end:
            return end.value

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give the history and the tokens."""
        return {"history": outcome.native.conversation.history, "tokens": outcome.native.tokens}
