from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pydantic import ValidationError

from ferret_core import catalog
from ferret_core.algorithms import fedmezo
from ferret_core.algorithms._base import Client
from ferret_core.client.local_round import contribute
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.digest import model_digest
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.rounds.sampling import client_names, round_tasks

SpecFactory = Callable[..., ExperimentSpec]


def test_a_model_in_half_precision_is_tuned_in_fp32_and_left_as_it_was(toy_spec: SpecFactory) -> None:
    """At a rate so low that bf16 would round every step away."""
    local = {"learning_rate": 1e-6, "steps": 5, "batch_size": 2}
    spec = catalog.resolve(toy_spec("fedmezo", options={"local": local}))
    replica = Replica.load(spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": "bfloat16"})}))
    data = FederatedData(replica.spec, replica.tokenizer, replica.context)
    task = round_tasks(replica.spec, "simulation", 1, client_names(3), replica.digest)[0]
    update = contribute(replica, Client(task, data.shard(task.participant))).sealed.contribution.arrays["update"]
    assert model_digest(replica.model, files=replica.files) == replica.digest
    assert update.dtype == np.float32
    assert 0 < np.abs(update).max() < 1e-4
    assert (update != 0).mean() > 0.9


def test_the_defaults_are_the_papers_and_survive_a_part_of_the_options() -> None:
    local = fedmezo.Config.model_validate({"local": {"steps": 10}}).local
    assert (local.steps, local.epsilon, local.learning_rate) == (10, 1e-3, 1e-6)


@pytest.mark.parametrize("options", [{"local": {"epsilon": 0}}, {"local": {"optimizer": "adam"}}, {"K": 4096}])
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        fedmezo.Config.model_validate(options)
