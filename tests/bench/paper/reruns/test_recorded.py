"""A page is written again from recorded runs alone, with the differences that the seeds allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferret_bench.paper.reruns import recorded, settings
from ferret_bench.paper.reruns.store import Store
from tests.refusals import refused


@pytest.fixture
def compared(study):
    return replace(study, reference="fedavg", seeds=3)


@pytest.fixture
def known(study):
    return settings.read(None, [], study, absolute_paths=False)


def test_differences_are_taken_seed_by_seed(toy_grid, compared, known, ended, tmp_path):
    """The seeds scatter far more than the rows differ: only pairs can tell."""
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [9.0, 2.0 * cell.seed * (1.01 if cell.row.name == "ferret" else 1.0)]))
    found = recorded.results(compared, known, store)
    ferret, fedavg = (next(row for row in found.grid.rows if row.name == name) for name in ("ferret", "fedavg"))
    loss = compared.quantities[1]
    difference = found.difference(ferret, fedavg, found.grid.columns[0], loss)
    assert difference is not None
    assert difference == pytest.approx((1.0, 0.0), abs=1e-6)


def test_trials_of_a_search_are_no_results(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for cell in toy_grid(["evaluation.split=validation"], studied=compared).cells:
        store.add(ended(cell, [5.0, 1.0]))
    with refused("request.invalid", "holds no run of this study"):
        recorded.results(compared, known, store)
