"""The calls of a recorded log, as they were judged, with what the record does not say of them.

The events of one call are paired, across files, and give the request, the verdict, who was asked
and how it ended. What was redacted, or was never recorded, is *unknown*: it is listed, and nothing
is made up in its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, NamedTuple

from adjudge._record.secrets import REDACTED
from adjudge._types import (
    ActionRequest,
    ExecutionContext,
    Outcome,
    Principal,
    ToolMetadata,
    Verdict,
)
from adjudge._values import EMPTY, FrozenDict, FrozenList, OpaqueValue, freeze_object
from adjudge.analysis._recorded.log_files import Event, LogFile, Progress, open_logs
from adjudge.errors import ArgumentsRefused

__all__ = ["UNSAID", "Place", "RecordedCall", "RecordedLog", "Steps", "read_log"]

Steps = tuple[str | int, ...]
"""A place in a request: a root such as `args`, and keys and indexes below it."""

UNSAID: tuple[Steps, ...] = (
    *((root,) for root in ("declared", "given", "injected")),
    *(("context", name) for name in ("timestamp", "workspace", "extra", "labels", "history")),
    *(("context", name) for name in ("counts", "sums", "user_prompt", "trusted")),
)
"""What a record may leave out altogether, and the time to the millisecond."""

_NOBODY = Principal("user", "unknown")
_THEN = datetime(1970, 1, 1, tzinfo=UTC)
_TERMINAL: Mapping[str, Outcome] = MappingProxyType(
    {f"action.{outcome.value}": outcome for outcome in Outcome}
    | {"approval.expired": Outcome.DENIED}
)
_OPEN = (Outcome.PENDING, Outcome.SUSPENDED)


class Place(NamedTuple):
    """Where a call begins in the log."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One judgment of one call.

    `request` has an `OpaqueValue` wherever `unknown` names a place in its arguments; other places
    in `unknown` are left as if nobody had supplied them. `verdict` is None where the call was never
    judged, and `code` then says why. `rules` are those that decided. `final_args` are the arguments
    after a transform or an edit, None where they are as proposed. `edited` says that a person
    edited the arguments that were judged. `asked` has the approver sets that were asked. `outcome`
    is None for a call that has not ended.
    """

    place: Place
    bundle_id: str
    request: ActionRequest
    unknown: tuple[Steps, ...]
    verdict: Verdict | None
    reason: str = ""
    rules: tuple[str, ...] = ()
    final_args: Mapping[str, Any] | None = None
    edited: bool = False
    asked: tuple[tuple[str, ...], ...] = ()
    outcome: Outcome | None = None
    code: str = ""


@dataclass(slots=True)
class _Open:
    """A call whose events are still coming in."""

    proposal: Event
    judgment: Event | None = None
    edits: list[Event] = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    outcome: Outcome | None = None
    code: str = ""


class RecordedLog:
    """The calls of some log files, read anew from the files each time they are asked for."""

    def __init__(self, files: Sequence[LogFile], progress: Progress | None = None) -> None:
        self.files = tuple(files)
        self._progress = progress

    def __iter__(self) -> Iterator[RecordedCall]:
        """Give each judged call, and each that was refused before it was judged.

        They come as they end; those that have not ended come last.
        """
        opened: dict[tuple[str, int], _Open] = {}
        for event in self._events():
            key = (event.correlation_id, event.seq)
            if event.kind == "step.proposed":
                # A guard that was started anew under the same name counts from the start again.
                before = opened.pop(key, None)
                if before is not None:
                    yield from _calls_of(before)
                opened[key] = _Open(event)
                continue
            call = opened.get(key)
            if call is not None and _take(call, event):
                yield from _calls_of(opened.pop(key))
        for call in opened.values():
            yield from _calls_of(call)

    def _events(self) -> Iterator[Event]:
        total, before = sum(file.size for file in self.files), 0
        for file in self.files:
            yield from file.events(self._reporter(before, total))
            before += file.size
        if self._progress is not None:
            self._progress(total, total)

    def _reporter(self, before: int, total: int) -> Callable[[int], None] | None:
        progress = self._progress
        return None if progress is None else lambda read: progress(before + read, total)


def read_log(
    *paths: str | os.PathLike[str], allow_broken: bool = False, progress: Progress | None = None
) -> RecordedLog:
    """Open a log of one or several files, in the order in which they were written.

    A hash-chained file is verified first; a broken one raises `RecordError` unless `allow_broken`.
    One path of a rotated record stands for all its files; none is read twice. `progress` is told
    the bytes read and their total.
    """
    return RecordedLog(open_logs(paths, allow_broken=allow_broken), progress)


def _take(call: _Open, event: Event) -> bool:
    """Take up an event of a call; True where the call has ended with it."""
    body = event.body
    if event.kind == "policy.evaluated":
        if body.get("phase") == "edit":
            call.edits.append(event)
        elif call.judgment is None:
            call.judgment = event
    elif event.kind == "approval.requested":
        names = body.get("approvers")
        call.asked.append(tuple(map(str, names)) if isinstance(names, list) else ())
    elif event.kind in _TERMINAL and body.get("phase") != "resume":
        # An attempt to resume that was turned away takes nothing from the call's own end.
        call.outcome = _TERMINAL[event.kind]
        call.code = str(body.get("code", ""))
        return call.outcome not in _OPEN
    return False


def _calls_of(call: _Open) -> Iterator[RecordedCall]:
    reader = _Reader(call.proposal, call.judgment)
    request = reader.request()
    own = RecordedCall(
        place=Place(call.proposal.file, call.proposal.line),
        bundle_id=(call.judgment or call.proposal).bundle_id,
        request=request,
        unknown=tuple(reader.unknown),
        verdict=None,
        asked=tuple(call.asked),
        outcome=call.outcome,
        code=call.code,
    )
    if call.judgment is None:
        yield own
        return
    yield _judged(own, call.judgment, reader)
    for edit in call.edits:
        again = _Reader(call.proposal, edit)
        edited = again.request()
        about = replace(own, request=edited, unknown=tuple(again.unknown), edited=True)
        yield _judged(about, edit, again)


def _judged(call: RecordedCall, judgment: Event, reader: _Reader) -> RecordedCall:
    body = judgment.body
    final = None
    if not call.edited and "effective_args" in body:
        final = reader.decoded(body["effective_args"], ("final_args",))
    rules = body.get("matched_rules")
    return replace(
        call,
        unknown=tuple(reader.unknown),
        verdict=Verdict(body["verdict"]),
        reason=str(body.get("reason", "")),
        rules=tuple(map(str, rules)) if isinstance(rules, list) else (),
        final_args=final if isinstance(final, Mapping) else None,
    )


class _Reader:
    """Makes the request out of a proposal and a judgment, and notes what they do not say."""

    def __init__(self, proposal: Event, judgment: Event | None) -> None:
        self._proposal = proposal
        self._judgment = judgment
        self.unknown: list[Steps] = []

    def request(self) -> ActionRequest:
        body = self._proposal.body
        about: Mapping[str, Any] = {} if self._judgment is None else self._judgment.body
        edited = about.get("phase") == "edit"
        args = self._arguments(about.get("effective_args") if edited else body.get("args"))
        if "declared" not in body:
            # An event that says what the tool declares says all the rest as well.
            self.unknown += UNSAID
        else:
            self.unknown.append(("context", "timestamp"))
        if "resolved" not in about and "declared" not in body:
            self.unknown.append(("resolved",))
        return ActionRequest(
            tool=str(body.get("tool", "")),
            args=args,
            declared=self._declared(body.get("declared")),
            context=self._context(body, about),
            namespace=_text_or_none(body.get("namespace")),
            given=_names(body.get("given")),
            injected=self._object(body.get("injected"), ("injected",)),
            resolved=_texts(about.get("resolved")),
        )

    def _arguments(self, recorded: Any) -> FrozenDict:
        if not isinstance(recorded, Mapping):
            self.unknown.append(("args",))
            return EMPTY
        return self._object(recorded, ("args",))

    def _context(self, body: Mapping[str, Any], about: Mapping[str, Any]) -> ExecutionContext:
        if self._judgment is None or "environment" not in about:
            self.unknown.append(("context", "environment"))
        session = body.get("session")
        return ExecutionContext(
            principal=self._principal(body.get("principal")),
            environment=_text_or_none(about.get("environment")),
            workspace=str(body.get("workspace", ".")),
            correlation_id=self._proposal.correlation_id,
            step_seq=self._proposal.seq,
            timestamp=_time_of(self._proposal.timestamp),
            extra=self._object(body.get("extra"), ("context", "extra")),
            session=session if session is None else self._object(session, ("context",)),
        )

    def _principal(self, recorded: Any) -> Principal:
        if not isinstance(recorded, Mapping) or recorded.get("kind") not in (
            "user",
            "service",
            "agent",
        ):
            self.unknown.append(("context", "principal"))
            return _NOBODY
        name = _text_or_none(recorded.get("name"))
        who = Principal(recorded["kind"], str(recorded.get("id", "")), name)
        for part, value in (("id", who.id), ("name", who.name or "")):
            if REDACTED in value:
                self.unknown.append(("context", "principal", part))
        return who

    def _declared(self, recorded: Any) -> ToolMetadata | None:
        if not isinstance(recorded, Mapping):
            return None
        said: dict[str, Any] = {}
        for name in (each for each in ToolMetadata.__slots__ if each in recorded):
            before = len(self.unknown)
            value = self.decoded(recorded[name], ("declared", name))
            if len(self.unknown) == before:
                said[name] = tuple(value) if isinstance(value, list) else value
        return ToolMetadata(**said)

    def _object(self, recorded: Any, where: Steps) -> FrozenDict:
        if not isinstance(recorded, Mapping):
            return EMPTY
        value = self.decoded(recorded, where)
        return value if isinstance(value, FrozenDict) else EMPTY

    def decoded(self, recorded: Any, where: Steps) -> Any:
        """Give a recorded value as it was, with an `OpaqueValue` for what cannot be known."""
        try:
            plain = self._decoded(recorded, where)
        except RecursionError:
            return self._redacted(where)
        if isinstance(plain, Mapping):
            try:
                return freeze_object(plain)
            except ArgumentsRefused:
                self.unknown.append(where)
                return EMPTY
        return plain

    def _decoded(self, value: Any, where: Steps) -> Any:
        if isinstance(value, str):
            return self._redacted(where) if REDACTED in value else value
        if isinstance(value, list):
            return FrozenList(self._decoded(item, (*where, i)) for i, item in enumerate(value))
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            key, inner = next(iter(value.items()))
            if key.startswith("$") and not key.startswith("$$"):
                return self._tagged(key, inner, where)
        return {
            (plain := key.removeprefix("$")): self._decoded(item, (*where, plain))
            for key, item in value.items()
        }

    def _tagged(self, key: str, inner: Any, where: Steps) -> Any:
        if key == "$secret":
            return OpaqueValue()  # It was judged as this, so it is known.
        if key == "$decimal" and isinstance(inner, str):
            try:
                return Decimal(inner)
            except InvalidOperation:
                pass
        return self._redacted(where)

    def _redacted(self, where: Steps) -> OpaqueValue:
        self.unknown.append(where)
        return OpaqueValue()


def _time_of(text: str) -> datetime:
    """Give when the call was proposed; a policy may have seen it some microseconds earlier."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _THEN


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _names(recorded: Any) -> frozenset[str] | None:
    if not isinstance(recorded, Mapping):
        return None
    return frozenset(name.removeprefix("$") for name in recorded)


def _texts(recorded: Any) -> FrozenDict:
    """Give resolved paths by their text, without what was redacted."""
    if not isinstance(recorded, Mapping):
        return EMPTY
    return FrozenDict(
        {
            text.removeprefix("$"): path
            for text, path in recorded.items()
            if isinstance(path, str) and REDACTED not in path
        }
    )
