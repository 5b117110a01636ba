"""Which rounds' models stay written out: the base, the newest, the best, and what may yet be the best."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_db.database import Database
from ferret_db.engine import checkpoints, rounds
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import artifacts, events
from ferret_db.tables import Experiment

Lab = Any  # tests/ferret_db/conftest.py


def run(lab: Lab, losses: list[float | None], **checkpoint: int | str | None) -> Experiment:
    """A round per loss, each evaluated before the next one opens, except where that is None."""
    experiment = lab.start(rounds=9, checkpoint=checkpoint)
    for number, loss in enumerate(losses, start=1):
        commit(lab, experiment, number)
        experiment = lab.get(experiment)
        if loss is not None:
            evaluate(lab, experiment, number, loss)
    return experiment


def commit(lab: Lab, experiment: Experiment, number: int) -> None:
    lab.commit(lab.freeze(experiment, number), digest=f"{number:02}" * 32)


def evaluate(lab: Lab, experiment: Experiment, number: int, loss: float) -> None:
    with lab.database.begin() as s:
        rounds.record_evaluation(s, experiment.id, number, {"eval_loss": loss})


def written(database: Database, experiment: Experiment) -> list[int]:
    with database.read() as s:
        return artifacts.rounds_of(s, experiment.id)


@pytest.mark.parametrize("keep", ["all", None])
def test_without_a_limit_all_are_kept(lab: Lab, database: Database, keep: str | None) -> None:
    assert written(database, run(lab, [3.0, 2.0, 4.0, 5.0], keep=keep)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("losses", "keep", "kept"),
    [
        ([3.0, 2.0, 4.0, 5.0], 1, [0, 2, 4]),
        ([3.0, 2.0, 4.0, 5.0], 2, [0, 2, 3, 4]),
        ([5.0, 4.0, 3.0, 2.0], 1, [0, 4]),
        ([2.0, 2.0, 2.0, 2.0], 1, [0, 1, 4]),
        ([2.0, 3.0], 9, [0, 1, 2]),
    ],
)
def test_the_newest_and_the_best_are_kept(
    lab: Lab, database: Database, losses: list[float | None], keep: int, kept: list[int]
) -> None:
    assert written(database, run(lab, losses, keep=keep)) == kept


def test_what_is_not_evaluated_yet_may_be_the_best(lab: Lab, database: Database) -> None:
    experiment = run(lab, [3.0, None, None], keep=1)
    assert written(database, experiment) == [0, 1, 2, 3]
    evaluate(lab, experiment, 2, 2.0)
    assert written(database, experiment) == [0, 2, 3]
    evaluate(lab, experiment, 3, 1.0)
    assert written(database, experiment) == [0, 3]


def test_a_round_that_is_never_evaluated_is_not_waited_for(lab: Lab, database: Database) -> None:
    experiment = lab.start(rounds=9, checkpoint={"keep": 1}, evaluation={"every": 2})
    for number in (1, 2, 3):
        commit(lab, experiment, number)
        experiment = lab.get(experiment)
    assert written(database, experiment) == [0, 2, 3]


def files(*digests: str) -> list[ArtifactFile]:
    return [ArtifactFile(f"file-{i}", 9, digest * 32, f"at/{digest}") for i, digest in enumerate(digests)]


def test_a_rebuilt_checkpoint_keeps_the_addresses_of_its_files(lab: Lab, database: Database) -> None:
    experiment = lab.start()
    with database.begin() as s:
        checkpoints.add(s, experiment.id, 1, files("a1", "b1"))
        before = {artifact.name: artifact.id for artifact in artifacts.of_round(s, experiment.id, 1)}
    with database.begin() as s:
        checkpoints.rebuilt(s, experiment.id, 1, files("a1", "b2", "c2"))
    with database.read() as s:
        after = artifacts.of_round(s, experiment.id, 1)
        assert events.after(s, experiment.id, 0, 100)[-1].type == "checkpoint.rebuilt"
    assert [(artifact.name, artifact.digest) for artifact in after] == [
        ("file-0", "a1" * 32),
        ("file-1", "b2" * 32),
        ("file-2", "c2" * 32),
    ]
    assert {artifact.name: artifact.id for artifact in after[:2]} == before
    with database.begin() as s:
        checkpoints.rebuilt(s, experiment.id, 1, files("a1"))
        assert [artifact.name for artifact in artifacts.of_round(s, experiment.id, 1)] == ["file-0"]


def test_rebuilding_what_is_kept_no_longer_notes_nothing(lab: Lab, database: Database) -> None:
    experiment = lab.start()
    before = lab.get(experiment).last_event_seq
    with database.begin() as s:
        checkpoints.rebuilt(s, experiment.id, 7, files("a1"))
    with database.read() as s:
        assert artifacts.of_round(s, experiment.id, 7) == []
    assert lab.get(experiment).last_event_seq == before


def test_so_many_of_the_best_are_kept_as_is_asked_for(lab: Lab, database: Database) -> None:
    assert written(database, run(lab, [2.0, 3.0, 1.0, 5.0, 4.0], keep=1, keep_best=2)) == [0, 1, 3, 5]


def test_the_best_is_by_the_metric_that_the_specification_names(lab: Lab, database: Database) -> None:
    experiment = lab.start(rounds=9, checkpoint={"keep": 1}, stopping={"metric": "rouge_l"})
    for number, (loss, score) in enumerate([(1.0, 5.0), (2.0, 9.0), (3.0, 7.0)], start=1):
        commit(lab, experiment, number)
        with database.begin() as s:
            rounds.record_evaluation(s, experiment.id, number, {"eval_loss": loss, "rouge_l": score})
        experiment = lab.get(experiment)
    assert written(database, experiment) == [0, 2, 3]
