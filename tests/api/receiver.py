"""A webhook's other side: a real HTTP server that does as it is told and keeps what it gets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Got(NamedTuple):
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body)


class Receiver:
    """``answers`` are the statuses of the next requests, each in turn; then 204. A path ``/hang`` never gets one,
    ``/slow`` gets one byte of it now and then, and ``/elsewhere`` leads to ``/``."""

    def __init__(self, answers: tuple[int, ...] = ()) -> None:
        self.got: list[Got] = []
        self.answers = [*answers]
        self.closing = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                if self.path == "/hang":
                    receiver.closing.wait()
                elif self.path == "/slow":
                    while not receiver.closing.wait(0.2):
                        self.wfile.write(b"H")
                elif self.path == "/elsewhere":
                    self.send_response(307)
                    self.send_header("Location", "/")
                    self.end_headers()
                else:
                    self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                    self.end_headers()

            do_GET = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

            def handle(self) -> None:
                with suppress(ConnectionError):  # who sent did not wait
                    super().handle()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def is_signed(got: Got, secret: str) -> bool:
    """The check as a receiver writes it from the specification alone; none of Ferret's code is in it."""
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(secret.split("_", 1)[1])
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    fresh = abs(time.time() - int(got.headers["webhook-timestamp"])) < 300
    given = [part.split(",", 1) for part in got.headers["webhook-signature"].split()]
    return fresh and any(version == "v1" and hmac.compare_digest(value, expected) for version, value in given)


def eventually(holds: Callable[[], Any], seconds: float = 60) -> Any:
    """What ``holds`` gives once it is something."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found
