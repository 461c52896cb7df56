"""Guards with one fault each: see `faults.py`, which says what must notice them.

Each is the real guard with something wrong put around a door, an approver, a sink or a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from adjudge import (
    ApprovalDecision,
    ApprovalRequest,
    AuditEvent,
    GovernedCall,
    Outcome,
    ToolGuard,
    ToolSet,
)
from adjudge.integration import (
    Admitted,
    CallPlace,
    Effective,
    FrozenDict,
    ProposedCall,
    freeze_object,
)

T = TypeVar("T")
Execute = Callable[[Effective], Any]


class _AroundTheDoors(ToolGuard):
    """A guard that may change what goes in at its doors, and what comes out."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Change what goes in."""
        return call, execute

    async def leave(self, done: GovernedCall, execute: Callable[[], Any]) -> GovernedCall:
        """Change what comes out; `execute` runs the body with the arguments as judged."""
        return done

    async def govern_call(self, call: ProposedCall, execute: Execute, **more: Any) -> GovernedCall:
        """Go through the door of coroutine code."""
        done = await super().govern_call(*self.enter(call, execute), **more)
        return await self.leave(done, lambda: execute(_as_judged(done)))

    def govern_call_sync(self, call: ProposedCall, execute: Execute, **more: Any) -> GovernedCall:
        """Go through the door of plain code."""
        done = super().govern_call_sync(*self.enter(call, execute), **more)
        return at_once(self.leave(done, lambda: execute(_as_judged(done))))

    def with_tools(self, tools: ToolSet, **more: Any) -> ToolGuard:
        """Remember the schemas, by which `check` makes a proposal of a call."""
        other = super().with_tools(tools, **more)
        other.__dict__["schemas"] = more.get("schemas") or {}
        return other

    async def check(self, name: str, args: Any, **more: Any) -> GovernedCall:
        """Go through the door of hosts that have tools of ours."""
        if name not in self.tools:
            return await super().check(name, args, **more)
        call, execute = proposed_at_check(self, name, args, more.get("place"))
        wrong_call, wrong_execute = self.enter(call, execute)
        wrong = _with_body(self, wrong_call, wrong_execute, sent=args)
        done = await ToolGuard.check(wrong, name, wrong_call.arguments, **more)
        return await self.leave(done, lambda: execute(_as_judged(done)))


def proposed_at_check(
    guard: ToolGuard, name: str, args: Any, place: CallPlace | None
) -> tuple[ProposedCall, Execute]:
    """Give a call of `check` as a framework would have proposed it."""
    function = guard.tools.get(name).fn

    async def execute(effective: Effective) -> Any:
        return await _value(function(**effective.args))

    place = CallPlace() if place is None else place
    schema = vars(guard).get("schemas", {}).get(name)
    call = ProposedCall(name, args, schema=schema, call_id=place.call_id, run=place.run)
    return call, execute


def _with_body(guard: ToolGuard, call: ProposedCall, execute: Execute, *, sent: Any) -> ToolGuard:
    """Give the guard with the one tool that is called, and another body in it."""

    async def body(**args: Any) -> Any:
        proposed = json.loads(sent) if isinstance(sent, str) else sent
        changed = any(args.get(name) != value for name, value in proposed.items())
        return await _value(execute(Effective(freeze_object(args), None, changed=changed)))

    tools = ToolSet([replace(guard.tools.get(call.tool), fn=body)])
    schemas = {} if call.schema is None else {call.tool: call.schema}
    return ToolGuard.with_tools(guard, tools, schemas=schemas)


class RunsOnDeny(_AroundTheDoors):
    """The body runs although the call is denied."""

    async def leave(self, done: GovernedCall, execute: Callable[[], Any]) -> GovernedCall:
        """Run it, and say that it was denied; what could not be read is nothing to run it with."""
        if done.outcome is Outcome.DENIED and done.result.code != "refused_arguments":
            await quietly(execute)
        return done


