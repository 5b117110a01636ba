"""A server that a participant joins by mistake: it speaks Ferret's API on loopback, and lies where a test says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.digest import digest_bytes
from tests import documents

EXPERIMENT = "exp_0123456789abcdef"
PARTICIPANT = "par_0123456789abcdef"
NAME = "clinic"
ASSIGNMENT = "/participant/assignments/asg_0123456789abcdef"
API = "/api/v1"
NOW = "2026-01-01T00:00:00Z"

Reply = Callable[[BaseHTTPRequestHandler], None]


class HostileServer:
    """Honest until a test changes what it says.

    ``enrolled``, ``experiment``, ``poll``, ``artifacts`` and ``ledger`` are the documents it answers with, ``files``
    and ``updates`` the bytes; ``replies`` answer a path in place of all that. ``asked`` are the requests, ``body``
    is the last one's, ``sent`` counts the bytes of :meth:`endless` bodies. ``wire`` is every request as it came: its
    first line, its headers and its body.
    """

    def __init__(self, model: Path, spec: dict[str, Any], base_digest: str) -> None:
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.wire: list[tuple[str, list[tuple[str, str]], bytes]] = []
        self.body = b""
        self.sent = 0
        self.replies: dict[str, Reply] = {}
        self.files: dict[str, bytes] = {}
        self.updates: dict[int, bytes] = {}
        self.artifacts: list[dict[str, Any]] = []
        self.ledger: list[dict[str, Any]] = []
        for path in sorted(model.iterdir()):
            self.offer(path.name, path.read_bytes())
        self.enrolled: Any = {
            "participant": PARTICIPANT,
            "name": NAME,
            "display_name": NAME,
            "experiment": EXPERIMENT,
            "token": "a-token-of-the-server",
        }
        self.experiment: Any = documents.experiment(
            id=EXPERIMENT,
            name="trap",
            round=0,
            participants=1,
            spec=deepcopy(spec),
            base_digest=base_digest,
            metrics={},
        )
        seeds = {"data_seed": 1, "seed": 2, "round_seed": 3, "population": 1, "rounds": 9}
        task = {"experiment": EXPERIMENT, "round": 1, "participant": NAME, "base_digest": base_digest, **seeds}
        lease = {"id": "asg_0123456789abcdef", "fence": 1, "lease_seconds": 60, "lease_until": NOW, "task": task}
        answer = {"experiment_state": "running", "retry_after_seconds": 0.01}
        self.poll: Any = {**answer, "assignment": lease, "waiting": None}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @property
    def task(self) -> dict[str, Any]:
        return self.poll["assignment"]["task"]

    def offer(self, name: str, data: bytes, **lies: Any) -> None:
        """A file of the base model; ``lies`` replace what is said of it."""
        id = f"art_{len(self.files):016x}"
        self.files[id] = data
        described = {"name": name, "size": len(data), "digest": digest_bytes(data)}
        self.artifacts.append(documents.artifact(round=0, **({"id": id} | described | lies)))

    def replace(self, name: str, change: Callable[[Any], Any]) -> None:
        """The base model's JSON file ``name`` as ``change`` makes it, rightly described."""
        (id,) = (file["id"] for file in self.artifacts if file["name"] == name)
        document = change(json.loads(self.files[id]))
        self.take_back(name)
        self.offer(name, json.dumps(document).encode())

    def take_back(self, name: str) -> None:
        self.artifacts = [file for file in self.artifacts if file["name"] != name]

    def commit(self, committed: LedgerRecord, update: bytes, **lies: Any) -> None:
        """A ledger entry for round 1; ``lies`` replace members of its item."""
        self.updates[committed.round] = update
        item = {"record": committed.model_dump(mode="json"), "hash": committed.hash, "update_size": len(update)}
        self.ledger.append(item | lies)
        self.task["round"] = committed.round + 1

    def ends(self, state: str) -> Reply:
        """Acknowledges what it is sent, and the experiment is over."""

        def end(handler: BaseHTTPRequestHandler) -> None:
            self.poll |= {"experiment_state": state, "assignment": None}
            json_reply(documents.receipt(digest_bytes(self.body), len(self.body)))(handler)

        return end

    def endless(self, handler: BaseHTTPRequestHandler) -> None:
        """A body that ends when the client has had enough."""
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            while True:
                handler.wfile.write(b"[" * 65_536)
                self.sent += 65_536
        handler.close_connection = True

    @contextmanager
    def running(self) -> Iterator[HostileServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        prefix = f"/experiments/{EXPERIMENT}"
        answers = {
            "/participants": self.enrolled,
            "/participant/assignment": self.poll,
            prefix: self.experiment,
            f"{prefix}/artifacts": documents.page(*self.artifacts),
            f"{prefix}/ledger": documents.page(*self.ledger),
        }
        kind, _, id = path.removeprefix(prefix).strip("/").partition("/")
        if path in self.replies:
            self.replies[path](handler)
        elif path in answers:
            json_reply(answers[path])(handler)
        elif kind == "artifacts" and id in self.files:
            body_reply(self.files[id])(handler)
        elif kind == "updates" and int(id) in self.updates:
            body_reply(self.updates[int(id)])(handler)
        else:
            json_reply({"lease_until": NOW}, 200)(handler)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                server.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0].removeprefix(API)
                server.wire.append((self.requestline, self.headers.items(), server.body))
                server.asked.append(path)
                server.tokens.append(self.headers.get("Authorization"))
                with suppress(OSError):
                    server._answer(self, path)

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, format: str, *args: Any) -> None: ...

        return Handler


def body_reply(body: bytes, status: int = 200, **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    return body_reply(json.dumps(value).encode(), status, **headers)
