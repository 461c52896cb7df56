"""Models as agents of `run_agent`, each through its provider's official client.

An agent here turns the conversation into one request and the reply into one action, and does
nothing else: it runs no tool, decides nothing, and retries nothing beside what the client itself
retries. A reply that is cut off, refused or malformed is an error, never an answer.
"""

from __future__ import annotations

from adjudge_runtime.models._chat import OpenAIChatAgent
from adjudge_runtime.models._choosing import FallbackAgent, RoutingAgent
from adjudge_runtime.models._claude import ClaudeAgent
from adjudge_runtime.models._errors import (
    ModelError,
    ModelRefused,
    ModelReplyError,
    ModelRequestError,
    ModelUnavailable,
)
from adjudge_runtime.models._providers import (
    PROVIDERS,
    Provider,
    openai_compatible_agent,
    resolve_credentials,
)
from adjudge_runtime.models._responses import OpenAIAgent

__all__ = [
    "PROVIDERS",
    "ClaudeAgent",
    "FallbackAgent",
    "ModelError",
    "ModelRefused",
    "ModelReplyError",
    "ModelRequestError",
    "ModelUnavailable",
    "OpenAIAgent",
    "OpenAIChatAgent",
    "Provider",
    "RoutingAgent",
    "openai_compatible_agent",
    "resolve_credentials",
]
