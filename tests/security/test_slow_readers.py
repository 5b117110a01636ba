"""Downloads are streamed: a reader that does not read holds no memory, whatever it has asked for."""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from ferret_core.storage import FileKind
from ferret_db.tables import LedgerEntry
from tests.api.conftest import ADMIN, open_site
from tests.security.api_process import ApiProcess

SIZE = 100 << 20
READERS = 16
MOST_MEGABYTES = 300
WAIT_SECONDS = 120.0


@pytest.fixture
def path(make_settings: Any) -> str:
    """Where the update of 100 MB of a simulated round is."""
    with open_site(make_settings()) as site:
        experiment_id = site.running()
        site.committed(experiment_id)
        stored = site.context.storage.put_bytes(bytes(SIZE), FileKind.UPDATE)
        with site.database.begin() as s:
            s.execute(update(LedgerEntry).values(update_digest=stored.digest, update_size=stored.size))
        return f"/api/v1/experiments/{experiment_id}/updates/1"


def asks(port: int, path: str) -> socket.socket:
    """A reader that asks, and reads nothing."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", port))
    reader.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\n\r\n".encode())
    return reader


@pytest.mark.slow
def test_readers_that_do_not_read_an_update_take_no_memory(home: Path, path: str) -> None:
    with ApiProcess(home) as api, ExitStack() as stack:
        readers = [stack.enter_context(asks(api.port, path)) for _ in range(READERS)]
        deadline, most = time.monotonic() + WAIT_SECONDS, 0.0
        while len(select.select(readers, [], [], 0.05)[0]) < READERS:
            assert time.monotonic() < deadline, "not every answer has begun"
            most = max(most, api.megabytes)
        most = max(most, api.megabytes)
        assert most < MOST_MEGABYTES
        before = api.megabytes
        whole = api.admin.get(path)
        assert len(whole.content) == SIZE
        part = api.admin.get(path, headers={"Range": f"bytes={SIZE - 10}-"})
        assert (part.status_code, len(part.content)) == (206, 10)
        again = api.admin.get(path, headers={"If-None-Match": whole.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert api.megabytes < before + SIZE / (1 << 20) / 2
