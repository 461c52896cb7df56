"""What a framework proposes, and what its continuation gets: the values on both sides of the door.

Reading happens once and strictly; nothing here decides anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from adjudge._arguments.parsing import parse_arguments
from adjudge._arguments.schema import normalise
from adjudge._types import ToolMetadata
from adjudge._values import FrozenDict, freeze_object, thaw
from adjudge.errors import ArgumentsRefused

if TYPE_CHECKING:
    from adjudge._enforcement.runs import GovernedRun

__all__ = [
    "Admitted",
    "Effective",
    "InvalidArguments",
    "ProposedCall",
    "Replay",
    "fitted",
    "json_text",
    "read_arguments",
]


class InvalidArguments(Exception):
    """Arguments that the tool does not take: they get no verdict, and the body does not run."""


@dataclass(slots=True)
class Admitted:
    """Arguments that were read, to be judged; `given` names what the model sent, None: all."""

    args: FrozenDict
    given: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """How what a body gave is kept, for a framework that proposes finished calls again.

    `keep` gives a body's value, or the exception that it raised, as a JSON object; None says that
    it is not to be given again. `give` gives the value back, or raises as the body did.
    """

    keep: Callable[[object], Mapping[str, Any] | None]
    give: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One tool call as a framework hands it over.

    `arguments` is the model's own text or values that the framework has parsed. `schema` is the
    tool's JSON Schema, where the framework does not hand over validated values;
    `schema_is_enforced` vouches that the continuation itself validates against it before the body.
    `given` names what the model itself sent, None where the arguments say it. `injected` is what
    the framework adds, never part of the arguments. `attempt` counts the framework's own repeats of
    one call from 1. `key` names the call across processes (`ledger_key`), so that what is asked
    about it is asked about this call; None where one guard sees it through. `control_flow` lists
    the exception types by which the framework suspends a run. `routes_isolation` vouches that the
    continuation runs the body under the isolation that the tool declares. `shadow` previews the
    tool. `validate` stands in for the schema where the integration can run the framework's own
    validation: it gives the arguments as the body gets them, and raises `InvalidArguments` for
    those that the framework rejects. `rejects_invalid_text` vouches that the continuation itself
    rejects text that is no JSON object; where it is False such text is refused.

    `run` is the run of a framework that can pause, in which `agent` (the agent's name) and `parent`
    (the call ids of the calls inside of whose bodies this one was proposed) tell calls apart that
    look the same. `may_pause` False says that the framework cannot leave the call waiting at this
    point: what needs a person is then denied, unless `ToolGuard.pause_call` has asked before.
    `replay` says that the framework starts its run over when it goes on, so that a call of the run
    that has finished is proposed again: it is then answered out of the ledger and runs nothing. Of
    those that finished without anything kept, one whose body raised is a new attempt, and any other
    is denied.
    """

    tool: str
    arguments: str | Mapping[str, Any]
    _: KW_ONLY
    namespace: str | None = None
    call_id: str | None = None
    schema: Mapping[str, Any] | None = None
    schema_is_enforced: bool = False
    given: frozenset[str] | None = None
    injected: Mapping[str, Any] = field(default_factory=FrozenDict)
    declared: ToolMetadata | None = None
    attempt: int = 1
    key: str | None = None
    control_flow: tuple[type[BaseException], ...] = ()
    routes_isolation: bool = False
    shadow: Callable[..., Any] | None = None
    validate: Callable[[FrozenDict], Admitted] | None = None
    rejects_invalid_text: bool = True
    run: GovernedRun | None = None
    agent: str | None = None
    parent: str | None = None
    may_pause: bool = True
    replay: Replay | None = None


class Effective:
    """The arguments that the body shall get, in the form that the framework needs."""

    __slots__ = ("_args", "_frozen", "_text", "changed")

    def __init__(self, frozen: FrozenDict, text: str | None, *, changed: bool) -> None:
        self._frozen = frozen
        self._text = text
        self._args: dict[str, Any] | None = None
        self.changed = changed
        """Whether a transform or an edit made them differ from what was proposed."""

    @property
    def args(self) -> dict[str, Any]:
        """Fresh plain dicts and lists, this object's own."""
        if self._args is None:
            self._args = thaw(self._frozen)
        return self._args

    @property
    def text(self) -> str:
        """The framework's own text where nothing changed, else JSON."""
        if self._text is None:
            self._text = json_text(self._frozen)
        return self._text

    def __repr__(self) -> str:
        return f"Effective(args={self._frozen!r}, changed={self.changed})"


def json_text(args: FrozenDict) -> str:
    """Write arguments as JSON; what JSON cannot carry exactly raises `ArgumentsRefused`."""
    try:
        return json.dumps(args, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise ArgumentsRefused(
            "args holds a Decimal or a secret, which JSON text cannot carry exactly."
        ) from None


def read_arguments(arguments: str | Mapping[str, Any]) -> FrozenDict:
    """Read a model's text, or freeze values; raises `ArgumentsRefused` or `NotAnObject`."""
    return parse_arguments(arguments) if isinstance(arguments, str) else freeze_object(arguments)


def fitted(schema: Mapping[str, Any], args: FrozenDict, *, coerce: bool = True) -> FrozenDict:
    """Give arguments as a tool of that schema gets them, or raise `InvalidArguments`."""
    found = normalise(schema, args, coerce=coerce)
    if found.problems:
        raise InvalidArguments(found.problems[0])
    return found.args
