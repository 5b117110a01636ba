"""The wire carries what docs/sites/what-leaves-your-site.md lists and the site's log holds, and no byte more."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.wire import REPORTED, ContributionMeta
from ferret_sdk import Participant
from ferret_sdk.participant.egress_log import SentLog, verify
from ferret_sdk.participant.site_terms import Terms
from tests.refusals import refused

pytestmark = [pytest.mark.timeout(150), pytest.mark.heavy]

DOCUMENT = (Path(__file__).parents[3] / "docs/sites/what-leaves-your-site.md").read_text()
PART_BYTES = 64 << 10
CANARY = "Frau Wagner, geboren 1950"


class Seen(NamedTuple):
    """A request as it was on the wire."""

    method: str
    target: str
    headers: list[str]
    body: bytes


class Tap:
    """Passes bytes on to the server at ``port`` and keeps those that go there."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: list[bytearray] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def requests(self) -> list[Seen]:
        return [request for stream in self._streams for request in _parse(bytes(stream))]

    @property
    def bytes(self) -> bytes:
        return b"".join(self._streams)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            if select.select([self._listener], [], [], 0.05)[0]:
                stream = bytearray()
                self._streams.append(stream)
                thread = threading.Thread(target=self._pass_on, args=(self._listener.accept()[0], stream))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, near: socket.socket, kept: bytearray) -> None:
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            while not self._stopped.is_set():
                for ready in select.select([near, far], [], [], 0.05)[0]:
                    chunk = ready.recv(1 << 16)
                    if not chunk:
                        return
                    if ready is near:
                        kept += chunk
                    (far if ready is near else near).sendall(chunk)


def _parse(stream: bytes) -> Iterator[Seen]:
    while stream:
        head, _, stream = stream.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, target, _ = first.split(" ")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        assert "transfer-encoding" not in headers
        length = int(headers.get("content-length", 0))
        yield Seen(method, target, list(headers), stream[:length])
        stream = stream[length:]


def documented(section: str) -> list[str]:
    """The names in the first column of the section's table."""
    (part,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", DOCUMENT, re.DOTALL | re.MULTILINE)
    return [name for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)]


def is_documented(seen: Seen) -> bool:
    path = urlsplit(seen.target).path.removeprefix("/api/v1")
    patterns = [pattern.replace("ID", "[a-z]{3}_[0-9a-f]{16}").replace("N", "[0-9]+") for pattern in REQUESTS]
    return any(re.fullmatch(pattern, f"{seen.method} {path}") for pattern in patterns)


REQUESTS = documented("The requests")
HEADERS = {name.lower() for name in documented("The headers")}


@pytest.fixture
def tap(api) -> Iterator[Tap]:
    tap = Tap(api.port)
    yield tap
    tap.stop()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    row = f'{{"instruction": "Repeat: {CANARY}.", "input": "rain", "output": "rain {CANARY}"}}\n'
    path.write_text(row * 8)
    return path


def require_the_log(home: Path, tap: Tap) -> None:
    """The log's requests are those on the wire, and all that was on the wire is documented."""
    seen = tap.requests()
    on_wire = sorted(
        (s.method, f"{tap.url}{s.target}", len(s.body), digest_bytes(s.body) if s.body else "") for s in seen
    )
    log = SentLog(home)
    assert sorted((sent.method, sent.url, sent.size, sent.digest) for sent in log.read()) == on_wire
    assert verify(log).number == len(seen)
    assert [s.target for s in seen if not is_documented(s)] == []
    assert {name for s in seen for name in s.headers} <= HEADERS
    for secret in (CANARY, "Wagner", str(home)):
        assert secret.encode() not in tap.bytes


