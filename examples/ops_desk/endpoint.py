"""Where the model is, and who is calling: what every framework's runner is handed."""

from __future__ import annotations

from dataclasses import dataclass

INSTRUCTIONS = "You run the operations desk. Use the tools; a [denied] answer is final."


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint and the model to ask there."""

    base_url: str
    model: str
    api_key: str = "not-needed"
    instructions: str = INSTRUCTIONS


@dataclass(frozen=True)
class Caller:
    """The person for whom the agent works, as the application knows them."""

    user: str
    tenant: str
