"""A stand-in for the Hugging Face hub on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="session")
def hub() -> Callable[[dict[str, bytes | None]], AbstractContextManager[str]]:
    """``with hub({path: body}) as endpoint``: what ``HF_ENDPOINT`` is to name in a fresh process. A path without a body
    is refused."""
    return _hub


@contextmanager
def _hub(files: Mapping[str, bytes | None]) -> Iterator[str]:
    """The address of a server with the hub's headers for these paths, 404 for all others, 403 without a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = files.get(self.path, b"")
            body = found or b""
            self.send_response(403 if found is None else 200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            if body:
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("ETag", f'"{sha256(body).hexdigest()}"')
            elif found is not None:
                self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
