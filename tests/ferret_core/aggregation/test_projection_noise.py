"""The noise that is told is the noise there is; what would drown the weights is refused with the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ferret_core import catalog
from ferret_core.aggregation import projection_noise
from ferret_core.models.parameters import trainable
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, Piece
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.projection.project import project, root_mean_squares
from ferret_core.projection.quantize import dequantize, quantize
from ferret_core.projection.variance import noise_share, relative_noise
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused

Local = dict[str, object]
LOCAL = {"optimizer": "sgd", "learning_rate": 0.05, "clip_norm": 1.0, "steps": 4, "batch_size": 4, "accumulation": 1}
SPARSE: Local = {"basis": "H", "coordinates": "sparse_sign", "bytes_per_round": 500, "refuse_noisy_rounds": False}
EXACT: Local = {"basis": "H", "K": 10**6, "coordinates": "float32"}
GUARDED = {"K": 64, "refuse_noisy_rounds": True, "local": LOCAL}


DENSE: list[tuple[str, int, int, Kind]] = [
    (name, d, K, kind)
    for name, d, K in [("G", 8192, 256), ("H", 8192, 512), ("R", 1024, 64), ("T", 1024, 64)]
    for kind in ("float32", "sign")
]


@pytest.mark.parametrize(
    ("name", "d", "K", "kind", "room"),
    [
        *((*case, 0) for case in DENSE),
        *(("G", 2**17, 2**13, "sparse_sign", room) for room in (60, 400)),
        *(("H", 2**15, 2**14, "sparse_sign", room) for room in (60, 400)),
    ],
)
def test_the_relative_noise_is_that_of_reconstructions(name: str, d: int, K: int, kind: Kind, room: int) -> None:
    delta = torch.randn(d, generator=torch.Generator().manual_seed(1))
    before, after = {"w": delta}, {"w": torch.zeros(d)}
    blocks = [Block(0, "w", d, (Piece("w", 0, 0, d),))]
    errors, told = [], []
    for seed in range(16 if room else 48):
        projected = project(before, after, blocks, basis(name), [K], seed)
        arrays = quantize(projected.coordinates, kind, seed, room=room)
        sent = dequantize(arrays, kind, [K])
        reconstruct_(moved := {"w": torch.zeros(d)}, blocks, basis(name), [projected._replace(coordinates=sent)])
        errors.append(float((moved["w"] + delta).square().sum() / delta.square().sum()))
        told.append(relative_noise(name, kind, d, K, *([int(arrays["sent"][0])] if room else [])))
    assert float(np.mean(errors)) == pytest.approx(float(np.mean(told)), rel=0.06)


@given(st.sampled_from(["G", "H", "R", "T"]), st.integers(1, 10**9), st.integers(0, 10**6))
def test_the_share_of_noise_is_below_one_and_falls_with_more_coordinates(name: str, d: int, K: int) -> None:
    K = min(K, d)
    share = noise_share(name, "sign", d, K)
    assert 0 <= share < 1
    if 0 < K < d:
        assert noise_share(name, "sign", d, K + 1) <= share


def test_the_weights_rms_is_counted_over_all_pieces_of_a_block() -> None:
    parameters = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([0.0, 12.0, 5.0])}
    blocks = [
        Block(0, "a+b", 4, (Piece("a", 0, 0, 2), Piece("b", 0, 2, 2))),
        Block(1, "rest", 1, (Piece("b", 2, 0, 1),)),
    ]
    assert root_mean_squares(parameters, blocks) == pytest.approx([13 / 2, 5.0])


@pytest.mark.parametrize("sent", [{"K": 2048, "coordinates": "float32"}, SPARSE, SPARSE | {"local": LOCAL}])
def test_the_measured_noise_is_what_the_round_adds_beyond_the_update(toy_spec: SpecFactory, sent: Local) -> None:
    """Against the round itself: the step by 3 participants' coordinates, less the mean of their exact updates."""
    spec = toy_spec(options=sent, rounds=1)
    exact = toy_spec(options=EXACT | {name: sent[name] for name in sent if name == "local"}, rounds=1)
    results = [simulate(each) for each in (spec, exact)]
    told = results[0].rounds[1].metrics["projection_noise"]
    ends = []
    for each in (spec, exact):
        entries: list[bytes] = []
        simulate(each, on_update=lambda entry, kept=entries: kept.append(entry.update))
        replica = replica_of(each)
        replica.apply(entries[0])
        ends.append([weight.detach().clone() for weight in trainable(replica.model).values()])
    base = [weight.detach() for weight in trainable(replica_of(spec).model).values()]
    squares = sizes = 0.0
    for noisy, clean, weight in zip(*ends, base, strict=True):
        ratio = float((noisy - clean).square().mean() / weight.square().mean())
        squares, sizes = squares + weight.numel() * ratio, sizes + weight.numel()
    assert told == pytest.approx(100 * math.sqrt(squares / sizes), rel=0.1)


@pytest.mark.parametrize("steps", [5, 10])
@pytest.mark.parametrize(
    "optimizer",
    [
        {"optimizer": "normalized"},
        {"optimizer": "adam", "learning_rate": 1e-3},
        {"optimizer": "sgd", "learning_rate": 0.05, "clip_norm": 0.1},
    ],
)
def test_what_is_expected_is_near_to_what_is_measured(toy_spec: SpecFactory, optimizer: Local, steps: int) -> None:
    local = {**optimizer, "steps": steps, "batch_size": 2, "accumulation": 1}
    base, first = simulate(toy_spec(options={"K": 2048, "local": local}, rounds=1)).rounds
    assert 0.6 < base.metrics["projection_noise"] / first.metrics["projection_noise"] < 1.2
    assert {name for name in base.metrics if name.startswith("projection_noise/")} == {
        name for name in first.metrics if name.startswith("projection_noise/")
    }


