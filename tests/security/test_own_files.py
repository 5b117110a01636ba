"""No specification leads to the service's own files: other projects' models, logs, the database, the admin token."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.task_names import TaskName
from ferret_worker.settings import WorkerSettings
from tests.api.conftest import document, open_site
from tests.worker.conftest import Service

DEMO = Path(__file__).parents[2] / "ferret_core/sample/model"
EXAMPLE = '{"instruction": "i", "output": "o"}\n'
ROOTS: dict[str, Callable[[Path], str]] = {
    "default": lambda home: "",
    "everything": lambda home: "/",
    "home itself": lambda home: str(home),
    "its parent": lambda home: str(home.parent),
    "its storage": lambda home: str(home / "storage"),
}


def spec(model: Path = DEMO, data: Path | None = None) -> dict[str, Any]:
    dataset = {"name": "jsonl", "train": str(data)} if data else {"name": "dolly"}
    return document(rounds=1, model={"source": str(model)}, dataset=dataset)


@pytest.fixture
def kept(home: Path) -> Path:
    """A checkpoint of another project's experiment, and the service's log."""
    checkpoint = home / "storage/checkpoints/aa"
    shutil.copytree(DEMO, checkpoint)
    (home / "logs").mkdir()
    (home / "logs/api.log").write_text(EXAMPLE * 20)
    return checkpoint


@pytest.fixture(params=ROOTS)
def rooted(request: pytest.FixtureRequest, home: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service's roots, set in each way that could open its home."""
    monkeypatch.setenv("FERRET_DATA_ROOTS", ROOTS[request.param](home))


@pytest.mark.usefixtures("rooted")
def test_no_experiment_is_made_of_the_services_own_files(make_settings: Any, home: Path, kept: Path) -> None:
    log = home / "logs/api.log"
    (home.parent / "link").symlink_to(kept)
    (home / "data").mkdir()
    (home / "data/link.jsonl").symlink_to(log)
    stolen = {
        "model.source": [spec(path) for path in (kept, home.parent / "link")],
        "dataset.train": [spec(data=path) for path in (log, home / "data/../logs/api.log", home / "data/link.jsonl")],
    }
    with open_site(make_settings()) as site:
        for field, documents in stolen.items():
            for document in documents:
                for path, body in (("", document), (":plan", {"spec": document})):
                    answer = site.admin.post(f"/api/v1/experiments{path}", json=body).json()
                    refused = answer.get("problem", answer)
                    assert refused is not None, document
                    assert refused["errors"][0]["field"] == field, (document, answer)
        assert site.admin.get("/api/v1/experiments").json()["items"] == []


def test_a_storage_outside_home_is_closed_too(make_settings: Any, home: Path, tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "elsewhere/checkpoints/aa")
    settings = make_settings(roots=(Path("/"),), storage_url=f"file://{tmp_path}/elsewhere")
    stolen = spec(tmp_path / "elsewhere/checkpoints/aa")
    with open_site(settings) as site:
        assert site.admin.post("/api/v1/experiments", json=stolen).json()["code"] == "model.invalid"


def test_the_home_by_another_mount_or_spelling_is_closed_too(
    make_settings: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that ignores letter case. Tests cannot mount one, so ``samefile`` says that it is one."""
    twin, real = tmp_path / "HOME", Path.samefile
    twin.mkdir()
    monkeypatch.setattr(Path, "samefile", lambda one, other: real(home if one == twin else one, other))
    with open_site(make_settings(roots=(tmp_path,))) as site:
        stolen = spec(data=twin / "logs/api.log")
        assert site.admin.post("/api/v1/experiments", json=stolen).json()["code"] == "dataset.invalid"


@pytest.mark.usefixtures("rooted")
def test_a_worker_refuses_them_too(home: Path, kept: Path) -> None:
    """A specification may have been stored before the settings changed."""
    service = Service(WorkerSettings(home=home, device="cpu", task_max_attempts=1))
    experiment_id = service.submit(ExperimentSpec.model_validate(spec(kept)))
    service.perform(TaskName.COORDINATE, experiment_id)
    error = service.experiment(experiment_id).error
    service.database.dispose()
    assert error is not None
    assert (error["code"], error["errors"][0]["field"]) == ("model.invalid", "model.source")


@pytest.mark.parametrize("roots", ["", os.sep])
def test_data_that_users_put_into_the_homes_folder_for_data_is_read(
    roots: str, make_settings: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRET_DATA_ROOTS", roots)
    shutil.copytree(DEMO, home / "data/model")
    (home / "data/train.jsonl").write_text(EXAMPLE * 20)
    with open_site(make_settings()) as site:
        answer = site.admin.post("/api/v1/experiments", json=spec(home / "data/model", home / "data/train.jsonl"))
        assert answer.status_code == 202, answer.text
