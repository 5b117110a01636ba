"""Estimates from coordinates over many draws of the basis: unbiased, and as uncertain as they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core.aggregation.statistics import projected_updates
from ferret_core.aggregation.statistics.projected_updates import ProjectedUpdates
from ferret_core.algorithms.configs.ferret import Config, whole
from ferret_core.projection.bases import basis
from ferret_core.projection.project import project
from ferret_core.projection.quantize import quantize
from tests.ferret_core.replicas import contribution

Update = Mapping[str, torch.Tensor]
SHAPES = {"a": (64, 200), "b": (50,), "c": (300, 40)}
SCALES = {"a": 1.0, "b": 3.0, "c": 0.5}
DRAWS = 40
NAMES = ["p0", "p1", "p2"]
OPTIONS: list[dict[str, Any]] = [
    {"basis": "G", "coordinates": "float32", "K": 4000},
    {"basis": "G", "coordinates": "sign", "K": 1000},
    {"basis": "H", "coordinates": "float32", "K": 4000},
    {"basis": "R", "coordinates": "sign", "K": 500},
    {"basis": "T", "coordinates": "float32", "K": 500},
    {"basis": "G", "coordinates": "float32", "K": 4000, "seeds": "shared", "allocation": "fixed"},
    {"basis": "G", "coordinates": "sign", "K": 1000, "seeds": "shared", "allocation": "fixed"},
    {"basis": "H", "coordinates": "sign", "K": 4000, "seeds": "shared", "allocation": "fixed"},
    {"basis": "T", "coordinates": "float32", "K": 500, "seeds": "shared", "allocation": "fixed"},
]


@pytest.fixture(scope="module")
def updates() -> list[Update]:
    """Three that agree by about a half."""
    generator = torch.Generator().manual_seed(3)

    def normal(name: str) -> torch.Tensor:
        return SCALES[name] * torch.randn(SHAPES[name], generator=generator)

    common = {name: normal(name) for name in SHAPES}
    return [{name: common[name] + normal(name) for name in SHAPES} for _ in NAMES]


def seen(config: Config, updates: list[Update], draw: int) -> ProjectedUpdates:
    """The updates as they are seen under another draw of the bases."""
    blocks = config.cut(SHAPES)
    zero = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    found = ProjectedUpdates(config, blocks, torch.device("cpu"))
    for place, update in enumerate(updates):
        seed = 1000 * draw + (place if config.seeds == "own" else 0)
        K = config.allocate([float(tensor.norm()) for tensor in update.values()], blocks)
        gammas = project(update, zero, blocks, basis(config.basis), K, seed).coordinates
        columns = {"participant": NAMES[place], "base_digest": f"{draw:064x}", "projection": 1, "seed": seed, "K": K}
        found.see(contribution(quantize(gammas, config.coordinates, seed + 7 * place, whole(blocks)), **columns))
    return found


def cosines(updates: list[Update]) -> Any:
    vectors = [torch.cat([tensor.flatten() for tensor in update.values()]).double() for update in updates]
    unit = torch.stack([vector / vector.norm() for vector in vectors])
    return (unit @ unit.T).numpy()


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.get('seeds', 'own')}-{o['basis']}-{o['coordinates']}")
def test_lengths_and_cosines_have_the_right_mean_and_spread(updates: list[Update], options: dict[str, Any]) -> None:
    config, truth = Config.model_validate(options), cosines(updates)
    squares, off, scores = [], [], []
    above = np.triu_indices(len(NAMES), 1)
    for draw in range(DRAWS):
        found = seen(config, updates, draw)
        told = found.cosines(NAMES)
        squares.append([found.lengths[name].squares.sum() for name in NAMES])
        off.append((told.values - truth)[above])
        scores.append(off[-1] / told.errors[above])
    lengths = [sum(float(tensor.square().sum()) for tensor in update.values()) for update in updates]
    assert np.mean(squares, axis=0) == pytest.approx(np.array(lengths), rel=0.04)
    assert 0.6 < float(np.sqrt(np.mean(np.square(scores)))) < 1.25
    assert float(np.abs(np.mean(scores))) < 4 / np.sqrt(DRAWS)


def test_a_part_of_the_weights_tells_the_same_less_surely(
    updates: list[Update], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, truth = Config.model_validate(OPTIONS[0]), cosines(updates)
    whole_error = seen(config, updates, 0).cosines(NAMES).errors[0, 1]
    monkeypatch.setattr(projected_updates, "LOOKED_AT", 25_000 // 4)
    monkeypatch.setattr(projected_updates, "STRETCH", 512)
    scores = []
    for draw in range(DRAWS):
        told = seen(config, updates, draw).cosines(NAMES)
        assert told.errors[0, 1] == pytest.approx(2 * whole_error, rel=0.05)
        scores.append((told.values - truth)[0, 1] / told.errors[0, 1])
    assert 0.6 < float(np.sqrt(np.mean(np.square(scores)))) < 1.4


def test_very_many_participants_are_not_all_compared(updates: list[Update], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projected_updates, "COMPARED", 2)
    found = seen(Config.model_validate(OPTIONS[0]), updates, 1)
    assert found.compared(NAMES) == ["p0", "p1"]
    assert found.compared(["p1", "p2"]) == ["p1"]
    assert [*found.lengths] == NAMES


@pytest.mark.parametrize(("size", "share"), [(1, 0.001), (7, 1.0), (100_000, 1.0), (99_999, 0.37), (2**20 + 3, 0.5)])
def test_stretches_are_apart_and_as_long_as_asked(size: int, share: float) -> None:
    stretches: Callable[..., Any] = projected_updates._stretches
    taken = np.zeros(size, int)
    for start, count in stretches(size, share, np.random.default_rng(1)):
        taken[start : start + count] += 1
    assert taken.max() == 1
    assert taken.sum() == pytest.approx(max(1, share * size), rel=1e-3)
