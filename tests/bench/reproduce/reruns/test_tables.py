from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import pytest

from ferret_bench._markdown import plain
from ferret_bench.reproduce.reruns import studies
from ferret_bench.reproduce.reruns.records import Store
from ferret_bench.reproduce.reruns.results import collect, csv_rows, curve_rows, lines, printed
from ferret_bench.reproduce.reruns.settings import shipped
from ferret_bench.reproduce.reruns.tables import table
from ferret_cli.files import to_csv

PAPER = printed("ni_dolly")
ERROR = {"code": "training.non_finite", "detail": "no number"}


@pytest.fixture
def results(toy_grid, tmp_path, ended):
    """FedAvg ended with both seeds, Ferret with one, its other run failed."""
    found, store = toy_grid(), Store(tmp_path)
    for cell, loss in zip(found.cells, [1.5, 1.0, None, 3.0], strict=True):
        store.add(ended(cell, [5.0] if loss is None else [5.0, loss], ERROR if loss is None else None))
    return collect(found, store)


def table_of(study, results) -> list[list[str]]:
    """The cells of the Markdown table of the study's only dataset, the rule under the heads left out."""
    heads, _, *rows = table(lines(study, results, PAPER), study.quantities).splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in (heads, *rows)]


def test_mean_and_deviation_over_the_seeds(study, results):
    heads, ferret, fedavg = table_of(study, results)
    assert heads == ["Algorithm", "Model", "Evaluation loss", "Sent per round", "Runs"]
    model = results.grid.columns[0].model
    assert ferret == ["Ferret", model, "**1.500**", "100 B", "1"]
    assert fedavg == ["FedAvg", model, f"*2.000* ± {math.sqrt(2):.3f}", "100 B", "2"]


def test_a_place_where_all_runs_failed_says_so(study, toy_grid, tmp_path, ended):
    found, store = toy_grid(), Store(tmp_path)
    for cell in found.cells:
        store.add(ended(cell, [5.0, 2.0], ERROR if cell.row.name == "ferret" else None))
    _, ferret, fedavg = table_of(study, collect(found, store))
    assert (ferret[2:], fedavg[2]) == (["failed", "failed", "0"], "2.000 ± 0.000")


def test_a_model_on_which_every_run_failed_stands_above_the_paper(study, toy_grid, tmp_path, ended):
    dolly = replace(study, datasets=("dolly",))
    found, store = toy_grid(["dolly.dataset.path=/data/dolly.jsonl"], dolly), Store(tmp_path)
    for cell in found.cells:
        store.add(ended(cell, [], ERROR))
    heads, *rows = table_of(dolly, collect(found, store))
    assert heads == ["Algorithm", "Model", "Rouge-L, %", "Runs"]
    assert [row[2] for row in rows[:2]] == ["failed", "failed"]
    assert {row[1] for row in rows[2:]} == {"DataJuicer-1.3B, paper", "LLaMA-3B, paper"}


def test_the_papers_figures_stand_below_ours_once_and_are_ranked_apart(study, toy_grid, tmp_path, ended):
    dolly = replace(study, rows=("ferret_paper", "ferret", "fedavg"), datasets=("dolly",))
    found = toy_grid(["dolly.dataset.path=/data/dolly.jsonl"], dolly)
    store = Store(tmp_path)
    store.add(ended(found.cells[0], [5.0, 2.0]))
    rows = table_of(dolly, collect(found, store))
    assert [(row[0], row[2]) for row in rows if row[1] == "LLaMA-3B, paper"] == [
        ("Ferret, paper", "**34.57** ± 0.57"),
        ("FedAvg", "*30.98* ± 1.66"),
    ]


def test_a_name_cannot_end_a_cell_or_begin_html():
    assert plain("a | b\n<script>") == "a \\| b &lt;script&gt;"


def test_the_tables_hold_ours_and_the_papers_with_all_digits(study, results):
    rows = list(csv.DictReader(io.StringIO(to_csv(csv_rows(lines(study, results, PAPER))))))
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
