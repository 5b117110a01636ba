"""Files that rot or vanish are noticed, every one of them, and made again with the same bytes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState, ParticipantKind, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_core.storage import FileKind
from ferret_db.engine import file_integrity
from ferret_db.repositories import artifacts, contributions, events, rounds, stored_files
from ferret_db.repositories.stored_files import StoredFileRef
from ferret_db.tables import Assignment
from ferret_worker import repair
from ferret_worker.worker_state import LoadedExperiment, WorkerState
from tests.refusals import refused
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def spec(plain_spec: SpecFactory) -> ExperimentSpec:
    """Two rounds of clients that keep something from one to the next; every kind of file comes of it."""
    return plain_spec(rounds=2)


@pytest.fixture
def finished(service: Service, spec: ExperimentSpec) -> str:
    experiment_id = service.submit(spec)
    service.run()
    assert service.experiment(experiment_id).state == ExperimentState.COMPLETED
    return experiment_id


def files_of(service: Service, experiment_id: str) -> list[StoredFileRef]:
    with service.database.read() as s:
        return list(stored_files.of_all(s, experiment_id))


def damaged(service: Service, experiment_id: str) -> list[StoredFileRef]:
    return file_integrity.damaged(service.context.storage, files_of(service, experiment_id))


def path_of(service: Service, file: StoredFileRef) -> Path:
    return service.context.storage.path(file.location)


def model_at(context: WorkerState, experiment_id: str, number: int) -> LoadedExperiment:
    return repair.repaired(context, experiment_id, lambda: context.model_at(experiment_id, number))


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def contents(service: Service, files: Iterable[StoredFileRef]) -> dict[str, bytes]:
    return {file.location: path_of(service, file).read_bytes() for file in files}


@usually_on("sqlite")
def test_a_thousand_flipped_bits_are_noticed_and_nothing_is_lost(service: Service, finished: str) -> None:
    files = files_of(service, finished)
    assert {file.kind for file in files} == set(FileKind)
    before = contents(service, files)
    draw = random.Random(20)
    for _ in range(5):
        hit: set[str] = set()
        for _ in range(200):
            file = draw.choice(files)
            bit = draw.randrange(8 * len(before[file.location]))
            flip(path_of(service, file), bit)
            if contents(service, [file])[file.location] == before[file.location]:
                flip(path_of(service, file), bit)  # the same bit twice would be no damage
            with refused("storage.corrupt", "does not match its digest"):
                service.context.storage.verify(file.location, file.digest)
            hit.add(file.location)
        assert {file.location for file in damaged(service, finished)} == hit
        service.context = service.new_context()
        service.perform(TaskName.REPAIR, finished)
        assert contents(service, files) == before


@usually_on("sqlite")
@pytest.mark.parametrize("lost", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in FileKind), "all"])
def test_files_of_every_kind_are_made_again_from_the_others(service: Service, finished: str, lost: str) -> None:
    files = files_of(service, finished)
    before = contents(service, files)
    for file in files:
        if lost in {file.kind, "all"}:
            path_of(service, file).unlink(missing_ok=True)
    service.context = service.new_context()
    service.perform(TaskName.REPAIR, finished)
    assert files_of(service, finished) == files
    assert contents(service, files) == before


@usually_on("sqlite")
def test_a_rebuilt_checkpoint_is_an_event_and_keeps_its_address(service: Service, finished: str) -> None:
    with service.database.read() as s:
        known = {file.id: file.digest for file in artifacts.of_experiment(s, finished)}
        last = artifacts.of_round(s, finished, 2)
    service.context.storage.path(last[0].location).unlink()
    service.perform(TaskName.REPAIR, finished)
    with service.database.read() as s:
        assert {file.id: file.digest for file in artifacts.of_experiment(s, finished)} == known
        happened = [event for event in events.after(s, finished, 0, 100) if event.type == "checkpoint.rebuilt"]
    assert [(item.round, item.data["files"]) for item in happened] == [(2, len(last))]


@usually_on("sqlite")
@pytest.mark.parametrize("kind", [FileKind.CHECKPOINT, FileKind.UPDATE, FileKind.MEMORY])
def test_a_worker_that_comes_upon_damage_mends_it_and_goes_on(
    service: Service, spec: ExperimentSpec, kind: FileKind
) -> None:
    spec = spec.model_copy(update={"rounds": 3})
    experiment_id = service.submit(spec)
    service.run(until=lambda message: message.task == TaskName.AGGREGATE)
    service.run(until=lambda message: message.task == TaskName.AGGREGATE)
    for file in files_of(service, experiment_id):
        if file.kind == kind and file.needed:
            flip(path_of(service, file), 100)
    service.context = service.new_context()
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)


@usually_on("sqlite")
@pytest.mark.parametrize(
    "name",
    ["model.safetensors", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tokenizer.json", "config.json"))],
)
def test_no_file_of_the_base_model_is_used_unchecked(
    service: Service, spec: ExperimentSpec, finished: str, name: str
) -> None:
    (file,) = [item for item in files_of(service, finished) if item.round == 0 and item.name == name]
    before = path_of(service, file).read_bytes()
    flip(path_of(service, file), 8 * (len(before) // 2))
    model_at(service.new_context(), finished, 2)
    assert path_of(service, file).read_bytes() == before


def test_a_base_model_that_is_gone_everywhere_says_what_to_bring_back(
    service: Service, spec: ExperimentSpec, tmp_path: Path
) -> None:
    shutil.copytree(spec.model.source, tmp_path / "model")
    source = spec.model.model_copy(update={"source": str(tmp_path / "model")})
    experiment_id = service.submit(spec.model_copy(update={"model": source}))
    service.run(until=lambda message: message.task == TaskName.AGGREGATE)
    base = next(file for file in files_of(service, experiment_id) if file.name == "model.safetensors")
    path_of(service, base).unlink()
    for change in ("other", "gone"):
        if change == "other":
            flip(tmp_path / "model" / "model.safetensors", 8 * 5000)
        else:
            shutil.rmtree(tmp_path / "model")
        with refused("storage.corrupt", "restore a backup") as caught:
            model_at(service.new_context(), experiment_id, 0)
        assert service.experiment(experiment_id).base_digest in caught.value.detail


class TestRealParticipant:
    """Only it has its data: what it sent cannot be had again."""

    @pytest.fixture
    def sent(self, service: Service, spec: ExperimentSpec) -> str:
        """An experiment whose first round, frozen, holds a contribution of a real participant."""
        experiment_id = service.submit(spec)
        while service.messages[0].task != TaskName.AGGREGATE:
            service.step()
        with service.database.begin() as s:
            s.execute(
                update(Assignment).where(Assignment.participant == "client-002").values(kind=ParticipantKind.EDGE)
            )
        return experiment_id

    def contribution(self, service: Service, experiment_id: str) -> StoredFileRef:
        (found,) = [
            file
            for file in files_of(service, experiment_id)
            if (file.kind, file.round, file.name) == (FileKind.CONTRIBUTION, 1, "client-002")
        ]
        return found

    def test_a_frozen_round_without_it_is_tried_again(self, service: Service, spec: ExperimentSpec, sent: str) -> None:
        flip(path_of(service, self.contribution(service, sent)), 100)
        service.run()
        experiment = service.experiment(sent)
        with service.database.read() as s:
            first, second = rounds.in_states(s, sent, RoundState.ABANDONED, RoundState.COMMITTED)[:2]
            assert len(contributions.of_round(s, second.id)) == 3
        assert (first.number, first.attempt, first.state) == (1, 1, RoundState.ABANDONED)
        assert (second.number, second.attempt, second.state) == (1, 2, RoundState.COMMITTED)
        assert first.error["code"] == "storage.corrupt"
        assert (experiment.state, experiment.round) == (ExperimentState.COMPLETED, 2)

    def test_once_it_is_in_the_model_nothing_needs_it(self, service: Service, sent: str) -> None:
        service.run()
        file = self.contribution(service, sent)
        assert not file.needed
        flip(path_of(service, file), 100)
        service.perform(TaskName.REPAIR, sent)
        assert damaged(service, sent) == [file]
        assert model_at(service.new_context(), sent, 2).replica.digest == service.experiment(sent).digest

    def test_without_it_and_the_update_the_round_cannot_be_had_again(
        self, service: Service, sent: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        service.run()
        for file in files_of(service, sent):
            if file == self.contribution(service, sent) or (file.kind, file.round) == (FileKind.UPDATE, 1):
                flip(path_of(service, file), 100)
        with refused("storage.corrupt"):
            model_at(service.new_context(), sent, 2)
        assert "what client-002 sent in round 1" in caplog.text


def test_a_repair_that_finds_nothing_changes_nothing(service: Service, finished: str) -> None:
    before = service.experiment(finished).last_event_seq
    kept = model_at(service.context, finished, 2)
    repair.repair(service.context, finished)
    assert service.experiment(finished).last_event_seq == before
    assert model_at(service.context, finished, 2) is kept
