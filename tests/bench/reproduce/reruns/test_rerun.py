"""Runs a small study in this process: what is kept, what is written, what is run again."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from matplotlib import image

from ferret_bench.reproduce.reruns.in_process import simulated
from ferret_bench.reproduce.reruns.records import Record, Store
from ferret_bench.reproduce.reruns.rerun import finish, open_cells, write_all
from ferret_bench.reproduce.reruns.results import collect
from ferret_core.simulate import simulate

pytestmark = pytest.mark.xdist_group("rerun")  # what is run is run once


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def run(toy_grid, folder):
    """The grid, run once for all tests of this file."""
    found, store = toy_grid(), Store(folder)
    finish(open_cells(found, store, retry=False), len(found.cells), store, simulated)
    return found, store


@pytest.mark.slow
def test_every_run_is_the_one_that_simulate_makes(run):
    """Also where a run took its data and the base model's metrics from the one before."""
    found, store = run
    for cell in found.cells:
        kept, again = store.last(cell.key), simulate(cell.spec)
        assert kept.digest == again.digest
        assert [_loss(done) for done in kept.rounds] == [_loss(done) for done in again.rounds]
        assert [done.bytes_up for done in kept.rounds] == [done.bytes_up for done in again.rounds]


def _loss(done):
    return done.metrics.get("eval_loss")


def test_what_has_ended_is_not_run_again(run):
    found, store = run
    assert open_cells(found, Store(store.path.parent), retry=True) == []
    assert len(store.path.read_text().splitlines()) == 4


def test_only_what_is_missing_is_run(run, toy_grid):
    _, store = run
    changed = toy_grid(["fedavg.rounds=1"])
    assert [cell.row.name for cell in open_cells(changed, store, retry=False)] == ["fedavg", "fedavg"]


def test_forgetting_and_examples_are_measured_where_answers_are(toy_grid):
    cell = toy_grid(["fedavg.evaluation.every=1"]).cells[1]
    ((_, record),) = simulated([cell._replace(others={"another": cell.spec})])
    first, between, last = (done.metrics for done in record.rounds)
    nll, tokens = (sum(getattr(loss, name) for loss in record.example_losses) for name in ("nll", "tokens"))
    assert len(record.example_losses) == cell.spec.evaluation.examples
    assert nll / tokens == pytest.approx(last["eval_loss"], 1e-5)
    assert Record.model_validate_json(record.model_dump_json()) == record
    assert [metrics["eval_loss_on/another"] for metrics in (first, last)] == [
        metrics["eval_loss"] for metrics in (first, last)
    ]
    assert {"rouge_l", "eval_loss"} < first.keys() & last.keys()
    assert "eval_loss" in between
    assert not {"rouge_l", "eval_loss_on/another"} & between.keys()


def test_a_failure_is_recorded_and_the_rest_goes_on(toy_grid, tmp_path, capsys):
    found, store = toy_grid(["ferret.algorithm.bytes_per_round=40"]), Store(tmp_path)
    finish(open_cells(found, store, retry=False), 4, store, simulated)
    results = collect(found, store)
    assert [cell.row.name for cell, _ in results.failures()] == ["ferret", "ferret"]
    assert results.failures()[0][1]["code"] == "spec.invalid"
    assert [len(results.runs(row, found.columns[0])) for row in found.rows] == [0, 2]
    assert "failed: " in capsys.readouterr().err
    assert open_cells(found, store, retry=False) == []
    assert {cell.row.name for cell in open_cells(found, store, retry=True)} == {"ferret"}


@pytest.fixture(scope="module")
def written(run, study, folder):
    return write_all("frontier", study, collect(*run), folder, "ferret dev paper figure frontier --model '<model>'")


@pytest.mark.slow
def test_the_picture_and_the_tables_can_be_read(written):
    picture = image.imread(written["png"])
    assert picture.shape[1] == 1920
    assert (picture[0, 0] == 1).all(), "a background of its own, for pages of any colour"
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20, "an empty picture"
    rows = list(csv.DictReader(written["csv"].read_text().splitlines()))
    assert [(row["row"], row["seeds"]) for row in rows] == [("ferret", "2"), ("fedavg", "2")]
    assert float(rows[0]["bytes_up_mean"]) < float(rows[1]["bytes_up_mean"]) / 10
    rounds = list(csv.DictReader(written["rounds"].read_text().splitlines()))
    assert len(rounds) == 4 * 3


def test_a_record_says_where_it_ran(run):
    _, store = run
    kept = json.loads(store.path.read_text().splitlines()[0])
    assert kept["machine"]["versions"]["torch"]
    assert kept["via"] == "simulate"
    assert kept["spec"]["algorithm"]["local"]["steps"] == 2
