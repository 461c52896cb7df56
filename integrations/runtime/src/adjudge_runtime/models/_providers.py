"""One door to every service that speaks OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge import ToolSet
from adjudge_runtime._values import OnToken
from adjudge_runtime.models._chat import OpenAIChatAgent
from adjudge_runtime.models._registry import (
    PROVIDERS,
    Provider,
    provider_of,
    resolve_credentials,
)

__all__ = ["PROVIDERS", "Provider", "openai_compatible_agent", "resolve_credentials"]


def openai_compatible_agent(
    provider: str | Provider,
    *,
    tools: ToolSet,
    model: str,
    system: str | None = None,
    api_key: str | None = None,
    max_tokens: int | None = None,
    reasoning_effort: str | None = None,
    stream: bool = False,
    on_token: OnToken | None = None,
    client: Any | None = None,
    env: Mapping[str, str] | None = None,
    providers: Mapping[str, Provider] = PROVIDERS,
) -> OpenAIChatAgent:
    """Make an agent of a service's model; `provider` is a name in `providers`, or a `Provider`.

    `env` is where the key is looked for, the process's environment without it. A `client` that is
    given has its own address and key, so none is looked for. Raises as `OpenAIChatAgent` does, and
    `ValueError` for an unknown name, a missing key or a value that the provider does not take.
    """
    found = provider_of(provider, providers)
    base_url: str | None = None
    if client is None:
        base_url, api_key = resolve_credentials(found, api_key=api_key, env=env)
    return OpenAIChatAgent(
        tools=tools,
        model=model,
        system=system,
        max_tokens=max_tokens,
        client=client,
        base_url=base_url,
        api_key=api_key,
        reasoning_effort=reasoning_effort,
        stream=stream,
        on_token=on_token,
        provider=found,
    )
