from __future__ import annotations

import numpy as np
import torch

from ferret_core.algorithms import hiso
from ferret_core.client.local_round import contribute
from ferret_core.protocol.wire import Contribution
from ferret_core.training.zeroth_order import combined
from tests.ferret_core.replicas import SpecFactory, clients_of, move, replica_of, sent_by
from tests.refusals import refused

LOCAL = {"learning_rate": 1e-3, "steps": 6, "batch_size": 2, "epsilon": 1e-3, "perturbations": 3}


def test_all_participants_look_along_the_same_directions_and_send_four_bytes_each(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"local": LOCAL}))
    sent = [sealed.contribution for sealed in sent_by(replica)]
    assert len({item.meta.seed for item in sent}) == 1
    assert [sum(array.nbytes for array in item.arrays.values()) for item in sent] == [4 * 18] * 3
    assert len({item.arrays["slopes"].tobytes() for item in sent}) == 3, "their data differ"


def test_the_curvature_follows_from_seeds_and_slopes(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"smoothing": 0.2, "local": LOCAL}))
    curvature = np.random.default_rng(1).uniform(0.5, 4, len(replica.state["curvature"]))
    replica.state = {"curvature": curvature.astype(np.float32)}
    before = torch.from_numpy(replica.state["curvature"])
    sent = sent_by(replica)[0].contribution
    found = move(replica, sent)["curvature"]
    assert isinstance(replica.algorithm, hiso.Algorithm)
    seeds = replica.algorithm._seeds(sent.meta.seed or 0)
    expected = before.double()
    for step, slopes in enumerate(sent.arrays["slopes"].reshape(6, 3).tolist()):
        along = zip(seeds[3 * step : 3 * step + 3], slopes, strict=True)
        gradient = (
            sum(
                slope / 3 * torch.cat([part.reshape(-1) for part in combined(replica.model, {seed: 1.0}).values()])
                for seed, slope in along
            )
            / before.sqrt()
        )
        expected = 0.8 * expected + 0.2 * gradient.double().square()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4)


def test_without_smoothing_it_is_decomfl_and_keeps_nothing(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"smoothing": 0, "local": LOCAL}))
    assert replica.state == {}
    assert move(replica, sent_by(replica)[0].contribution) == {}


def test_slopes_along_other_directions_are_refused(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"local": LOCAL}))
    client = clients_of(replica)[0]
    sent = contribute(replica, client).sealed.contribution
    other = Contribution(sent.meta.model_copy(update={"seed": client.task.seed}), sent.arrays)
    with refused("contribution.malformed", field="metadata.seed"):
        replica.experiment.config.check(other, client.task, replica.shapes)
