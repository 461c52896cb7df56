"""The preview of an HTTP request; it opens no connection and looks up no name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from adjudge._record.redaction import REDACTED
from adjudge._record.secrets import is_secret_name, redact_text

__all__ = ["http_shadow"]

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


async def http_shadow(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Say what the request would send and where, without the secrets in its URL and headers."""
    verb = method.upper()
    return {
        "would_send": f"{verb} {redact_text(url)}",
        "host": _host(url),
        "changes_state": verb not in _SAFE_METHODS,
        "headers": {
            name: REDACTED if is_secret_name(name) else redact_text(value)
            for name, value in (headers or {}).items()
        },
        "body_bytes": _size(body),
        "timeout_seconds": timeout,
    }


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _size(body: str | bytes | None) -> int:
    if body is None:
        return 0
    return len(body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body)
