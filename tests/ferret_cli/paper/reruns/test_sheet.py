from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import pytest

from ferret_cli.paper.reruns import settings, studies
from ferret_cli.paper.reruns.grid import Asked, grid
from ferret_cli.paper.reruns.quantity import ROUGE_L
from ferret_cli.paper.reruns.results import collect, csv_rows, curve_rows, printed
from ferret_cli.paper.reruns.settings import shipped
from ferret_cli.paper.reruns.sheet import sheets
from ferret_cli.paper.reruns.store import Store
from ferret_cli.paper.table import to_csv

PAPER = printed("ni_dolly")
ERROR = {"code": "training.non_finite", "detail": "no number"}


@pytest.fixture
def results(toy_grid, tmp_path, ended):
    """FedAvg ended with both seeds, Ferret with one, its other run failed."""
    found, store = toy_grid(), Store(tmp_path)
    for cell, loss in zip(found.cells, [1.5, 1.0, None, 3.0], strict=True):
        store.add(ended(cell, [5.0] if loss is None else [5.0, loss], ERROR if loss is None else None))
    return collect(found, store)


def test_mean_and_deviation_over_the_seeds(study, results):
    (sheet,) = sheets(study, results, PAPER)
    assert [head.label for head in sheet.heads] == ["Evaluation loss", "Sent per round"]
    ferret, fedavg = sheet.lines
    assert (ferret.entries[0].mean, ferret.entries[0].std, ferret.entries[0].mark) == ("1.500", "", "best")
    assert (fedavg.entries[0].mean, fedavg.entries[0].std) == ("2.000", f"{math.sqrt(2):.3f}")
    assert [entry.mean for entry in (ferret.entries[1], fedavg.entries[1])] == ["100 B", "100 B"]


def test_a_place_where_all_runs_failed_says_so(study, toy_grid, tmp_path, ended):
    found, store = toy_grid(), Store(tmp_path)
    for cell in found.cells:
        store.add(ended(cell, [5.0, 2.0], ERROR if cell.row.name == "ferret" else None))
    (sheet,) = sheets(study, collect(found, store), PAPER)
    assert [line.entries[0].mark for line in sheet.lines] == ["failed", ""]


def test_a_model_on_which_every_run_failed_stands_beside_the_paper(study, toy_grid, tmp_path, ended):
    dolly = replace(study, datasets=("dolly",))
    found, store = toy_grid(["dolly.dataset.path=/data/dolly.jsonl"], dolly), Store(tmp_path)
    for cell in found.cells:
        store.add(ended(cell, [], ERROR))
    (sheet,) = sheets(dolly, collect(found, store), PAPER)
    assert [head.ours for head in sheet.heads] == [True, False, False]
    assert [line.entries[0].mean for line in sheet.lines] == ["failed", "failed"]


def test_many_columns_are_folded_and_a_models_are_never_parted(study, tmp_path, ended, toy_data):
    known = settings.read(None, [], study, absolute_paths=True)
    found = grid(study, known, Asked(models=("one", "two", "three", "four", "five"), data=toy_data[0].parent))
    store = Store(tmp_path)
    for cell in found.cells:
        store.add(ended(cell, [5.0, 2.0]))
    first, second = sheets(study, collect(found, store), PAPER)
    assert (first.title, second.title) == ("JSON Lines", "")
    assert [head.group for head in first.heads] == ["one", "one", "two", "two", "three", "three", "four", "four"]
    assert [len(line.entries) for line in second.lines] == [2, 2]


def test_the_papers_figures_stand_beside_ours_once(study, toy_grid, tmp_path, ended):
    dolly = replace(study, rows=("ferret_paper", "ferret", "fedavg"), datasets=("dolly",))
    found = toy_grid(["dolly.dataset.path=/data/dolly.jsonl"], dolly)
    store = Store(tmp_path)
    store.add(ended(found.cells[0], [5.0, 2.0]))
    (sheet,) = sheets(dolly, collect(found, store), PAPER)
    column = [head.group for head in sheet.heads].index("LLaMA-3B")
    shown = [(line.label, line.entries[column]) for line in sheet.lines]
    assert [(label, entry.mean, entry.std, entry.mark) for label, entry in shown] == [
        ("Ferret, paper", "34.57", "0.57", "best"),
        ("Ferret", "–", "", "empty"),
        ("FedAvg", "30.98", "1.66", "second"),
    ]


def test_the_tables_hold_ours_and_the_papers_with_all_digits(study, results):
    rows = list(csv.DictReader(io.StringIO(to_csv(csv_rows(study, results, PAPER)))))
    assert [(row["source"], row["row"], row["seeds"], row["failed"]) for row in rows] == [
        ("here", "ferret", "1", "1"),
        ("here", "fedavg", "2", "0"),
    ]
    assert float(rows[1]["eval_loss_std"]) == math.sqrt(2)
    curves = list(csv.DictReader(io.StringIO(to_csv(curve_rows(results)))))
    assert {(row["row"], row["seed"]) for row in curves} == {
        ("ferret", "1"), ("ferret", "2"), ("fedavg", "1"), ("fedavg", "2"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["table", "figure"])
def test_everything_printed_belongs_to_a_row_a_dataset_and_a_quantity(kind):
    for name in studies.names(kind):
        paper, study = printed(name), studies.study(kind, name)
        assert paper.where
        assert paper.says
        assert paper.values.keys() <= {quantity.name for quantity in study.quantities}
        datasets = shipped("datasets.toml").keys()
        names = {entry.get("printed", row) for row, entry in shipped("rows.toml").items()}
        for by in paper.values.values():
            assert by.keys() <= datasets
            assert {row for models in by.values() for rows in models.values() for row in rows} <= names


def test_the_paper_ranks_as_it_prints():
    """In its table 2 Ferret is best in two of four columns, by what is printed."""
    tops = [
        max(rows, key=lambda row: rows[row].mean)
        for models in PAPER.values[ROUGE_L.name].values()
        for rows in models.values()
    ]
    assert tops.count("ferret") == 2
