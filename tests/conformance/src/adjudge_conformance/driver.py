"""What the suite asks of a framework: to build an agent, run it, and say what came out.

A driver says nothing about verdicts, runs or texts: the suite reads those from its own tools, its
own sink and the wire. It must use its framework's real model client on `base_url`, and the same
code path with a guard and without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

from adjudge import ApprovalDecision, ToolGuard
from adjudge_conformance.tools import SuiteTool
from adjudge_conformance.wire import Api

__all__ = ["Agent", "Driver", "Gap", "GivenAnswer", "Outcome", "Scene", "Style"]

T = TypeVar("T")


class Style(StrEnum):
    """How a run is started: from plain or coroutine code, taken whole or as a stream."""

    SYNC = "sync"
    ASYNC = "async"
    SYNC_STREAM = "sync-stream"
    ASYNC_STREAM = "async-stream"

    @property
    def is_sync(self) -> bool:
        """Whether `run` is to use the framework's blocking entry point."""
        return self in (Style.SYNC, Style.SYNC_STREAM)

    @property
    def streamed(self) -> bool:
        """Whether `run` is to use the framework's streaming entry point."""
        return self in (Style.SYNC_STREAM, Style.ASYNC_STREAM)


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent to build. `name` is also the name of its model, by which its script is found.

    `helpers` are agents that the framework's own way of nesting offers to the model as tools.
    """

    name: str
    instructions: str
    tools: tuple[SuiteTool, ...]
    helpers: tuple[Agent, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """What a driver builds: an agent, the user's prompt, and the API that its client speaks.

    `caller`, unless it is None, is to be the framework's own context of the run, or in it; and the
    `context=` that the driver gives to `govern` answers with what it finds there, whatever that is.
    """

    agent: Agent
    prompt: str
    api: Api
    caller: Any = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    `final` is the framework's final value as text; `native` whatever the driver wants to find again
    in `save` and `transcript`. `paused` says that the run waits for a person. `raised` is filled in
    by the suite.
    """

    final: str | None = None
    native: Any = None
    paused: bool = False
    stream: tuple[str, ...] = ()
    raised: BaseException | None = None


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A person's answer to the pending call with this id, which is a call of `tool`."""

    call_id: str
    tool: str
    decision: ApprovalDecision


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a case cannot hold in a framework, and where upstream that is on record.

    A gap is strict: the suite fails when the case holds after all.
    """

    reason: str
    url: str


class Driver(ABC, Generic[T]):
    """One framework under test; `T` is what its `build` gives.

    `version` is the framework's, for the report. `gaps` maps the id of a case or cell, or a pattern
    such as `pause.*` or `*-chat`, to a `Gap`. `scrubs` maps a field of the wire or of the
    transcript that differs between two ungoverned runs to the reason. `helper_argument` names the
    argument in which a nested agent gets its question.
    """

    name: ClassVar[str]
    version: ClassVar[str] = ""
    styles: ClassVar[tuple[Style, ...]]
    apis: ClassVar[tuple[Api, ...]]
    gaps: ClassVar[Mapping[str, Gap]] = {}
    scrubs: ClassVar[Mapping[str, str]] = {}
    helper_argument: ClassVar[str] = "input"

    @abstractmethod
    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> T:
        """Make the framework's own objects, and govern them if there is a guard."""

    @abstractmethod
    def run(self, target: T, style: Style) -> Outcome:
        """Say the scene's prompt to the agent, in the framework's own loop; errors pass through."""

    @abstractmethod
    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the framework tells its user, as JSON: final value, usage, history, stream."""

    def save(self, outcome: Outcome) -> bytes:
        """Give a paused run as bytes, for another process."""
        raise NotImplementedError(f"{self.name} has no way to save a paused run")

    def resume(self, target: T, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with a saved run on a freshly built target.

        `answers` need not be all: a run in which somebody is still to answer is paused again.
        """
        raise NotImplementedError(f"{self.name} has no way to resume a paused run")

    def approve_natively(self, target: T, saved: bytes) -> Outcome:
        """Go on with a saved run after approving all of it in the framework's own words alone.

        Nobody has answered Adjudge, so this is what a client could do that holds the saved run.
        """
        raise NotImplementedError(f"{self.name} has no approval of its own")
