"""What a kernel refuses before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge import RunStore, SessionStore, ToolGuard, ToolSet
from adjudge_runtime.kernel._sessions import SessionSnapshot

__all__ = ["check_answer", "check_settings", "check_texts"]


def check_answer(now: SessionSnapshot, resume_answer: str | None) -> None:
    """Hold an answer against the question that a session waits with."""
    asked = now.pending_question
    if asked is not None and resume_answer is None:
        raise ValueError(
            f"The session {now.session_id!r} waits with the question {asked!r}; "
            "give run(..., resume_answer=...)."
        )
    if resume_answer is None:
        return
    if asked is None:
        raise ValueError(f"The session {now.session_id!r} asked nothing; leave resume_answer out.")
    if not isinstance(resume_answer, str):
        raise TypeError(f"resume_answer is {resume_answer!r}; give a string.")


def check_texts(**texts: object) -> None:
    """Raise `ValueError` for a text that is none, or empty."""
    for name, value in texts.items():
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} is {value!r}; give a string that is not empty.")


def check_settings(
    guard: object,
    tools: object,
    store: SessionStore,
    chain: RunStore,
    tool_costs: Mapping[str, int] | None,
) -> None:
    """Raise `TypeError` or `ValueError` for what cannot make a kernel."""
    if not isinstance(guard, ToolGuard):
        raise TypeError(f"guard is {guard!r}; give a ToolGuard, the only way to a tool.")
    if not isinstance(tools, ToolSet):
        raise TypeError(f"tools is {tools!r}; give ToolSet.from_functions(...).")
    if store.durable != chain.durable:
        raise ValueError(
            "One of store and chain outlives the process and the other does not; give "
            "SQLiteSessionStore(path) and SQLiteRunStore(path), or both in memory."
        )
    for name, cost in (tool_costs or {}).items():
        if type(cost) is not int or cost < 0:
            raise ValueError(f"tool_costs[{name!r}] is {cost!r}; give millionths, from 0.")
