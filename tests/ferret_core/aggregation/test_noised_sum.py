"""Sums to which the server adds the noise that protects records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ferret_core import catalog
from ferret_core.aggregation.noised_sum import noised_mean, noised_sum, seal_committed
from ferret_core.algorithms.configs.ferret import isometric_factors
from ferret_core.client.local_round import contribute
from ferret_core.contribution import committed_layout
from ferret_core.ledger.record import LedgerEntry
from ferret_core.privacy.accounting import epsilon_of
from ferret_core.privacy.commitment import NONCE_BYTES, commit
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy, calibrated, wrapped
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica.replica import Replica, replay
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory, clients_of
from tests.refusals import refused

pytestmark = pytest.mark.heavy
K = 4_000
RATE, BATCH, SITES, TIMES = 0.3, 10, 3, 20
LOCAL = {"optimizer": "normalized", "learning_rate": RATE, "steps": 1, "batch_size": 1, "accumulation": 1}
OPTIONS = {"seeds": "shared", "allocation": "fixed", "coordinates": "float32", "K": K}
PRIVACY = {"unit": "example", "epsilon": 20.0, "delta": 1e-3, "batch": BATCH, "records_least": 10}


def protected(toy_spec: SpecFactory, **changes: Any) -> ExperimentSpec:
    options = {**OPTIONS, "local": {"precision": "float32", **LOCAL}}
    return toy_spec(options=options, privacy={**PRIVACY, "mechanism": "central"}, **changes)


@pytest.fixture
def replica(toy_spec: SpecFactory) -> Replica:
    return Replica.load(calibrated(catalog.resolve(protected(toy_spec)).spec, SITES))


def contributions(replica: Replica, task: RoundTask, vectors: Sequence[np.ndarray[Any, Any]]) -> list[bytes]:
    layout = committed_layout(replica.experiment, replica.shapes, task)
    (ring,) = layout.rings
    return [b"".join(commit(wrapped(vector, ring.bits), layout)) for vector in vectors]


def test_the_mean_is_unbiased_and_its_noise_has_the_stated_scale(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same entropy in every run. 80,000 draws tell σ = z·√K from one that is 2 % off."""
    monkeypatch.setattr("secrets.token_bytes", np.random.default_rng(5).bytes)
    task = clients_of(replica)[0].task
    vectors = [np.random.default_rng(seed).integers(-60, 61, K) for seed in range(SITES)]
    sent = contributions(replica, task, vectors)
    noised = [noised_sum(replica, task, sent) for _ in range(TIMES)]
    found = [noised_mean(replica, task, 1, each, dict.fromkeys("abc", "")).sealed.contribution for each in noised]
    means = np.array([each.arrays["coordinates"] for each in found], np.float64)
    config: Any = replica.experiment.config
    blocks = config.cut(replica.shapes)
    factors = np.repeat(isometric_factors(config.basis, blocks, config.fixed(blocks)), config.fixed(blocks))
    total = np.sum(vectors, axis=0)
    errors = means * factors * np.sqrt(K) * SITES * BATCH / RATE - total
    deviation = RecordMechanism.of(replica.spec, SITES).noise_multiplier * np.sqrt(K)
    assert np.std(errors) == pytest.approx(deviation, rel=5 / np.sqrt(2 * errors.size))
    assert abs(errors.mean()) < 5 * deviation / np.sqrt(errors.size)
    assert abs((errors @ total).mean()) < 5 * deviation * np.linalg.norm(total) / np.sqrt(TIMES), "it shrinks nothing"
    each = errors.reshape(-1)
    assert abs(np.corrcoef(each[1:], each[:-1])[0, 1]) < 5 / np.sqrt(each.size)


def test_a_site_sends_exact_integers_and_a_digest_that_does_not_follow_from_them(replica: Replica) -> None:
    client = clients_of(replica)[0]
    mechanism = RecordMechanism.of(replica.spec, SITES)
    record = RecordPrivacy(mechanism, [[position] for position in range(10)])
    made = [contribute(replica, client._replace(record=record)).sealed for _ in range(2)]
    assert made[0].digest == made[1].digest, "all units are drawn, and no noise is added"
    sent = [seal_committed(replica, client.task, each) for each in made]
    assert sent[0].digest != sent[1].digest
    assert sent[0].blob[NONCE_BYTES:] == sent[1].blob[NONCE_BYTES:]
    assert sent[0].size == NONCE_BYTES + mechanism.layout(K).size


def test_a_contribution_of_another_size_is_refused_without_a_value(replica: Replica) -> None:
    task = clients_of(replica)[0].task
    (sent,) = contributions(replica, task, [np.full(K, 777)])
    with refused("contribution.malformed", f"has {len(sent)} bytes", field="body") as problem:
        noised_sum(replica, task, [sent[:-1]])
    assert "777" not in str(problem.value)


def test_a_simulation_learns_with_less_noise_than_sites_would_add(toy_spec: SpecFactory) -> None:
    entries: list[LedgerEntry] = []
    spec = protected(toy_spec, rounds=2)
    done = simulate(spec, on_update=entries.append)
    known = calibrated(catalog.resolve(spec).spec, SITES)
    noise = known.privacy.noise_multiplier
    assert noise is not None
    assert [each.metrics["epsilon"] for each in done.rounds[1:]] == [epsilon_of(1.0, noise, n, 1e-3) for n in (1, 2)]
    assert done.rounds[-1].metrics["eval_loss"] < done.rounds[0].metrics["eval_loss"]
    replica = Replica.load(known)
    assert [record.digest for record in replay(replica, entries)][-1] == done.digest
    assert simulate(spec).digest != done.digest, "the noise does not follow from the experiment's seed"
    for record in done.ledger:
        (group,) = record.groups
        assert group.survivors == tuple(name for name, _ in record.contributions)
        assert (group.transcript, group.releases, len(group.survivors)) == (None, 1, SITES)
    assert done.ledger[0].contributions != simulate(spec).ledger[0].contributions


def test_central_noise_is_that_of_one_trusted_site() -> None:
    one = RecordMechanism(0.05, 0.9, 100, members=5, honest=1, central=True)
    apart = RecordMechanism(0.05, 0.9, 100, members=5, honest=3)
    assert one.deviation(K) == pytest.approx(0.9 * np.sqrt(K))
    assert one.useful == pytest.approx(apart.useful * 5 / 3)
    assert one.bits(K) <= apart.bits(K)
