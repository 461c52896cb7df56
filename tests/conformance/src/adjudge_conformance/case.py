"""A case as data: the policy, what the model proposes, and the one thing that must then be seen.

Cases stand in `cases/*.json`, a file for each topic. The models here check them and give their JSON
Schema (`cases/schema.json`). A case has one expectation, the same for every framework; what the
framework itself would say is never part of it (the transparent cases compare that with itself).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adjudge_conformance.tools import SIBLING, TOOL_NAMES

__all__ = [
    "Answer",
    "Caller",
    "Case",
    "CaseFile",
    "Expected",
    "Proposal",
    "Verdict",
    "by_id",
    "load_cases",
    "schema",
]

Verdict = Literal["allow", "deny", "dry_run", "approve_required", "transform"]
_Case_id = Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Proposal(_Model):
    """One call that the model proposes.

    `text` is argument text to be sent verbatim, for what no JSON value can say; else `args` is
    sent. `id` fixes the call's id. `to_helper` makes it a question to the nested agent instead of a
    tool.
    """

    tool: str = ""
    args: dict[str, Any] | None = None
    text: str | None = None
    id: str | None = None
    to_helper: str | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        said = [self.args is not None, self.text is not None, self.to_helper is not None]
        if said.count(True) != 1 or bool(self.tool) == (self.to_helper is not None):
            raise ValueError(
                "a proposal has a tool with either args or text, or else to_helper alone"
            )
        return self

    @property
    def argument_text(self) -> str:
        """The argument text as the model writes it."""
        return self.text if self.text is not None else json.dumps(self.args or {})


class Expected(_Model):
    """What must be seen of one proposed call.

    `verdict` is the last on record, None where the call is never judged. `args` are what body,
    shadow and approver get (default: as proposed). `sees` is the exact text that the model is told;
    None means the tool's own result where the body ran, and the framework's own words where it did
    not. `events` are the kinds on record in order, `code` is on the terminal one. `asked` counts
    the questions to the approver. `obligations` are those that ran, each with `before` or `after`
    for whether the body had started: `note before`. `turned_away` is the code with which somebody
    was denied who is not to go on with the call; the call itself waits on.
    """

    verdict: Verdict | None
    runs: int = 0
    shadows: int = 0
    args: dict[str, Any] | None = None
    sees: str | None = None
    events: tuple[str, ...]
    code: str | None = None
    asked: int = 0
    asked_args: dict[str, Any] | None = None
    obligations: tuple[str, ...] = ()
    turned_away: str | None = None


class Answer(_Model):
    """What the approver does, once, when asked about a call of `tool` with the arguments `when`.

    Without `when` it is about any call of the tool. `args` are the arguments of an `edit`. `hang`
    never answers, `raise` fails, `true` returns the bool instead of an `ApprovalDecision`.
    `approver` is who answers where a run was paused. `round` is the resumption of a paused run with
    which it is given: the run waits again between rounds.
    """

    tool: str
    does: Literal["grant", "refuse", "hang", "raise", "true", "edit"]
    reason: str = ""
    when: dict[str, Any] = {}
    args: dict[str, Any] | None = None
    approver: str = "ana"
    round: int = 1

    def is_about(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether it is the answer to a question about such a call."""
        return tool == self.tool and all(args.get(k) == self.when[k] for k in self.when)


class Caller(_Model):
    """Who is calling, as the framework's own run context holds it."""

    id: str
    environment: str | None = None
    extra: dict[str, Any] = {}


