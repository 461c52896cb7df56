"""Which cases a fault can touch, and which of them show it: what `faults.py` says of its faults.

A fault has an occasion in a case where what it does wrong is to be done at all. A predicate that is
about what is compared besides has a case's expectation in view, and not the guard.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from adjudge_conformance._results import RESULTS
from adjudge_conformance.case import Case

__all__ = [
    "asks",
    "comes_again",
    "denied_after_parsing",
    "denies",
    "ends",
    "ends_in_an_action",
    "has_a_caller",
    "has_layers",
    "has_odd_text",
    "is_answered",
    "is_one_of",
    "is_the_frameworks",
    "is_transparent",
    "leaves_out_arguments",
    "may_answer_a_raise",
    "may_deny",
    "obliges",
    "pauses",
    "pauses_and",
    "previews",
    "returns",
    "rewrites",
    "runs",
    "runs_any_body",
    "runs_with_texts",
]


def is_one_of(*ids: str) -> Callable[[Case], bool]:
    """The cases with these ids."""
    return lambda case: case.id in ids


def ends(*kinds: str) -> Callable[[Case], bool]:
    """Cases in which some call ends so."""
    return lambda case: any(expect.events[-1] in kinds for expect in case.expect)


def is_transparent(case: Case) -> bool:
    """Cases that compare what the model is offered, and every byte besides."""
    return case.kind == "transparent"


def is_the_frameworks(case: Case) -> bool:
    """Cases in which it is the framework's affair what runs."""
    return case.kind == "transparent" and case.runs is None


def _is_compared(case: Case) -> bool:
    """Whether more than what ran is compared: in odd resumptions the rest is left open."""
    return case.resumption in ("once", "again")


def ends_in_an_action(case: Case) -> bool:
    """Cases in which it shows that a call has ended."""
    endings = [expect.events[-1] for expect in case.expect]
    turned_away = any(expect.turned_away for expect in case.expect)
    return _is_compared(case) and (turned_away or any(e.startswith("action.") for e in endings))


def denies(case: Case) -> bool:
    """Cases in which a call is denied, be it because it had its turn before."""
    turned_away = case.resumption in ("again", "at once") or any(
        expect.turned_away for expect in case.expect
    )
    return turned_away or ends("action.denied", "approval.expired")(case)


def may_deny(case: Case) -> bool:
    """Cases in which it is the framework's affair whether a call is denied or waits again."""
    return is_the_frameworks(case) or case.resumption in ("natively", "tampered")


def may_answer_a_raise(case: Case) -> bool:
    """Cases in which a framework may make a tool's failure of a raised denial, unseen."""
    return may_deny(case) or case.resumption in ("again", "at once")


def denied_after_parsing(case: Case) -> bool:
    """Cases in which a call is denied that there are arguments to run with."""
    return denies(case) and not case.id.startswith("arguments.")


def runs(case: Case) -> bool:
    """Cases in which a body runs through a door of the guard."""
    if case.kind == "transparent":
        return bool(case.runs)
    return any(each.runs for each in case.expect)


def runs_any_body(case: Case) -> bool:
    """Cases in which a body runs, or the agent that is one."""
    return runs(case) or bool(case.helper)


def returns(case: Case) -> bool:
    """Cases in which it shows what a body returned."""
    return runs(case) and _is_compared(case) and not {"boom", "leave"} & {*case.tools}


def runs_with_texts(case: Case) -> bool:
    """Cases in which a body runs that has a text among its arguments."""
    return runs(case) and not {"label_notes", "leave"} & {*case.tools}


def has_odd_text(case: Case) -> bool:
    """Cases with argument text that two parsers may read in two ways."""
    return any(call.text is not None for call in case.calls)


def leaves_out_arguments(case: Case) -> bool:
    """Cases in which a tool's own defaults may stand in for what is not sent, or is taken out."""
    return (
        has_odd_text(case)
        or _transforms(case)
        or any(_arguments_of(call.tool) - (call.args or {}).keys() for call in case.calls)
    )


def _arguments_of(tool: str) -> set[str]:
    return set(inspect.signature(RESULTS[tool]).parameters) if tool in RESULTS else set()


def pauses(case: Case) -> bool:
    """Cases in which a run waits for a person and goes on in another process."""
    return case.kind == "pause"


def pauses_and(also: Callable[[Case], bool]) -> Callable[[Case], bool]:
    """Cases that pause, of these."""
    return lambda case: pauses(case) and also(case)


def comes_again(case: Case) -> bool:
    """Cases in which a call that waited may come to the guard more than once afterwards."""
    several = sum("approval.pending" in expect.events for expect in case.expect) > 1
    return pauses(case) and (case.resumption != "once" or case.rounds > 1 or several)


def is_answered(how: str) -> Callable[[Case], bool]:
    """Cases in which the approver does so."""
    return lambda case: any(answer.does == how for answer in case.answers)


def rewrites(case: Case) -> bool:
    """Cases in which a call is not to run with the arguments that were proposed."""
    return is_answered("edit")(case) or _transforms(case)


def _transforms(case: Case) -> bool:
    policies = [case.policy, case.resume_policy, *case.layers]
    return any("transform" in rule for rule in _rules_of(*policies))


def _rules_of(*policies: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [rule for policy in policies if policy for rule in policy.get("rules", ())]


def asks(case: Case) -> bool:
    """Cases in which the approver is asked while the call waits."""
    return any(expect.asked for expect in case.expect)


def previews(case: Case) -> bool:
    """Cases in which a call is only to be previewed."""
    return any(expect.verdict == "dry_run" or expect.shadows for expect in case.expect)


def obliges(case: Case) -> bool:
    """Cases in which a rule obliges to something."""
    return any("obligations" in rule for rule in _rules_of(case.policy))


def has_layers(case: Case) -> bool:
    """Cases with several policies."""
    return bool(case.layers)


def has_a_caller(case: Case) -> bool:
    """Cases in which the run says who is calling."""
    return case.caller is not None
