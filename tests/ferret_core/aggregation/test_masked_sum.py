"""A simulated experiment whose server learns sums alone."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog
from ferret_core import simulate as simulate_module
from ferret_core.aggregation import masked_sum
from ferret_core.experiment.estimate import Speed, TokenLengths, estimate
from ferret_core.ledger.record import LedgerEntry
from ferret_core.models import architecture
from ferret_core.projection import sign_sums
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica, replay
from ferret_core.secure.shares import message_bytes
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

pytestmark = pytest.mark.heavy
SIGNS = {"seeds": "shared", "allocation": "fixed", "K": 4_000}
MASKED = {"aggregation": "masked"}


def test_a_masked_experiment_learns_as_one_whose_server_reads_all(toy_spec: SpecFactory) -> None:
    entries: list[LedgerEntry] = []
    masked = toy_spec(options=SIGNS, rounds=2, secure=MASKED)
    done, plain = simulate(masked, on_update=entries.append), simulate(toy_spec(options=SIGNS, rounds=2))
    assert simulate(masked).digest == done.digest, "random masks leave no trace in the sum"
    for ours, theirs in zip(done.rounds[1:], plain.rounds[1:], strict=True):
        assert ours.metrics["eval_loss"] == pytest.approx(theirs.metrics["eval_loss"], rel=0.01)
        assert ours.accepted == theirs.accepted == ["client-001", "client-002", "client-003"]
    first, expected = done.rounds[1].metrics, plain.rounds[1].metrics
    assert first["train_loss"] == pytest.approx(expected["train_loss"], abs=2**-16)
    assert "truncated_examples" in expected.keys() - first.keys()
    for record in done.ledger:
        (group,), clients = record.groups, tuple(name for name, _ in record.contributions)
        assert (group.name, group.members, group.survivors) == ("group-1", clients, clients)
    sent = done.rounds[1].bytes_up / 3
    assert sent > 4_000 * 2 / 8 + message_bytes(3)
    outline, lengths = architecture.of_folder(masked.model.source), TokenLengths(64, 32, 64)
    plan = estimate(catalog.resolve(masked), outline, None, lengths, Speed.assumed(1e12))
    assert plan.bytes_up == pytest.approx(sent, rel=0.001)
    replica = Replica.load(catalog.resolve(masked).spec)
    assert [record.digest for record in replay(replica, entries)][-1] == done.digest


def test_an_extension_leaves_the_digest_of_the_specification(toy_spec: SpecFactory) -> None:
    spec = catalog.resolve(toy_spec(options=SIGNS, rounds=2, secure=MASKED)).spec
    extended, other = spec.model_copy(update={"rounds": 3}), spec.model_copy(update={"seed": spec.seed + 1})
    assert masked_sum.spec_digest(extended) == masked_sum.spec_digest(spec) != masked_sum.spec_digest(other)


def test_groups_enter_the_aggregation_as_contributions(toy_spec: SpecFactory) -> None:
    """Seven clients: a group of four and one of three, whose means count by their survivors."""
    entries: list[LedgerEntry] = []
    options = {"options": SIGNS, "rounds": 2, "participants": {"simulated": 7}}
    grouped = toy_spec(**options, secure={**MASKED, "group": 4})
    done, plain = simulate(grouped, on_update=entries.append), simulate(toy_spec(**options))
    for ours, theirs in zip(done.rounds[1:], plain.rounds[1:], strict=True):
        assert ours.metrics["eval_loss"] == pytest.approx(theirs.metrics["eval_loss"], rel=0.01)
        assert len(ours.accepted) == 7
    for record in done.ledger:
        assert [(group.name, len(group.survivors)) for group in record.groups] == [("group-1", 4), ("group-2", 3)]
    replica = Replica.load(catalog.resolve(grouped).spec)
    assert [record.digest for record in replay(replica, entries)][-1] == done.digest


def test_a_median_needs_three_groups(toy_spec: SpecFactory) -> None:
    options = {"options": SIGNS, "rounds": 1, "participants": {"simulated": 9}, "robust": {"rule": "median"}}
    for group in (0, 5):
        with refused("spec.invalid", "compares contributions"):
            simulate(toy_spec(**options, secure={**MASKED, "group": group}))
    (record,) = simulate(toy_spec(**options, secure={**MASKED, "group": 3})).ledger
    assert len(record.groups) == 3


def test_a_group_far_beyond_the_others_is_left_out_by_name(toy_spec: SpecFactory, monkeypatch: Any) -> None:
    honest = sign_sums.integers

    def integers(arrays: Any, K: Any, units: Any, loss: float | None) -> list[Any]:
        vector = honest(arrays, K, units, loss)
        if loud:
            vector[1][:] = sign_sums.MOST_SCALE
        return vector

    options = {"options": SIGNS, "rounds": 1, "participants": {"simulated": 9}}
    spec = toy_spec(**options, secure={**MASKED, "group": 3})
    loud, sums = False, masked_sum.sum_in_process

    def sum_in_process(*arguments: Any) -> Any:
        nonlocal loud
        loud = arguments[-1] == 2
        return sums(*arguments)

    monkeypatch.setattr(sign_sums, "integers", integers)
    monkeypatch.setattr(simulate_module, "sum_in_process", sum_in_process)
    (record,) = simulate(spec).ledger
    assert [group.refused is None for group in record.groups] == [True, False, True]
    assert tuple(name for name, _, _ in record.refused) == record.groups[1].survivors
    assert all("group-2" in why for _, _, why in record.refused)
    assert len(record.contributions) == 6


def test_a_client_that_fails_drops_out_of_the_sum(one_bad_client: ExperimentSpec) -> None:
    """Four members with a threshold of three."""
    done = simulate(masked_of(one_bad_client, least=3)).rounds
    for each in done[1:]:
        assert (len(each.accepted), len(each.rejected)) == (3, 1)
    assert done[-1].metrics["eval_loss"] < done[0].metrics["eval_loss"]


def test_a_sum_needs_the_client_that_diverged(one_bad_client: ExperimentSpec) -> None:
    with refused("round.diverged", "4 are needed"):
        simulate(masked_of(one_bad_client, least=4))


def masked_of(spec: ExperimentSpec, **secure: Any) -> ExperimentSpec:
    tree = spec.model_dump(mode="json")
    tree["algorithm"] |= {**SIGNS, "bytes_per_round": None, "name": "ferret"}
    return ExperimentSpec.model_validate({**tree, "secure": {**MASKED, **secure}})
