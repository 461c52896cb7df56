"""A way to the server that a test can cut, or let nothing through."""

import contextlib
import select
import socket
import threading
from urllib.parse import urlsplit


class Relay:
    """Listens on a port of its own and passes on what comes, both ways; a context manager."""

    def __init__(self, where):
        self._where = where
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.taken = 0
        self._open = set()
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._ended = False
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ended = True
        self._flows.set()
        self._listener.close()
        self.cut()

    def hold(self):
        """Let nothing through any more, and say nothing of it."""
        self._flows.clear()

    def release(self):
        """Let through again, what was held first."""
        self._flows.set()

    def cut(self):
        """End every connection there is."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.taken += 1
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client):
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


def address(url):
    """Give where the server of a URL listens: the path of a socket, or a host and a port."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else (parts.hostname, parts.port or 6379)
