"""Everything that can be wrong with an upload: refused, noted with its reason, and nothing has moved."""

from __future__ import annotations

import math
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ferret_api.settings import ApiSettings
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import rounds
from ferret_db.tables import Assignment, Round
from tests.api.conftest import open_site

BLOB = "application/octet-stream"


class Member(NamedTuple):
    """A participant that holds the lease on its assignment in round 1, beside another one."""

    site: Any
    client: TestClient
    experiment_id: str
    assignment_id: str
    other_id: str
    lease: dict[str, Any]
    make: Callable[..., bytes]

    def upload(self, blob: bytes, **headers: str) -> Any:
        return self.client.put(
            f"/api/v1/participant/assignments/{self.assignment_id}/contribution",
            content=blob,
            headers={
                "Content-Type": BLOB,
                "Ferret-Fence": str(self.lease["fence"]),
                "Ferret-Seconds": "2.5",
                **headers,
            },
        )

    def blob(self, **changes: Any) -> bytes:
        return self.make(self.lease, **changes)

    def rejections(self) -> list[dict[str, Any]]:
        address = f"/api/v1/experiments/{self.experiment_id}/rejections"
        return self.site.admin.get(address).json()["items"]

    def close_round(self) -> None:
        """The other one reports, and time runs out for this one."""
        self.site.deliver(self.other_id)
        with self.site.database.read() as s:
            round_id = rounds.latest(s, self.experiment_id).id
        self.site.expire(Round, "deadline_at", round_id)
        reconcile(self.site.database)


@pytest.fixture
def member(either_site: Any, make_blob: Callable[..., bytes]) -> Member:
    site = either_site
    experiment_id = site.running(participants={"edge": 1, "simulated": 1}, round={"quorum": 0.5})
    client = site.client(site.enrol(experiment_id, "site-a"))
    other, own = site.open_round(experiment_id, edge=["site-a"], simulated=["client-001"])
    lease = client.get("/api/v1/participant/assignment").json()["assignment"]
    assert lease["id"] == own
    return Member(site, client, experiment_id, own, other, lease, make_blob)


def late(member: Member) -> Any:
    member.close_round()
    return member.upload(member.blob())


def after_the_lease(member: Member) -> Any:
    member.site.expire(Assignment, "lease_until", member.assignment_id)
    return member.upload(member.blob())


def under_the_same_key(member: Member) -> Any:
    member.upload(member.blob(), **{"Idempotency-Key": "k"})
    return member.upload(member.blob(value=0.25), **{"Idempotency-Key": "k"})


def another_one(member: Member) -> Any:
    member.upload(member.blob(), **{"Idempotency-Key": "k"})
    return member.upload(member.blob(value=0.25), **{"Idempotency-Key": "l"})


