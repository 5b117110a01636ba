"""Files of a service: backed up while it runs, checked, rebuilt, collected, replayed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service
from tests.digests import digest_of
from tests.in_process import ADMIN, Api, Worker
from tests.refusals import refused

pytestmark = pytest.mark.xdist_group("stored")  # one service for all of them
Ferret = Callable[..., Any]  # tests/ferret_cli/conftest.py
ROUNDS = 3


@pytest.fixture(scope="module")
def spec(toy_spec: Callable[..., ExperimentSpec]) -> ExperimentSpec:
    return toy_spec(
        "topk",
        rounds=ROUNDS,
        participants={"simulated": 2},
        options={"local": {"learning_rate": 1e-2, "steps": 1, "batch_size": 4}},
        evaluation={"examples": 4, "generate_examples": 0},
        checkpoint={"every": 2},
    )


@pytest.fixture(scope="module")
def api(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp("stored") / "home"
    home.mkdir()
    shutil.copyfile(migrated, home / "ferret.db")
    running = Api(home)
    yield running
    running.stop()


@pytest.fixture
def home(api: Api) -> Path:
    return api.home


@pytest.fixture
def ferret(ferret_in_process: Ferret, api: Api) -> Ferret:
    return partial(ferret_in_process, FERRET_URL=api.url, FERRET_TOKEN=ADMIN)


@pytest.fixture(scope="module")
def run(api: Api, spec: ExperimentSpec) -> Iterator[Run]:
    """A finished experiment."""
    worker = Worker(api.home)
    yield Service(api.url, ADMIN).submit(spec).wait()
    worker.stop()


def document(done: Any, code: int = 0) -> Any:
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def stored(home: Path) -> list[Path]:
    return [path for path in sorted((home / "storage").glob("*/*/*")) if not path.parent.parent.name.startswith(".")]


@pytest.mark.slow
def test_a_restored_home_goes_on_to_the_same_model(
    ferret_in_process: Ferret, spec: ExperimentSpec, tmp_path: Path, broker: None, start_served: Callable[..., Any]
) -> None:
    quick = {
        "FERRET_DATA_ROOTS": "/",
        "FERRET_THREADS": "1",
        "FERRET_RECONCILE_SECONDS": "0.5",
        "FERRET_LEASE_SECONDS": "10",
    }
    first = start_served(tmp_path / "home", **quick)
    try:
        experiment = service_in(first).submit(spec)
        for event in experiment.events():
            if event.type == "round.committed":
                break
        saved = document(ferret_in_process("backup", tmp_path / "backup.tar.gz", "--json", FERRET_HOME=str(first.home)))
        assert saved["packed_bytes"] == (tmp_path / "backup.tar.gz").stat().st_size
        finished = experiment.wait()
        ledger = [item.hash for item in finished.ledger()]
        assert finished.experiment.digest == simulate(spec).digest
        assert first.stop() == 0
    finally:
        first.close()

    again = tmp_path / "again"
    restored = ferret_in_process("restore", tmp_path / "backup.tar.gz", "--home", again, "--json")
    assert document(restored)["files"] >= 1
    second = start_served(again, **quick)
    try:
        gone_on = service_in(second).experiment(experiment.id).wait()
        assert gone_on.experiment.digest == finished.experiment.digest
        assert [item.hash for item in gone_on.ledger()] == ledger
        assert second.stop() == 0
    finally:
        second.close()


def service_in(served: Any) -> Service:
    return Service(served.url, (served.home / "admin.token").read_text().strip())


def test_damage_is_found_and_repaired(ferret: Ferret, run: Run, home: Path) -> None:
    assert ferret("storage", "clean", "--grace", "0").returncode == 0  # memories of earlier rounds
    hit = stored(home)
    whole = document(ferret("storage", "verify", "--json"))
    assert (whole["files"], whole["damaged"], whole["missed"]) == (len(hit), [], 0)
    before = {path: path.read_bytes() for path in hit}
    for path in hit[::2]:
        path.write_bytes(b"rotten" + before[path][6:])
    for path in hit[1::4]:
        path.unlink()
    found = ferret("storage", "verify", "--json")
    assert found.returncode == 1
    assert {home / "storage" / item["location"] for item in json.loads(found.stdout)["damaged"]} == {
        *hit[::2],
        *hit[1::4],
    }
    repaired = document(ferret("storage", "verify", "--repair", "--json", FERRET_THREADS="1"))
    assert (repaired["left"], repaired["missed"]) == ([], 0)
    assert {path: path.read_bytes() for path in hit} == before


@pytest.mark.slow
def test_what_cannot_be_repaired_is_told(ferret: Ferret, run: Run, home: Path, spec: ExperimentSpec) -> None:
    """Nothing but the model's own folder has the base model's bytes."""
    (base,) = [file for file in run.checkpoint(0) if file.name == "model.safetensors"]
    lost = [path for path in stored(home) if path.name == base.name and digest_file(path) == base.digest]
    source = Path(spec.model.source) / base.name
    weights = source.read_bytes()
    for path in (*lost, source):
        path.unlink()
    try:
        left = ferret("storage", "verify", "--repair", "--json")
    finally:
        source.write_bytes(weights)
    assert left.returncode == 1
    told = json.loads(left.stdout)
    assert (len(told["left"]), told["missed"]) == (len(lost), len(lost))
    assert "restore a backup" in left.stderr
    assert ferret("storage", "verify", "--repair").returncode == 0


def test_garbage_is_collected_and_nothing_else(ferret: Ferret, run: Run, home: Path) -> None:
    garbage = home / "storage/updates/00/none"
    garbage.parent.mkdir(exist_ok=True)
    garbage.write_bytes(b"twelve bytes")
    kept = stored(home)
    assert document(ferret("storage", "clean", "--json"))["files"] == 0, "it is too young"
    told = document(ferret("storage", "clean", "--grace", "0", "--dry-run", "--json"))
    assert told["dry_run"]
    assert garbage.exists()
    done = document(ferret("storage", "clean", "--grace", "0", "--json"))
    assert (done["files"], done["bytes"]) == (told["files"], told["bytes"])
    assert not garbage.exists()
    assert document(ferret("storage", "verify", "--json"))["damaged"] == []
    assert len(kept) - len(stored(home)) == done["files"]


@pytest.mark.parametrize("number", [0, 1, ROUNDS])
def test_the_model_of_any_round_can_be_had_again(ferret: Ferret, run: Run, tmp_path: Path, number: int) -> None:
    replayed = document(ferret("experiment", "replay", run.id, "--round", number, tmp_path / "model", "--json"))
    expected = [run.experiment.base_digest, *(item.record["digest"] for item in run.ledger())][number]
    assert replayed["digest"] == expected
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model", use_safetensors=True)
    assert digest_of(model, run.specification().model.source) == expected
    assert AutoTokenizer.from_pretrained(tmp_path / "model")("Repeat.").input_ids
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_round_that_is_not_there_and_a_folder_in_use(ferret: Ferret, run: Run, tmp_path: Path) -> None:
    missing = ferret("experiment", "replay", run.id, "--round", ROUNDS + 1, tmp_path / "model", "--json")
    assert document(missing, code=3)["code"] == "round.not_found"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("mine")
    refused = ferret("experiment", "replay", run.id, "--round", 1, tmp_path / "model", "--json")
    assert document(refused, code=2)["code"] == "request.invalid"


def test_verification_compares_the_weights_of_checkpoints_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ferret_cli.ledger_replay import verified_records

    assert {file.round for file in run.artifacts()} == {0, 2, 3}
    assert [record.round for record in verified_records(run)] == [1, 2, 3]
    files = run.artifacts()
    wrong = [file.model_copy(update={"digest": "ab" * 32}) if file.round == 2 else file for file in files]
    monkeypatch.setattr(run, "artifacts", lambda: wrong)
    with refused("ledger.broken", "round = 2"):
        list(verified_records(run))
