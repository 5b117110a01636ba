"""A search gives every row the same number of candidates, never sees the test split, and chooses the best."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace

import pytest

from ferret_bench.reproduce.reruns import settings, studies, tuning
from ferret_bench.reproduce.reruns.records import RoundRecord, Store

STUDY = studies.study("figure", "frontier")


@pytest.fixture
def searched(study, asked, tmp_path):
    known = settings.read(None, ["rounds=1", "participants.simulated=2"], study, absolute_paths=True)
    mixed = replace(study, rows=("ferret", "fedavg", "fedkseed"))
    return tuning.search(mixed, known, asked, 2)


def test_every_row_gets_as_many_candidates_on_the_validation_split_with_seeds_of_their_own(searched):
    by_row = {}
    for cell in searched.cells:
        by_row.setdefault(cell.row.name, []).append(cell)
        assert cell.spec.evaluation.split == "validation"
        assert cell.seed in (1001, 1002)
    counts = {name: len({cell.key for cell in cells}) for name, cells in by_row.items()}
    assert set(counts) == {"ferret", "fedavg", "fedkseed"}
    assert set(counts.values()) == {2 * len(tuning.candidates(STUDY)["first_order"])}


def test_zeroth_order_rows_get_candidates_of_their_kind(searched):
    kinds = {cell.row.name: tuning.kind_of(cell) for cell in searched.cells}
    assert kinds == {"ferret": "first_order", "fedavg": "first_order", "fedkseed": "zeroth_order"}


def test_what_is_chosen_has_the_lowest_mean_and_a_failed_candidate_never_is(searched, tmp_path):
    store = Store(tmp_path)
    for number, part in enumerate(searched.grids):
        for cell in part.cells:
            loss = {0: 3.0, 1: 2.5, 2: 2.0}.get(number, 4.0) + (cell.seed == 1002)
            error = {"code": "training.non_finite", "detail": "…"} if number == 2 and cell.seed == 1002 else None
            rounds = [
                RoundRecord(number=0, metrics={"eval_loss": 9.0}),
                RoundRecord(number=1, metrics={"eval_loss": loss}),
            ]
            store.add(cell.record("simulate", 1.0, {}, rounds=rounds, error=error))
    trials = tuning.trials(STUDY, searched, store)
    assert [trial.loss for trial in trials if trial.row.name == "fedavg"][:3] == [3.5, 3.0, math.inf]
    best = tuning.chosen(trials)
    assert [(trial.row.name, trial.number) for trial in best] == [("ferret", 1), ("fedavg", 1), ("fedkseed", 1)]
    assert tuning.chosen([trial._replace(loss=math.inf) for trial in trials]) == []
    file = tmp_path / "chosen.toml"
    file.write_text(tuning.settings_file(best))
    tables = tomllib.loads(file.read_text())
    assert tables["fedavg"]["jsonl"]["algorithm"]["local"] == tuning.candidates(STUDY)["first_order"][1]


@pytest.mark.parametrize("number", range(len(tuning.candidates(STUDY)["first_order"])))
def test_the_figure_then_runs_what_was_chosen(searched, study, asked, tmp_path, number):
    candidate = tuning.candidates(STUDY)["first_order"][number]
    (row,) = [cell.row for cell in searched.grids[0].cells if cell.row.name == "fedavg" and cell.seed == 1001]
    trial = tuning.Trial(row, searched.grids[0].columns[0], number, candidate, 2.0)
    file = tmp_path / "chosen.toml"
    file.write_text(tuning.settings_file([trial]))
    known = settings.read(file, ["rounds=1"], study, absolute_paths=True)
    from ferret_bench.reproduce.reruns.grid import grid

    (cell, *_) = [cell for cell in grid(study, known, asked).cells if cell.row.name == "fedavg"]
    assert candidate.items() <= cell.spec.algorithm.options["local"].items()
    assert (cell.seed, cell.spec.evaluation.split) == (1, "test")


def test_a_row_that_is_tuned_with_one_optimizer_gets_no_other(study, asked):
    known = settings.read(None, ["rounds=1"], study, absolute_paths=True)
    cells = tuning.search(replace(study, rows=("fedavg", "fedavg_adam")), known, asked, 1).cells
    tried = [cell.spec.algorithm.options["local"]["optimizer"] for cell in cells if cell.row.name == "fedavg_adam"]
    adam = [candidate for candidate in tuning.candidates(STUDY)["first_order"] if candidate["optimizer"] == "adam"]
    assert tried == ["adam"] * len(adam)
    assert len(cells) - len(tried) == len(tuning.candidates(STUDY)["first_order"])
