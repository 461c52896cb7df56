"""What can go wrong with a model, each with its own type and `code`.

The official clients' exceptions are translated once, here, and stay reachable as `__cause__`. What
is no failure of the model or of the way to it (a wrong argument, a bug, cancellation) passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from adjudge import AdjudgeError
from adjudge_runtime._values import Usage

__all__ = [
    "ModelError",
    "ModelRefused",
    "ModelReplyError",
    "ModelRequestError",
    "ModelUnavailable",
    "asking",
    "reading",
    "truncated",
    "unavailable",
]

Reason = Literal["rate_limit", "time_out", "server", "connection"]

# Error types that a provider names inside a stream, where there is no status any more.
_STREAMED: dict[str, Reason] = {
    "overloaded_error": "server",
    "api_error": "server",
    "server_error": "server",
    "internal_error": "server",
    "service_unavailable_error": "server",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "timeout_error": "time_out",
}
# The clients hand some failures of the transport on as they are, in either generation of it.
_TRANSPORTS = frozenset({"httpx", "httpx2", "httpcore", "httpcore2"})


class ModelError(AdjudgeError):
    """The base of what can go wrong with a model; `usage` is what the failed call cost, if said."""

    code = "model_error"

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class ModelUnavailable(ModelError):
    """The model could not be reached, or not now: another one may be tried.

    `reason` is `rate_limit`, `time_out`, `server` or `connection`; `started` says whether some
    of the reply's text had been shown already.
    """

    code = "model_unavailable"

    def __init__(
        self, message: str, *, reason: Reason, started: bool = False, usage: Usage | None = None
    ) -> None:
        super().__init__(message, usage=usage)
        self.reason = reason
        self.started = started


class ModelRequestError(ModelError):
    """The provider rejected the request: a wrong key, an unknown model, a bad parameter."""

    code = "model_request"


class ModelReplyError(ModelError):
    """The reply is malformed or was cut off; nothing of it is used."""

    code = "model_reply"


class ModelRefused(ModelError):
    """The model, or its provider's filter, refused to answer; the text says how."""

    code = "model_refused"


def truncated(provider: str, cause: str, *, usage: Usage | None) -> ModelReplyError:
    """Give the error for a reply that ended before the model was done."""
    return ModelReplyError(
        f"The reply of {provider} was cut off ({cause}), so nothing of it is used; raise the limit "
        "on output tokens, or shorten the conversation.",
        usage=usage,
    )


def unavailable(
    provider: str, reason: Reason, cause: str, *, started: bool = False
) -> ModelUnavailable:
    """Give the error for a model that could not be reached."""
    return ModelUnavailable(
        f"{provider} is not available ({reason}): {cause}", reason=reason, started=started
    )


def _never() -> bool:
    return False


@contextmanager
def asking(sdk: Any, provider: str, shown: Callable[[], bool] = _never) -> Iterator[None]:
    """Translate what the client raises while it is asked; `shown` says whether text was shown."""
    try:
        yield
    except Exception as error:
        found = _translated(sdk, provider, error, started=shown())
        if found is None:
            raise
        raise found from error


@contextmanager
def reading(provider: str) -> Iterator[None]:
    """Make a `ModelReplyError` of whatever a reply of another shape than documented causes."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelReplyError(
            f"The reply of {provider} cannot be read ({error}); nothing of it is used."
        ) from error


def _translated(sdk: Any, provider: str, error: Exception, *, started: bool) -> ModelError | None:
    text = str(error) or type(error).__name__
    if isinstance(error, sdk.APIResponseValidationError | json.JSONDecodeError):
        return ModelReplyError(f"The reply of {provider} is no JSON of its API: {text}")
    if isinstance(error, sdk.APIError):
        reason = _reason(sdk, error)
        if reason is None:
            return ModelRequestError(f"{provider} rejected the request: {text}")
        return unavailable(provider, reason, text, started=started)
    if type(error).__module__.partition(".")[0] in _TRANSPORTS:
        late = "Timeout" in type(error).__name__
        reason = "time_out" if late else "connection"
        return unavailable(provider, reason, text, started=started)
    return None


def _reason(sdk: Any, error: Any) -> Reason | None:
    if isinstance(error, sdk.APITimeoutError):
        return "time_out"
    if isinstance(error, sdk.APIConnectionError):
        return "connection"
    status = getattr(error, "status_code", None)
    if status == 429:
        return "rate_limit"
    if status == 408:
        return "time_out"
    if isinstance(status, int) and status >= 500:
        return "server"
    if isinstance(status, int) and status >= 400:
        return None
    body = error.body if isinstance(error.body, dict) else {}
    told = body["error"] if isinstance(body.get("error"), dict) else body
    named = (told.get("type"), told.get("code"))
    return next((_STREAMED[name] for name in named if name in _STREAMED), None)