REFUSED: dict[str, tuple[Callable[[Member], Any], int, str]] = {
    "late": (late, 410, "round.closed"),
    "after the lease": (after_the_lease, 409, "lease.lost"),
    "under a wrong fence": (lambda m: m.upload(m.blob(), **{"Ferret-Fence": "77"}), 409, "lease.lost"),
    "from another model": (lambda m: m.upload(m.blob(base_digest="cd" * 32)), 409, "contribution.wrong_base"),
    "another one under the same key": (under_the_same_key, 422, "idempotency.conflict"),
    "another one": (another_one, 409, "contribution.duplicate"),
    "too large": (lambda m: m.upload(m.blob(size=1 << 16)), 413, "request.too_large"),
    "for another experiment": (
        lambda m: m.upload(m.blob(experiment="exp_ffffffffffffffff")),
        422,
        "contribution.malformed",
    ),
    "for another round": (lambda m: m.upload(m.blob(round=2)), 422, "contribution.malformed"),
    "as somebody else": (lambda m: m.upload(m.blob(participant="client-001")), 422, "contribution.malformed"),
    "cut off": (lambda m: m.upload(m.blob()[:-3]), 422, "contribution.malformed"),
    "not a number": (lambda m: m.upload(m.blob(value=math.nan)), 422, "contribution.non_finite"),
    "infinite": (lambda m: m.upload(m.blob(value=-math.inf)), 422, "contribution.non_finite"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_refused_is_noted_with_its_reason_and_moves_nothing(member: Member, how: str) -> None:
    act, status, code = REFUSED[how]
    answer = act(member)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code)
    (noted,) = member.rejections()
    assert (noted["participant"], noted["round"], noted["code"], noted["count"]) == ("site-a", 1, code, 1)
    assert noted["detail"] == problem["detail"]
    assert noted["updated_at"] >= noted["created_at"]

    shown = member.site.show(member.experiment_id)
    assert (shown["round"], shown["digest"]) == (0, shown["base_digest"])
    states = [member.site.assignment(id).state for id in (member.assignment_id, member.other_id)]
    assert len(member.site.files()) == states.count("accepted"), "nothing is stored but what was accepted"


def test_a_late_one_is_told_which_round_it_is(member: Member) -> None:
    member.close_round()
    assert member.upload(member.blob()).json()["current_round"] == 1
    member.site.commit(member.experiment_id)
    problem = member.upload(member.blob()).json()
    assert problem["current_round"] == 2
    assert "the current round is 2" in problem["detail"]
    member.site.move(member.experiment_id, "cancel")
    assert member.upload(member.blob()).json()["current_round"] is None
    (noted,) = member.rejections()
    assert (noted["code"], noted["count"]) == ("round.closed", 3)


def test_one_from_another_model_is_asked_to_resync_and_keeps_the_lease(member: Member) -> None:
    assert "resync" in member.upload(member.blob(base_digest="cd" * 32)).json()["detail"]
    assert member.upload(member.blob()).status_code == 201


def test_the_assignment_of_another_experiment_is_unknown(member: Member) -> None:
    stranger = member.site.client(member.site.enrol(member.site.running(), "site-b"))
    answer = member._replace(client=stranger).upload(member.blob())
    assert (answer.status_code, answer.json()["code"]) == (404, "assignment.not_found")
    assert member.rejections() == [], "nobody fills another's record"


def test_the_same_upload_gets_the_same_answer_whatever_came_between(member: Member) -> None:
    key = {"Idempotency-Key": "k"}
    first = member.upload(member.blob(), **key)
    assert first.status_code == 201
    for _ in range(2):
        again = member.upload(member.blob(), **key)
        assert (again.status_code, again.json()) == (200, first.json())
    member.close_round()
    member.site.commit(member.experiment_id)
    assert member.upload(member.blob(), **key).json() == first.json()
    assert member.rejections() == []
    sent = member.site.admin.get(f"/api/v1/experiments/{member.experiment_id}/contributions").json()["items"]
    assert member.site.show(member.experiment_id)["bytes_up"] == sum(part["size"] for part in sent)


def test_a_key_of_an_earlier_round_does_not_serve_again(member: Member) -> None:
    key = {"Idempotency-Key": "k"}
    member.upload(member.blob(), **key).raise_for_status()
    member.close_round()
    member.site.commit(member.experiment_id)
    (assignment_id,) = member.site.open_round(member.experiment_id, edge=["site-a"], number=2)
    lease = member.client.get("/api/v1/participant/assignment").json()["assignment"]
    second = member._replace(assignment_id=assignment_id, lease=lease)
    assert second.upload(second.blob(), **key).json()["code"] == "idempotency.conflict"
    assert second.upload(second.blob(), **{"Idempotency-Key": "l"}).status_code == 201


def test_rejections_are_counted_by_reason_and_come_in_pages(member: Member) -> None:
    for blob, headers in (
        (member.blob(), {"Ferret-Fence": "77"}),
        (member.blob(), {"Ferret-Fence": "78"}),
        (member.blob(base_digest="cd" * 32), {}),
        (b"\x00\xff", {}),
    ):
        member.upload(blob, **headers)
    address = f"/api/v1/experiments/{member.experiment_id}/rejections"
    first = member.site.admin.get(address, params={"limit": 2}).json()
    rest = member.site.admin.get(address, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert {item["code"]: item["count"] for item in first["items"] + rest["items"]} == {
        "lease.lost": 2,
        "contribution.wrong_base": 1,
        "contribution.malformed": 1,
    }
    assert rest["next_cursor"] is None
    assert member.site.admin.get(address, params={"round": 2}).json()["items"] == []


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut off"])
def test_a_body_of_megabytes_goes_by_way_of_the_disk(site: Any, make_blob: Callable[..., bytes], whole: bool) -> None:
    """The experiment is of a model with as many weights; nothing is left over of what cannot be used."""
    experiment_id = site.running(shapes={"weight": (1 << 20,)}, participants={"edge": 1})
    client = site.client(site.enrol(experiment_id))
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
    lease = client.get("/api/v1/participant/assignment").json()["assignment"]
    member = Member(site, client, experiment_id, assignment_id, "", lease, make_blob)
    blob = member.blob(size=1 << 20)
    answers = [member.upload(blob if whole else blob[:-1]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == ([201, 200] if whole else [422, 422])
    assert [path.read_bytes() for path in site.files()] == [blob][:whole]
    assert len(list(site.context.storage.list())) == whole


def test_a_model_whose_contributions_are_too_large_for_the_service_names_the_setting(
    make_settings: Callable[..., ApiSettings], make_blob: Callable[..., bytes]
) -> None:
    with open_site(make_settings(max_upload_bytes=1 << 20)) as site:
        experiment_id = site.running(shapes={"weight": (1 << 20,)}, participants={"edge": 1})
        client = site.client(site.enrol(experiment_id))
        (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
        lease = client.get("/api/v1/participant/assignment").json()["assignment"]
        problem = Member(site, client, experiment_id, assignment_id, "", lease, make_blob).upload(b"any").json()
    assert problem["code"] == "request.too_large"
    assert "has 4194304 bytes, this service takes at most 1048576" in problem["detail"]
    assert "FERRET_MAX_UPLOAD_BYTES" in problem["detail"]


@pytest.mark.parametrize("declared", [False, True], ids=["counted", "declared"])
def test_an_endless_upload_costs_no_memory(tmp_path: Path, site: Any, declared: bool) -> None:
    """A process of its own with a limit of 256 MiB: what is cut off there was never held."""
    experiment_id = site.running(participants={"edge": 1})
    token = site.enrol(experiment_id)
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
    lease = site.client(token).get("/api/v1/participant/assignment").json()["assignment"]
    limit = 256 << 20
    process = subprocess.Popen(
        [sys.executable, "-m", "ferret_api", "--port", "0"],
        env=os.environ | {"FERRET_HOME": str(site.context.settings.home), "FERRET_MAX_UPLOAD_BYTES": str(limit)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        port = next(int(re.findall(r"http://[^:]+:(\d+)", line)[0]) for line in process.stderr if "listens on" in line)
        before = peak_memory(process.pid)
        head = [
            f"PUT /api/v1/participant/assignments/{assignment_id}/contribution HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Authorization: Bearer {token}",
            f"Content-Type: {BLOB}",
            f"Ferret-Fence: {lease['fence']}",
            "Ferret-Seconds: 1",
            f"Content-Length: {4 * limit}" if declared else "Transfer-Encoding: chunked",
        ]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            sent = pour(connection, 4 * limit, chunked=not declared)
        grown = peak_memory(process.pid) - before
    finally:
        process.kill()
        process.communicate()
    assert sent < (limit if declared else 2 * limit)
    assert grown < 64 << 20, f"{grown >> 20} MiB"
    items = site.admin.get(f"/api/v1/experiments/{experiment_id}/rejections").json()["items"]
    assert [(item["code"], item["count"]) for item in items] == [("request.too_large", 1)]


def pour(connection: socket.socket, most: int, *, chunked: bool) -> int:
    """Sends until the server answers or hangs up; the bytes sent."""
    body = b"x" * (1 << 18)
    chunk = b"%x\r\n%b\r\n" % (len(body), body) if chunked else body
    sent = 0
    try:
        while not select.select([connection], [], [], 0)[0] and sent < most:
            connection.sendall(chunk)
            sent += len(chunk)
    except ConnectionError:
        pass  # the server hung up
    return sent


def peak_memory(pid: int) -> int:
    """The most bytes that the process has held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))
