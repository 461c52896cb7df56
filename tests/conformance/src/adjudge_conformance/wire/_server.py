"""A model service on loopback that says what a script tells it to, over the real APIs of OpenAI.

It speaks Chat Completions and Responses, streamed and not, and keeps every request body to the byte
in a file, so that another process can read what was sent. The turn is chosen from the request alone
(see `_script.py`). A request that no script answers gets an error that says so, and is kept as a
problem: `Exchange.problems`.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from adjudge_conformance.wire._answer import Answer, AnsweredCall
from adjudge_conformance.wire._chat import chat_body, chat_events
from adjudge_conformance.wire._request import Api, WireRequest
from adjudge_conformance.wire._responses import responses_body, responses_events
from adjudge_conformance.wire._script import Script, digest_of

__all__ = ["Exchange", "ScriptedServer"]


class NotScripted(Exception):
    """A request for which the script has no answer."""


class Exchange:
    """One script with an address of its own, and the file of the requests that came there."""

    def __init__(self, script: Script, *, api: Api, base_url: str, log: Path) -> None:
        self.script = script
        self.api = api
        self.base_url = base_url
        self.log = log
        self._lock = threading.Lock()

    @property
    def requests(self) -> list[WireRequest]:
        """What was sent so far, oldest first, as raw bytes."""
        return [WireRequest(self.api, base64.b64decode(line["body"])) for line in self._lines()]

    @property
    def problems(self) -> list[str]:
        """What the script could not answer; a case that leaves any is no good."""
        return [line["problem"] for line in self._lines() if line["problem"]]

    def reply(self, raw: bytes, *, path: str) -> Answer:
        """Keep a request and give the scripted answer to it; `NotScripted` if there is none."""
        problem = ""
        try:
            return self._answer(WireRequest(self.api, raw), path)
        except NotScripted as caught:
            problem = str(caught)
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as caught:
            problem = f"a request that cannot be read: {caught!r}"
            raise NotScripted(problem) from caught
        finally:
            self._keep(raw, problem)

    def _answer(self, request: WireRequest, path: str) -> Answer:
        wanted = "/responses" if self.api == "responses" else "/chat/completions"
        if path != wanted:
            raise NotScripted(f"this script is for {wanted}, not for {path}")
        if request.model not in self.script.models:
            known = ", ".join(self.script.models)
            raise NotScripted(
                f"no script for the model {request.model!r}; there is one for {known}"
            )
        turn = self.script.next_turn(
            request.model, call_ids=[call.id for call in request.calls], said=request.said
        )
        turns = self.script.turns(request.model)
        if turn >= len(turns):
            raise NotScripted(f"{request.model} has {len(turns)} turns and was asked for one more")
        if self.api != "responses" and any(call.item for call in turns[turn].calls):
            raise NotScripted(f"a call with an item of its own is not for {self.api}")
        identity = digest_of(
            [request.model, turn, request.body.get("messages"), request.body.get("input")]
        )
        if self.api == "react":
            text: str | None = self.script.react_text(request.model, turn)
            return Answer(identity, request.model, turn, text, ())
        ids = self.script.ids(request.model, turn, request.conversation)
        calls = tuple(
            AnsweredCall(call_id, call.tool, call.arguments, call.item)
            for call_id, call in zip(ids, turns[turn].calls, strict=True)
        )
        return Answer(identity, request.model, turn, turns[turn].text, calls)

    def _keep(self, raw: bytes, problem: str) -> None:
        line = {"body": base64.b64encode(raw).decode(), "problem": problem}
        with self._lock, self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.log.exists():
            for line in self.log.read_text(encoding="utf-8").splitlines():
                yield json.loads(line)


class ScriptedServer:
    """The service: a context manager under which any number of scripts can be opened.

    with ScriptedServer() as server:
        exchange = server.open(script, api="chat", log=tmp_path / "requests.jsonl")
        client = openai.OpenAI(base_url=exchange.base_url, api_key="none")
    """

    def __init__(self) -> None:
        self._exchanges: dict[str, Exchange] = {}
        self._http = _HTTPServer(("127.0.0.1", 0), _Handler)
        self._http.exchanges = self._exchanges
        # The poll interval bounds how long closing takes, in seconds.
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name="scripted-server", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def open(self, script: Script, *, api: Api, log: Path) -> Exchange:
        """Give a script an address; `log` is the file that the requests are written to."""
        name = f"x{len(self._exchanges)}"
        host, port = self._http.server_address[:2]
        url = f"http://{host!s}:{port}/{name}/v1"
        exchange = self._exchanges[name] = Exchange(script, api=api, base_url=url, log=log)
        return exchange


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    exchanges: dict[str, Exchange]


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    protocol_version = "HTTP/1.1"
    # Small events must leave at once, or each streamed turn waits for a delayed acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name, _, rest = self.path.lstrip("/").partition("/v1")
        exchange = self.server.exchanges.get(name)
        if exchange is None:
            self._send_error(404, f"nothing is scripted under {self.path}")
            return
        try:
            answer = exchange.reply(raw, path=rest)
        except NotScripted as caught:
            self._send_error(400, str(caught))
            return
        request = WireRequest(exchange.api, raw)
        if request.streamed:
            self._send_events(_events(request, answer))
        else:
            self._send_json(200, _body(request, answer))

    def _send_events(self, events: Iterator[str]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode())

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _send_error(self, status: int, message: str) -> None:
        detail = {"message": message, "type": "invalid_request_error", "code": "not_scripted"}
        self._send_json(status, {"error": detail})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the requests are kept, and a test's output is for the test."""


def _body(request: WireRequest, answer: Answer) -> dict[str, Any]:
    if request.api == "responses":
        return responses_body(answer, request.body)
    return chat_body(answer)


def _events(request: WireRequest, answer: Answer) -> Iterator[str]:
    if request.api == "responses":
        return responses_events(answer, request.body)
    options = request.body.get("stream_options") or {}
    return chat_events(answer, include_usage=options.get("include_usage") is True)
