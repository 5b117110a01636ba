"""A participant sees what following the model takes: no researcher's words, no path, no other site's failure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Experiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db.engine import lifecycle, rounds
from ferret_sdk.http.transport import read_model

URL = "/api/v1"
CANARY = "canary"
"""Stands in everything that is not for participants."""


@pytest.fixture
def experiment_id(site: Any) -> str:
    """An experiment with words of its researchers, paths on the server and another site's failure in it."""
    site.admin.post(f"{URL}/projects", json={"name": CANARY}).raise_for_status()
    made = site.running(
        project=CANARY,
        model={"source": f"/srv/{CANARY}/llama"},
        dataset={"name": "jsonl", "train": f"/data/{CANARY}/train.jsonl", "test": f"/data/{CANARY}/test.jsonl"},
        participants={"simulated": 2, "edge": 2},
        round={"attempts": 2},
    )
    change = {"notes": f"# {CANARY}", "tags": [CANARY]}
    site.admin.patch(f"{URL}/experiments/{made}", json=change).raise_for_status()
    return made


@pytest.fixture
def member(site: Any, experiment_id: str) -> Any:
    site.enrol(experiment_id, "site-b")
    return site.client(site.enrol(experiment_id, "site-a"))


def fill(site: Any, experiment_id: str) -> None:
    """A round that is undone for another site's error, its next attempt, adapters, and a failure at the end."""
    error = FerretError.of_field("dataset.invalid", f"train {CANARY}", CANARY, f"patient {CANARY}")
    for assignment_id in site.open_round(experiment_id, edge=["site-a", "site-b"]):
        site.deliver(assignment_id)
    with site.database.begin() as s:
        rounds.give_up(s, rounds.round_rows.latest(s, experiment_id, 1).id, error)
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
    site.deliver(assignment_id)
    files = [
        site.store("adapter_config.json", json.dumps({"base_model_name_or_path": f"/srv/{CANARY}"}).encode()),
        site.store("adapter_model.safetensors", b"weights"),
    ]
    site.commit(experiment_id, files=files, metrics={"eval_loss": 2.0, f"eval_loss/{CANARY}": 3.0})
    with site.database.begin() as s:
        lifecycle.fail(s, experiment_id, error)


def addresses(site: Any, experiment_id: str) -> list[str]:
    """Of all that a participant may read, with every artifact and both participants' receipts."""
    paths = [
        path
        for path, operations in site.app.openapi()["paths"].items()
        if {"participant", "admin"} <= set(operations.get("get", {}).get("x-ferret-roles", ()))
    ]
    rows = site.admin.get(f"{URL}/experiments/{experiment_id}/artifacts").json()["items"]
    values = {"experiment_id": experiment_id, "round": "1", "number": "1"}
    found = {
        path.format(**values, artifact_id=row["id"], participant=participant)
        for path in paths
        for row in rows
        for participant in ("site-a", "site-b")
    }
    assert len(paths) == 8, "a new operation that participants may call: see that it shows them no more"
    return sorted(found)


def test_nothing_that_a_participant_may_read_holds_a_canary(site: Any, experiment_id: str, member: Any) -> None:
    fill(site, experiment_id)
    shown = site.admin.get(f"{URL}/experiments/{experiment_id}").json()
    hidden = ("project", "notes", "tags", "spec", "error")
    assert all(CANARY in json.dumps(shown[name]) for name in hidden), "the canaries are in place"
    answers = [member.get(path) for path in addresses(site, experiment_id)]
    assert {answer.status_code for answer in answers} == {200, 404}
    for answer in answers:
        assert CANARY not in answer.text + str(answer.headers), answer.url
    listed = member.get(f"{URL}/experiments/{experiment_id}/artifacts").json()["items"]
    assert [row["name"] for row in listed] == ["adapter_model.safetensors"]
    polled = member.get(f"{URL}/participant/assignment")
    assert polled.status_code == 200
    assert CANARY not in polled.text


def test_the_owner_of_a_code_sees_no_more_than_a_participant(site: Any, experiment_id: str, member: Any) -> None:
    address = f"{URL}/experiments/{experiment_id}"
    code = site.admin.post(f"{address}/enrolments", json={}).json()["code"]
    shown = site.client().post(f"{URL}/enrolments:inspect", json={"code": code})
    assert shown.status_code == 200
    assert CANARY not in shown.text
    assert shown.json()["spec"] == member.get(address).json()["spec"]


def test_a_failure_is_its_code_and_title(site: Any, experiment_id: str, member: Any) -> None:
    fill(site, experiment_id)
    answer = member.get(f"{URL}/experiments/{experiment_id}").json()
    assert answer["error"] == {"code": "dataset.invalid", "title": "The dataset cannot be read"}
    assert answer["spec"]["dataset"] == {"name": "jsonl"}
    assert answer["spec"]["model"]["source"] == "./llama"
    assert list(answer["metrics"]) == ["eval_loss"]


def test_the_sdk_makes_a_specification_of_it(site: Any, experiment_id: str, member: Any) -> None:
    """All that a participant's replica and its model card are made of is there."""
    whole = read_model(Experiment, site.admin.get(f"{URL}/experiments/{experiment_id}").json())
    own = read_model(Experiment, member.get(f"{URL}/experiments/{experiment_id}").json())
    ours, theirs = read_model(ExperimentSpec, own.spec), read_model(ExperimentSpec, whole.spec)
    places = {"model", "dataset"}
    assert ours.model_dump(exclude=places) == theirs.model_dump(exclude=places)
    assert ours.model.dtype == theirs.model.dtype
    for name in ("id", "name", "state", "rounds", "round", "participants", "base_digest", "digest", "created_at"):
        assert getattr(own, name) == getattr(whole, name)
    assert (own.notes, own.tags, own.project) == ("", [], "")


def test_the_name_of_a_hubs_model_is_no_path(site: Any) -> None:
    model = {"source": "org/small", "revision": "1" * 40}
    made = site.running(model=model, participants={"edge": 1})
    answer = site.client(site.enrol(made)).get(f"{URL}/experiments/{made}").json()
    assert (answer["spec"]["model"]["source"], answer["spec"]["model"]["revision"]) == ("org/small", "1" * 40)


def test_what_changes_in_notes_shows_in_no_header(site: Any, experiment_id: str, member: Any) -> None:
    assert "ETag" not in member.get(f"{URL}/experiments/{experiment_id}").headers
    assert "ETag" in site.admin.get(f"{URL}/experiments/{experiment_id}").headers
