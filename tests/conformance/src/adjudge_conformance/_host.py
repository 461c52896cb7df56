"""The reference host: an agent's loop with no framework, at whose one door a guard may stand.

Its ways are those that frameworks have: a lenient parse, validated arguments, a tool's failure told
to the model, parallel calls in one turn. As an integration it is as short as one can be.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Generator, Sequence
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from adjudge import GovernedCall, ToolGuard
from adjudge.integration import Effective, ProposedCall
from adjudge_conformance._client import Conversation
from adjudge_conformance.driver import Agent, Outcome, Scene, Style

__all__ = ["Call", "Host", "text_of"]

Call = tuple[str, str, str]
Turns = Generator[tuple[Call, ...], Sequence[object], Outcome]


class HostTool:
    """A tool of the loop: the function, and a model that validates its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        hints = get_type_hints(function)
        fields: dict[str, Any] = {
            name: (hints[name], ... if each.default is each.empty else each.default)
            for name, each in inspect.signature(function).parameters.items()
        }
        self.model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        self.schema = self.model.model_json_schema()
        self.offer = {"name": function.__name__, "description": inspect.getdoc(function)}

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
        self.guard = guard
        self.style = Style.SYNC
        agent = scene.agent
        functions = [made.function for made in agent.tools]
        functions += [self._asking(helper, scene, base_url) for helper in agent.helpers]
        self.tools = {function.__name__: HostTool(function) for function in functions}
        offers = [{**tool.offer, "parameters": tool.schema} for tool in self.tools.values()]
        self.conversation = Conversation(scene.api, base_url, agent.name, offers, scene.prompt)
        self.tokens = 0
        self.stream: list[str] = []

    def _asking(self, helper: Agent, scene: Scene, base_url: str) -> Callable[[str], Any]:
        """A tool that runs a nested agent, under the same guard."""

        def ask(input: str) -> Any:
            """Ask the helper."""
            nested = Host(Scene(helper, input, scene.api), base_url, self.guard)
            if self.style.is_sync:
                return nested.run(self.style).final
            return nested.answer_together(self.style)

        ask.__name__ = helper.name
        return ask

    def run(self, style: Style) -> Outcome:
        """Run the loop from plain code, to its end or to a pause."""
        self.style = style
        turns = self.turns(streamed=style.streamed)
        try:
            calls = next(turns)
            while True:
                calls = turns.send([self.call_sync(call) for call in calls])
        except StopIteration as end:
            return _outcome(end)

    async def run_together(self, style: Style) -> Outcome:
        """Run the loop from coroutine code, the calls of a turn at the same time."""
        self.style = style
        turns = self.turns(streamed=style.streamed)
        try:
            calls = next(turns)
            while True:
                told = await asyncio.gather(*(self.call(call) for call in calls))
                calls = turns.send(told)
        except StopIteration as end:
            return _outcome(end)

    async def answer_together(self, style: Style) -> str | None:
        """Run the loop and give its answer alone."""
        return (await self.run_together(style)).final

    def turns(self, *, streamed: bool) -> Turns:
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

    def tell(self, calls: Sequence[Call], told: Sequence[object]) -> dict[str, str]:
        """Put the answers into the history; give the calls that wait, with their pending ids."""
        pending = {}
        for (call_id, _, _), answer in zip(calls, told, strict=True):
            if isinstance(answer, GovernedCall) and answer.pending is not None:
                pending[call_id] = answer.pending.id
            else:
                self.conversation.tell(call_id, text_of(answer))
        return pending

    def proposed(self, call: Call) -> ProposedCall:
        """A call as the guard wants it."""
        call_id, name, text = call
        schema = self.tools[name].schema
        return ProposedCall(name, text, call_id=call_id, schema=schema, schema_is_enforced=True)

    async def call(self, call: Call) -> object:
        """Run one call from coroutine code, and give a result or a governed call."""
        _, name, text = call
        tool = self.tools.get(name)
        if tool is None:
            return f"There is no tool {name}."

        async def execute(effective: Effective) -> object:
            return await _value(tool.run(effective.text))

        try:
            if self.guard is None:
                return await _value(tool.run(text))
            return await self.guard.govern_call(self.proposed(call), execute)
        except ValueError as error:
            return f"The tool failed: {error}"

    def call_sync(self, call: Call) -> object:
        """Do what `call` does, from plain code."""
        _, name, text = call
        tool = self.tools.get(name)
        if tool is None:
            return f"There is no tool {name}."
        try:
            if self.guard is None:
                return tool.run(text)
            return self.guard.govern_call_sync(
                self.proposed(call), lambda effective: tool.run(effective.text)
            )
        except ValueError as error:
            return f"The tool failed: {error}"


def _outcome(end: StopIteration) -> Outcome:
    outcome: Outcome = end.value
    return outcome


async def _value(result: object) -> object:
    return await result if inspect.isawaitable(result) else result


def text_of(told: object) -> str:
    """Give what the model is told: the guard's text, or the tool's own result."""
    if isinstance(told, GovernedCall):
        told = told.result.value if told.text is None else told.text
    return told if isinstance(told, str) else json.dumps(told)
