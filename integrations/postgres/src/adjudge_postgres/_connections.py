"""Connections for one step each: opened when they are needed, kept for a while, never shared.

A step has its connection to itself, whichever thread or process it runs in; a forked process opens
its own. What a step leaves in any doubt is closed, which takes the step back. A step ends within
its time, whether or not the server ever answers.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import psycopg
from psycopg import conninfo, sql
from psycopg.pq import TransactionStatus

from adjudge import AdjudgeError

__all__ = ["Connection", "Connections", "Server"]

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_KEPT_SECONDS = 60.0
_GRACE_SECONDS = 1.0

# Read committed: an update that has waited for a rival's looks at the row again and finds it taken.
# A commit that is not on the disk could be forgotten, and what was claimed be claimed once more.
_BEGIN = sql.SQL("""\
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = {milliseconds};
SET LOCAL idle_in_transaction_session_timeout = {milliseconds};
SET LOCAL datestyle = ISO;
SET LOCAL timezone = 'UTC';
SELECT set_config('synchronous_commit', 'on', true)
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
""")


class Server:
    """Where the server is, and how long to wait for it.

    What fails raises `error`, in sentences that call what is kept there by `name`.
    """

    def __init__(
        self,
        where: str,
        *,
        connect_seconds: float,
        busy_seconds: float,
        name: str,
        error: type[AdjudgeError],
    ) -> None:
        _check_seconds("connect_seconds", connect_seconds)
        _check_seconds("busy_seconds", busy_seconds)
        self.name = name
        self.error = error
        self._options = _options(where, error)
        self._connect_seconds = connect_seconds
        self.busy_seconds = busy_seconds
        self.beginning = _BEGIN.format(milliseconds=max(1, round(busy_seconds * 1000)))

    def open(self) -> Connection:
        """Open a connection; each host that is named has its time for it, two seconds at least."""
        options: dict[str, Any] = {
            "application_name": "adjudge",
            **self._options,
            "connect_timeout": max(2, round(self._connect_seconds)),
            "client_encoding": "utf8",
        }
        # Each step begins and ends its transaction itself; no statement is prepared, because a
        # pooler between us and the server may give the next step another session.
        return psycopg.connect("", autocommit=True, prepare_threshold=None, **options)


def _check_seconds(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{name} is {given!r}; give a number of seconds.")
    if not 0 < given <= 86_400:
        raise ValueError(f"{name} is {given!r}; give seconds above zero, a day at most.")


def _options(where: str, raised: type[AdjudgeError]) -> dict[str, Any]:
    """Read a connection string; what is wrong with it is said without any piece of it."""
    try:
        options: dict[str, Any] = dict(conninfo.conninfo_to_dict(where))
    except (psycopg.Error, TypeError, ValueError):
        raise raised(
            "The connection string cannot be read; give postgresql://USER@HOST/DATABASE, or "
            "keyword=value pairs, as libpq takes them."
        ) from None
    before, at, after = where.partition("://")[2].partition("@")
    torn = at and ("/" in before or "@" in after.partition("?")[0])
    if torn or not set(str(options.get("port", ""))) <= set("0123456789,"):
        raise raised(
            "The connection string names no usable host and port; in a URL write a special "
            "character of the user or the password as %XX."
        )
    return options


class Connections:
    """The connections of one process: at most `limit` at once, kept for the next step."""

    def __init__(self, server: Server, limit: int) -> None:
        self.error = server.error
        self._server = server
        self._limit = limit
        self._places = threading.BoundedSemaphore(limit)
        self._idle: deque[tuple[float, Connection]] = deque()

    @contextmanager
    def step(self) -> Iterator[Connection]:
        """Run a transaction: committed at the end, taken back if anything is raised before.

        Raises the server's error for what the server or the way to it does not do.
        """
        began = time.monotonic()
        if not self._places.acquire(timeout=self._server.busy_seconds):
            raise self.error(
                f"All {self._limit} connections of this process to {self._server.name} have been "
                f"busy for {self._server.busy_seconds:g} seconds."
            )
        waited = time.monotonic() - began
        deadline = _Deadline(self._server.busy_seconds - waited + _GRACE_SECONDS)
        try:
            connection = self._begun(deadline)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                deadline.end()
                connection.close()
                raise
            deadline.end()
            self._keep(connection)
        except AdjudgeError:
            raise  # one of ours may be a ValueError
        except (psycopg.Error, OSError, ValueError) as error:
            # The server's details and the statement's values stay out: they hold arguments.
            raise self.error(_sentence(self._server.name, error, deadline)) from None
        finally:
            deadline.end()
            self._places.release()

    def close(self) -> None:
        """Close what is idle."""
        while (idle := self._newest()) is not None:
            idle[1].close()

    def _begun(self, deadline: _Deadline) -> Connection:
        """Give a connection whose transaction has begun; a kept one may have died meanwhile."""
        while True:
            kept = self._kept()
            connection = self._server.open() if kept is None else kept
            try:
                deadline.watch(connection)
                connection.execute(self._server.beginning)
            except psycopg.Error:
                deadline.end()
                connection.close()
                # Nothing was asked of the server yet, so that it may be begun again.
                if kept is None or deadline.passed:
                    raise
            except BaseException:
                deadline.end()
                connection.close()
                raise
            else:
                return connection

    def _kept(self) -> Connection | None:
        while (idle := self._newest()) is not None:
            since, connection = idle
            if time.monotonic() - since < _KEPT_SECONDS:
                return connection
            connection.close()
        return None

    def _newest(self) -> tuple[float, Connection] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _keep(self, connection: Connection) -> None:
        if connection.info.transaction_status is TransactionStatus.IDLE:
            self._idle.append((time.monotonic(), connection))
        else:
            connection.close()


class _Deadline:
    """Cuts a connection off when its time is up, so that whoever waits for the server hears of it.

    The server's own time-outs come first; this one is for a server or a network that is silent.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._seconds = seconds
        self._lock = threading.Lock()
        self._watched: Connection | None = None
        self._timer: threading.Timer | None = None

    def watch(self, connection: Connection) -> None:
        """Watch a connection from now on."""
        with self._lock:
            self._watched = connection
        self._timer = threading.Timer(self._seconds, self._pass)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Watch no longer; from here on the connection is not touched."""
        with self._lock:
            self._watched = None
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        with self._lock:
            if self._watched is None:
                return
            self.passed = True
            # Where the connection has ended meanwhile, nobody waits on it.
            with (
                suppress(OSError, psycopg.Error),
                socket.fromfd(self._watched.fileno(), socket.AF_INET, socket.SOCK_STREAM) as other,
            ):
                other.shutdown(socket.SHUT_RDWR)


def _sentence(name: str, error: Exception, deadline: _Deadline) -> str:
    if deadline.passed:
        why = "the server did not answer in time"
    elif isinstance(error, psycopg.Error) and error.diag.message_primary:
        why = f"{error.diag.message_primary} ({error.sqlstate})"
    else:
        why = " ".join(str(error).split()) or type(error).__name__
    return f"{name[0].upper()}{name[1:]} failed: {why.rstrip('.')}."