def test_the_bytes_on_the_wire_are_those_of_the_log(api, worker, service, toy_spec, tap, data, tmp_path) -> None:
    run = service.submit(toy_spec(participants={"simulated": 1, "edge": 1}, rounds=2))
    home = tmp_path / "site"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
    command = [sys.executable, "-m", "ferret_cli", "join", "--yes", tap.url, "--data", str(data), "--name", "clinic"]
    code = run.create_code().code
    environment = {**kept, "FERRET_HOME": str(home), "FERRET_CODE": code}
    joined = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert joined.returncode == 0, joined.stderr
    require_the_log(home, tap)
    assert code not in SentLog(home).path.read_text()
    uploads = [s for s in tap.requests() if s.method == "PUT"]
    accepted = [found.digest for found in run.contributions() if found.participant == "clinic"]
    assert {digest_bytes(upload.body) for upload in uploads} == set(accepted), "in whatever order of connections"
    assert [sent.contribution for sent in SentLog(home).read() if sent.method == "PUT"] == accepted


def test_what_is_said_when_joining_is_documented(api, service, toy_spec, tap, tmp_path) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}))
    Participant.enrol(tap.url, run.create_code().code, "מרפאה", tmp_path / "site")
    (joined,) = tap.requests()
    (row,) = re.findall(r"^\| `POST /participants` \|.*$", DOCUMENT, re.MULTILINE)
    assert list(json.loads(joined.body)) == re.findall("`([a-z_]+)`:", row)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a server that is started after it."""
    monkeypatch.setenv("FERRET_PART_BYTES", str(PART_BYTES))


def test_so_are_those_of_a_contribution_in_parts(
    small_parts, api, worker, service, toy_spec, tap, data, tmp_path
) -> None:
    run = service.submit(toy_spec("fedavg", participants={"edge": 1}, rounds=1))
    site = Participant.enrol(tap.url, run.create_code().code, "clinic", tmp_path / "site")
    assert site.run(data) == "completed"
    require_the_log(tmp_path / "site", tap)
    (accepted,) = [found.digest for found in run.contributions()]
    parts = [s.body for s in tap.requests() if s.method == "PATCH"]
    assert sorted(map(len, parts))[1:] == [PART_BYTES] * (len(parts) - 1)
    assert sum(map(len, parts)) == run.refresh().experiment.bytes_up
    assert [sent.contribution for sent in SentLog(tmp_path / "site").read() if sent.contribution] == [accepted] * len(
        parts
    )
    assert [s for s in tap.requests() if s.method == "PUT"] == []


def test_so_are_those_of_a_refusal(api, worker, service, toy_spec, tap, data, tmp_path) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}))
    terms = Terms.model_validate({"limits": {"steps": 1}})
    site = Participant.enrol(tap.url, run.create_code().code, "clinic", tmp_path / "site", terms=terms)
    with refused("terms.refused"):
        site.run(data)
    require_the_log(tmp_path / "site", tap)
    assert [s.method for s in tap.requests() if s.target.endswith("/failure")] == ["POST"]


def test_an_unforeseen_error_tells_the_server_its_type_and_nothing_of_the_data(
    api, worker, service, toy_spec, tap, data, tmp_path, monkeypatch
) -> None:
    from ferret_core.client import local_round as core

    def broken(*arguments: object) -> None:
        raise ValueError(f"cannot read {CANARY}")

    monkeypatch.setattr(core, "contribute", broken)
    run = service.submit(toy_spec(participants={"edge": 1}))
    site = Participant.enrol(tap.url, run.create_code().code, "clinic", tmp_path / "site")
    with pytest.raises(ValueError, match=CANARY):
        site.run(data)
    require_the_log(tmp_path / "site", tap)
    (failure,) = [s for s in tap.requests() if s.target.endswith("/failure")]
    assert b"ValueError" in failure.body


def test_every_field_and_figure_of_a_contribution_is_documented() -> None:
    assert set(documented("A contribution")) == set(ContributionMeta.model_fields)
    (figures,) = re.findall(r"^The figures are.*?\n\n", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", figures)) == REPORTED
