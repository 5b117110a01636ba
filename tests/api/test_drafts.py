"""Writing a specification: what a change does to it, and what would come of submitting it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

BASE = "/api/v1/experiments"
DEMO = Path(__file__).parents[2] / "ferret_core/sample/model"
TOML = 'name = "read"\nrounds = 5\n\n[algorithm]\nname = "ferret"\nK = 64\n'


@pytest.fixture(autouse=True)
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service reads no other files."""
    monkeypatch.setenv("FERRET_DATA_ROOTS", str(tmp_path))


@pytest.fixture
def document(settings: Any) -> dict[str, Any]:
    """A right specification, its model and data in the service's home, which it may read."""
    folder = settings.home / "data"
    shutil.copytree(DEMO, folder / "model")
    (folder / "train.jsonl").write_text('{"instruction": "i", "output": "o"}\n')
    return {
        "name": "drafted",
        "model": {"source": str(folder / "model")},
        "dataset": {"name": "jsonl", "train": str(folder / "train.jsonl")},
        "participants": {"simulated": 3},
    }


def planned(site: Any, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = site.admin.post(f"{BASE}:plan", json={"spec": spec, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def revised(site: Any, **body: Any) -> Any:
    return site.admin.post(f"{BASE}:revise", json=body)


def test_an_incomplete_specification_is_told_all_that_is_wrong(site: Any) -> None:
    told = planned(site, {"rouns": 3, "algorithm": {"name": "ferret", "K": 0}})
    assert told["problem"]["code"] == "spec.invalid"
    assert {"rouns", "name", "algorithm.K"} <= {error["field"] for error in told["problem"]["errors"]}
    assert (told["plan"], told["unplanned"], told["change"]) == (None, None, None)
    assert told["filled"]["rounds"] == 12
    assert "algorithm" not in told["filled"]


def test_a_right_one_is_planned_as_ferret_plan_does_and_nothing_is_stored(site: Any, document: dict[str, Any]) -> None:
    told = planned(site, document)
    assert (told["problem"], told["unplanned"]) == (None, None)
    plan = told["plan"]
    assert (plan["d"], plan["participants"], plan["rounds"]) == (1_139_904, 3, 12)
    assert plan["total_bytes"] == 12 * 3 * (plan["bytes_up"] + plan["bytes_down"])
    assert planned(site, document, shape="llama2-7b")["plan"]["d"] == 6_738_415_616
    assert site.admin.get(BASE).json()["items"] == []
    assert told["filled"] == site.admin.post(BASE, json=document).json()["spec"]


def test_a_model_that_is_not_here_is_no_problem_but_has_no_plan(site: Any, document: dict[str, Any]) -> None:
    told = planned(site, {**document, "model": {"source": "org/model", "revision": "v1"}})
    assert (told["problem"], told["plan"]) == (None, None)
    assert told["unplanned"]["errors"][0]["field"] == "model.source"


def test_a_model_that_was_replaced_is_read_again(site: Any, document: dict[str, Any]) -> None:
    assert planned(site, document)["plan"] is not None
    (Path(document["model"]["source"]) / "config.json").unlink()
    assert planned(site, document)["unplanned"]["code"] == "model.invalid"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"dataset": {"name": "jsonl", "train": "/etc/passwd"}}, "dataset.invalid"),
        ({"model": {"source": "/etc"}}, "model.invalid"),
        ({"robust": {"rule": "median"}}, "spec.invalid"),
    ],
)
def test_the_problem_is_the_one_that_submitting_meets(
    site: Any, document: dict[str, Any], changes: dict[str, Any], code: str
) -> None:
    told = planned(site, {**document, **changes})["problem"]
    refused = site.admin.post(BASE, json={**document, **changes}).json()
    assert told["code"] == refused["code"] == code
    assert (told["detail"], told["errors"]) == (refused["detail"], refused["errors"])


def test_a_copy_is_told_with_the_change_that_makes_it(site: Any, document: dict[str, Any]) -> None:
    local = {"optimizer": "adam", "learning_rate": 1e-3}
    body = {**document, "algorithm": {"name": "ferret", "K": 64, "local": local}}
    original = site.admin.post(BASE, json=body).json()["id"]
    edited = revised(site, spec=body, change={"algorithm": {"name": "fedavg"}}).json()
    assert edited["spec"]["algorithm"] == {"name": "fedavg", "local": local}
    assert edited["dropped"] == {"algorithm.K": 64}
    told = planned(site, {**edited["spec"], "seed": 9}, original=original)
    assert told["change"] == {"algorithm": {"name": "fedavg"}, "seed": 9}
    clone = site.move(original, "clone", json=told["change"]).json()
    assert (clone["spec"], clone["cloned_from"]) == (told["filled"], original)
    assert clone["spec"]["algorithm"]["local"]["learning_rate"] == 1e-3


def test_toml_is_read_as_the_command_line_reads_it(site: Any) -> None:
    answer = revised(site, toml=TOML, preset="fast", change={"seed": 3, "algorithm": {"bytes_per_round": 4096}}).json()
    assert answer["spec"]["seed"] == 3
    assert answer["spec"]["algorithm"] == {"name": "ferret", "bytes_per_round": 4096, "local": {"steps": 5}}
    assert answer["dropped"] == {"algorithm.K": 64}
    broken = revised(site, toml="name = ")
    assert (broken.status_code, broken.json()["code"]) == (422, "spec.invalid")


def test_a_copy_begins_with_what_its_original_has_to_say(site: Any, document: dict[str, Any]) -> None:
    body = {**document, "algorithm": {"name": "ferret", "local": {"optimizer": "adam", "learning_rate": 0.1}}}
    original = site.admin.post(BASE, json=body).json()["id"]
    assert revised(site, original=original).json()["spec"] == body
    assert planned(site, body, original=original)["change"] == {}
    nobody = {"spec": document, "original": "exp_0000000000000000"}
    for answer in (site.admin.post(f"{BASE}:plan", json=nobody), revised(site, original=nobody["original"])):
        assert (answer.status_code, answer.json()["code"]) == (404, "experiment.not_found")


@pytest.mark.parametrize("body", [{}, {"spec": {}, "toml": ""}])
def test_there_is_one_specification(site: Any, body: dict[str, Any]) -> None:
    assert revised(site, **body).json()["code"] == "request.invalid"


def test_presets_say_what_they_are_for(site: Any) -> None:
    told = site.admin.get("/api/v1/presets").json()
    items = told["items"]
    assert told["quickstart"] is None  # the service may not read the bundled data here
    assert [item["name"] for item in items] == ["paper", "fast", "private"]
    assert all(item["description"].count(". ") == 0 and item["change"] for item in items)
    unknown = revised(site, spec={}, preset="quick")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "catalog.not_found")


def test_of_several_projects_one_must_be_named(site: Any, document: dict[str, Any]) -> None:
    site.admin.post("/api/v1/projects", json={"name": "hearts", "description": "h"}).raise_for_status()
    assert planned(site, document)["problem"]["errors"][0]["field"] == "project"
    answer = site.admin.post(f"{BASE}:plan", params={"project": "hearts"}, json={"spec": document})
    assert answer.json()["problem"] is None


def test_fewer_bytes_than_the_blocks_need_are_told_at_their_field(site: Any, document: dict[str, Any]) -> None:
    told = planned(site, {**document, "algorithm": {"name": "ferret", "bytes_per_round": 9}})
    assert told["unplanned"]["errors"][0]["field"] == "algorithm.bytes_per_round"
