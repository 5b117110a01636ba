"""Who did what in which round, as the round engine left it and at the size of a large federation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select, update

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState
from ferret_db.engine import assignments
from ferret_db.repositories import participation, rejections
from ferret_db.tables import Assignment

STATES = ["pending", "leased", "accepted", "rejected", "expired"]


def address(experiment_id: str) -> str:
    return f"/api/v1/experiments/{experiment_id}/participation"


def timeline(experiment_id: str, name: str) -> str:
    return f"/api/v1/experiments/{experiment_id}/participants/{name}/rounds"


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
    site.reject(ids[1])
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


def test_who_sits_a_second_attempt_out_keeps_what_the_first_said(site: Any) -> None:
    experiment_id = site.running(rounds=1, participants={"simulated": 3})
    first = site.open_round(experiment_id, simulated=["a", "b"])
    for assignment_id in first:
        site.reject(assignment_id)
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


def test_many_rounds_come_in_a_few_answers_of_a_few_statements(
    either_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rounds and participants an answer has; and its numbers are short."""
    monkeypatch.setattr(participation, "MOST_CELLS", 9)
    site, names = either_site, ["a", "b", "c"]
    experiment_id = site.running(rounds=7)
    for number in range(1, 8):
        ids = site.open_round(experiment_id, simulated=names, number=number)
        refuse_upload(site, ids[0])
        for assignment_id in ids:
            site.deliver(assignment_id)
        site.commit(experiment_id, number)
    with site.database.begin() as s:
        s.execute(update(Assignment).values(seconds=100 / 7))
    after, rounds = 0, list[list[int]]()
    while after is not None:
        with counted(site) as asked:
            found = site.admin.get(address(experiment_id), params={"after_round": after}).json()
        assert len(asked) <= 6, asked
        rounds.append([row["round"] for row in found["rounds"]])
        assert {tuple(row["participants"]) for row in found["rounds"]} == {(0, 1, 2)}
        assert [row["refused"] for row in found["rounds"]] == [{"contribution.malformed": [0]}] * len(rounds[-1])
        assert max(len(str(each)) for row in found["rounds"] for each in row["seconds"]) <= 6
        after = found["next_after_round"]
    assert rounds == [[1, 2, 3], [4, 5, 6], [7]]
    with counted(site) as asked:
        page = site.admin.get(timeline(experiment_id, "a"), params={"limit": 200}).json()
    assert len(asked) <= 4, asked
    assert [(item["round"], len(item["refused"])) for item in page["items"]] == [(n, 1) for n in range(7, 0, -1)]
