"""Which paths the file system must be asked about before a request can be judged (clause 12).

Finds them by judging with a list of wishes in place of the answers: an `under` that could matter
asks, one that something else settles does not. What a transform would write is asked about as well,
so that one resolving serves the whole decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge._types import ActionRequest, Decision
from adjudge.policy._compile import CompiledPolicy
from adjudge.policy._judge import on_final, rewritten
from adjudge.policy._model import Edit
from adjudge.policy._rules import Step, ask
from adjudge.policy._transform import CannotApply, apply_edits, compose

__all__ = ["paths_to_resolve"]


class _Wishes(dict[str, str]):
    """Notes every path that is looked up, and knows none."""

    __slots__ = ("paths",)

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[str] = set()

    def get(self, path: str, default: Any = None) -> Any:
        """Note the path; there is no answer yet."""
        if "\0" not in path:
            self.paths.add(path)
        return default


def paths_to_resolve(policies: Sequence[CompiledPolicy], request: ActionRequest) -> tuple[str, ...]:
    """Give the paths and directories that `under` may need for this request, sorted."""
    if not any(policy.reads_paths for policy in policies):
        return ()
    wishes = _Wishes()
    seen = [
        (policy, replace(policy.prepared(request, None), resolved=wishes)) for policy in policies
    ]
    rewrites = [
        (policy.layer, edits)
        for policy, asked in seen
        for step in policy.rules.steps(asked)
        if (edits := _edits(step, asked))
    ]
    for final in _finals(request.args, rewrites):
        for policy, asked in seen:
            for test, _, _ in policy.rules.steps(asked):
                ask(test, on_final(asked, final))
    return tuple(sorted(wishes.paths))


def _edits(step: Step, request: ActionRequest) -> Sequence[Edit]:
    test, _, rule = step
    met = ask(test, request)
    if met is False:
        return ()
    if isinstance(met, Decision):
        return rewritten(request, rule, met)[0]
    return rule.edits


def _finals(
    args: Mapping[str, Any], rewrites: Sequence[tuple[str, Sequence[Edit]]]
) -> list[Mapping[str, Any]]:
    """Give the arguments as each rewrite alone would leave them, and as all of them together."""
    finals = []
    for chosen in (*([rewrite] for rewrite in rewrites), rewrites):
        try:
            finals.append(apply_edits(args, compose(chosen)))
        except CannotApply:
            # Such a rewrite denies, and needs no path for that.
            continue
    return finals
