"""Two servers to talk to: one that misbehaves as told, and Ferret's own API with a worker at its side."""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk import Service
from ferret_sdk.http import retry
from tests import documents
from tests.in_process import ADMIN, Api, Worker


class Exchange:
    """One request as the server sees it, and the ways to answer it, well or badly."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self._handler = handler
        self.method = handler.command
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = body

    def send(self, status: int, body: bytes, announced: int | None = None, **headers: str) -> None:
        """A complete answer; announcing more bytes than are sent makes it a truncated one."""
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.send_header("Content-Length", str(len(body) if announced is None else announced))
        self._handler.end_headers()
        self._handler.wfile.write(body)
        if announced is not None:
            self.drop()

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        self.send(status, json.dumps(value).encode(), Content_Type="application/json", **headers)

    def events(self, text: str) -> None:
        """An event stream that breaks off after ``text``."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        self._handler.end_headers()
        self._handler.wfile.write(text.encode())
        self.drop()

    def drop(self) -> None:
        """Closes the connection without another word."""
        self._handler.close_connection = True
        self._handler.wfile.flush()


Answer = Callable[[Exchange], None]


class Server:
    """Answers each request with ``answer`` and remembers all requests."""

    def __init__(self, certificate: trustme.LeafCert | None = None) -> None:
        self.answer: Answer = lambda exchange: exchange.json({})
        self.requests: list[Exchange] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                exchange = Exchange(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                server.requests.append(exchange)
                server.answer(exchange)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, format: str, *args: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
            self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def script(self, *answers: Answer) -> None:
        """One answer per request, in order; the last is repeated."""
        left = list(answers)
        self.answer = lambda exchange: (left.pop(0) if len(left) > 1 else left[0])(exchange)

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture(scope="session")
def toy_spec(toy_spec: Callable[..., ExperimentSpec]) -> Callable[..., ExperimentSpec]:
    """As everywhere, of the algorithm that takes no step unless another is named: training is not the subject here."""
    return lambda algorithm="toy", /, **changes: toy_spec(algorithm, **changes)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short waits between attempts, and no settings from the developer's own environment."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    for name in ("FERRET_URL", "FERRET_TOKEN", "FERRET_TOKEN_FILE", "FERRET_CA", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("FERRET_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    """The authority's certificate in a file."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def serve_tls() -> Iterator[Callable[[trustme.LeafCert], Server]]:
    """Starts a server that shows a certificate."""
    with ExitStack() as stack:

        def start(certificate: trustme.LeafCert) -> Server:
            running = Server(certificate)
            stack.callback(running.stop)
            return running

        yield start


@pytest.fixture
def experiment() -> dict[str, Any]:
    """An experiment as the API shows it."""
    return documents.experiment(added_by_a_newer_server=7)


@pytest.fixture
def api(tmp_path: Path, migrated: Path) -> Iterator[Api]:
    home = tmp_path / "server"
    home.mkdir()
    shutil.copyfile(migrated, home / "ferret.db")
    running = Api(home)
    yield running
    running.stop()


@pytest.fixture
def worker(api: Api) -> Iterator[Worker]:
    running = Worker(api.home)
    yield running
    running.stop()


@pytest.fixture
def service(api: Api) -> Service:
    return Service(api.url, ADMIN)