class RunsShadowAndTool(_AroundTheDoors):
    """The body runs after its preview."""

    async def leave(self, done: GovernedCall, execute: Callable[[], Any]) -> GovernedCall:
        """Run it, and show the preview."""
        if done.outcome is Outcome.PREVIEWED:
            await quietly(execute)
        return done


class RaisesDenials(_AroundTheDoors):
    """A denial is an exception and no answer."""

    async def leave(self, done: GovernedCall, execute: Callable[[], Any]) -> GovernedCall:
        """Raise it."""
        if done.outcome is Outcome.DENIED:
            raise PermissionError(done.text)
        return done


class IgnoresErroredRules(_AroundTheDoors):
    """A rule that errs is taken for one that does not match."""

    async def leave(self, done: GovernedCall, execute: Callable[[], Any]) -> GovernedCall:
        """Run the body after all."""
        if any(rule.startswith("<rule_error") for rule in done.decision.matched_rules):
            await quietly(execute)
        return done


class RunsTwice(_AroundTheDoors):
    """Each body runs twice."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Run it once for nothing."""

        async def twice(effective: Effective) -> Any:
            await quietly(lambda: execute(effective))
            return await _value(execute(effective))

        return call, _as_either(execute, twice)


class RewritesResults(_AroundTheDoors):
    """A result does not come through untouched."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Add to it."""

        async def rewritten(effective: Effective) -> Any:
            result = await _value(execute(effective))
            return f"{result} (checked)" if effective.args else result

        return call, _as_either(execute, rewritten)


class LosesTransforms(_AroundTheDoors):
    """The arguments that run are those that were proposed."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Forget what the policy wrote."""

        async def proposed(effective: Effective) -> Any:
            return await _value(execute(_as_proposed(call) if effective.changed else effective))

        return call, _as_either(execute, proposed)


class ExecutesOtherArguments(_AroundTheDoors):
    """The arguments that run are not those that were judged."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Put another value in place of each text."""

        async def other(effective: Effective) -> Any:
            args = {
                name: f"{value}!" if isinstance(value, str) else value
                for name, value in effective.args.items()
            }
            return await _value(execute(_effective(args) if args else effective))

        return call, _as_either(execute, other)


class ParsesLeniently(_AroundTheDoors):
    """Argument text is read as `json.loads` reads it."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Write out what a lenient parser made of it."""
        try:
            args = json.loads(call.arguments) if isinstance(call.arguments, str) else None
            return replace(call, arguments=json.dumps(args, allow_nan=False)), execute
        except ValueError:
            return call, execute


class IgnoresDefaults(_AroundTheDoors):
    """Arguments are judged as the model sent them."""

    def enter(self, call: ProposedCall, execute: Execute) -> tuple[ProposedCall, Execute]:
        """Know nothing of the tool's defaults."""
        schema, validate = _without_defaults(call.schema), call.validate
        if validate is None:
            return replace(call, schema=schema), execute

        def as_sent(args: FrozenDict) -> Admitted:
            whole = validate(args).args
            return Admitted(freeze_object({name: whole[name] for name in whole if name in args}))

        return replace(call, schema=schema, validate=as_sent), execute


class PreviewsWithTheBody(ToolGuard):
    """The body runs where its preview should."""

    def __init__(self, *, tools: ToolSet, shadows: Mapping[str, Any], **more: Any) -> None:
        super().__init__(
            tools=tools, shadows={name: tools.get(name).fn for name in shadows}, **more
        )


class SkipsObligations(ToolGuard):
    """What a rule obliges to is said to be done, and is not."""

    def __init__(self, *, obligations: Mapping[str, Any], **more: Any) -> None:
        super().__init__(obligations=dict.fromkeys(obligations, lambda *_: None), **more)


class HearsOneLayer(ToolGuard):
    """Of several layers only the first is heard."""

    def __init__(self, *, policy: Any, **more: Any) -> None:
        layers = getattr(policy, "layers", ())
        super().__init__(policy=layers[0][1] if layers else policy, **more)


