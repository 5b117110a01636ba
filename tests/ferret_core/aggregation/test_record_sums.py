"""A simulated experiment in which noise inside the secure sum protects single records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ferret_core import catalog
from ferret_core.aggregation.record_sums import RecordSums
from ferret_core.algorithms.base import Client
from ferret_core.algorithms.configs.ferret import isometric_factors
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.ledger.record import LedgerEntry
from ferret_core.models.parameters import trainable
from ferret_core.privacy import mechanism
from ferret_core.privacy.accounting import epsilon_of
from ferret_core.privacy.lattice import Integers
from ferret_core.privacy.mechanism import RecordPrivacy, calibrated
from ferret_core.projection.project import project
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array
from ferret_core.replica.replica import Replica, replay
from ferret_core.simulate import simulate
from ferret_core.training.unit_gradients import unit_gradients
from tests.ferret_core.replicas import SpecFactory, clients_of
from tests.refusals import refused

pytestmark = pytest.mark.heavy
LOCAL = {"optimizer": "normalized", "learning_rate": 0.3, "steps": 1, "batch_size": 1, "accumulation": 1}
OPTIONS = {"seeds": "shared", "allocation": "fixed", "coordinates": "float32", "K": 4_000, "local": LOCAL}
MASKED = {"aggregation": "masked"}
PRIVACY = {"unit": "example", "epsilon": 20.0, "delta": 1e-3, "batch": 10, "records_least": 10}


def protected(toy_spec: SpecFactory, **changes: Any) -> ExperimentSpec:
    options = {**OPTIONS, "local": {"precision": "float32", **LOCAL}}
    privacy = {**PRIVACY, **changes.pop("privacy", {})}
    return toy_spec(options=options, secure=MASKED, privacy=privacy, **changes)


def test_a_protected_experiment_learns_and_shows_its_epsilon(toy_spec: SpecFactory) -> None:
    entries: list[LedgerEntry] = []
    spec = protected(toy_spec, rounds=3)
    done = simulate(spec, on_update=entries.append)
    known = calibrated(catalog.resolve(spec).spec, 3)
    noise = known.privacy.noise_multiplier
    assert noise is not None
    shown = [each.metrics["epsilon"] for each in done.rounds[1:]]
    assert shown == [epsilon_of(1.0, noise, count, 1e-3) for count in (1, 2, 3)]
    assert shown[-1] <= 20
    assert done.rounds[-1].metrics["eval_loss"] < done.rounds[0].metrics["eval_loss"]
    for each in done.rounds[1:]:
        assert not {"train_loss", "trained_sequences", "truncated_examples"} & each.metrics.keys()
    replica = Replica.load(known)
    assert [record.digest for record in replay(replica, entries)][-1] == done.digest
    assert simulate(spec).digest != done.digest, "the noise does not follow from the experiment's seed"


def test_without_noise_the_sum_is_the_mean_of_the_units_directions(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mechanism, "discrete_gaussian", lambda deviation, count: np.zeros(count, np.int64))
    replica = Replica.load(calibrated(catalog.resolve(protected(toy_spec)).spec, 3))
    sums, shapes = RecordSums(replica.experiment, 3, 1), replica.shapes
    protection = mechanism.RecordMechanism.of(replica.spec, 3)
    received, expected = list[Array](), list[Array]()
    for client in clients_of(replica):
        units = [[position] for position in range(10)]
        client = client._replace(record=RecordPrivacy(protection, units))
        received.append(sums.integers(replica.state, contribute(replica, client).sealed.contribution, shapes)[0])
        expected.append(directions(replica, client, units))
    bits = sums.segments(shapes)[0][1].bit_length()
    total = np.sum(received, axis=0, dtype=np.uint32) & ((1 << bits) - 1)
    mean = sums.mean(replica.state, [total], 3, shapes).arrays["coordinates"]
    reference = 0.3 * np.sum(expected, axis=0) / 30
    assert mean @ reference / (np.linalg.norm(mean) * np.linalg.norm(reference)) > 0.98
    assert np.linalg.norm(mean) == pytest.approx(np.linalg.norm(reference), rel=0.05)


def directions(replica: Replica, client: Any, units: list[list[int]]) -> Array:
    """The sum of the units' gradients, each of length 1 in its estimate, as coordinates in the basis' own units."""
    config: Any = replica.experiment.config
    blocks, algorithm = config.cut(replica.shapes), replica.algorithm
    K = config.fixed(blocks)
    factors = np.repeat(isometric_factors(config.basis, blocks, K), K)
    zeros = {name: 0 * weight.detach() for name, weight in trainable(replica.model).items()}
    total = np.zeros(sum(K))
    for gradients in unit_gradients(replica.model, client.shard, units, config.local, 1):
        found = project(gradients, zeros, blocks, algorithm.basis, K, client.task.round_seed)
        gamma = np.concatenate([each.numpy() for each in found.coordinates])
        total += gamma / np.linalg.norm(gamma * factors)
    return total


def test_a_contribution_without_the_noise_is_never_made(toy_spec: SpecFactory) -> None:
    replica = Replica.load(calibrated(catalog.resolve(protected(toy_spec)).spec, 3))
    with refused("training.unsupported", "nothing is sent", field="privacy.unit"):
        contribute(replica, clients_of(replica)[0])


def test_a_unit_without_finite_gradient_stays_secret(toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error would reveal that it was drawn."""
    monkeypatch.setattr(mechanism, "discrete_gaussian", lambda deviation, count: np.zeros(count, np.int64))
    replica = Replica.load(calibrated(catalog.resolve(protected(toy_spec)).spec, 3))
    next(iter(trainable(replica.model).values())).data.fill_(float("nan"))
    client = clients_of(replica)[0]
    client = client._replace(record=RecordPrivacy(mechanism.RecordMechanism.of(replica.spec, 3), [[0], [1]]))
    client = client._replace(task=client.task.model_copy(update={"base_digest": replica.digest}))
    sealed = contribute(replica, client).sealed
    assert not sealed.contribution.arrays["coordinates"].any()


