"""What is told of an update against the truth: the participants' own updates, which a simulation can hold whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from ferret_core import catalog
from ferret_core.aggregation.statistics.schema import UpdateStatistics, blocks_of
from ferret_core.algorithms._dense import dense_update
from ferret_core.algorithms.base import Client, LocalUpdate
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.contribution import seal
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory

Vector = Any
"""Of all parameters in canonical order, fp64."""
CERTAIN = 4.0
"""Standard errors that no estimate is off by."""


class Truth(NamedTuple):
    """A simulated round with all that a service never sees."""

    told: UpdateStatistics
    updates: Mapping[str, Vector]
    step: Vector
    before: Vector
    sizes: list[int]

    @property
    def noise(self) -> Vector:
        return self.step - self.mean

    @property
    def mean(self) -> Vector:
        return np.mean([*self.updates.values()], axis=0)

    def by_block(self, vector: Vector) -> Vector:
        """The RMS per weight of each block."""
        return np.array([np.sqrt(np.mean(part**2)) for part in np.split(vector, np.cumsum(self.sizes)[:-1])])

    def length(self, by_block: list[float]) -> float:
        """‖·‖ of what has these RMS per weight."""
        return float(np.sqrt((np.square(by_block) * self.sizes).sum()))

    def cosines(self) -> list[float]:
        """In the order in which they are told."""
        found = [self.updates[name] / np.linalg.norm(self.updates[name]) for name in sorted(self.updates)]
        return [float(found[i] @ found[j]) for i in range(len(found)) for j in range(i + 1, len(found))]


@pytest.fixture
def truth_of(toy_spec: SpecFactory) -> Callable[..., Truth]:
    """``truth_of("ferret", {"K": 64})``: round 1 of a toy experiment as it was told, and as it was."""

    def make(algorithm: str, options: dict[str, Any]) -> Truth:
        spec = catalog.resolve(toy_spec(algorithm, options=options, rounds=1)).spec
        updates: dict[str, Vector] = {}

        def watched(replica: Replica, client: Client) -> LocalRound:
            with working_copy(replica.model) as before:
                assert replica.experiment.traits.first_order is not None
                client.train(replica.model, replica.experiment.traits.first_order)
                updates[client.task.participant] = dense_update(before, replica.model).astype(np.float64)
            return contribute(replica, client)

        moves: list[bytes] = []
        told = (
            simulate(spec, participate=watched, on_update=lambda entry: moves.append(entry.update)).rounds[1].statistics
        )
        assert told is not None
        replica = Replica.load(spec)
        before = flat(replica)
        replica.apply(moves[0])
        sizes = [block.size for block in blocks_of(replica.experiment, replica.shapes)]
        return Truth(told, updates, before - flat(replica), before, sizes)

    return make


def flat(replica: Replica) -> Vector:
    parts = [weight.detach().reshape(-1) for weight in trainable(replica.model).values()]
    return torch.cat(parts).double().numpy()


PROJECTED: list[dict[str, Any]] = [
    {"basis": "G", "coordinates": "float32", "K": 4000},
    {"basis": "H", "coordinates": "float16", "K": 4000},
    {"basis": "T", "coordinates": "int8", "K": 1000},
    {"basis": "G", "coordinates": "sign", "K": 2000, "seeds": "shared", "allocation": "fixed"},
    {"basis": "R", "coordinates": "float32", "K": 1000, "seeds": "shared", "allocation": "fixed", "whole_up_to": 40},
]


def named(options: dict[str, Any]) -> str:
    return f"{options.get('seeds', 'own')}-{options['basis']}-{options['coordinates']}"


@pytest.mark.parametrize("options", PROJECTED, ids=named)
def test_what_is_told_of_a_projected_update_is_true(truth_of: Callable[..., Truth], options: dict[str, Any]) -> None:
    truth = truth_of("ferret", options)
    told = truth.told
    assert told.step == pytest.approx(truth.by_block(truth.step), rel=2e-3)
    assert told.weights == pytest.approx(truth.by_block(truth.before), rel=2e-3)
    assert told.K is not None
    assert told.noise is not None
    assert told.update is not None
    assert told.error is not None
    assert sum(told.K) == pytest.approx(options["K"], rel=2e-3)
    assert truth.length(told.noise) == pytest.approx(float(np.linalg.norm(truth.noise)), rel=0.06)
    own = np.sqrt(np.mean([truth.by_block(update) ** 2 for update in truth.updates.values()], axis=0))
    known = np.array(told.K) >= 50
    assert np.array(told.update)[known] == pytest.approx(own[known], rel=CERTAIN * np.sqrt(1 / 50 / 2))
    assert truth.length(told.update) == pytest.approx(truth.length(own.tolist()), rel=0.12)
    off = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.mean))
    assert told.error.low * 0.9 < off < told.error.high * 1.1
    assert told.error.low <= told.error.expected <= told.error.high
    assert told.agreement is not None
    assert told.agreement.participants == sorted(truth.updates)
    cosines, errors = np.array(told.agreement.cosines, float), np.array(told.agreement.errors, float)
    assert (errors > 0).all()
    assert (errors < 0.5).all()
    assert (np.abs(cosines - truth.cosines()) < CERTAIN * errors).all()


def test_what_would_be_wrong_is_not_told(truth_of: Callable[..., Truth]) -> None:
    """One bit of each weight tells its sign, not the update."""
    assert truth_of("ferret", {"basis": "G", "coordinates": "sign", "K": 30_000}).told.agreement is None


def test_more_coordinates_tell_more(truth_of: Callable[..., Truth]) -> None:
    few, many = (truth_of("ferret", {"coordinates": "float32", "K": K}).told.model_dump() for K in (500, 8000))
    assert max(many["agreement"]["errors"]) < min(few["agreement"]["errors"]) / 8
    assert many["error"]["expected"] < few["error"]["expected"] / 3


@pytest.mark.parametrize(
    "algorithm", ["fedavg", "scaffold", "topk", "qsgd", "drive", "signsgd", "powersgd", "sparseloco"]
)
def test_algorithms_without_random_directions_have_steps_and_cosines_but_no_noise(
    truth_of: Callable[..., Truth], algorithm: str
) -> None:
    options = {"topk": {"K": 20_000}, "qsgd": {"levels": 64}, "powersgd": {"rank": 16}, "sparseloco": {"density": 0.5}}
    truth = truth_of(algorithm, options.get(algorithm, {}))
    told = truth.told
    assert (told.noise, told.update, told.K, told.error) == (None, None, None, None)
    assert told.step == pytest.approx(truth.by_block(truth.step), rel=2e-3)
    assert told.weights == pytest.approx(truth.by_block(truth.before), rel=2e-3)
    assert told.agreement is not None
    assert told.agreement.errors == [0, 0, 0]
    lossless = 5e-4 if algorithm in ("fedavg", "scaffold") else 0.25
    assert told.agreement.cosines == pytest.approx(truth.cosines(), abs=lossless)


def test_one_participant_alone_has_nobody_to_agree_with(toy_spec: SpecFactory) -> None:
    done = simulate(toy_spec(rounds=1, participants={"simulated": 1}))
    told = done.rounds[1].statistics
    assert told is not None
    assert told.error is not None
    assert told.agreement is None
    assert told.error.low == told.error.expected == told.error.high
    assert done.rounds[0].statistics is None


def test_who_is_left_out_of_the_round_is_left_out_of_what_is_told(toy_spec: SpecFactory) -> None:
    def loud(replica: Replica, client: Client) -> LocalRound:
        part = contribute(replica, client)
        if client.task.participant != "client-002":
            return part
        update = LocalUpdate({"update": 1e3 * part.sealed.contribution.arrays["update"]}, {})
        return part._replace(sealed=seal(update, client, replica.experiment, replica.shapes))

    done = simulate(toy_spec("fedavg", rounds=1, participants={"simulated": 4}), participate=loud).rounds[1]
    assert [*done.rejected] == ["client-002"]
    assert done.statistics is not None
    assert done.statistics.agreement is not None
    assert done.statistics.agreement.participants == done.accepted
    assert len(done.statistics.agreement.cosines) == 3
