"""The picture shows what tells rows apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferret_bench.reproduce.reruns.panels import draw
from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS
from ferret_bench.reproduce.reruns.records import Store
from ferret_bench.reproduce.reruns.results import collect
from ferret_bench.reproduce.reruns.studies import Panel


@pytest.fixture
def titles(toy_grid, study, ended, tmp_path):
    """``titles({"fedavg": 100})``: those of the panels that are drawn where FedAvg sends 100 times as much."""

    def drawn(times):
        found, store = toy_grid(), Store(tmp_path)
        for cell in found.cells:
            run = ended(cell, [5.0, 2.0])
            sent = [
                each.model_copy(update={"bytes_up": each.bytes_up * times.get(cell.row.name, 1)}) for each in run.rounds
            ]
            store.add(run.model_copy(update={"rounds": sent}))
        figure = draw(study, collect(found, store))
        return [axes.get_title().split(",")[0] for axes in figure.axes if axes.get_visible()]

    return drawn


def test_a_panel_in_which_all_rows_lie_at_one_place_is_left_out(titles):
    assert titles({}) == ["Training"]
    assert titles({"fedavg": 100}) == ["Training", "Frontier"]


def test_the_legend_leaves_out_a_row_whose_runs_all_failed(toy_grid, study, ended, tmp_path):
    found, store = toy_grid(), Store(tmp_path)
    for cell in found.cells:
        error = {"code": "noise.too_large"} if cell.row.name == "fedavg" else None
        store.add(ended(cell, [5.0, 2.0], error))
    figure = draw(study, collect(found, store))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Ferret"]


def test_sizes_that_hardly_differ_have_distinct_ticks(toy_grid, study, ended, tmp_path):
    found, store = toy_grid(), Store(tmp_path)
    for cell in found.cells:
        run, bytes_up = ended(cell, [5.0, 2.0]), 8600 if cell.row.name == "fedavg" else 8800
        store.add(
            run.model_copy(update={"rounds": [each.model_copy(update={"bytes_up": bytes_up}) for each in run.rounds]})
        )
    figure = draw(replace(study, panels=(Panel("Frontier", EVAL_LOSS, BYTES_UP),)), collect(found, store))
    figure.canvas.draw()
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert len(ticks) == len(set(ticks)) > 2