@pytest.mark.parametrize("optimizer", ["normalized", "sgd"])
def test_of_sparse_coordinates_no_less_is_expected_than_is_measured(toy_spec: SpecFactory, optimizer: str) -> None:
    """More where, as under SGD here, small blocks move most: of few elements most are sent."""
    local = {"optimizer": optimizer, "learning_rate": 0.1, "clip_norm": None, "steps": 5, "batch_size": 2}
    local |= {"accumulation": 1} if optimizer == "normalized" else LOCAL
    base, first = simulate(toy_spec(options=SPARSE | {"local": local}, rounds=1)).rounds
    assert 0.8 < base.metrics["projection_noise"] / first.metrics["projection_noise"] < 2.2


@pytest.mark.parametrize(
    ("rounds", "changes", "local", "steps"),
    [
        (1, {}, {}, [1]),
        (4, {}, {}, [1, 1, 1, 1]),
        (4, {"server": {"schedule": "linear"}}, {}, [1, 0.75, 0.5, 0.25]),
        (3, {}, {"schedule": "linear"}, [1, 0.55, 0.1]),
        (2, {"server": {"schedule": "linear"}}, {"schedule": "linear"}, [1, 0.05]),
        (3, {"server": {"warmup_rounds": 1}}, {}, [1, 2, 2]),
        (3, {"server": {"optimizer": "adam"}}, {"schedule": "linear"}, [1, 1, 1]),
        (40_000, {}, {}, [200]),
    ],
)
def test_the_noises_of_rounds_add_in_squares(
    toy_spec: SpecFactory, rounds: int, changes: dict[str, object], local: Local, steps: list[float]
) -> None:
    spec = toy_spec("ferret", options={"K": 64, "local": LOCAL | local}, rounds=rounds, **changes)
    first = projection_noise.ProjectionNoise(("b",), np.ones(1), np.full(1, 0.1), np.ones(1))
    accumulated = projection_noise.accumulated(first, catalog.resolve(spec))
    assert accumulated == pytest.approx(0.1 * math.sqrt(sum(step**2 for step in steps)))


def test_a_run_that_would_drown_the_weights_is_refused_before_it_begins(toy_spec: SpecFactory) -> None:
    remedies = ("K = 64", "3 participants", "algorithm.K = ", "algorithm.local.learning_rate = ")
    with refused("noise.too_large", *remedies) as caught:
        simulate(toy_spec(options=GUARDED))
    assert caught.value.members["noise"]["projection_noise"] > 100 * projection_noise.MOST


def test_a_round_that_would_is_refused_whatever_was_expected(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_noise, "expected", lambda *_: None)
    ended: list[int] = []
    with refused("noise.too_large"):
        simulate(toy_spec(options=GUARDED), on_round=lambda done: ended.append(done.number))
    assert ended == [0]


def test_advice_has_no_value_out_of_reach(toy_spec: SpecFactory) -> None:
    experiment = catalog.resolve(toy_spec(options=GUARDED))
    replica = Replica.load(experiment.spec)
    found = projection_noise.expected(experiment, replica.shapes, replica.block_weights(), None)
    assert found is not None
    local = {"optimizer": "normalized", "learning_rate": 0.5}
    settled = catalog.resolve(toy_spec(options={**GUARDED, "local": local}))
    shared = catalog.resolve(toy_spec(options={**GUARDED, "seeds": "shared", "allocation": "fixed"}))
    for times, of, ways in (
        (1, experiment, ["bytes", "rate", "participants", "server"]),
        (1, shared, ["bytes", "rate", "server"]),
        (100, experiment, ["optimizer"]),
        (100, settled, ["rate"]),
    ):
        noisy = found._replace(noise=times * found.noise)
        assert list(projection_noise.remedies(noisy, of, replica.shapes)) == ways


@pytest.mark.parametrize("way", ["bytes", "participants", "rate", "server"])
def test_every_way_out_leads_below_the_advised_noise(toy_spec: SpecFactory, way: str) -> None:
    experiment = catalog.resolve(toy_spec(options=GUARDED))
    replica = Replica.load(experiment.spec)
    found = projection_noise.expected(experiment, replica.shapes, replica.block_weights(), None)
    assert found is not None
    assert found.total > projection_noise.ADVISED
    told = projection_noise.remedies(found, experiment, replica.shapes)[way]
    value = float(told.split()[0] if way == "participants" else told.split(" = ")[1])
    data = experiment.spec.model_dump(mode="json")
    match way:
        case "bytes":
            data["algorithm"]["K"] = int(value)
        case "participants":
            data["participants"]["simulated"] = int(value)
        case "rate":
            data["algorithm"]["local"]["learning_rate"] = value
        case _:
            data["server"]["learning_rate"] = value
    changed = catalog.resolve(ExperimentSpec.model_validate(data))
    after = projection_noise.expected(changed, replica.shapes, replica.block_weights(), None)
    assert after is not None
    assert 0.8 * projection_noise.ADVISED < after.total <= 1.01 * projection_noise.ADVISED
