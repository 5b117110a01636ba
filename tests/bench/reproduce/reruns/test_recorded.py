"""A page is written again from recorded runs alone, with the differences that the seeds allow."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ferret_bench.measure.statistics import Interval
from ferret_bench.reproduce.reruns import settings, tables
from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS, EXACT_MATCH, FORGETTING, ROUGE_L
from ferret_bench.reproduce.reruns.records import FIRST_TRIAL_SEED, ExampleLoss, Store
from ferret_bench.reproduce.reruns.rerun import write_all
from ferret_bench.reproduce.reruns.results import TimeToTarget, lines, printed, recorded
from tests.refusals import refused

PAPER = printed("ni_dolly")


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


@pytest.mark.parametrize(("first", "shown"), [(5.0, ["5.000", "–"]), (None, None)])
def test_the_base_model_is_as_the_references_runs_measured_it(toy_grid, compared, known, ended, tmp_path, first, shown):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        run = ended(cell, [6.0, 2.0])
        if cell.row.name == "fedavg":
            run.rounds[0].metrics.clear() if first is None else run.rounds[0].metrics.update(eval_loss=first)
        store.add(run)
    table = tables.compared(lines(compared, recorded(compared, known, store), PAPER), (EVAL_LOSS,), "fedavg")
    base = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines() if "Base model" in row]
    assert base == ([] if shown is None else [["Base model", "–", "–", *shown, "–"]])


@pytest.mark.parametrize(("sent", "named"), [(995, True), (985, False)])
def test_rivals_with_the_same_bytes_are_named(toy_grid, compared, known, ended, tmp_path, sent, named):
    """Two rows fill one budget to different bytes."""
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        run = ended(cell, [9.0, 3.0 if cell.row.name == "ferret" else 2.0])
        run.rounds[1] = run.rounds[1].model_copy(update={"bytes_up": 1000 if cell.row.name == "ferret" else sent})
        store.add(run)
    found = recorded(compared, known, store)
    said = list(tables.verdicts(found, found.grid.columns[0], EVAL_LOSS, "fedavg"))
    rival = "Ferret, of the rivals that send at least 99 % of its bytes, higher than FedAvg (+50.0 ± 0.0 %)."
    assert said == ["Against FedAvg higher: Ferret (+50.0 ± 0.0 %).", *([rival] if named else [])]


@pytest.mark.parametrize(("start", "named"), [(9.02, False), (9.2, True)])
def test_runs_of_another_base_model_are_named(toy_grid, compared, known, ended, tmp_path, start, named):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        store.add(ended(cell, [start if cell.row.name == "ferret" else 9.0, 2.0]))
    found = recorded(compared, known, store)
    said = " ".join(tables.verdicts(found, found.grid.columns[0], EVAL_LOSS, "fedavg"))
    assert ("the loss differed from FedAvg's, 9.000: Ferret (9.200)." in said) == named


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


def test_a_difference_of_what_may_be_zero_is_in_its_own_unit(toy_grid, compared, known, ended, tmp_path):
    answered = replace(compared, quantities=(EVAL_LOSS, ROUGE_L, EXACT_MATCH, FORGETTING))
    store = Store(tmp_path)
    for cell in toy_grid(studied=answered).cells:
        run, ours = ended(cell, [9.0, 2.0]), cell.row.name == "ferret"
        for done in run.rounds:
            done.metrics.update({"rouge_l_paper": 0.0, "exact_match": 2.5 * ours, "eval_loss_on/a": 3.0 - done.number})
            done.metrics["eval_loss_on/b"] = 3.0 + (2.0 * ours + 1.0) * done.number
        store.add(run)
    found = recorded(answered, known, store)
    table = tables.compared(lines(answered, found, PAPER), answered.quantities, "fedavg").splitlines()
    heads, ferret = ([cell.strip() for cell in row.strip("|").split("|")] for row in (table[0], table[3]))
    shown = dict(zip(zip(heads, ["", *heads], strict=False), ferret, strict=True))
    assert shown["to FedAvg, %", "Evaluation loss"] == "+0.0 ± 0.0"
    assert shown["to FedAvg, %", "Rouge-L, %"] == "–"
    assert shown["to FedAvg", "Exact match, %"] == "**+2.5 ± 0.0**"
    assert shown["Loss on other data, change", "to FedAvg"] == "+1.000 ± 0.000"
    assert shown["to FedAvg", "Loss on other data, change"] == "**+1.000 ± 0.000**"


def test_intervals_of_the_loss_contain_the_error_of_the_test_examples(toy_grid, compared, known, ended, tmp_path):
    """Examples on which the row is worse and better by a tenth; one seed has the losses on each."""
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        run, ours = ended(cell, [5.0, 2.0]), cell.row.name == "ferret"
        factors = [1.1, 0.9] * 50 if ours else [1.0] * 100
        losses = [ExampleLoss(2.0 * factor, 1) for factor in factors] if cell.seed == 2 else []
        store.add(run.model_copy(update={"example_losses": losses}))
    found = recorded(compared, known, store)
    (column,), rows = found.grid.columns, {row.name: row for row in found.grid.rows}
    error = 0.1 / math.sqrt(99)
    assert found.interval(rows["fedavg"], column, EVAL_LOSS) == Interval(2.0, 0.0)
    level, gap = (
        found.interval(rows["ferret"], column, EVAL_LOSS),
        found.difference(rows["ferret"], rows["fedavg"], column, EVAL_LOSS),
    )
    assert level == pytest.approx((2.0, 1.96 * 2.0 * error))
    assert gap == pytest.approx((0.0, 1.96 * 100 * error))


@pytest.mark.parametrize(
    ("last", "came", "shown"),
    [
        (4.8, TimeToTarget(2, 900.0, 6.0), ["1.3", "500 B", "4", "4", "4", "3 |"]),
        (4.85, None, ["not reached", "–", "–", "–", "–", "3 |"]),
    ],
)
def test_bytes_and_seconds_until_near_the_references_gain(
    toy_grid, compared, known, ended, tmp_path, last, came, shown
):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        ours = cell.row.name == "ferret"
        losses = ([5.0, 1.4, 1.3] if ours else [5.0, 3.0, 1.0]) if cell.seed < 3 else [5.0, 4.9, last if ours else 4.8]
        run = ended(cell, losses)
        for done in run.rounds[1:]:
            done.metrics.update({"local_seconds": 2.0, "aggregate_seconds": 1.0})
        store.add(run)
    found = recorded(compared, known, store)
    (column,) = found.grid.columns
    fedavg = next(row for row in found.grid.rows if row.name == "fedavg")
    ferret = next(row for row in found.grid.rows if row.name == "ferret")
    assert found.times_to_target(fedavg, fedavg, column) == [TimeToTarget(2, 900.0, 6.0)] * 3
    assert found.times_to_target(ferret, fedavg, column) == [TimeToTarget(1, 300.0, 3.0)] * 2 + [came]
    _, _, text = tables.times_to_target(found, column, "fedavg").partition("\n\n")
    assert [row.split(" | ")[1:] for row in text.splitlines()[2:]] == [
        shown,
        ["2", "900 B", "6", "6", "6", "3 |"],
    ]


def test_without_a_loss_of_every_round_nothing_is_said_about_the_way(toy_grid, compared, known, ended, tmp_path):
    store = Store(tmp_path)
    for cell in toy_grid(studied=compared).cells:
        run = ended(cell, [5.0, 3.0, 1.0])
        del run.rounds[1].metrics["eval_loss"]
        store.add(run)
    found = recorded(compared, known, store)
    assert tables.times_to_target(found, found.grid.columns[0], "fedavg") == ""


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
