"""Named beginnings of a specification: right for a model of any size, and one takes back what another has set."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog, compatibility
from ferret_core.aggregation.projection_noise import MOST
from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.experiment.estimate import Speed, TokenLengths, estimate
from ferret_core.experiment.presets import PRESETS, apply_preset
from ferret_core.models import architecture
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

NAMES = [preset.name for preset in PRESETS]
SHAPES = ["llama-1b", "llama-3b", "llama2-7b", "llama2-13b"]


def document(**changes: Any) -> dict[str, Any]:
    return {
        "name": "begun",
        "model": {"source": "/demo"},
        "dataset": {"name": "jsonl", "train": "train.jsonl"},
        "participants": {"simulated": 3},
        **changes,
    }


def resolved(tree: dict[str, Any]) -> catalog.ResolvedExperiment:
    return catalog.resolve(ExperimentSpec.model_validate(tree))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", ["demo", *SHAPES])
def test_a_preset_drowns_no_model(name: str, shape: str) -> None:
    experiment = resolved(apply_preset(document(), name).document)
    model = architecture.of_folder("ferret_core/sample/model") if shape == "demo" else architecture.of_llama(shape)
    told = estimate(experiment, model, None, TokenLengths(256, 128, 256), Speed.assumed(1e12))
    assert told.noise is not None
    assert told.noise.total < MOST / 4
    assert experiment.spec.algorithm.options["refuse_noisy_rounds"]


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_of_two_presets_only_the_last_is_left(first: str, second: str) -> None:
    both = apply_preset(apply_preset(document(seed=7), first).document, second).document
    alone = apply_preset(document(seed=7), second).document
    # What "private" says of participants is in place of what was there.
    both["participants"] = alone["participants"]
    assert resolved(both).spec == resolved(alone).spec


def test_what_somebody_chose_stays() -> None:
    began = document(algorithm={"name": "ferret", "basis": "H", "local": {"batch_size": 2}})
    algorithm = apply_preset(began, "fast").document["algorithm"]
    assert algorithm == {"name": "ferret", "basis": "H", "local": {"batch_size": 2, "steps": 5}}


def test_another_algorithm_gives_way() -> None:
    revised = apply_preset(
        document(algorithm={"name": "fedprox", "mu": 0.5, "local": {"learning_rate": 1e-3}}), "private"
    )
    assert revised.document["algorithm"]["name"] == "ferret"
    assert revised.dropped == {"algorithm.mu": 0.5}


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    with refused("catalog.not_found", "choose one of paper, fast, private"):
        apply_preset(document(), "quick")


@pytest.mark.heavy
def test_private_sums_go_on_without_one_of_five(toy_spec: SpecFactory) -> None:
    began = toy_spec(rounds=1, round={"quorum": 0.8}).model_dump(mode="json")
    began["algorithm"] = {"name": "ferret", "local": {"steps": 1}}
    chosen = apply_preset(began, "private").document
    five = chosen | {"participants": {"simulated": 5}}

    def take_part(replica: Replica, client: Client) -> LocalRound:
        if client.task.participant == "client-005":
            raise FerretError("training.non_finite", "as the test has it")
        return contribute(replica, client)

    (record,) = simulate(ExperimentSpec.model_validate(five), participate=take_part).ledger
    assert [(len(each.members), len(each.survivors)) for each in record.groups] == [(5, 4)]


def test_private_suits_a_site_with_a_privacy_budget() -> None:
    experiment = resolved(apply_preset(document(), "private").document)
    assert not compatibility.problems(experiment, compatibility.PRIVACY_BUDGET)
