"""A page is written again from recorded runs alone, with the differences that the seeds allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferret_bench.reproduce.reruns import settings
from ferret_bench.reproduce.reruns.records import FIRST_TRIAL_SEED, Store
from ferret_bench.reproduce.reruns.rerun import write_all
from ferret_bench.reproduce.reruns.results import recorded
from tests.refusals import refused


@pytest.fixture
def compared(study):
    return replace(study, reference="fedavg", seeds=3)


@pytest.fixture
def known(study):
    return settings.read(None, [], study, absolute_paths=False)


def test_the_page_follows_from_the_records(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        loss = 2.0 + 0.1 * cell.seed
        store.add(ended(cell, [5.0, loss if cell.row.name == "fedavg" else 1.1 * loss]))
    pages = []
    for _ in range(2):
        found = recorded(compared, known, Store(tmp_path))
        pages.append(
            write_all("frontier", compared, found, tmp_path, "ferret dev paper page", "from runs.jsonl")[
                "page"
            ].read_text()
        )
    assert pages[0] == pages[1]
    assert "**+10.0 ± 0.0**" in pages[0]
    assert "to FedAvg, %" in pages[0]
    assert "Evaluation loss" in pages[0]


def test_differences_are_taken_seed_by_seed(toy_grid, compared, known, ended, tmp_path):
    """The seeds scatter far more than the rows differ: only pairs can tell."""
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [9.0, 2.0 * cell.seed * (1.01 if cell.row.name == "ferret" else 1.0)]))
    found = recorded(compared, known, store)
    ferret, fedavg = (next(row for row in found.grid.rows if row.name == name) for name in ("ferret", "fedavg"))
    loss = compared.quantities[1]
    difference = found.difference(ferret, fedavg, found.grid.columns[0], loss)
    assert difference is not None
    assert difference == pytest.approx((1.0, 0.0), abs=1e-6)


def test_models_come_in_the_order_in_which_they_were_run(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for model in ("260K", "3M", "15M"):
        for cell in toy_grid(studied=compared).cells:
            store.add(ended(cell, [5.0, 2.0]).model_copy(update={"key": f"{cell.key} {model}", "model": model}))
    found = recorded(compared, known, Store(tmp_path))
    assert [column.model for column in found.grid.columns] == ["260K", "3M", "15M"]


def test_options_that_differ_between_models_are_told_for_each(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for model, steps in (("3M", 2), ("60M", 3)):
        for cell in toy_grid([f"fedavg.algorithm.local.steps={steps}"], studied=compared).cells:
            store.add(ended(cell, [5.0, 2.0]).model_copy(update={"key": f"{cell.key} {model}", "model": model}))
    found = recorded(compared, known, Store(tmp_path))
    page = write_all("frontier", compared, found, tmp_path, "ferret dev paper page")["page"].read_text()
    options = [line.split(" | ")[:3] for line in page.splitlines() if "`" in line and line.startswith("|")]
    title = found.grid.columns[0].title
    assert [place for _, place, _ in options] == [title, f"{title}, 3M", f"{title}, 60M"]
    assert "steps = 2" in options[1][2]
    assert "steps = 3" in options[2][2]


def test_trials_of_a_search_are_no_results(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [5.0, 1.0]).model_copy(update={"seed": FIRST_TRIAL_SEED}))
    with refused("request.invalid", "holds no run of this study"):
        recorded(compared, known, store)


def test_remarks_become_part_of_the_page(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [5.0, 2.0]))
    (tmp_path / "frontier-remarks.md").write_text("Both end alike.\n")
    found = recorded(compared, known, store)
    page = write_all("frontier", compared, found, tmp_path, "ferret dev paper page")["page"].read_text()
    assert "## What it shows\n\nBoth end alike.\n\n" in page
