"""What the ledger and the stores have alike: how they are opened and closed."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, Self

from adjudge import AdjudgeError
from adjudge_redis._server import Server

__all__ = ["Door"]


class Door:
    """Something that is kept on a Redis server; a context manager that closes its connections."""

    _name: ClassVar[str]
    _error: ClassVar[type[AdjudgeError]]

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "adjudge",
        durable: bool | None = None,
        connections: int = 4,
        connect_seconds: float = 10.0,
        busy_seconds: float = 10.0,
    ) -> None:
        self._server = Server(
            url,
            prefix=prefix,
            connections=connections,
            connect_seconds=connect_seconds,
            busy_seconds=busy_seconds,
            durable=durable,
            name=self._name,
            error=self._error,
        )

    @property
    def durable(self) -> bool:
        """Whether the server keeps what it acknowledged, also when it crashes."""
        return self._server.durable

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
        """Close the connections of this process; the next step opens one again."""
        self._server.close()
