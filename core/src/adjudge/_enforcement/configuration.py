"""What a guard can be made of: a slip in its settings is an error where the guard is made.

Found out at the first call, each of these would deny and no more; found out here, it says what to
write. Objects that stand in for ours (a ledger, a policy, a kill switch) only need their methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from adjudge._enforcement.approvals import PauseApproval
from adjudge._enforcement.tools import ToolSet
from adjudge._types import Principal
from adjudge.errors import GovernError
from adjudge.policy import (
    LayeredPolicyBundle,
    PolicyBundle,
    PolicyLayer,
    strict_overrides_loose,
)

__all__ = ["check_settings", "check_tools", "is_data", "may_read_paths"]


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise `GovernError` for the first setting that cannot be what it is given as.

    `settings` are the arguments of `ToolGuard`; None stands for what was not given.
    """
    _check_policy(settings["policy"])
    check_tools(settings["tools"], settings["executor"])
    if not isinstance(settings["principal"], Principal):
        raise _wrong("principal", settings["principal"], 'give Principal("user", "ana")')
    for name in ("environment", "workspace", "correlation_id"):
        _check_text(name, settings[name], optional=name != "workspace")
    _check_asking(settings["on_approval"], settings["ledger"])
    _check_functions("obligations", settings["obligations"], "ids to handlers")
    _check_functions("shadows", settings["shadows"], "names of tools to shadows")
    redact = settings["redact"]
    if redact is not None and not callable(redact):
        raise _wrong(
            "redact", redact, "give default_redactor(...), or no_redaction to record everything"
        )
    cancel = settings["cancel"]
    if cancel is not None and _lacks(cancel, "cancelled", "reason"):
        raise _wrong("cancel", cancel, "give a CancelToken()")
    if isinstance(settings["sinks"], str) or not isinstance(settings["sinks"], Iterable):
        raise _wrong("sinks", settings["sinks"], "give a list of sinks, [jsonl_sink(path)]")


def check_tools(tools: object, executor: object) -> None:
    """Raise `GovernError` for tools or an executor that `check` could not run; None is none."""
    if tools is not None and not isinstance(tools, ToolSet):
        raise _wrong("tools", tools, "give ToolSet.from_functions(...) of it")
    if executor is not None and not callable(executor):
        raise _wrong("executor", executor, "give inline_executor() or another executor")


def is_data(policy: object) -> bool:
    """Whether deciding by a policy runs nothing but what we wrote: no Python rule, no combiner."""
    if isinstance(policy, LayeredPolicyBundle):
        ours = policy.merge is strict_overrides_loose
        return ours and all(is_data(bundle) for _, bundle in policy.layers)
    return isinstance(policy, PolicyBundle) and not policy.python_rules


def may_read_paths(policy: object) -> bool:
    """Whether a policy could want to know where a path leads; one that is not ours always could."""
    if isinstance(policy, LayeredPolicyBundle):
        return any(may_read_paths(bundle) for _, bundle in policy.layers)
    return not isinstance(policy, PolicyBundle) or policy._compiled.reads_paths


def _check_policy(policy: object) -> None:
    if isinstance(policy, PolicyBundle | LayeredPolicyBundle):
        return
    if isinstance(policy, str | bytes | Mapping | list | tuple | PolicyLayer):
        raise GovernError("The policy is not compiled; give compile_policy(...) of it.")
    if isinstance(policy, PurePath):
        raise GovernError("The policy is a path; give load_policy_file(...) of it.")
    if _lacks(policy, "id", "metadata_for", "paths_to_resolve"):
        raise _wrong("policy", policy, "give what compile_policy or load_policy_file returns")


def _check_text(name: str, value: object, *, optional: bool) -> None:
    if isinstance(value, str) or (optional and value is None):
        return
    instead = "give str(...) of it" if isinstance(value, PurePath) else "give a string"
    raise _wrong(name, value, instead)


def _check_asking(approval: object, ledger: object) -> None:
    if ledger is not None and _lacks(ledger, "add", "claim", "settle"):
        raise _wrong("ledger", ledger, "give MemoryLedger() or SQLiteLedger(path)")
    if isinstance(approval, PauseApproval):
        if ledger is not None and ledger is not approval.ledger:
            raise GovernError("ledger and on_approval name two ledgers; give the same to both.")
    elif approval is not None and not callable(approval):
        raise _wrong("on_approval", approval, "give a handler or pause_approval(ledger)")


def _check_functions(name: str, given: object, what: str) -> None:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise _wrong(name, given, f"give a mapping of {what}")
    for key, function in given.items():
        if not callable(function):
            raise _wrong(f"{name}[{key!r}]", function, "give a function")


def _lacks(value: object, *names: str) -> bool:
    """Whether an object cannot have these attributes; nothing of it is run to find out."""
    return not hasattr(type(value), "__getattr__") and not set(names) <= set(dir(value))


def _wrong(name: str, value: object, instead: str) -> GovernError:
    kind = "None" if value is None else f"of type {type(value).__name__}"
    return GovernError(f"{name} is {kind}; {instead}.")
