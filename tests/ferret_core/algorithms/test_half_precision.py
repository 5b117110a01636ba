"""Training in bf16 alone: a participant sends the sum of its exact steps, without the rounding of its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ferret_core.algorithms._dense import dense_update, trained_update
from ferret_core.algorithms.base import Client
from ferret_core.algorithms.ferret import MOVES
from ferret_core.models.parameters import working_copy
from ferret_core.projection.bases import basis
from ferret_core.projection.project import project
from ferret_core.protocol.wire import Array
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory, clients_of, replica_of, sent_by

PURE = {
    "optimizer": "normalized",
    "learning_rate": 0.001,
    "steps": 8,
    "optimizer_in_backward": True,
    "precision": "pure_bfloat16",
}


def in_bfloat16(toy_spec: SpecFactory, tiny_model_dir: Path, algorithm: str = "ferret", **options: Any) -> Replica:
    """A replica of a bf16 model whose participants train in bf16 alone, with steps far below a unit of its weights."""
    local = {"batch_size": 4, "accumulation": 1, **PURE, **options.pop("local", {})}
    model = {"source": str(tiny_model_dir), "dtype": "bfloat16"}
    return replica_of(toy_spec(algorithm, options={"local": local, **options}, model=model))


def exact(replica: Replica, client: Client) -> Array:
    """The update of fp32 training on the same batches."""
    local = replica.experiment.traits.first_order
    assert local is not None
    return trained_update(replica.model, client, local.model_copy(update={"precision": "float32"})).vector


def test_an_update_has_none_of_the_weights_rounding(toy_spec: SpecFactory, tiny_model_dir: Path) -> None:
    replica = in_bfloat16(toy_spec, tiny_model_dir, "fedavg")
    client = clients_of(replica)[0]
    local = replica.experiment.traits.first_order
    assert local is not None
    expected, found = exact(replica, client), trained_update(replica.model, client, local).vector
    with working_copy(replica.model, pure=True) as before:
        client.train(replica.model, local)
        rounded = dense_update(before, replica.model)
    assert np.square(rounded).sum() > 2 * np.square(expected).sum(), "these steps are small enough to show it"
    assert np.square(found).sum() == pytest.approx(np.square(expected).sum(), rel=0.05)
    assert np.linalg.norm(found - expected) < 0.1 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    "algorithm", ["demo", "drive", "fetchsgd", "powersgd", "qsgd", "signsgd", "sparseloco", "topk"]
)
@pytest.mark.heavy
def test_every_algorithm_sends_exact_steps(
    toy_spec: SpecFactory, tiny_model_dir: Path, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounded weights do not reach what is sent: other rounding, with the same steps, sends the same bits."""
    replica = in_bfloat16(toy_spec, tiny_model_dir, algorithm, local={"steps": 1})
    first = sent_by(replica)
    monkeypatch.setattr("ferret_core.training.optimizer_in_backward.rounded", lambda values, bits: values)
    assert [sealed.digest for sealed in sent_by(replica)] == [sealed.digest for sealed in first]


@pytest.mark.parametrize(
    "options", [{"basis": "G"}, {"basis": "T", "allocation": "fixed", "blocks": "grouped"}], ids=str
)
def test_ferret_sends_the_coordinates_of_the_exact_steps(
    toy_spec: SpecFactory, tiny_model_dir: Path, options: dict[str, Any]
) -> None:
    given = {"K": 600, "coordinates": "float32", **options}
    replica = in_bfloat16(toy_spec, tiny_model_dir, **given)
    client = clients_of(replica)[0]
    update = replica.algorithm.local_update(replica.model, replica.state, client)
    config: Any = replica.algorithm.config
    blocks, K = config.cut(replica.shapes), update.basis_fields["K"]
    expected = project(
        in_tensors(exact(replica, client), replica),
        in_tensors(np.zeros(sum(block.size for block in blocks), np.float32), replica),
        blocks,
        basis(config.basis),
        K,
        update.basis_fields["seed"],
    )
    gamma = torch.cat([*expected.coordinates])
    assert float((torch.from_numpy(update.arrays["coordinates"]) - gamma).norm()) < 0.1 * float(gamma.norm())


def in_tensors(vector: Array, replica: Replica) -> dict[str, Tensor]:
    """A dense vector as the model's parameters."""
    lengths = [int(np.prod(shape)) for shape in replica.shapes.values()]
    parts = torch.from_numpy(vector).split(lengths)
    return {name: part.view(shape) for part, (name, shape) in zip(parts, replica.shapes.items(), strict=True)}


def test_the_allocation_follows_the_norms_of_the_last_round(toy_spec: SpecFactory, tiny_model_dir: Path) -> None:
    replica = in_bfloat16(toy_spec, tiny_model_dir, K=4_000, local={"optimizer": "sgd", "learning_rate": 1e-3})
    config: Any = replica.algorithm.config
    blocks, client = config.cut(replica.shapes), clients_of(replica)[0]
    first = replica.algorithm.local_update(replica.model, replica.state, client)
    assert first.basis_fields["K"] == config.allocate(config.expected_moves(blocks, len(client.shard)), blocks)
    again = replica.algorithm.local_update(replica.model, replica.state, client._replace(memory=first.memory))
    assert again.basis_fields["K"] == config.allocate(first.memory[MOVES].tolist(), blocks)
    assert again.basis_fields["K"] != first.basis_fields["K"]
    lengths = [float(part.norm()) for part in in_tensors(exact(replica, client), replica).values()]
    assert first.memory[MOVES].tolist() == pytest.approx(lengths, rel=0.5)
    assert np.linalg.norm(first.memory[MOVES]) == pytest.approx(np.linalg.norm(lengths), rel=0.1)


def test_a_fixed_allocation_needs_no_memory(toy_spec: SpecFactory, tiny_model_dir: Path) -> None:
    replica = in_bfloat16(toy_spec, tiny_model_dir, K=600, allocation="fixed")
    update = replica.algorithm.local_update(replica.model, replica.state, clients_of(replica)[0])
    assert not update.memory


def test_nobody_honest_is_clipped_and_the_model_learns(toy_spec: SpecFactory, tiny_model_dir: Path) -> None:
    """Steps of the last rounds are far below a unit of the norms' weights, which are about 1."""
    losses = {}
    for precision in ("float32", "pure_bfloat16"):
        local = {"batch_size": 4, "accumulation": 1, **PURE, "learning_rate": 0.05, "precision": precision}
        model = {"source": str(tiny_model_dir), "dtype": "bfloat16"}
        spec = toy_spec(options={"local": local}, model=model, rounds=6, evaluation={"generate_examples": 0})
        rounds = simulate(spec).rounds
        assert [done.clipped for done in rounds] == [{}] * len(rounds)
        losses[precision] = rounds[-1].metrics["eval_loss"]
    assert losses["pure_bfloat16"] == pytest.approx(losses["float32"], rel=0.01)
