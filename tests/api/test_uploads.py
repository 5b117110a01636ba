"""Everything that can be wrong with an upload: refused, noted with its reason, and nothing has moved."""

from __future__ import annotations

import math
import select
import socket
from collections.abc import Callable
from typing import Any

import pytest

from ferret_api.settings import ApiSettings
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import rounds
from ferret_db.tables import Assignment, Round
from tests.api.conftest import Member, open_site, upload_headers
from tests.security.api_process import ApiProcess


@pytest.fixture
def member(either_site: Any) -> Member:
    return either_site.member()


def close_round(member: Member) -> None:
    """The other one reports, and time runs out for this one."""
    member.site.deliver(member.other_id)
    with member.site.database.read() as s:
        round_id = rounds.latest(s, member.experiment_id).id
    member.site.expire(Round, "deadline_at", round_id)
    reconcile(member.site.database)


def late(member: Member) -> Any:
    close_round(member)
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


def test_the_same_upload_gets_the_same_answer_whatever_came_between(member: Member) -> None:
    key = {"Idempotency-Key": "k"}
    first = member.upload(member.blob(), **key)
    assert first.status_code == 201
    again = member.upload(member.blob(), **key)
    assert (again.status_code, again.json()) == (200, first.json())
    close_round(member)
    member.site.commit(member.experiment_id)
    assert member.upload(member.blob(), **key).json() == first.json()
    assert member.rejections() == []


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut off"])
def test_a_body_of_megabytes_goes_by_way_of_the_disk(site: Any, whole: bool) -> None:
    """The experiment is of a model with as many weights; nothing is left over of what cannot be used."""
    member = site.member(shapes={"weight": (1 << 20,)})
    blob = member.blob(size=1 << 20)
    answers = [member.upload(blob if whole else blob[:-1]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == ([201, 200] if whole else [422, 422])
    assert [path.read_bytes() for path in site.files()] == [blob][:whole]
    assert len(list(site.context.storage.list())) == whole


def test_a_model_whose_contributions_are_too_large_for_the_service_names_the_setting(
    make_settings: Callable[..., ApiSettings],
) -> None:
    with open_site(make_settings(max_upload_bytes=1 << 20)) as site:
        problem = site.member(shapes={"weight": (1 << 20,)}).upload(b"any").json()
    assert problem["code"] == "request.too_large"
    for named in ("4194304 bytes", "1048576", "FERRET_MAX_UPLOAD_BYTES"):
        assert named in problem["detail"]


@pytest.mark.parametrize("declared", [False, True], ids=["counted", "declared"])
def test_an_endless_upload_costs_no_memory(site: Any, declared: bool) -> None:
    """A process of its own with a limit of 256 MiB: what is cut off there was never held."""
    member = site.member(simulated=())
    limit = 256 << 20
    with ApiProcess(site.context.settings.home, FERRET_MAX_UPLOAD_BYTES=str(limit)) as api:
        before = api.peak_megabytes
        length = {"Content-Length": str(4 * limit)} if declared else {"Transfer-Encoding": "chunked"}
        headers = {"Host": "127.0.0.1", "Authorization": member.client.headers["Authorization"], **length}
        lines = [f"{name}: {value}" for name, value in (headers | upload_headers(member.lease)).items()]
        head = [f"PUT {member.address}/contribution HTTP/1.1", *lines, "", ""]
        with socket.create_connection(("127.0.0.1", api.port), timeout=60) as connection:
            connection.sendall("\r\n".join(head).encode())
            sent = pour(connection, 4 * limit, chunked=not declared)
        assert api.peak_megabytes - before < 64
        assert api.admin.get("/api/v1/info").status_code == 200, "it goes on"
    assert sent < (limit if declared else 2 * limit)
    assert [(item["code"], item["count"]) for item in member.rejections()] == [("request.too_large", 1)]


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
