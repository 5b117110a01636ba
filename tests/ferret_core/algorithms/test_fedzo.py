from __future__ import annotations

import numpy as np
import torch

from ferret_core.algorithms import fedzo
from ferret_core.client.local_round import contribute
from ferret_core.models.digest import model_digest
from ferret_core.protocol.digest import derive_seed
from ferret_core.training.zeroth_order import zeroth_order_steps
from tests.ferret_core.replicas import SpecFactory, clients_of, flat, held_in, move, replica_of, sent_by

LOCAL = {"learning_rate": 1e-3, "steps": 5, "batch_size": 2, "epsilon": 1e-3}


def test_the_server_takes_one_participants_model_as_it_is(toy_spec: SpecFactory) -> None:
    """Its steps are b₁ of b₂ directions each, drawn from its task's seed."""
    replica = replica_of(toy_spec("fedzo", options={"local": {**LOCAL, "perturbations": 3}}))
    alone, (client, *_) = replica_of(replica.spec), clients_of(replica)
    sent = contribute(replica, client).sealed.contribution
    move(replica, sent)
    local = fedzo.Config.model_validate(replica.spec.algorithm.options).local
    seeds = [derive_seed(client.task.seed, "direction", n) for n in range(15)]
    slopes = zeroth_order_steps(alone.model, client.shard.batches(2, client.task.data_seed), local, seeds).slopes
    assert slopes.shape == (15,)
    torch.testing.assert_close(flat(replica.model), flat(alone.model), rtol=0, atol=1e-7)


def test_participants_look_along_directions_of_their_own(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedzo", options={"local": {**LOCAL, "steps": 1}}))
    sent = sent_by(replica)[:2]
    assert abs(np.corrcoef([sealed.contribution.arrays["update"] for sealed in sent])[0, 1]) < 0.05


def test_a_model_in_half_precision_is_tuned_in_fp32_and_left_as_it_was(toy_spec: SpecFactory) -> None:
    """At a rate so low that bf16 would round every step away."""
    spec = toy_spec("fedzo", options={"local": {**LOCAL, "learning_rate": 1e-6}})
    replica = replica_of(held_in("bfloat16", spec))
    update = sent_by(replica)[0].contribution.arrays["update"]
    assert model_digest(replica.model, files=replica.files) == replica.digest
    assert update.dtype == np.float32
    assert 0 < np.abs(update).max() < 1e-4
    assert (update != 0).mean() > 0.9
