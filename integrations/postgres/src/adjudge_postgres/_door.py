"""What the ledger and the stores have alike: how they are opened and closed, and their steps.

Each step is one transaction on one table, in a connection that nobody else has meanwhile.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ClassVar, Self

from psycopg import sql

from adjudge import AdjudgeError
from adjudge_postgres._connections import Connection, Connections, Server
from adjudge_postgres._table import Table, checked_schema, prepare_table

__all__ = ["Door", "Step"]


class Door:
    """Something that is kept in a table; a context manager that closes its idle connections."""

    durable = True

    _name: ClassVar[str]
    _error: ClassVar[type[AdjudgeError]]
    _kept_in: ClassVar[Table]
    _columns: ClassVar[sql.SQL] = sql.SQL("*")

    def __init__(
        self,
        conninfo: str,
        *,
        schema: str = "adjudge",
        create: bool = True,
        connections: int = 4,
        connect_seconds: float = 10.0,
        busy_seconds: float = 10.0,
    ) -> None:
        if type(connections) is not int or connections < 1:
            raise ValueError(f"connections is {connections!r}; give a whole number above zero.")
        # In a statement with parameters, a percent sign is written twice.
        quoted = checked_schema(schema).replace("%", "%%")
        self._table = sql.Identifier(quoted, self._kept_in.name)
        self._server = Server(
            conninfo,
            connect_seconds=connect_seconds,
            busy_seconds=busy_seconds,
            name=self._name,
            error=self._error,
        )
        self._limit = connections
        # By process: what was opened before a fork is the parent's, who would lose it if we used
        # it or closed it.
        self._connections: dict[int, Connections] = {}
        weakref.finalize(self, _close, self._connections)
        prepare_table(self._of_this_process(), self._kept_in, schema, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections of this process; the next step opens one again."""
        _close(self._connections)

    def _of_this_process(self) -> Connections:
        process = os.getpid()
        known = self._connections.get(process)
        if known is None:
            made = Connections(self._server, self._limit)
            known = self._connections.setdefault(process, made)
        return known

    @contextmanager
    def _step(self) -> Iterator[Step]:
        with self._of_this_process().step() as connection:
            yield Step(connection, {"table": self._table, "columns": self._columns})


class Step:
    """One transaction on the table; its statements name `{table}` and its `{columns}`."""

    def __init__(self, connection: Connection, names: Mapping[str, sql.Composable]) -> None:
        self._connection = connection
        self._names = names

    def run(self, statement: sql.SQL, values: Mapping[str, Any]) -> int:
        """Change the table, and give the number of rows that were changed."""
        return self._connection.execute(statement.format(**self._names), values).rowcount

    def rows(self, statement: sql.SQL, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Give the rows of the table that the statement names."""
        return self._connection.execute(statement.format(**self._names), values).fetchall()


def _close(connections: dict[int, Connections]) -> None:
    """Close the idle connections that are this process's own."""
    own = connections.get(os.getpid())
    if own is not None:
        own.close()
