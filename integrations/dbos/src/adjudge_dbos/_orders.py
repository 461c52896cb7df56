"""What a workflow is given, and what a worker makes of it.

A `RunOrder` is plain JSON, so that nothing is pickled and every process can place one; it names an
agent and holds no code. What that name stands for is each worker's own: a function that gives an
`AgentSetup`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge import (
    AdjudgeError,
    CallContext,
    Cancelled,
    Executor,
    LayeredPolicyBundle,
    PolicyBundle,
    Principal,
    Redactor,
    Sink,
    ToolSet,
)
from adjudge_runtime import Agent, Budget, Compressor

__all__ = ["AgentSetup", "Build", "OrderError", "RunOrder"]

_FIELDS = {"agent", "task", "run_id", "principal"}
_ANYBODY = Principal("user", "anonymous")
_KINDS = ("user", "service", "agent")


class OrderError(AdjudgeError):
    """An order of a run that is none."""

    code = "bad_order"


@dataclass(frozen=True, slots=True)
class RunOrder:
    """One run of an agent: which agent, on which task, for whom.

    `run_id` is the id of the workflow and of the journal: the same in every attempt, and different
    for every run. Raises `OrderError` for what is no order.
    """

    agent: str
    task: str
    run_id: str
    principal: Principal = _ANYBODY

    def __post_init__(self) -> None:
        for name in ("agent", "task", "run_id"):
            _check_text(name, getattr(self, name))
        if not self.agent or not self.run_id.strip():
            empty = "run_id" if self.agent else "agent"
            raise OrderError(f"The order's {empty} is empty; give it a name.")
        who = self.principal
        if not isinstance(who, Principal):
            raise OrderError(f"The order's principal is {who!r}; give a Principal.")
        _check_text("principal.id", who.id)
        if who.name is not None:
            _check_text("principal.name", who.name)
        if who.kind not in _KINDS:
            raise OrderError(
                f"The order's principal.kind is {who.kind!r}; give one of {', '.join(_KINDS)}."
            )

    def to_json(self) -> dict[str, Any]:
        """Give the order as the JSON object that the workflow gets."""
        who = self.principal
        return {
            "agent": self.agent,
            "task": self.task,
            "run_id": self.run_id,
            "principal": {"kind": who.kind, "id": who.id, "name": who.name},
        }

    @classmethod
    def from_json(cls, value: object) -> RunOrder:
        """Read an order that anybody may have placed; raises `OrderError` for what is none."""
        fields = _object("order", value, _FIELDS)
        who = _object("principal", fields["principal"], {"kind", "id", "name"})
        kind = who["kind"]
        if kind not in _KINDS:
            raise OrderError(
                f"The order's principal.kind is {kind!r}; give one of {', '.join(_KINDS)}."
            )
        principal = Principal(kind, who["id"], who["name"])
        return cls(fields["agent"], fields["task"], fields["run_id"], principal)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """All that a worker needs to carry on a run; the fields are the keywords of `run_agent`.

    Approvals, the journal and the run's id are not among them: they are those of the workflow. The
    agent must depend on the conversation alone, because another worker may go on with its run.
    """

    agent: Agent
    tools: ToolSet
    policy: PolicyBundle | LayeredPolicyBundle
    budget: Budget = Budget()  # noqa: RUF009  (a frozen value)
    sinks: Iterable[Sink] = ()
    environment: str | None = None
    workspace: str = "."
    executor: Executor | None = None
    compressor: Compressor | None = None
    cancel: Cancelled | None = None
    obligations: Mapping[str, Any] | None = None
    redact: Redactor | None = None
    shadows: Mapping[str, Callable[..., Any]] | None = None
    context: Callable[[], CallContext | Awaitable[CallContext]] | None = None


Build = Callable[[RunOrder], AgentSetup | Awaitable[AgentSetup]]
"""How a worker sets an agent up for a run; it is called anew for every attempt."""


def _object(name: str, value: object, fields: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise OrderError(f"The {name} is a {type(value).__name__}; give a JSON object.")
    odd = sorted(str(key) for key in value.keys() ^ fields)
    if odd:
        raise OrderError(
            f"The {name}'s field {odd[0]!r} is missing or unknown; give exactly "
            f"{', '.join(sorted(fields))}."
        )
    return value


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise OrderError(f"The order's {name} is {value!r}; give a text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OrderError(f"The order's {name} is no Unicode; leave lone surrogates out.") from None
    # PostgreSQL keeps no NUL in a text.
    if "\0" in value:
        raise OrderError(f"The order's {name} holds a NUL; leave it out.")
