"""Who did what in which round, as the round engine left it and at the size of a large federation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role
from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState
from ferret_db.engine import assignments
from ferret_db.repositories import rejections
from ferret_db.repositories.participation import MOST_CELLS
from ferret_db.tables import Assignment, Contribution, Rejection, Round
from tests.api.people import a_user

STATES = ["pending", "leased", "accepted", "rejected", "expired"]


def address(experiment_id: str) -> str:
    return f"/api/v1/experiments/{experiment_id}/participation"


def timeline(experiment_id: str, name: str) -> str:
    return f"/api/v1/experiments/{experiment_id}/participants/{name}/rounds"


def reject(site: Any, assignment_id: str) -> None:
    with site.database.begin() as s:
        leased = assignments.lease(s, assignment_id, 60)
        assert leased is not None
        assignments.reject(s, assignment_id, leased.fence, FerretError("training.non_finite", "the loss is nan"))


def refuse_upload(site: Any, assignment_id: str) -> None:
    with site.database.begin() as s:
        row = s.get_one(Assignment, assignment_id)
        rejections.record(s, row, FerretError("contribution.malformed", "three bytes"))


@pytest.fixture
def experiment_id(site: Any) -> str:
    """A committed round of one client, then one that is open: delivered, rejected, and waiting; and a real site."""
    experiment_id = site.running()
    site.committed(experiment_id, 1)
    site.enrol(experiment_id, "مستشفى الأمل")
    (name,) = site.admin.get(f"/api/v1/experiments/{experiment_id}/participants").json()["items"]
    ids = site.open_round(experiment_id, simulated=["client-001", "client-002"], edge=[name["name"]], number=2)
    site.deliver(ids[0])
    reject(site, ids[1])
    refuse_upload(site, ids[2])
    return experiment_id


def test_whoever_has_it_is_told_that_it_is_the_same_until_it_is_not(site: Any, experiment_id: str) -> None:
    first = site.admin.get(address(experiment_id))
    known = {"If-None-Match": first.headers["ETag"]}
    again = site.admin.get(address(experiment_id), headers=known)
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert site.admin.get(address(experiment_id) + "?after_round=1", headers=known).status_code == 200
    waiting = next(row.id for row in waiting_assignments(site, experiment_id))
    with site.database.begin() as s:
        assert assignments.lease(s, waiting, 60) is not None
    leased = site.admin.get(address(experiment_id), headers=known)
    assert leased.status_code == 200, "a lease is no event, but it is seen here"
    assert leased.headers["ETag"] != first.headers["ETag"]


def waiting_assignments(site: Any, experiment_id: str) -> list[Assignment]:
    with site.database.read() as s:
        wanted = Assignment.experiment_id == experiment_id, Assignment.state == AssignmentState.PENDING
        return list(s.scalars(select(Assignment).where(*wanted)))


def test_each_part_in_each_round_is_a_place_in_columns(site: Any, experiment_id: str) -> None:
    found = site.admin.get(address(experiment_id)).json()
    real = found["participants"][2]
    assert found["participants"] == ["client-001", "client-002", real]
    assert found["display_names"] == {real: "مستشفى الأمل"}
    assert (found["states"], found["next_after_round"]) == (STATES, None)
    first, second = found["rounds"]
    size = first["sizes"][0]
    assert size > 0
    assert first == {
        "round": 1,
        "attempt": 1,
        "state": "committed",
        "participants": [0],
        "states": [STATES.index("accepted")],
        "sizes": [size],
        "seconds": [1.5],
        "losses": [2.0],
        "refused": {},
    }
    assert second == {
        "round": 2,
        "attempt": 1,
        "state": "open",
        "participants": [0, 1, 2],
        "states": [STATES.index(state) for state in ("accepted", "rejected", "pending")],
        "sizes": [size, None, None],
        "seconds": [1.5, None, None],
        "losses": [2.0, None, None],
        "refused": {"training.non_finite": [1], "contribution.malformed": [2]},
    }


def test_who_watches_asks_for_what_is_after_the_last_committed_round(site: Any, experiment_id: str) -> None:
    found = site.admin.get(address(experiment_id), params={"after_round": 1}).json()
    assert [row["round"] for row in found["rounds"]] == [2]
    first = site.admin.get(address(experiment_id), params={"limit": 1}).json()
    assert ([row["round"] for row in first["rounds"]], first["next_after_round"]) == ([1], 1)
    assert first["participants"] == ["client-001"]
    over = site.admin.get(address(experiment_id), params={"after_round": 2}).json()
    assert (over["rounds"], over["participants"], over["next_after_round"]) == ([], [], None)


def test_nobody_has_taken_part_yet(site: Any) -> None:
    found = site.admin.get(address(site.running())).json()
    assert (found["participants"], found["rounds"], found["next_after_round"]) == ([], [], None)


def test_who_sits_a_second_attempt_out_keeps_what_the_first_said(site: Any) -> None:
    experiment_id = site.running(rounds=1, participants={"simulated": 3})
    first = site.open_round(experiment_id, simulated=["a", "b"])
    for assignment_id in first:
        reject(site, assignment_id)
    site.open_round(experiment_id, simulated=["b", "c"])
    (found,) = site.admin.get(address(experiment_id)).json()["rounds"]
    assert (found["attempt"], found["state"]) == (2, "open")
    assert [STATES[state] for state in found["states"]] == ["rejected", "pending", "pending"]
    assert found["refused"] == {"training.non_finite": [0]}
    items = site.admin.get(timeline(experiment_id, "b")).json()["items"]
    assert [(item["attempt"], item["state"], item["round_state"]) for item in items] == [
        (2, "pending", "open"),
        (1, "rejected", "abandoned"),
    ]


def test_the_rounds_of_one_participant_come_newest_first(site: Any, experiment_id: str) -> None:
    newest, oldest = site.admin.get(timeline(experiment_id, "client-001")).json()["items"]
    assert (newest["round"], newest["state"], newest["size"] > 0, newest["seconds"]) == (2, "accepted", True, 1.5)
    assert (oldest["round"], oldest["round_state"], oldest["metrics"]) == (1, "committed", {"train_loss": 2.0})
    assert oldest["opened_at"] <= oldest["created_at"] <= oldest["arrived_at"]
    (rejected,) = site.admin.get(timeline(experiment_id, "client-002")).json()["items"]
    assert (rejected["error"]["code"], rejected["arrived_at"]) == ("training.non_finite", None)
    page = site.admin.get(timeline(experiment_id, "client-001"), params={"limit": 1}).json()
    rest = site.admin.get(timeline(experiment_id, "client-001"), params={"cursor": page["next_cursor"]}).json()
    assert [item["round"] for item in page["items"] + rest["items"]] == [2, 1]
    assert rest["next_cursor"] is None


def test_a_refused_upload_is_told_where_the_work_goes_on(site: Any, experiment_id: str) -> None:
    (real,) = site.admin.get(address(experiment_id)).json()["display_names"]
    (item,) = site.admin.get(timeline(experiment_id, real)).json()["items"]
    assert (item["display_name"], item["kind"], item["state"]) == ("مستشفى الأمل", "edge", "pending")
    (refused,) = item["refused"]
    assert (refused["code"], refused["detail"], refused["count"]) == ("contribution.malformed", "three bytes", 1)


def test_one_that_was_never_asked_has_no_rounds_and_a_stranger_is_not_found(site: Any, experiment_id: str) -> None:
    site.enrol(experiment_id, "late")
    assert site.admin.get(timeline(experiment_id, "late")).json() == {"items": [], "next_cursor": None}
    stranger = site.admin.get(timeline(experiment_id, "nobody"))
    assert (stranger.status_code, stranger.json()["code"]) == (404, "participant.not_found")


def test_only_members_of_its_project_see_it(site: Any, experiment_id: str) -> None:
    member, outsider = a_user(site, Role.VIEWER), a_user(site, Role.VIEWER, None)
    for path in (address(experiment_id), timeline(experiment_id, "client-001")):
        assert member.client.get(path).status_code == 200
        assert outsider.client.get(path).status_code == 404


PARTICIPANTS, ROUNDS = 1000, 60


@contextmanager
def counted(site: Any) -> Iterator[list[str]]:
    """The statements that the database is asked meanwhile."""
    asked: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *given: Any) -> None:
        if statement.startswith("SELECT"):
            asked.append(statement)

    engine = site.database._engine
    event.listen(engine, "before_cursor_execute", note)
    yield asked
    event.remove(engine, "before_cursor_execute", note)


def fill(site: Any, experiment_id: str) -> None:
    """A thousand clients in sixty committed rounds: every hundredth part was rejected after a refused upload."""
    now = datetime.now(UTC)
    with site.database.begin() as session:
        s = session.connection()
        for number in range(1, ROUNDS + 1):
            ids = {"experiment_id": experiment_id, "round_id": f"rnd_{number:016x}"}
            state = {"state": RoundState.COMMITTED, "base_digest": "ba" * 32, "opened_at": now, "deadline_at": now}
            s.execute(insert(Round), [dict(id=ids["round_id"], experiment_id=experiment_id, number=number, **state)])
            parts = [ids | {"round": number, "participant": f"client-{i:04d}"} for i in range(PARTICIPANTS)]
            rejected = [(number + i) % 100 == 0 for i in range(PARTICIPANTS)]
            good = [_contribution(part) for part, bad in zip(parts, rejected, strict=True) if not bad]
            s.execute(insert(Assignment), [_assignment(*each) for each in zip(parts, rejected, strict=True)])
            s.execute(insert(Contribution), good)
            s.execute(insert(Rejection), [_rejection(part) for part, bad in zip(parts, rejected, strict=True) if bad])


def _id(kind: str, part: dict[str, Any]) -> str:
    return f"{kind}_{part['round']:08x}{int(part['participant'][-4:]):08x}"


def _assignment(part: dict[str, Any], rejected: bool) -> dict[str, Any]:
    state = AssignmentState.REJECTED if rejected else AssignmentState.ACCEPTED
    error = FerretError("contribution.out_of_bounds", "too long").to_json() if rejected else None
    more = {
        "kind": ParticipantKind.SIMULATED,
        "state": state,
        "error": error,
        "task": {},
        "seconds": 1.0 + part["round"] / 7,
    }
    return part | dict(id=_id("asg", part), **more)


def _contribution(part: dict[str, Any]) -> dict[str, Any]:
    numbers = {
        "digest": "c0" * 32,
        "size": 8192,
        "examples": 8,
        "metrics": {"train_loss": 2 / part["round"]},
        "bytes_down": 100,
    }
    return part | dict(id=_id("con", part), assignment_id=_id("asg", part), **numbers)


def _rejection(part: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in part.items() if name != "round_id"}
    return rest | {"assignment_id": _id("asg", part), "code": "contribution.malformed", "detail": "three bytes"}


@pytest.mark.slow
def test_a_thousand_participants_over_sixty_rounds_come_in_a_few_answers(either_site: Any) -> None:
    experiment_id = either_site.running(rounds=ROUNDS, participants={"simulated": PARTICIPANTS})
    fill(either_site, experiment_id)
    after: int | None = 0
    sizes, cells, refused = list[int](), 0, 0
    while after is not None:
        with counted(either_site) as asked:
            answer = either_site.admin.get(address(experiment_id), params={"after_round": after})
        found = json.loads(answer.content)
        assert len(asked) <= 6, asked
        sizes.append(len(answer.content))
        cells += sum(len(row["participants"]) for row in found["rounds"])
        refused += sum(len(row["refused"]["contribution.malformed"]) for row in found["rounds"])
        after = found["next_after_round"]
    assert cells == PARTICIPANTS * ROUNDS
    assert refused == cells / 100
    assert len(sizes) == math.ceil(cells / MOST_CELLS)
    assert max(sizes) < 30 * MOST_CELLS

    with counted(either_site) as asked:
        page = either_site.admin.get(timeline(experiment_id, "client-0047"), params={"limit": 200}).json()
    assert len(asked) <= 4, asked
    assert [item["round"] for item in page["items"]] == list(range(ROUNDS, 0, -1))
    assert sum(len(item["refused"]) for item in page["items"]) == sum((n + 47) % 100 == 0 for n in range(1, ROUNDS + 1))
