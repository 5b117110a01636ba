"""The picture shows what tells rows apart."""

from __future__ import annotations

import pytest

from ferret_bench.reproduce.reruns.panels import draw
from ferret_bench.reproduce.reruns.records import Store
from ferret_bench.reproduce.reruns.results import collect


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
