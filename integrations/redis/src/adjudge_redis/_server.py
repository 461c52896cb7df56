"""The way to a Redis server: commands that are sent once, and whether it forgets.

A command is never sent again by itself: of one whose answer was lost nobody knows whether it was
carried out, and a second try would take its own first one for somebody else's. Whoever waits for a
silent server hears of it in time. Threads and forked processes may share one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from adjudge import AdjudgeError, EphemeralStoreWarning

__all__ = ["Server"]

_Given = TypeVar("_Given")


class Server:
    """A server, the prefix of the keys that are ours on it, and how long to wait for it.

    What fails raises `error`, in sentences that call what is kept there by `name`. `durable` is
    whether the server is set so that it forgets nothing, or what the caller says of it.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str,
        connections: int,
        connect_seconds: float,
        busy_seconds: float,
        durable: bool | None,
        name: str,
        error: type[AdjudgeError],
    ) -> None:
        if type(connections) is not int or connections < 1:
            raise ValueError(f"connections is {connections!r}; give a whole number above zero.")
        _check_seconds("connect_seconds", connect_seconds)
        _check_seconds("busy_seconds", busy_seconds)
        if not prefix:
            raise ValueError(f"prefix is {prefix!r}; give the text that our keys begin with.")
        if durable is not None and type(durable) is not bool:
            raise TypeError(
                f"durable is {durable!r}; give True or False, or None to ask the server."
            )
        self._prefix = prefix
        self._name = name
        self._error = error
        self._pool = self._made_pool(url, connections, connect_seconds, busy_seconds)
        self._client = redis.Redis(connection_pool=self._pool)
        self.durable = self._asked() if durable is None else durable

    def key(self, kind: str, id: str) -> str:
        """Name the key under which something is kept."""
        return f"{self._prefix}:{kind}:{id}"

    def do(self, command: Callable[[Any], _Given]) -> _Given:
        """Have a command carried out, once."""
        try:
            return command(self._client)
        except (redis.RedisError, OSError, ValueError) as error:
            # The arguments stay out: an unknown command is answered with how they begin.
            why = " ".join(str(error).split(", with args")[0].split()) or type(error).__name__
            raise self._error(f"{self._name} failed: {why.rstrip('.')}.") from None

    def close(self) -> None:
        """Close the connections of this process; the next command opens one again."""
        self._pool.disconnect()

    def _made_pool(
        self, url: str, connections: int, connect_seconds: float, busy_seconds: float
    ) -> redis.BlockingConnectionPool:
        try:
            return redis.BlockingConnectionPool.from_url(
                url,
                max_connections=connections,
                timeout=busy_seconds,
                socket_connect_timeout=connect_seconds,
                socket_timeout=busy_seconds,
                decode_responses=False,
                retry=Retry(NoBackoff(), 0),
            )
        except (TypeError, ValueError, AttributeError):
            # What is wrong is said without any piece of it: there may be a password in it.
            raise self._error(
                "The URL cannot be read; give redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// "
                "for TLS or unix://PATH, with special characters of the password as %XX."
            ) from None

    def _asked(self) -> bool:
        """Ask the server whether it forgets; warn where it may, or does not say."""
        settings: dict[Any, Any] = {}
        for pattern in ("append*", "maxmemory*"):  # several names at once only Redis 7 takes
            found = self.do(partial(_config, pattern=pattern))
            if found is None:
                self._warn("does not tell this user how it is set")
                return False
            settings |= found
        why = _forgets(settings)
        if why:
            self._warn(why)
        return not why

    def _warn(self, why: str) -> None:
        warnings.warn(
            f"{self._name} may forget what it was given: the server {why}. See the guide on Redis "
            "for its settings, or pass durable=True if you know that it forgets nothing.",
            EphemeralStoreWarning,
            stacklevel=5,
        )


def _config(client: Any, pattern: str) -> dict[Any, Any] | None:
    """Ask for settings; None where the server does not say."""
    try:
        found: dict[Any, Any] = client.config_get(pattern)
    except redis.ResponseError:
        return None
    return found


def _forgets(settings: Mapping[Any, Any]) -> str:
    """Say how a server so set may lose a write that it has acknowledged; empty where it may not."""
    found = {_text(key): _text(value) for key, value in settings.items()}
    if found.get("appendonly") != "yes":
        return "keeps no append-only file (appendonly is not yes)"
    if found.get("appendfsync") != "always":
        return "answers before a write is on its disk (appendfsync is not always)"
    evicts = found.get("maxmemory-policy", "").startswith("allkeys")
    if evicts and found.get("maxmemory") != "0":
        return "drops keys when its memory is full (maxmemory-policy is not noeviction)"
    return ""


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _check_seconds(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{name} is {given!r}; give a number of seconds.")
    if not 0 < given <= 86_400:
        raise ValueError(f"{name} is {given!r}; give seconds above zero, a day at most.")
