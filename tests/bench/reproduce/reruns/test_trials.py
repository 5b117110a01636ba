"""The tables of a search show what every row was tried with, and what it ended with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferret_bench.reproduce.reruns import settings
from ferret_bench.reproduce.reruns.records import Store
from ferret_bench.reproduce.reruns.rerun import write_all
from ferret_bench.reproduce.reruns.results import recorded
from ferret_bench.reproduce.reruns.tables import trial_tables


@pytest.fixture
def searched(toy_grid, study, ended, tmp_path):
    """A store with two candidates of one seed each for FedAvg, the second failed for Ferret, and their results."""
    store, compared = Store(tmp_path), replace(study, reference="fedavg", seeds=1)
    for rate, losses in {"1e-2": [5.0, 2.0], "1e-1": [5.0, 1.0]}.items():
        trial = ["evaluation.split=validation", f"algorithm.local.learning_rate={rate}"]
        for cell in toy_grid(trial, studied=compared).cells:
            failed = cell.row.name == "ferret" and rate == "1e-1"
            store.add(ended(cell, losses, {"code": "training.non_finite", "detail": "no number"} if failed else None))
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [5.0, 3.0]))
    return recorded(compared, settings.read(None, [], study, absolute_paths=False), store)


def test_the_best_of_each_row_is_bold(searched):
    found = "\n".join(trial_tables(searched.grid.rows, searched.trials))
    assert "0.01 |" in found.splitlines()[0]
    assert "| Ferret | **2.000** | failed |" in found
    assert "| FedAvg | 2.000 | **1.000** |" in found


def test_they_stand_on_the_page_apart_from_the_results(searched, study, tmp_path):
    page = write_all("frontier", replace(study, reference="fedavg"), searched, tmp_path, "ferret paper page")["page"]
    results, search = page.read_text().split("## The search on JSON Lines")
    assert "**1.000**" in search
    assert "3.000" in results
    assert "1.000" not in results


def test_candidates_of_the_same_rate_are_told_apart(toy_grid, study, ended, tmp_path):
    store, compared = Store(tmp_path), replace(study, rows=("fedavg",), reference="fedavg", seeds=1)
    normalized = ["algorithm.local.optimizer=normalized", "algorithm.local.learning_rate=0.15"]
    for more, loss in (
        ([], 2.0),
        (["algorithm.local.momentum=0.5", 'algorithm.local.options={normalize_per="column"}'], 1.0),
    ):
        for cell in toy_grid(["evaluation.split=validation", *normalized, *more], studied=compared).cells:
            store.add(ended(cell, [5.0, loss]))
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [5.0, 3.0]))
    found = recorded(compared, settings.read(None, [], study, absolute_paths=False), store)
    (table,) = trial_tables(found.grid.rows, found.trials)
    assert "| normalized 0.15 | normalized 0.15, momentum 0.5, per column |" in table
    assert "| FedAvg | 2.000 | **1.000** |" in table
