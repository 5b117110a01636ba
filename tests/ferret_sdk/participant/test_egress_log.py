"""The site's log: what was sent stands in it, and what was changed in it shows."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import httpx
import pytest

from ferret_core.protocol.audit import EMPTY, Head
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_sdk import Participant
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


def test_an_empty_log_is_whole(log: SentLog) -> None:
    assert verify(log) == EMPTY


def changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"size":3', b'"size":2'), lines[2]]


def removed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2]]


def moved(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], lines[2]]


def garbled(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b"\xff\n", lines[2]]


@pytest.mark.parametrize("change", [changed, removed, moved, garbled])
def test_a_change_shows(log: SentLog, change) -> None:
    note(log, b"one", b"two", b"three")
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(change(lines)))
    with refused("audit.broken"):
        verify(log)


def test_a_cut_or_rewritten_log_shows_against_a_head_that_was_kept(log: SentLog) -> None:
    note(log, b"one", b"two")
    head = verify(log)
    note(log, b"three")
    assert verify(log, head).number == 3
    whole = log.path.read_bytes()
    log.path.write_bytes(whole.splitlines(keepends=True)[0])
    assert verify(log).number == 1
    for anew in (b"", b"other"):
        if anew:
            note(log, anew)
        with pytest.raises(FerretError):
            verify(log, head)


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


def test_all_of_a_participation_is_in_the_log_and_no_secret(api, worker, service, toy_spec, toy_data, tmp_path) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}, rounds=2))
    code = service.enrolment(run.id).code
    site = Participant.enrol(api.url, code, "site-a", tmp_path)
    assert site.run(toy_data[0]) == "completed"
    sent = list(SentLog(tmp_path).read())
    assert (sent[0].method, sent[0].url, sent[0].participant) == ("POST", f"{api.url}/api/v1/participants", None)
    assert all(line.participant == "site-a" and line.experiment == run.id for line in sent[1:])
    uploads = [(line.round, line.contribution) for line in sent if line.method == "PUT"]
    assert uploads == [(found.round, found.digest) for found in run.contributions()]
    assert sum(line.size for line in sent) == site.totals.bytes_up
    text = SentLog(tmp_path).path.read_text()
    assert code not in text
    assert site.member.token not in text
    assert json.loads(text.splitlines()[0])["size"] > 0
