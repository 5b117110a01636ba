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
def results(toy_grid, ended, tmp_path):
    """``results({"fedavg": 100})``: FedAvg sends 100 times as much."""

    def make(times):
        found, store = toy_grid(), Store(tmp_path)
        for cell in found.cells:
            run = ended(cell, [5.0, 2.0])
            sent = [
                each.model_copy(update={"bytes_up": each.bytes_up * times.get(cell.row.name, 1)}) for each in run.rounds
            ]
            store.add(run.model_copy(update={"rounds": sent}))
        return collect(found, store)

    return make


@pytest.fixture
def frontier(study):
    return replace(study, panels=(Panel("Frontier", EVAL_LOSS, BYTES_UP),))


@pytest.mark.parametrize(("times", "titles"), [({}, ["Training"]), ({"fedavg": 100}, ["Training", "Frontier"])])
def test_a_panel_in_which_all_rows_lie_at_one_place_is_left_out(times, titles, study, results):
    figure = draw(study, results(times))
    assert [axes.get_title().split(",")[0] for axes in figure.axes if axes.get_visible()] == titles


def test_the_legend_leaves_out_a_row_whose_runs_all_failed(toy_grid, study, ended, tmp_path):
    found, store = toy_grid(), Store(tmp_path)
    for cell in found.cells:
        error = {"code": "noise.too_large"} if cell.row.name == "fedavg" else None
        store.add(ended(cell, [5.0, 2.0], error))
    figure = draw(study, collect(found, store))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Ferret"]


def test_sizes_that_hardly_differ_have_distinct_ticks(toy_grid, frontier, ended, tmp_path):
    found, store = toy_grid(), Store(tmp_path)
    for cell in found.cells:
        run, bytes_up = ended(cell, [5.0, 2.0]), 8600 if cell.row.name == "fedavg" else 8800
        store.add(
            run.model_copy(update={"rounds": [each.model_copy(update={"bytes_up": bytes_up}) for each in run.rounds]})
        )
    figure = draw(frontier, collect(found, store))
    figure.canvas.draw()
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert len(ticks) == len(set(ticks)) > 2


def test_a_line_marks_the_base_models_loss_where_rows_are_compared_with_fedavg(frontier, results):
    measured = results({"fedavg": 100})
    (axes,) = draw(replace(frontier, reference="fedavg"), measured).axes
    assert [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == ":"] == [[5.0, 5.0]]
    assert [text.get_text() for text in axes.texts] == ["base model"]
    (axes,) = draw(replace(frontier, reference="ferret"), measured).axes
    assert not axes.texts


def test_two_datasets_with_one_panel_each_share_a_line(frontier, results):
    measured = results({"fedavg": 100})
    grid = measured.grid
    (column,) = grid.columns
    other = column._replace(title="Other")
    cells = [*grid.cells, *(cell._replace(column=other) for cell in grid.cells)]
    figure = draw(frontier, measured._replace(grid=grid._replace(columns=[column, other], cells=cells)))
    left, right = (axes.get_position() for axes in figure.axes)
    assert left.y0 == right.y0
    assert left.x1 < right.x0