def test_failed_attempts_are_charged_and_the_budget_is_never_passed(toy_spec: SpecFactory) -> None:
    tried: list[str] = []

    def once_failing(replica: Replica, client: Client) -> LocalRound:
        tried.append(client.task.participant)
        if len(tried) == 1:
            raise FerretError("participant.failed", "this client was killed")
        return contribute(replica, client)

    spent: list[float] = []
    spec = protected(toy_spec, rounds=2)
    with refused("quorum.missed", "would be this participant's ε"):
        simulate(spec, participate=once_failing, on_round=lambda each: spent.append(each.metrics.get("epsilon", 0)))
    noise = calibrated(catalog.resolve(spec).spec, 3).privacy.noise_multiplier
    assert noise is not None
    assert spent == [0, epsilon_of(1.0, noise, 2, 1e-3)], "both attempts at round 1"
    assert epsilon_of(1.0, noise, 3, 1e-3) > 20 >= spent[1]


def test_all_examples_of_a_patient_are_one_unit_of_one_client(toy_spec: SpecFactory, tmp_path: Path) -> None:
    source = toy_spec().dataset.options
    rows = [json.loads(line) for line in Path(source["train"]).read_text().splitlines()]
    for number, row in enumerate(rows):
        row["patient_id"] = number // 2
    train = tmp_path / "patients.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"name": "jsonl", "train": str(train), "test": source["test"]}
    patients = {"unit": "field:patient_id", "batch": 7, "records_least": 7}
    done = simulate(protected(toy_spec, rounds=1, dataset=data, privacy=patients))
    assert len(done.rounds) == 2
    with refused("privacy.too_few_records", field="privacy.records_least"):
        simulate(protected(toy_spec, rounds=1, dataset=data, privacy={**patients, "records_least": len(rows) // 2}))
    del rows[3]["patient_id"]
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with refused("privacy.unit_missing", "line 4", "patient_id", field="privacy.unit"):
        simulate(protected(toy_spec, rounds=1, dataset=data, privacy=patients))


def test_the_integers_of_the_wire_keep_their_value() -> None:
    from ferret_core.algorithms.ferret import _as_floats

    values: Integers = np.array([-(1 << 23), -5, 0, 7, (1 << 23) - 1, 1 << 24])
    assert _as_floats(values)["coordinates"].tolist() == [-(2.0**23), -5, 0, 7, 2.0**23 - 1, 0]
