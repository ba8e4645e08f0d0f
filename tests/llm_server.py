"""A real OpenAI-compatible server on loopback, for tests of everything that asks language models.

    def answer(body):                       # the request's JSON body
        return {"verdict": True}            # an object becomes JSON text; a string is sent as it is

    with LlmServer(answer, faults=[Fault.rate_limit(0.1), None, Fault.drop()]) as server:
        server.url                          # base URL, ends with /v1
        server.requests                     # every request that arrived, in order
        server.counts()                     # requests by conversation: messages as JSON -> how often

``faults`` is a list (one entry a request, in order of arrival; after its end all is well) or a function of the
request's number and body. ``accepts_json_schema=False`` refuses ``response_format`` of type ``json_schema`` with 400,
as some servers do. ``tokens`` decides what ``usage`` says: ``(prompt, completion)``.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Body = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    kind: str
    seconds: float = 0.0
    status: int = 0
    message: str = ""

    @staticmethod
    def rate_limit(retry_after: float | None = None) -> Fault:
        """429, with a ``Retry-After`` in seconds if given."""
        return Fault("status", -1.0 if retry_after is None else retry_after, 429)

    @staticmethod
    def error(status: int = 500, message: str = "") -> Fault:
        """An answer of this status."""
        return Fault("status", -1.0, status, message)

    @staticmethod
    def drop() -> Fault:
        """The connection closes in the middle of the answer."""
        return Fault("drop")

    @staticmethod
    def invalid_json() -> Fault:
        """An answer whose text is no JSON."""
        return Fault("invalid")

    @staticmethod
    def wrong_shape() -> Fault:
        """JSON, but not of the schema."""
        return Fault("wrong")

    @staticmethod
    def truncated() -> Fault:
        """The right text, cut in half, with ``finish_reason`` ``length``."""
        return Fault("truncated")

    @staticmethod
    def prose() -> Fault:
        """The right object inside a sentence and a code fence: still a good answer."""
        return Fault("prose")

    @staticmethod
    def garbage() -> Fault:
        """200 with a body that is no JSON at all."""
        return Fault("garbage")

    @staticmethod
    def redirect(location: str, status: int = 307) -> Fault:
        """Another address instead of an answer."""
        return Fault("redirect", 0.0, status, location)

    @staticmethod
    def flood(size: int, encoding: str = "") -> Fault:
        """The right answer after so many blanks; packed if ``encoding`` is ``gzip``, mislabelled if another."""
        return Fault("flood", float(size), 200, encoding)

    @staticmethod
    def stall(seconds: float = 30.0) -> Fault:
        """The right answer, far too late."""
        return Fault("stall", seconds)


@dataclass(frozen=True)
class Received:
    """One request."""

    number: int
    at: float
    body: Body
    headers: dict[str, str]

    @property
    def conversation(self) -> str:
        """The messages as JSON: what is asked, whatever the format of the answer."""
        return json.dumps(self.body.get("messages"), ensure_ascii=False)


@dataclass
class LlmServer:
    """Runs in a thread of its own while the ``with`` block lasts."""

    answer: Callable[[Body], Any]
    faults: Sequence[Fault | None] | Callable[[int, Body], Fault | None] = ()
    accepts_json_schema: bool = True
    delay: float = 0.0
    tokens: Callable[[Body, str], tuple[int, int]] | None = None
    #: Changes a whole reply before it is sent.
    reshape: Callable[[Body], Body] | None = None
    keep_bodies: bool = True
    requests: list[Received] = field(default_factory=list)
    #: Highest number of requests that were open at the same time.
    most_open: int = 0
    #: Chat completions that were sent whole, right or wrong, with status 200.
    completed: int = 0

    def __enter__(self) -> LlmServer:
        self._open = 0
        self._number = 0
        self._lock = threading.Lock()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._port = self._socket.getsockname()[1]
        app = Starlette(routes=[Route("/v1/chat/completions", self._chat, methods=["POST"])])
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the loopback server did not start")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)
        self._socket.close()

    @property
    def url(self) -> str:
        """Base URL for an OpenAI-compatible client."""
        return f"http://127.0.0.1:{self._port}/v1"

    def counts(self) -> Counter[str]:
        """How often each conversation was asked."""
        return Counter(request.conversation for request in self.requests)

    @property
    def open(self) -> int:
        """Requests that are being answered."""
        return self._open

    @property
    def count(self) -> int:
        """Requests that arrived."""
        return self._number

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        with self._lock:
            number = self._number
            self._number += 1
            self._open += 1
            self.most_open = max(self.most_open, self._open)
            if self.keep_bodies:
                self.requests.append(Received(number, time.monotonic(), body, dict(request.headers)))
        try:
            return await self._answered(number, body)
        finally:
            with self._lock:
                self._open -= 1

    async def _answered(self, number: int, body: Body) -> Response:
        fault = self._fault(number, body)
        if (body.get("response_format") or {}).get("type") == "json_schema" and not self.accepts_json_schema:
            return _error(400, "response_format of type json_schema is not supported here")
        kind = fault.kind if fault else ""
        if fault and kind == "status":
            headers = {"retry-after": f"{fault.seconds:g}"} if fault.seconds >= 0 else {}
            return _error(fault.status, fault.message or f"fault of status {fault.status}", headers)
        if kind == "drop":
            return _Dropped()
        if kind == "garbage":
            return Response("<html>bad gateway</html>", media_type="text/html")
        if fault and kind == "redirect":
            return Response("", fault.status, {"location": fault.message})
        if self.delay:
            await asyncio.sleep(self.delay)
        if fault and kind == "stall":
            await asyncio.sleep(fault.seconds)
        value = self.answer(body)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        finish = "stop"
        if kind == "invalid":
            text = "I cannot { answer } that"
        elif kind == "wrong":
            text = '{"surprise": [1, 2, 3]}'
        elif kind == "truncated":
            text, finish = text[: max(1, len(text) // 2)], "length"
        elif kind == "prose":
            text = f"Of course. Here is what you asked for:\n```json\n{text}\n```\nTell me if you need more."
        whole = self._completion(body, text, finish)
        return _flooded(whole, int(fault.seconds), fault.message) if fault and kind == "flood" else whole

    def _completion(self, body: Body, text: str, finish: str) -> Response:
        told = sum(len(str(message.get("content"))) for message in body.get("messages", []))
        prompt, completion = self.tokens(body, text) if self.tokens else (told // 4 + 1, len(text) // 4 + 1)
        with self._lock:
            self.completed += 1
        whole: Body = {
            "id": "chatcmpl-loopback",
            "object": "chat.completion",
            "created": 1,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            },
        }
        return JSONResponse(self.reshape(whole) if self.reshape else whole)

    def _fault(self, number: int, body: Body) -> Fault | None:
        if callable(self.faults):
            return self.faults(number, body)
        return self.faults[number] if number < len(self.faults) else None


def answer_batch(source: Path, target: Path, answer: Callable[[Body], Any]) -> int:
    """Answer a batch file as a provider does, last line first; returns how many requests it had."""
    requests = [json.loads(line) for line in source.read_text().splitlines()]
    target.write_text("".join(json.dumps(batch_answer(request, answer)) + "\n" for request in reversed(requests)))
    return len(requests)


def batch_answer(request: Body, answer: Callable[[Body], Any]) -> Body:
    """The line that answers one line of a batch file."""
    value = answer(request["body"])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 40, "completion_tokens": 60, "total_tokens": 100}
    body = {"object": "chat.completion", "model": request["body"]["model"], "choices": [choice], "usage": usage}
    response = {"status_code": 200, "request_id": "loopback", "body": body}
    return {"id": "batch_req", "custom_id": request["custom_id"], "response": response, "error": None}


class _Dropped(Response):
    """A response that ends before its announced length: the server closes the connection."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"1000"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"id": ', "more_body": True})
        raise ConnectionAbortedError("dropped on purpose")


def _flooded(whole: Response, blanks: int, encoding: str) -> Response:
    content = b" " * blanks + bytes(whole.body)
    if encoding == "gzip":
        content = gzip.compress(content, 1)
    return Response(content, 200, {"content-encoding": encoding} if encoding else {}, "application/json")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"message": message, "type": "fault", "code": status}}, status, headers)