class DropsTerminalEvents(ToolGuard):
    """The record lacks how calls end."""

    def __init__(self, *, sinks: Any, **more: Any) -> None:
        def dropping(sink: Callable[[AuditEvent], Any]) -> Callable[[AuditEvent], Any]:
            return lambda event: None if event.kind.startswith("action.") else sink(event)

        super().__init__(sinks=tuple(dropping(sink) for sink in sinks), **more)


class _AroundTheApprover(ToolGuard):
    """A guard whose approver is heard wrongly."""

    def __init__(self, *, on_approval: Any, **more: Any) -> None:
        heard = on_approval
        if callable(on_approval):

            async def heard(request: ApprovalRequest) -> Any:
                return await self.hear(request, on_approval)

        super().__init__(on_approval=heard, **more)

    async def hear(self, request: ApprovalRequest, approver: Any) -> Any:
        """Ask, and mistake the answer."""
        raise NotImplementedError


class TakesSilenceForGrant(_AroundTheApprover):
    """Nobody answers in time, and that grants."""

    async def hear(self, request: ApprovalRequest, approver: Any) -> Any:
        """Wait for less time than the guard does."""
        try:
            return await asyncio.wait_for(approver(request), 0.02)
        except TimeoutError:
            return ApprovalDecision(granted=True)


class TakesFailureForGrant(_AroundTheApprover):
    """The approver fails, and that grants."""

    async def hear(self, request: ApprovalRequest, approver: Any) -> Any:
        """Swallow what it raises."""
        try:
            return await approver(request)
        except RuntimeError:
            return ApprovalDecision(granted=True)


class TakesTrueForGrant(_AroundTheApprover):
    """The approver answers with a bare bool, and that grants."""

    async def hear(self, request: ApprovalRequest, approver: Any) -> Any:
        """Make a decision of it."""
        answer = await approver(request)
        return ApprovalDecision(granted=True) if answer is True else answer


class TakesGrantsAsStanding(_AroundTheApprover):
    """What was granted once is granted for good."""

    def __init__(self, **more: Any) -> None:
        self._standing: set[str] = set()
        super().__init__(**more)

    async def hear(self, request: ApprovalRequest, approver: Any) -> Any:
        """Ask about each tool once."""
        if request.request.tool in self._standing:
            return ApprovalDecision(granted=True)
        answer = await approver(request)
        if getattr(answer, "granted", None) is True:
            self._standing.add(request.request.tool)
        return answer


def _as_either(execute: Execute, wrong: Callable[[Effective], Coroutine[Any, Any, Any]]) -> Execute:
    """A wrong continuation that is plain where the right one is."""
    if inspect.iscoroutinefunction(execute):
        return wrong
    return lambda effective: at_once(wrong(effective))


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that has nothing to wait for, as it has not in plain code."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("a coroutine waited in plain code")


async def _value(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def quietly(execute: Callable[[], Any]) -> None:
    # The suite's own failing body is no fault of the guard.
    with contextlib.suppress(ValueError):
        await _value(execute())


def _effective(args: Mapping[str, Any]) -> Effective:
    return Effective(freeze_object(args), None, changed=True)


def _as_judged(done: GovernedCall) -> Effective:
    return _effective(done.decision.effective_args or done.request.args)


def _as_proposed(call: ProposedCall) -> Effective:
    arguments = call.arguments
    return _effective(json.loads(arguments) if isinstance(arguments, str) else arguments)


def _only(args: Mapping[str, Any], names: Mapping[str, Any]) -> FrozenDict:
    return freeze_object({name: value for name, value in args.items() if name in names})


def _without_defaults(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if schema is None:
        return None
    properties = {
        name: {key: value for key, value in about.items() if key != "default"}
        for name, about in schema.get("properties", {}).items()
    }
    return {**schema, "properties": properties}
