from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from ferret_cli import plot_style
from ferret_cli.data.partition_summary import Holding
from ferret_cli.data.plot import draw


def holding(client: int, labels: dict[str, int]) -> Holding:
    return Holding(f"client-{client:03}", labels, None, None)


def drawn(held: list[Holding]) -> Figure:
    with plot_style.applied():
        return draw(held, "title")


def test_few_labels_are_stacked_with_a_legend() -> None:
    figure = drawn([holding(1, {"a": 4, "b": 2}), holding(2, {"b": 1})])
    (axes,) = figure.axes
    heights = [[patch.get_height() for patch in bars] for bars in axes.containers]
    bottoms = [[patch.get_y() for patch in bars] for bars in axes.containers]
    assert (heights, bottoms) == ([[4, 0], [2, 1]], [[0, 0], [4, 0]])
    assert sorted(text.get_text() for text in figure.legends[0].get_texts()) == ["a", "b"]


def test_data_without_labels_need_no_legend() -> None:
    figure = drawn([holding(client, {"": client}) for client in (1, 2, 3)])
    assert figure.legends == []
    assert figure.axes[0].get_ylim()[1] > 3


def test_many_labels_are_dots_whose_area_is_the_examples() -> None:
    figure = drawn([holding(1, {f"label {i}": 10 * (i + 1) for i in range(12)}), holding(2, {"label 0": 120})])
    _, matrix = figure.axes
    dots: Any
    (dots,) = matrix.collections
    assert len(dots.get_offsets()) == 13
    assert dots.get_sizes()[11] == pytest.approx(12 * dots.get_sizes()[0])
    assert [text.get_text() for text in matrix.get_yticklabels()][:3] == ["label 0", "label 1", "label 10"]


@pytest.mark.parametrize(("clients", "labels"), [(1, 1), (3, 3), (200, 7), (738, 738), (5, 30)])
@pytest.mark.heavy
def test_every_size_makes_a_picture_with_something_on_it(clients: int, labels: int) -> None:
    names = itertools.cycle(f"task{i:03}_with_a_name_that_is_longer_than_there_is_room" for i in range(labels))
    held = [holding(client, {next(names): 20 + client % 7}) for client in range(clients)]
    with plot_style.applied():
        figure = draw(held, "title")
        picture = plot_style.png(figure)
    assert picture.startswith(b"\x89PNG")
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert (pixels[60:600] < 200).any(axis=-1).mean() > 0.001
