"""The services that speak OpenAI's Chat Completions API, and what each does differently.

It holds what is stable: addresses, the environment variable of the key, and the words of the
parameters. There are no model names in it, as those change. It is a value and no registry to
write to: a service of your own is a `Provider` that you hand over.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from adjudge_runtime.models._openai import EFFORTS

__all__ = ["PROVIDERS", "Provider", "resolve_credentials"]


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that speaks the Chat Completions API.

    - `env_key`: the environment variable that the key is read from where none is given; with
      `key_optional` it may be missing (a server of one's own).
    - `reasoning_efforts`: the values of `reasoning_effort` that it takes; any other is refused
      before a request. Which of them a model knows is the service's to say.
    - `max_tokens_field`: its name of the limit on output tokens.
    - `takes_stream_options`: whether a stream may be asked for its usage; the others tell it anyway
      or not at all.
    - `takes_tools`: whether the caller's tools can be offered to its models.
    - `thinking_field`: the field of a reply that it wants back with the calls that it led to.
    """

    name: str
    base_url: str
    env_key: str
    key_optional: bool = False
    reasoning_efforts: tuple[str, ...] = ()
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    takes_stream_options: bool = True
    takes_tools: bool = True
    thinking_field: str | None = None


_LOW_TO_HIGH = ("low", "medium", "high")

_ALL = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        reasoning_efforts=EFFORTS,
        max_tokens_field="max_completion_tokens",
    ),
    Provider(
        "grok",
        "https://api.x.ai/v1",
        "XAI_API_KEY",
        reasoning_efforts=("none", *_LOW_TO_HIGH),
        max_tokens_field="max_completion_tokens",
    ),
    Provider(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        reasoning_efforts=("none", "high"),
        takes_stream_options=False,
    ),
    Provider(
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        reasoning_efforts=("high", "max"),
        thinking_field="reasoning_content",
    ),
    Provider(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        reasoning_efforts=("none", "default", *_LOW_TO_HIGH),
        max_tokens_field="max_completion_tokens",
    ),
    Provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        reasoning_efforts=EFFORTS,
    ),
    Provider(
        "together",
        "https://api.together.xyz/v1",
        "TOGETHER_API_KEY",
        reasoning_efforts=_LOW_TO_HIGH,
    ),
    Provider(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        reasoning_efforts=("none", *_LOW_TO_HIGH),
    ),
    Provider(
        "perplexity",
        "https://api.perplexity.ai",
        "PERPLEXITY_API_KEY",
        reasoning_efforts=("minimal", *_LOW_TO_HIGH),
        takes_tools=False,
    ),
    Provider(
        "ollama",
        "http://localhost:11434/v1",
        "OLLAMA_API_KEY",
        key_optional=True,
        reasoning_efforts=("none", *_LOW_TO_HIGH),
    ),
)

PROVIDERS: Mapping[str, Provider] = MappingProxyType({each.name: each for each in _ALL})
"""The services known by name. `grok` is xAI's API, `groq` is Groq's cloud."""


def resolve_credentials(
    provider: str | Provider,
    *,
    api_key: str | None = None,
    env: Mapping[str, str] | None = None,
    providers: Mapping[str, Provider] = PROVIDERS,
) -> tuple[str, str]:
    """Give the address and the key of a service: the key given, or that of the environment.

    Raises `ValueError` for a name that `providers` does not have, and where there is no key.
    """
    found = provider_of(provider, providers)
    key = api_key or (os.environ if env is None else env).get(found.env_key)
    if not key and not found.key_optional:
        raise ValueError(f"There is no key for {found.name}; set {found.env_key}, or give api_key.")
    # The client insists on a key; such a server does not look at it.
    return found.base_url, key or "not-needed"


def provider_of(provider: str | Provider, providers: Mapping[str, Provider]) -> Provider:
    """Find a service by name; a `Provider` is itself."""
    if isinstance(provider, Provider):
        return provider
    if provider not in providers:
        raise ValueError(
            f"There is no provider {provider!r}; there is {', '.join(providers)}. "
            "Give a Provider for another one."
        )
    return providers[provider]
