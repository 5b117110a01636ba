from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_sdk.http import retry
from ferret_sdk.http.transport import Transport
from ferret_sdk.service.download import download
from tests.refusals import refused

BODY = bytes(range(256)) * 40
DIGEST = digest_bytes(BODY)


def ranged(exchange, body=BODY, at_most=10**9):
    """Serves what the Range asks for, but no more than ``at_most`` bytes before the connection breaks."""
    start = int(exchange.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    rest = body[start:]
    announced = len(rest) if len(rest) > at_most else None
    exchange.send(206 if start else 200, rest[:at_most], announced)


def fetch(server, target: Path) -> None:
    download(Transport(server.url), "/file", target, size=len(BODY), digest=DIGEST)


def test_a_truncated_download_goes_on_where_it_broke(server, tmp_path):
    server.answer = lambda exchange: ranged(exchange, at_most=3000)
    fetch(server, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == BODY
    asked = [request.headers.get("range") for request in server.requests]
    assert asked[0] is None
    assert asked[1] == "bytes=3000-"
    assert server.requests[1].headers["if-range"] == f'"{DIGEST}"'


def test_a_download_goes_on_in_another_process(server, tmp_path):
    (tmp_path / "model.part").write_bytes(BODY[:5000])
    server.answer = ranged
    fetch(server, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == BODY
    assert server.requests[0].headers["range"] == "bytes=5000-"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["model"]


def test_a_server_without_ranges_starts_over(server, tmp_path):
    (tmp_path / "model.part").write_bytes(b"x" * 5000)
    server.answer = lambda exchange: exchange.send(200, BODY)
    fetch(server, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == BODY


@pytest.mark.parametrize("body", [BODY[:-1] + b"!", BODY + b"!"])
def test_other_bytes_are_refused_and_nothing_is_left(server, tmp_path, body):
    server.answer = lambda exchange: ranged(exchange, body)
    with refused("storage.corrupt"):
        fetch(server, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    server.answer = ranged
    fetch(server, tmp_path / "model")


def test_a_file_that_is_there_is_not_fetched_again(server, tmp_path):
    (tmp_path / "model").write_bytes(BODY)
    fetch(server, tmp_path / "model")
    assert server.requests == []


def test_a_server_that_never_gets_further_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.02)
    server.answer = lambda exchange: exchange.send(200, BODY[:1000], announced=len(BODY))
    with pytest.raises(FerretError) as raised:
        fetch(server, tmp_path / "model")
    assert raised.value.problem.exit == 6
    assert not (tmp_path / "model").exists()


def test_a_full_disk_is_said_to_be_full(server, tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    server.answer = ranged
    with refused("storage.full", str(len(BODY))):
        fetch(server, tmp_path / "model")
    assert not (tmp_path / "model").exists()
