"""The site's log: what was sent stands in it, and what was changed in it shows."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import httpx
import pytest

from ferret_core.protocol.audit import Head
from ferret_core.protocol.digest import digest_bytes
from ferret_sdk.http.transport import Transport
from ferret_sdk.participant import egress_log
from ferret_sdk.participant.egress_log import SentLog, carrying, verify
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def log(tmp_path: Path) -> SentLog:
    return SentLog(tmp_path)


def note(log: SentLog, *bodies: bytes) -> None:
    noting = log.noting("exp_0123456789abcdef", "site-a")
    for body in bodies:
        noting(httpx.Request("PUT" if body else "GET", "https://ferret.test/api/v1/x?a=1", content=body))


def test_a_request_is_noted_with_its_body_and_contribution(log: SentLog) -> None:
    with carrying(3, "a" * 64):
        note(log, b"numbers")
    note(log, b"")
    first, second = log.read()
    assert (first.method, first.url, first.size) == ("PUT", "https://ferret.test/api/v1/x?a=1", 7)
    assert (first.digest, first.round, first.contribution) == (digest_bytes(b"numbers"), 3, "a" * 64)
    assert (second.size, second.digest, second.round, second.previous) == (0, "", None, first.hash)
    assert verify(log) == Head(2, second.hash)
    assert log.path.stat().st_mode & 0o077 == 0


def changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"size":3', b'"size":2'), lines[2]]


def garbled(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b"\xff\n", lines[2]]


@pytest.mark.parametrize("change", [changed, garbled])
def test_a_change_shows(log: SentLog, change) -> None:
    note(log, b"one", b"two", b"three")
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(change(lines)))
    with refused("audit.broken"):
        verify(log)


def test_a_torn_line_is_cut_off_since_its_request_was_never_sent(log: SentLog) -> None:
    note(log, b"one")
    with log.path.open("ab") as file:
        file.write(b'{"number":2,"ti')
    assert verify(log).number == 1
    note(log, b"two")
    assert [sent.size for sent in log.read()] == [3, 3]


def test_on_a_full_disk_nothing_is_sent_and_the_log_stays_whole(server, log: SentLog, monkeypatch) -> None:
    transport = Transport(server.url, on_request=log.noting())
    transport.request("PUT", "/a", content=b"first")
    monkeypatch.setattr(egress_log, "failpoint", lambda name: _full())
    with refused("storage.full", str(log.path)):
        transport.request("PUT", "/a", content=b"second")
    assert len(server.requests) == 1
    monkeypatch.undo()
    transport.request("PUT", "/a", content=b"third")
    assert [sent.digest for sent in log.read()] == [digest_bytes(seen.body) for seen in server.requests]


def _full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_threads_and_repeated_requests_each_have_a_line(server, log: SentLog) -> None:
    def send() -> None:
        transport = Transport(server.url, on_request=log.noting())
        for _ in range(10):
            transport.get("/x")

    server.script(lambda exchange: exchange.json({}, 503, Retry_After="0"), lambda exchange: exchange.json({}))
    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 41
    assert verify(log).number == 41
