"""A proxy in front of a store that does to single requests what networks and stores do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx

HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "expect", "host"}
ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"


class Request(NamedTuple):
    """``operation`` is the name that S3 gives it."""

    operation: str
    path: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """``cut``: the connection is closed after so many bytes of the body."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut: int | None = None


Fault = Callable[[Request, Callable[[Request], Answer]], Answer]
"""Answers the request, with or without the store."""


def error(status: int, code: str) -> Fault:
    """The store is not asked."""
    return lambda request, ask: Answer(status, {}, ERROR.format(code=code).encode())


def cut(after: int) -> Fault:
    """The answer breaks off."""
    return lambda request, ask: ask(request)._replace(cut=after)


def stall(seconds: float) -> Fault:
    """The store is asked much too late."""

    def answer(request: Request, ask: Callable[[Request], Answer]) -> Answer:
        time.sleep(seconds)
        return ask(request)

    return answer


def unanswered(request: Request, ask: Callable[[Request], Answer]) -> Answer:
    """The store does what is asked, and nobody hears of it."""
    return ask(request)._replace(cut=-1)


def flipped_answer(request: Request, ask: Callable[[Request], Answer]) -> Answer:
    """One bit of what is read is another one."""
    answer = ask(request)
    return answer._replace(body=_flipped(answer.body))


def flipped_request(request: Request, ask: Callable[[Request], Answer]) -> Answer:
    """One bit of what is written is another one."""
    return ask(request._replace(body=_flipped(request.body)))


def wrong_tag(request: Request, ask: Callable[[Request], Answer]) -> Answer:
    """The store says another ETag than that of what it has."""
    answer = ask(request)
    return answer._replace(headers={**answer.headers, "ETag": f'"{"0" * 32}"'})


def forgetful(request: Request, ask: Callable[[Request], Answer]) -> Answer:
    """The store says that all is well, and does nothing."""
    return Answer(200, {"ETag": f'"{"0" * 32}"'}, b"<CompleteMultipartUploadResult/>")


class Proxy:
    """Its ``url`` is that of the store to whoever is tested; ``seen`` are the requests so far."""

    def __init__(self, store: str, url: str) -> None:
        self.url = url
        self.seen: list[Request] = []
        self._store = store
        self._faults: list[list[Any]] = []
        self._lock = Lock()
        self._client = httpx.Client(trust_env=False, timeout=30)

    def inject(self, operation: str, fault: Fault, times: int = 10**9, after: int = 0) -> None:
        """``fault`` happens to the next ``times`` requests for ``operation``, but for the first ``after``."""
        self._faults.append([operation, fault, after, times])

    def heal(self) -> None:
        """Nothing happens any more, and nothing has been seen."""
        self._faults.clear()
        self.seen.clear()

    def count(self, operation: str) -> int:
        return sum(request.operation == operation for request in self.seen)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.seen.append(request)
            fault = self._due(request.operation)
        return fault(request, self._ask) if fault else self._ask(request)

    def close(self) -> None:
        self._client.close()

    def _due(self, operation: str) -> Fault | None:
        for entry in self._faults:
            if entry[0] == operation and entry[2] > 0:
                entry[2] -= 1
            elif entry[0] == operation and entry[3] > 0:
                entry[3] -= 1
                return entry[1]
        return None

    def _ask(self, request: Request) -> Answer:
        method = request.headers["method"]
        headers = {name: value for name, value in request.headers.items() if name not in {*HOP_BY_HOP, "method"}}
        with self._client.stream(
            method, f"{self._store}{request.path}", headers=headers, content=request.body
        ) as response:
            body = b"".join(response.iter_raw())
        kept = {name: value for name, value in response.headers.items() if name not in HOP_BY_HOP}
        if method == "HEAD":
            kept["Content-Length"] = response.headers.get("content-length", "0")
        return Answer(response.status_code, kept, body)


@contextmanager
def proxy(store: str) -> Iterator[Proxy]:
    """A proxy in front of ``store``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()} | {"method": self.command}
            operation = _operation(self.command, self.path, headers)
            self._send(opened.answer(Request(operation, self.path, headers, body)))

        def _send(self, answer: Answer) -> None:
            if answer.cut == -1:
                self.close_connection = True
                return
            self.send_response_only(answer.status)
            length = {} if "Content-Length" in answer.headers else {"Content-Length": str(len(answer.body))}
            for name, value in {**answer.headers, **length}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])
            except ConnectionError:
                self.close_connection = True
            self.close_connection = self.close_connection or answer.cut is not None

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    opened = Proxy(store, f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield opened
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        opened.close()


def _flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1]) if data else data


def _operation(method: str, path: str, headers: dict[str, str]) -> str:
    parts = urlsplit(path)
    query, of_object = parse_qs(parts.query, keep_blank_values=True), parts.path.strip("/").count("/") > 0
    match method:
        case "GET" if "uploads" in query:
            return "ListMultipartUploads"
        case "GET" if "uploadId" in query:
            return "ListParts"
        case "GET":
            return "GetObject" if of_object else "ListObjectsV2"
        case "HEAD":
            return "HeadObject" if of_object else "HeadBucket"
        case "PUT" if "partNumber" in query:
            return "UploadPart"
        case "PUT":
            return "CopyObject" if "x-amz-copy-source" in headers else "PutObject"
        case "POST":
            return "CreateMultipartUpload" if "uploads" in query else "CompleteMultipartUpload"
        case _:
            return "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
