"""Receipts as a participant and a user get them, and why there is none."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from ferret_core.ledger.receipt import Receipt
from ferret_core.protocol.errors import FerretError
from ferret_db.engine import rounds


@pytest.fixture
def experiment_id(site: Any) -> str:
    return site.running(participants={"simulated": 2, "edge": 2}, round={"attempts": 2})


@pytest.fixture
def member(site: Any, experiment_id: str) -> httpx.Client:
    site.enrol(experiment_id, "site-b")
    return site.client(site.enrol(experiment_id, "site-a"))


def contribute(site: Any, experiment_id: str, number: int = 1, **who: list[str]) -> None:
    for assignment_id in site.open_round(experiment_id, number=number, **who):
        site.deliver(assignment_id)


def ask(client: Any, experiment_id: str, number: int, name: str) -> Any:
    return client.get(f"/api/v1/experiments/{experiment_id}/rounds/{number}/receipts/{name}")


def test_a_participant_and_a_user_get_the_same_proof(site: Any, experiment_id: str, member: Any) -> None:
    contribute(site, experiment_id, simulated=["client-001"], edge=["site-a", "site-b"])
    site.commit(experiment_id)
    (entry,) = site.admin.get(f"/api/v1/experiments/{experiment_id}/ledger").json()["items"]
    answer = ask(member, experiment_id, 1, "site-a")
    assert answer.status_code == 200, answer.text
    assert ask(site.admin, experiment_id, 1, "site-a").json() == answer.json()
    receipt = Receipt.model_validate(answer.json())
    assert receipt.hash == entry["hash"]
    assert receipt.header.size == 3
    assert receipt.verified().contribution == dict(entry["record"]["contributions"])["site-a"]
    simulated = Receipt.model_validate(ask(site.admin, experiment_id, 1, "client-001").json())
    assert simulated.verified().participant == "client-001"


def test_there_is_none_before_the_round_is_committed(site: Any, experiment_id: str, member: Any) -> None:
    assert ask(member, experiment_id, 1, "site-a").json()["code"] == "round.not_found"
    contribute(site, experiment_id, edge=["site-a"])
    answer = ask(member, experiment_id, 1, "site-a")
    assert (answer.status_code, answer.json()["code"]) == (409, "round.uncommitted")
    assert "frozen" in answer.json()["detail"]


def test_who_took_no_part_and_who_is_unknown(site: Any, experiment_id: str, member: Any) -> None:
    contribute(site, experiment_id, edge=["site-a"])
    site.commit(experiment_id)
    assert ask(member, experiment_id, 1, "site-b").json()["code"] == "receipt.not_found"
    assert ask(member, experiment_id, 1, "client-002").json()["code"] == "receipt.not_found"
    unknown = ask(member, experiment_id, 1, "client-003")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "participant.not_found")
    assert ask(site.admin, "exp_0000000000000000", 1, "site-a").json()["code"] == "experiment.not_found"


def test_it_says_when_a_contribution_went_with_an_attempt_that_was_undone(
    site: Any, experiment_id: str, member: Any
) -> None:
    contribute(site, experiment_id, edge=["site-a", "site-b"])
    with site.database.begin() as s:
        first = rounds.round_rows.latest(s, experiment_id, 1)
        rounds.give_up(s, first.id, FerretError("storage.corrupt", "a contribution is damaged"))
    contribute(site, experiment_id, simulated=["client-001"])
    site.commit(experiment_id)
    answer = ask(member, experiment_id, 1, "site-a")
    assert (answer.status_code, answer.json()["code"]) == (404, "receipt.not_found")
    assert "attempt 1" in answer.json()["detail"]
