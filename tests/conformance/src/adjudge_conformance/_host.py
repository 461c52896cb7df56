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
from adjudge.integration import Effective, GovernedRun, ProposedCall
from adjudge_conformance._client import Conversation
from adjudge_conformance.driver import Agent, Outcome, Scene, Style
from adjudge_conformance.wire import Api

__all__ = ["Call", "Host", "Saved", "text_of"]

Call = tuple[str, str, str]
Turns = Generator[tuple[Call, ...], Sequence[object], Outcome]
Saved = dict[str, Any]


class Suspended(BaseException):
    """A nested agent waits for a person; by this the loop leaves the body that asked it."""

    def __init__(self, saved: Saved) -> None:
        super().__init__()
        self.saved = saved


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

    def run(self, text: str, call_id: str) -> Any:
        """Run the body, or give the coroutine that will; say what is wrong with the arguments."""
        try:
            valid = self.model.model_validate(json.loads(text))
        except ValidationError as error:
            return f"The arguments do not fit: {error.errors()[0]['msg']}"
        except ValueError:
            return "The arguments are not JSON."
        return self.body(
            call_id, **{name: getattr(valid, name) for name in type(valid).model_fields}
        )

    def body(self, call_id: str, /, **args: Any) -> Any:
        """Call the function."""
        return self.function(**args)


class HelperTool(HostTool):
    """A nested agent, offered to the model as a tool; it is under the same guard."""

    def __init__(self, host: Host, helper: Agent, api: Api, base_url: str) -> None:
        def ask(input: str) -> None:
            """Ask the helper."""

        ask.__name__ = helper.name
        super().__init__(ask)
        self._host = host
        self._made = (helper, api, base_url)

    def body(self, call_id: str, /, **args: Any) -> Any:
        """Run the nested agent, or go on with it where it was left waiting."""
        host, (helper, api, base_url) = self._host, self._made
        scene = Scene(helper, args["input"], api, host.caller)
        nested = Host(scene, base_url, host.guard, f"{host.parent}/{call_id}", host.run_id)
        nested.style = host.style
        saved = host.nested.get(call_id)
        if saved is not None:
            nested.load(saved, host.run_id)
            return _answer(nested.go_on())
        if host.style.is_sync:
            return _answer(nested.run(host.style))
        return nested.answer_together(host.style)


