"""What both of OpenAI's APIs have in common: checked settings, and how usage is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge_runtime._values import Usage

__all__ = ["EFFORTS", "checked_effort", "checked_limit", "client_options", "usage_of"]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def checked_effort(provider: str, effort: object, known: Sequence[str]) -> None:
    """Refuse an effort that the provider does not have, before anything is sent."""
    if effort not in known:
        has = f"has {', '.join(known)}" if known else "takes none"
        raise ValueError(f"reasoning_effort is {effort!r}; {provider} {has}.")


def checked_limit(max_tokens: object) -> None:
    """Refuse what is no number of tokens."""
    if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
        raise ValueError(f"max_tokens is {max_tokens!r}; give a whole number, 1 or more, or None.")


def client_options(client: object, *, base_url: str | None, api_key: str | None) -> dict[str, Any]:
    """Give what a client of our own is made with; a lent one has it all already."""
    given = {"base_url": base_url, "api_key": api_key}
    options = {name: value for name, value in given.items() if value is not None}
    if client is not None and options:
        raise ValueError(
            f"{' and '.join(options)} would not reach the client that was given; "
            "make that client with them, or give no client."
        )
    return options


def usage_of(
    read: int, written: int, *, details: dict[str, Any] | None, model: str | None
) -> Usage:
    """Count the tokens of one call; what comes from the cache is part of what was read."""
    details = details or {}
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=details.get("cached_tokens"),
        cache_write_tokens=details.get("cache_write_tokens"),
        model=model,
    )