class Case(_Model):
    """One case; its id is words, its `says` a sentence that states the behaviour as fact.

    `verdict` cases run once. `pause` cases start in one process and are resumed in another, where
    `resume_policy` and `resume_caller` may stand in for the policy and the caller. `resumption`
    says how: `again` resumes the same saved bytes a second time, and `at once` in two processes at
    the same time, where only one may start bodies; `natively` first approves in the framework's own
    words alone, and `tampered` first resumes bytes in which the texts of `tampers` were replaced,
    neither of which may start any. `transparent` cases have no policy: an ungoverned
    run is compared with one under a policy that allows everything.

    `layers` are policies that stand beside `policy`, with no means to loosen it. `caller` is who
    calls, `unknown` if the run's context cannot say; without it the guard's own principal does.

    `proposes` are the turns of the main agent, `helper` those of an agent nested in it. `expect`
    has one entry for each proposed call that is not `to_helper`, the main agent's first. `ends` is
    `framework` where a run may end in the framework's own error. `runs` is the number of bodies
    that a transparent case starts, None where that is the framework's affair. `varies` lists what
    the suite may vary: `parallel` puts an unrelated call beside each one. `only` restricts the
    styles.
    """

    id: _Case_id
    says: str
    clause: str
    kind: Literal["verdict", "pause", "transparent"] = "verdict"
    policy: dict[str, Any] | None = None
    layers: tuple[dict[str, Any], ...] = ()
    caller: Caller | Literal["unknown"] | None = None
    resume_policy: dict[str, Any] | None = None
    resume_caller: Caller | None = None
    resumption: Literal["once", "again", "at once", "natively", "tampered"] = "once"
    tampers: dict[str, str] = {}
    tools: tuple[str, ...]
    proposes: tuple[tuple[Proposal, ...], ...]
    helper: tuple[tuple[Proposal, ...], ...] = ()
    final: str = "All done."
    bodies: Literal["as style", "def"] = "as style"
    answers: tuple[Answer, ...] = ()
    expect: tuple[Expected, ...] = ()
    ends: Literal["final text", "framework"] = "final text"
    runs: int | None = None
    varies: tuple[Literal["parallel"], ...] = ("parallel",)
    only: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "transparent":
            if self.policy or self.expect or self.answers:
                raise ValueError(f"{self.id}: a transparent case has no policy, expect or answers")
        elif self.policy is None or len(self.expect) != len(self.calls):
            raise ValueError(
                f"{self.id}: a {self.kind} case has a policy, and one expectation for each of its "
                f"{len(self.calls)} calls"
            )
        if (self.kind != "pause" and self.resumption != "once") or (
            (self.resumption == "tampered") is not bool(self.tampers)
        ):
            raise ValueError(f"{self.id}: only a paused run is resumed, and tampers are for one")
        unknown = set(self.tools) - set(TOOL_NAMES)
        if unknown or SIBLING in self.tools:
            raise ValueError(f"{self.id}: tools may be those of the suite but {SIBLING}: {unknown}")
        return self

    @property
    def calls(self) -> tuple[Proposal, ...]:
        """Every proposed call of a tool, the main agent's first, in order."""
        turns = (*self.proposes, *self.helper)
        return tuple(call for turn in turns for call in turn if call.to_helper is None)

    @property
    def rounds(self) -> int:
        """How often a paused run is resumed, each time with the answers of that round."""
        return max((answer.round for answer in self.answers), default=1)


class CaseFile(_Model):
    """A file of cases on one topic."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Adjudge conformance cases")

    topic: str
    cases: tuple[Case, ...]


def load_cases() -> tuple[Case, ...]:
    """Read the suite's cases, in the order of their files; a repeated id raises `ValueError`."""
    folder = resources.files("adjudge_conformance") / "cases"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")),
        key=lambda file: file.name,
    )
    return by_id(
        case
        for file in files
        if file.name != "schema.json"
        for case in CaseFile.model_validate_json(file.read_text(encoding="utf-8")).cases
    )


def by_id(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Give the cases as they come; a repeated id raises `ValueError`."""
    seen: dict[str, Case] = {}
    for case in cases:
        if case.id in seen:
            raise ValueError(f"two cases are called {case.id}; a case cannot be redefined")
        seen[case.id] = case
    return tuple(seen.values())


def schema() -> Mapping[str, Any]:
    """Give the JSON Schema of a file of cases."""
    return CaseFile.model_json_schema()
