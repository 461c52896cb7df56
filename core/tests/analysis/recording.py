"""Makes logs as users have them: calls through a real guard, into real sinks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st
from properties.calls import CHOICES, MISSING

from adjudge import (
    ToolGuard,
    ToolMetadata,
    compile_policy,
    default_redactor,
    hash_chained_sink,
    jsonl_sink,
    no_redaction,
)
from adjudge._values import EMPTY
from adjudge.integration import ProposedCall
from adjudge.testing import scripted_approval

Call = tuple[str, Mapping[str, Any]]

_PLAIN = ToolMetadata()


class BodyFailed(Exception):
    """What a body raises that is to fail."""


def record(
    path,
    policy,
    calls: Iterable[Call],
    *,
    chained=False,
    rotate_bytes=None,
    redact=None,
    declared=_PLAIN,
    injected=EMPTY,
    context=None,
    **guard,
) -> None:
    """Govern each call, tool and arguments, and record it; `fail: true` makes the body raise."""
    sink = jsonl_sink(path)
    if chained or rotate_bytes:
        sink = hash_chained_sink(path, rotate_bytes=rotate_bytes)
    if redact is not None:
        guard["redact"] = redact
    guard.setdefault("on_approval", scripted_approval([True] * 1000))
    made = ToolGuard(policy=compile_policy(policy), sinks=[sink], **guard)

    async def govern_all():
        for tool, args in calls:
            call = ProposedCall(tool, args, declared=declared, injected=injected, shadow=_preview)
            try:
                await made.govern_call(call, execute=_body, context=context)
            except BodyFailed:
                continue

    asyncio.run(govern_all())


async def _body(effective):
    if effective.args.get("fail") is True:
        raise BodyFailed
    return "done"


def _preview(**args):
    return {"would": "run"}


def rules(*written: Mapping[str, Any], **sections: Any) -> dict[str, Any]:
    """Give a policy of rules that are numbered where they have no id."""
    named = [{"id": f"r{place}", **rule} for place, rule in enumerate(written)]
    return {"version": 1, "rules": named, **sections}


ALL = rules({"id": "all", "match": "always", "decision": "allow"})
OPEN = no_redaction


def says_little(body):
    """Redact a body to what records had before they said what a call was judged by."""
    more = ("declared", "given", "injected", "workspace", "extra", "session", "resolved")
    return {name: value for name, value in default_redactor()(body).items() if name not in more}


def arguments() -> st.SearchStrategy[dict[str, Any]]:
    """Draw the arguments of a call, out of those that generated policies speak of."""
    return st.fixed_dictionaries(
        {name: st.sampled_from(range(len(choices))) for name, choices in CHOICES.items()}
    ).map(
        lambda drawn: {
            name: CHOICES[name][place]
            for name, place in drawn.items()
            if CHOICES[name][place] is not MISSING
        }
    )
