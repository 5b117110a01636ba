"""Projects: whose experiments they are, who sees them, and what they may use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.roles import Role
from tests.api.conftest import document
from tests.api.people import Person, a_user

URL = "/api/v1"


@pytest.fixture
def hearts(site: Any) -> str:
    """Name of a project besides the first."""
    body = {"name": "hearts", "description": "All about hearts"}
    site.admin.post(f"{URL}/projects", json=body).raise_for_status()
    return "hearts"


@pytest.fixture
def ada(site: Any, hearts: str) -> Person:
    """A researcher who sees that project alone."""
    return a_user(site, Role.RESEARCHER, hearts)


@pytest.fixture
def data(settings: Any) -> Path:
    """A folder with data and a model in the service's home, which it may read."""
    folder = settings.home / "data"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"prompt": "p", "answer": "a"}\n')
    return folder


def spec(data: Path, **changes: Any) -> dict[str, Any]:
    dataset = {"name": "jsonl", "train": str(data / "train.jsonl")}
    return document(**{"model": {"source": str(data / "model")}, "dataset": dataset, **changes})


def problem(answer: Any) -> tuple[int, str, str]:
    body = answer.json()
    return answer.status_code, body["code"], body["detail"]


def test_a_member_sees_the_projects_experiments_and_no_others(site: Any, hearts: str, ada: Person) -> None:
    ours, theirs = site.submit(project=hearts), site.submit()
    assert [item["id"] for item in ada.client.get(f"{URL}/experiments").json()["items"]] == [ours]
    assert ada.client.get(f"{URL}/experiments/{ours}").json()["project"] == hearts
    assert problem(ada.client.get(f"{URL}/experiments/{theirs}"))[:2] == (404, "experiment.not_found")
    everything = site.admin.get(f"{URL}/experiments").json()["items"]
    assert {item["id"] for item in everything} == {ours, theirs}
    filtered = site.admin.get(f"{URL}/experiments", params={"project": hearts}).json()["items"]
    assert [item["id"] for item in filtered] == [ours]
    assert ada.client.get(f"{URL}/me").json()["projects"] == [hearts]
    assert site.admin.get(f"{URL}/me").json()["projects"] == ["default", hearts]


def test_unknown_and_not_yours_are_told_in_the_same_words(site: Any, ada: Person) -> None:
    theirs, nobodys = site.submit(), "exp_0123456789abcdef"
    answers = [ada.client.get(f"{URL}/experiments/{each}").json() for each in (theirs, nobodys)]
    assert answers[0]["detail"].replace(theirs, nobodys) == answers[1]["detail"]


def test_figures_for_prometheus_are_of_ones_own_projects(site: Any, hearts: str, ada: Person) -> None:
    site.submit()
    queued = 'ferret_experiments{state="queued"}'
    assert f"{queued} 0.0" in ada.client.get("/metrics").text
    site.submit(project=hearts)
    assert f"{queued} 1.0" in ada.client.get("/metrics").text
    assert f"{queued} 2.0" in site.admin.get("/metrics").text


def test_an_experiment_belongs_to_the_project_that_is_named(site: Any, hearts: str, ada: Person, data: Path) -> None:
    made = ada.client.post(f"{URL}/experiments", json=spec(data)).json()
    assert made["project"] == hearts, "it is the only one that ada sees"
    asked = ada.client.post(f"{URL}/experiments", params={"project": "default"}, json=spec(data))
    assert problem(asked)[:2] == (404, "project.not_found")
    status, code, detail = problem(site.admin.post(f"{URL}/experiments", json=spec(data)))
    assert (status, code) == (422, "request.invalid")
    assert "one of default, hearts" in detail
    clone = site.move(made["id"], "clone", json={}, headers={"Content-Type": "application/merge-patch+json"})
    assert clone.json()["project"] == hearts
    assert site.audit(subject=made["id"])[0]["detail"]["project"] == hearts


def test_who_is_in_no_project_is_told_whom_to_ask(site: Any, data: Path) -> None:
    nobody = a_user(site, Role.RESEARCHER, project=None)
    assert "ask an administrator" in problem(nobody.client.post(f"{URL}/experiments", json=spec(data)))[2]
    assert nobody.client.get(f"{URL}/experiments").json()["items"] == []


def test_only_registered_models_and_data_are_used(site: Any, hearts: str, ada: Person, data: Path) -> None:
    allowed = {"models": [{"source": str(data)}, {"source": "org/small", "revision": "v1"}], "data": [str(data)]}
    site.admin.patch(f"{URL}/projects/{hearts}", json=allowed).raise_for_status()
    assert ada.client.get(f"{URL}/projects/{hearts}").json()["models"][1] == {"source": "org/small", "revision": "v1"}

    def ask(**changes: Any) -> Any:
        return ada.client.post(f"{URL}/experiments", json=spec(data, **changes))

    assert ask().status_code == 202
    assert ask(model={"source": "org/small", "revision": "v1"}).status_code == 202
    status, code, detail = problem(ask(model={"source": "org/small", "revision": "v2"}))
    assert (status, code) == (422, "project.refused")
    assert "org/small@v2" in detail
    assert "org/small@v1" in detail
    elsewhere = site.context.settings.home.parent / "other.jsonl"
    elsewhere.write_text('{"prompt": "p", "answer": "a"}\n')
    answer = ask(dataset={"name": "jsonl", "train": str(elsewhere)})
    assert answer.json()["errors"][0]["field"] == "dataset.train"
    site.admin.patch(f"{URL}/projects/{hearts}", json={"data": []}).raise_for_status()
    assert "allows no data yet" in problem(ask())[2]
    site.admin.patch(f"{URL}/projects/{hearts}", json={"models": None, "data": None}).raise_for_status()
    assert ask(dataset={"name": "jsonl", "train": str(elsewhere)}).status_code == 202


def test_what_administrators_do_to_projects_is_audited(site: Any, hearts: str, ada: Person) -> None:
    assert site.admin.post(f"{URL}/projects", json={"name": "Not A Name"}).status_code == 422
    changed = site.admin.patch(f"{URL}/projects/{hearts}", json={"description": "Hearts alone"}).json()
    assert (changed["description"], changed["models"]) == ("Hearts alone", None)
    (member,) = ada.client.get(f"{URL}/projects/{hearts}/members").json()["items"]
    assert member["name"] == ada.name
    for _ in range(2):
        site.admin.delete(f"{URL}/projects/{hearts}/members/{ada.id}").raise_for_status()
    assert [entry["action"] for entry in site.audit(subject=ada.id)].count("member.removed") == 1
    assert ada.client.get(f"{URL}/projects/{hearts}").json()["code"] == "project.not_found"
    site.admin.delete(f"{URL}/projects/{hearts}").raise_for_status()
    assert problem(site.admin.delete(f"{URL}/projects/{hearts}"))[:2] == (404, "project.not_found")
    assert problem(site.admin.put(f"{URL}/projects/default/members/usr_1"))[:2] == (404, "user.not_found")
    actions = [entry["action"] for entry in site.audit(subject=hearts)]
    assert actions == ["project.created", "project.changed", "project.deleted"]
