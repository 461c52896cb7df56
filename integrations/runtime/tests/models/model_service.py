"""A service on loopback that answers each request with the next of its scripted answers.

It knows no API: an answer is bytes with a status, or one of the ways in which a service fails. The
raw request bodies are kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A whole answer; `missing` bytes more are promised than sent, as when a connection breaks."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    missing: int = 0


class Silence:
    """No answer at all; `left` is set when the client has closed the connection."""

    def __init__(self, head: bytes = b"") -> None:
        self.head = head
        self.asked = threading.Event()
        self.left = threading.Event()


def as_json(body: Any, status: int = 200) -> Answer:
    """Answer with one JSON value."""
    return Answer(json.dumps(body).encode(), status)


def as_events(events: Sequence[Any], *, missing: int = 0) -> Answer:
    """Answer with server-sent events; the name of one is its type."""
    return Answer(b"".join(map(event, events)), 200, "text/event-stream", missing)


def event(data: Any) -> bytes:
    """Write one event as both services do."""
    if isinstance(data, str):
        return f"data: {data}\n\n".encode()
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


class ModelService:
    """The service, a context manager; `url` is its address."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._answers: Iterator[Answer | Silence] = iter(())
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def script(self, *answers: Answer | Silence) -> None:
        """Answer the requests to come with these, in order."""
        self._answers = iter(answers)

    def next_answer(self, raw: bytes) -> Answer | Silence:
        """Keep a request and give its answer."""
        self.requests.append(json.loads(raw))
        return next(self._answers, Answer(b'{"error":{"message":"not scripted"}}', 400))

    def __enter__(self) -> ModelService:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(service: ModelService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            answer = service.next_answer(raw)
            self.close_connection = True
            if isinstance(answer, Silence):
                self._be_silent(answer)
                return
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Connection", "close")
            if answer.kind == "application/json" or answer.missing:
                self.send_header("Content-Length", str(len(answer.body) + answer.missing))
            self.end_headers()
            self.wfile.write(answer.body)

        def _be_silent(self, answer: Silence) -> None:
            if answer.head:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(answer.head)
            answer.asked.set()
            with suppress(OSError):
                self.rfile.read(1)
            answer.left.set()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the requests are kept, and a test's output is for the test."""

    return Handler
