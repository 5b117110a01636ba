from __future__ import annotations

import numpy as np

from ferret_core.models.digest import model_digest
from tests.ferret_core.replicas import SpecFactory, held_in, replica_of, sent_by

LOCAL = {"learning_rate": 1e-3, "steps": 5, "batch_size": 2, "epsilon": 1e-3}


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
