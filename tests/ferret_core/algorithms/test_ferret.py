from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from ferret_core import catalog
from ferret_core.algorithms import fedavg, ferret
from ferret_core.federated_data import FederatedData
from ferret_core.federation import round_task
from ferret_core.models.parameters import snapshot, trainable
from ferret_core.projection import quantize
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Contribution, ContributionMeta
from ferret_core.replica import Replica
from ferret_core.simulate import simulate

SpecFactory = Callable[..., ExperimentSpec]


@pytest.mark.parametrize(
    ("basis", "allocation", "coordinates"),
    [("T", "norm", "float16"), ("G", "optimal", "float32"), ("G", "theorem", "int8"), ("G", "uniform", "sign")],
)
def test_every_combination_learns(toy_spec: SpecFactory, basis: str, allocation: str, coordinates: str) -> None:
    options = {"K": 1_500, "basis": basis, "allocation": allocation, "coordinates": coordinates}
    result = simulate(toy_spec(options=options, rounds=4, evaluation={"examples": 10, "generate": 0}))
    losses = [one.metrics["eval_loss"] for one in result.rounds]
    assert losses[-1] < losses[0] - 0.1


def test_with_as_many_coordinates_as_elements_it_is_fedavg(toy_spec: SpecFactory) -> None:
    """G with K = d has one element per bucket: nothing is lost but rounding."""
    replica = Replica.load(catalog.resolve(toy_spec(options={"K": 10**7, "coordinates": "float32"})))
    data = FederatedData(replica.spec, replica.tokenizer, replica.context)
    task = round_task(replica.spec, "exp", 1, "client-001", replica.digest)
    before = snapshot(replica.model)
    dense = fedavg.Algorithm(fedavg.Config(local=replica.spec.algorithm.options["local"]))
    updates = []
    for algorithm in (replica.algorithm, dense):
        result = algorithm.aggregate({}, [algorithm.local_update(replica.model, data.shard("client-001"), task)])
        algorithm.apply_update(replica.model, {}, result)
        updates.append({name: before[name] - after.detach() for name, after in trainable(replica.model).items()})
        for name, parameter in trainable(replica.model).items():
            parameter.data.copy_(before[name])
    for name in before:
        torch.testing.assert_close(updates[0][name], updates[1][name], rtol=0, atol=1e-6)


def test_shared_seeds_add_up_to_one_reconstruction(toy_spec: SpecFactory) -> None:
    own = simulate(toy_spec(options={"seeds": "own", "allocation": "uniform", "K": 2_000}, rounds=2))
    shared = simulate(toy_spec(options={"seeds": "shared", "allocation": "uniform", "K": 2_000}, rounds=2))
    assert shared.digest != own.digest
    assert len(shared.ledger[0].update) > 4 * 2_000, "one mean vector in fp32"
    assert shared.rounds[-1].metrics["eval_loss"] < shared.rounds[0].metrics["eval_loss"]


def test_shared_seeds_need_equal_K() -> None:
    with pytest.raises(ValueError, match="needs allocation = 'uniform'"):
        ferret.Config(seeds="shared")


def test_shared_coordinates_average_like_the_mean_of_the_reconstructions() -> None:
    config = ferret.Config(seeds="shared", allocation="uniform", coordinates="float32", K=64)
    algorithm = ferret.Algorithm(config)
    generator = torch.Generator().manual_seed(3)
    gammas = [torch.randn(64, generator=generator) for _ in range(3)]
    received = [_contribution(number, quantize.quantize([gamma], "float32"), 64) for number, gamma in enumerate(gammas)]
    result = algorithm.aggregate({}, received)
    np.testing.assert_allclose(result["coordinates"], torch.stack(gammas).mean(0).numpy(), rtol=1e-6)
    assert result["seeds"].tolist() == [9]


@pytest.mark.parametrize("K", [(63,), (65,), (64, 0), (-1,), (2**40,), ()])
def test_a_wrong_allocation_is_refused(K: tuple[int, ...]) -> None:
    algorithm = ferret.Algorithm(ferret.Config(K=64))
    arrays = quantize.quantize([torch.ones(64)], "sign")
    with pytest.raises(FerretError) as caught:
        algorithm.check(_contribution(0, arrays, *K), [1000])
    assert caught.value.errors[0].field == "K"


def test_a_uniform_allocation_is_the_one_everybody_has() -> None:
    algorithm = ferret.Algorithm(ferret.Config(seeds="shared", allocation="uniform", K=64))
    arrays = quantize.quantize([torch.ones(32), torch.ones(32)], "sign")
    algorithm.check(_contribution(0, arrays, 32, 32), [1000, 500])
    with pytest.raises(FerretError, match="uniform allocation"):
        algorithm.check(_contribution(0, arrays, 33, 31), [1000, 500])


def test_the_server_learning_rate_scales_the_step_exactly(toy_spec: SpecFactory) -> None:
    steps = []
    for rate in (1.0, 2.0):
        replica = Replica.load(catalog.resolve(toy_spec(options={"server_learning_rate": rate, "K": 500})))
        data = FederatedData(replica.spec, replica.tokenizer, replica.context)
        task = round_task(replica.spec, "exp", 1, "client-001", replica.digest)
        sent = replica.algorithm.local_update(replica.model, data.shard("client-001"), task)
        before = snapshot(replica.model)
        replica.algorithm.apply_update(replica.model, {}, replica.algorithm.aggregate({}, [sent]))
        steps.append([before[name] - after.detach() for name, after in trainable(replica.model).items()])
    for one, two in zip(*steps, strict=True):
        torch.testing.assert_close(2 * one, two, rtol=1e-4, atol=1e-6)


def _contribution(number: int, arrays: dict[str, np.ndarray], *K: int) -> Contribution:
    meta = ContributionMeta(
        experiment="exp",
        round=1,
        participant=f"client-{number}",
        algorithm="ferret",
        base_digest="0" * 64,
        examples=1,
        seed=9,
        K=K,
    )
    return Contribution(meta, arrays)