class Host:
    """An agent of the loop, and maybe a guard at its door."""

    def __init__(
        self,
        scene: Scene,
        base_url: str,
        guard: ToolGuard | None,
        parent: str = "",
        run_id: GovernedRun | None = None,
    ) -> None:
        self.guard = guard
        self.parent = parent
        self.run_id = run_id or (GovernedRun() if guard is not None and guard.pauses else None)
        self.style = Style.SYNC
        self.caller = scene.caller
        agent = self.agent = scene.agent
        tools = [HostTool(made.function) for made in agent.tools]
        tools += [HelperTool(self, helper, scene.api, base_url) for helper in agent.helpers]
        self.tools = {str(tool.offer["name"]): tool for tool in tools}
        offers = [{**tool.offer, "parameters": tool.schema} for tool in tools]
        self.conversation = Conversation(scene.api, base_url, agent.name, offers, scene.prompt)
        self.tokens = 0
        self.stream: list[str] = []
        self.waiting: dict[str, Call] = {}
        self.pending: dict[str, str] = {}
        self.nested: dict[str, Saved] = {}

    # The loop

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
        return _answer(await self.run_together(style))

    def turns(self, *, streamed: bool) -> Turns:
        """The loop: it yields the calls of a turn and is sent what came of each."""
        while True:
            reply = self.conversation.ask(streamed=streamed)
            self.tokens += reply.tokens
            self.stream += reply.events
            if not reply.calls:
                return Outcome(final=reply.text, native=self, stream=tuple(self.stream))
            told = yield reply.calls
            self.tell(reply.calls, told)
            if self.waiting:
                return Outcome(native=self, paused=True)

    def tell(self, calls: Sequence[Call], told: Sequence[object]) -> None:
        """Put the answers into the history; keep the calls that wait."""
        for call, answer in zip(calls, told, strict=True):
            call_id = call[0]
            if isinstance(answer, Suspended):
                self.waiting[call_id], self.nested[call_id] = call, answer.saved
            elif isinstance(answer, GovernedCall) and answer.pending is not None:
                self.waiting[call_id], self.pending[call_id] = call, answer.pending.id
            else:
                self.conversation.tell(call_id, text_of(answer))

    # Waiting

    def save(self) -> Saved:
        """Give what waits as JSON: the history, and the ids under which the ledger keeps it."""
        return {
            "run": None if self.run_id is None else self.run_id.id,
            "history": self.conversation.history,
            "waiting": self.waiting,
            "pending": self.pending,
            "nested": self.nested,
        }

    def load(self, saved: Saved, run: GovernedRun | None) -> None:
        """Take up what was saved."""
        self.run_id = run
        self.conversation.history = saved["history"]
        self.waiting = {call_id: (a, b, c) for call_id, (a, b, c) in saved["waiting"].items()}
        self.pending, self.nested = saved["pending"], saved["nested"]

    def go_on(self) -> Outcome:
        """Go on from where the loop was left: with the calls that no longer wait, then with it."""
        waits = frozenset() if self.run_id is None else self.run_id.unanswered
        ready = [
            call
            for call_id, call in self.waiting.items()
            if call_id in self.nested or self.pending[call_id] not in waits
        ]
        for call_id, _, _ in ready:
            del self.waiting[call_id]
        self.tell(ready, [self.call_sync(call) for call in ready])
        if self.waiting:
            return Outcome(native=self, paused=True)
        return self.run(Style.SYNC)

    # One call

    @property
    def who(self) -> Callable[[], Any] | None:
        """The `context=` of each call: who the run says is calling."""
        return None if self.caller is None else lambda: self.caller

    def proposed(self, call: Call) -> ProposedCall:
        """A call as the guard wants it."""
        call_id, name, text = call
        return ProposedCall(
            name,
            text,
            call_id=call_id,
            schema=self.tools[name].schema,
            schema_is_enforced=True,
            control_flow=(Suspended,),
            run=self.run_id,
            agent=self.agent.name,
            parent=self.parent,
        )

    async def call(self, call: Call) -> object:
        """Run one call from coroutine code, and give a result or a governed call."""
        call_id, name, text = call
        tool = self.tools.get(name)
        if tool is None:
            return f"There is no tool {name}."

        async def execute(effective: Effective) -> object:
            return await _value(tool.run(effective.text, call_id))

        try:
            if self.guard is None:
                return await _value(tool.run(text, call_id))
            return await self.guard.govern_call(self.proposed(call), execute, context=self.who)
        except ValueError as error:
            return f"The tool failed: {error}"
        except Suspended as suspended:
            return suspended

    def call_sync(self, call: Call) -> object:
        """Do what `call` does, from plain code."""
        call_id, name, text = call
        tool = self.tools.get(name)
        if tool is None:
            return f"There is no tool {name}."
        try:
            if self.guard is None:
                return tool.run(text, call_id)
            return self.guard.govern_call_sync(
                self.proposed(call),
                lambda effective: tool.run(effective.text, call_id),
                context=self.who,
            )
        except ValueError as error:
            return f"The tool failed: {error}"
        except Suspended as suspended:
            return suspended


def _outcome(end: StopIteration) -> Outcome:
    outcome: Outcome = end.value
    return outcome


def _answer(outcome: Outcome) -> str | None:
    """Give a nested agent's answer, or leave its asker's body where it waits."""
    if outcome.paused:
        raise Suspended(outcome.native.save())
    return outcome.final


async def _value(result: object) -> object:
    return await result if inspect.isawaitable(result) else result


def text_of(told: object) -> str:
    """Give what the model is told: the guard's text, or the tool's own result."""
    if isinstance(told, GovernedCall):
        told = told.result.value if told.text is None else told.text
    return told if isinstance(told, str) else json.dumps(told)
