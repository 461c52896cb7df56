"""A way to a server that a test can cut, or let nothing through."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Self

__all__ = ["Relay"]


class Relay:
    """Listens on `port` of the loopback and passes on what comes, both ways; a context manager.

    `where` is the path of a socket, or a host and a port. `taken` counts the connections.
    """

    def __init__(self, where: str | tuple[str, int]) -> None:
        self._where = where
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.taken = 0
        self._open: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._ended = False
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._flows.set()
        self._listener.close()
        self.cut()

    def hold(self) -> None:
        """Let nothing through any more, and say nothing of it."""
        self._flows.clear()

    def release(self) -> None:
        """Let through again, what was held first."""
        self._flows.set()

    def cut(self) -> None:
        """End every connection there is."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.taken += 1
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX if isinstance(self._where, str) else socket.AF_INET)
        with client, server:
            server.connect(self._where)
            with self._lock:
                self._open |= {client, server}
            other = {client: server, server: client}
            with contextlib.suppress(OSError):
                while not self._ended:
                    for each in select.select(list(other), [], [])[0]:
                        data = each.recv(65536)
                        self._flows.wait()
                        if not data:
                            return
                        other[each].sendall(data)
            with self._lock:
                self._open -= {client, server}
