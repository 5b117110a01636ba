"""Bodies that are too large are refused while they arrive, not after."""

from __future__ import annotations

import json
import select
import socket
from typing import Any, NamedTuple

import pytest

LIMIT = 1 << 20
EXPECTED = 8 + (64 << 10) + 10 * 4
"""FedAvg's contribution for ten parameters: the header's length, the longest header, the update."""


@pytest.fixture
def live(serve: Any, make_settings: Any) -> Any:
    return serve(make_settings(max_upload_bytes=LIMIT, max_request_bytes=4096))


class Uploader(NamedTuple):
    """A participant and the assignment on which it holds the lease under fence 1."""

    token: str
    assignment_id: str


@pytest.fixture
def uploader(live: Any) -> Uploader:
    experiment_id = live.site.running(participants={"edge": 1})
    token = live.site.enrol(experiment_id)
    (assignment_id,) = live.site.open_round(experiment_id, edge=["site-a"])
    live.site.client(token).get("/api/v1/participant/assignment").raise_for_status()
    return Uploader(token, assignment_id)


def request(live: Any, who: Uploader, *headers: str, method: str = "PUT") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", live.port), timeout=10)
    path = f"/api/v1/participant/assignments/{who.assignment_id}/contribution" if method == "PUT" else "/api/v1/session"
    lease = ["Ferret-Fence: 1", "Ferret-Seconds: 1"]
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {who.token}", *lease, *headers, "", ""]
    connection.sendall("\r\n".join(lines).encode())
    return connection


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    data = b""
    with connection:
        while b"}" not in data and (part := connection.recv(65536)):
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_a_declared_size_above_the_limit_is_refused_before_the_body_is_sent(live: Any, uploader: Uploader) -> None:
    for size in (EXPECTED + 1, LIMIT + 1):
        connection = request(live, uploader, f"Content-Length: {size}", "Content-Type: application/octet-stream")
        status, problem = answer(connection)
        assert status == 413
        assert problem["code"] == "request.too_large"
        assert f"at most {EXPECTED} bytes" in problem["detail"]


def test_a_body_that_never_ends_is_cut_off_at_the_limit(live: Any, uploader: Uploader) -> None:
    connection = request(live, uploader, "Transfer-Encoding: chunked", "Content-Type: application/octet-stream")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    sent = 0
    try:
        while not select.select([connection], [], [], 0)[0] and sent < 64 * LIMIT:
            connection.sendall(chunk)
            sent += 0x10000
    except ConnectionError:
        pass  # the server hung up
    # What the kernel buffers on both sides comes on top of what the server has read.
    assert EXPECTED < sent < 16 * LIMIT
    connection.close()


def test_a_body_of_exactly_the_limit_is_read(live: Any, uploader: Uploader) -> None:
    headers = [
        f"Content-Length: {EXPECTED}",
        "Content-Type: application/octet-stream",
    ]
    connection = request(live, uploader, *headers)
    connection.sendall(b"x" * EXPECTED)
    assert answer(connection)[1]["code"] == "contribution.malformed"


def test_the_body_for_an_unknown_assignment_is_not_read(live: Any, uploader: Uploader) -> None:
    unknown = uploader._replace(assignment_id="asg_1")
    connection = request(live, unknown, f"Content-Length: {LIMIT}", "Content-Type: application/octet-stream")
    assert answer(connection)[1]["code"] == "assignment.not_found"


def test_json_has_a_limit_of_its_own(live: Any) -> None:
    large = live.admin.post("/api/v1/session", content=b'{"token": "' + b"x" * 4096 + b'"}')
    assert (large.status_code, large.json()["code"]) == (413, "request.too_large")
    connection = request(
        live, Uploader("x", ""), "Content-Length: 5000", "Content-Type: application/json", method="POST"
    )
    assert answer(connection)[0] == 413


def test_the_server_goes_on_after_refusals(live: Any, uploader: Uploader) -> None:
    for _ in range(5):
        request(live, uploader, f"Content-Length: {LIMIT * 9}", "Content-Type: application/octet-stream").close()
    assert live.admin.get("/api/v1/info").status_code == 200
