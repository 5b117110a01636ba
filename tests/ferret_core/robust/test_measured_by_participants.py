"""Rounds whose step the participants measure in the next one: what is taken back, replayed, recorded and refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ferret_core import catalog, federation
from ferret_core.algorithms._base import Client
from ferret_core.federated_data import FederatedData
from ferret_core.fold import fold
from ferret_core.follow import follow
from ferret_core.ledger import HALVED_VERSION, LEDGER_VERSION, TREE_VERSION, LedgerEntry
from ferret_core.participant import contribute
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.rises import packed
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import Replica
from ferret_core.robust.taken_back import to_take_back
from ferret_core.sealed import Sealed
from ferret_core.simulate import SimulationResult, simulate
from tests.refusals import refused

Spec = Callable[..., ExperimentSpec]
HARMLESS, HARMFUL = packed([-0.1, -0.1, -0.1, -0.1]), packed([3.0, 2.0, 1.0, 0.5])
UNBOUNDED = {"explosion": 1e6}
EVALUATION = {"examples": 10, "generate": 0}


def measured(toy_spec: Spec, *, rate: float = 1.0, rise: float = 0.05, **changes: Any) -> ExperimentSpec:
    """A toy experiment whose server follows each round by ``rate``, and whose participants measure its steps."""
    server = {"step": "guard", "development_by": "participants", "rise": rise, "learning_rate": rate}
    whole = {"robust": UNBOUNDED, "evaluation": EVALUATION, **changes}
    return toy_spec(server={**server, **whole.pop("server", {})}, **whole)


def eval_loss(result: SimulationResult) -> float:
    return result.rounds[-1].metrics["eval_loss"]


@pytest.mark.slow
def test_at_a_rate_too_high_the_guarded_experiment_ends_lower(toy_spec: Spec) -> None:
    local = {"optimizer": "normalized", "learning_rate": 30.0, "steps": 4, "batch_size": 4}
    options = {"bytes_per_round": 128, "blocks": 4, "guard": False, "local": local}
    changes: dict[str, Any] = {"options": options, "rounds": 4}
    guarded = simulate(measured(toy_spec, **changes))
    whole = simulate(measured(toy_spec, server={"step": "fixed", "development_by": "server"}, **changes))
    assert any(record.taken_back for record in guarded.ledger)
    assert eval_loss(guarded) < eval_loss(whole) / 2


@pytest.mark.heavy
@pytest.mark.slow
def test_a_round_that_does_no_harm_stays_and_the_experiment_is_that_of_fixed_steps(toy_spec: Spec) -> None:
    local = {"optimizer": "adam", "learning_rate": 1e-3, "steps": 4, "batch_size": 4}
    options = {"K": 512, "local": local}
    guarded = simulate(measured(toy_spec, options=options))
    fixed = simulate(measured(toy_spec, options=options, server={"step": "fixed", "development_by": "server"}))
    assert [record.taken_back for record in guarded.ledger] == [0, 0, 0]
    assert guarded.digest == fixed.digest
    assert [done.metrics.get("step_before") for done in guarded.rounds] == [None, None, 100.0, 100.0]


def test_the_record_and_the_metric_say_what_was_taken_back(toy_spec: Spec) -> None:
    result = simulate(measured(toy_spec, rate=64.0, rise=0.0))
    first, *later = result.ledger
    assert (first.version, first.taken_back, first.halvings) == (LEDGER_VERSION, 0, None)
    assert any(record.taken_back for record in later)
    shares = [done.metrics["step_before"] for done in result.rounds[2:]]
    assert shares == [100 * 0.5 ** (record.taken_back or 0) for record in later]
    assert not any({"step", "development_loss"} & set(done.metrics) for done in result.rounds)


@pytest.mark.parametrize(
    ("server", "version"),
    [({}, TREE_VERSION), ({"step": "guard", "development": 4}, HALVED_VERSION)],
    ids=["fixed", "by the server"],
)
def test_all_others_have_the_records_and_the_contributions_that_they_had(
    toy_spec: Spec, server: dict[str, Any], version: int
) -> None:
    split = {"split": "validation", "validation": 0.4, **EVALUATION}
    entries: list[LedgerEntry] = []
    sent: list[Sealed] = []

    def seen(replica: Replica, client: Client) -> Any:
        part = contribute(replica, client)
        sent.append(part.sealed)
        assert replica.last is None, "nothing is kept that nobody takes back"
        return part

    spec = toy_spec(server=server, evaluation=split, rounds=2)
    simulate(spec, on_update=entries.append, participate=seen)
    assert {entry.record.version for entry in entries} == {version}
    assert all("taken_back" not in entry.record.model_dump(mode="json") for entry in entries)
    assert all(b"rises" not in sealed.blob for sealed in sent)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.heavy
def test_who_has_no_data_replays_the_same_model(toy_spec: Spec, dtype: str) -> None:
    base = toy_spec().model.model_dump() | {"dtype": dtype}
    server = {"schedule": "linear", "warmup_rounds": 1}
    spec = measured(toy_spec, rate=64.0, rise=0.0, rounds=4, model=base, server=server)
    entries: list[LedgerEntry] = []
    result = simulate(spec, on_update=entries.append)
    assert any(record.taken_back for record in result.ledger)
    replica = Replica.load(catalog.resolve(spec))
    assert list(follow(replica, entries)) == result.ledger
    assert replica.digest == result.digest


def test_a_record_with_another_taking_back_leads_to_another_model_and_is_refused(toy_spec: Spec) -> None:
    spec, entries = measured(toy_spec, rate=8.0, rounds=2), list[LedgerEntry]()
    simulate(spec, on_update=entries.append)
    replica = Replica.load(catalog.resolve(spec))
    assert len(list(follow(replica, entries[:1]))) == 1
    record, _, update = entries[1]
    forged = record.model_copy(update={"taken_back": 3 - (record.taken_back or 0)})
    with refused("ledger.broken", "applying it gives"):
        replica.advance(forged, update)


def test_a_record_that_takes_back_what_there_is_not_is_refused(toy_spec: Spec) -> None:
    """In round 1, and in an experiment whose replicas keep no step."""
    entries: list[LedgerEntry] = []
    spec = measured(toy_spec, rounds=2)
    simulate(spec, on_update=entries.append)
    forged = entries[0].record.model_copy(update={"taken_back": 1})
    with refused("ledger.broken", "no step before round 1"):
        Replica.load(catalog.resolve(spec)).advance(forged, entries[0].update)
    other = Replica.load(catalog.resolve(measured(toy_spec, server={"step": "fixed", "development_by": "server"})))
    other.advance(*entries[0][::2])
    with refused("ledger.broken", "no step before round 2"):
        other.advance(entries[1].record.model_copy(update={"taken_back": 1}), entries[1].update)


class TestDecision:
    """Rounds folded of contributions whose rises are given."""

    @pytest.fixture
    def spec(self, toy_spec: Spec) -> ExperimentSpec:
        return catalog.resolve(measured(toy_spec, participants={"simulated": 5}))

    @pytest.fixture
    def replica(self, spec: ExperimentSpec) -> Replica:
        return Replica.load(spec)

    @pytest.fixture
    def data(self, replica: Replica) -> FederatedData:
        return FederatedData(replica.spec, replica.tokenizer, replica.context)

    @pytest.fixture
    def second(self, replica: Replica, data: FederatedData) -> list[Sealed]:
        """What is sent in round 2, at which the replica stands."""
        fold(replica, SIMULATION, sent(replica, data))
        return sent(replica, data)

    @pytest.mark.parametrize(
        ("rises", "halvings"),
        [
            ([HARMFUL, HARMFUL, HARMLESS, HARMLESS, HARMLESS], 0),
            ([HARMFUL, HARMFUL, HARMFUL, HARMLESS, HARMLESS], 3),
            ([HARMFUL, None, None, None, None], 3),
            ([None] * 5, 0),
        ],
    )
    @pytest.mark.heavy
    def test_no_minority_decides(
        self, replica: Replica, second: list[Sealed], rises: list[str | None], halvings: int
    ) -> None:
        folded = fold(replica, SIMULATION, saying(second, rises))
        assert folded.entry.record.taken_back == halvings
        expected = {"step_before": 100 * 0.5**halvings} if any(rises) else {}
        assert folded.guarded == expected

    @pytest.mark.heavy
    def test_who_is_refused_has_no_say(self, replica: Replica, second: list[Sealed]) -> None:
        """The first sends an update that is far too long; without it, one of two decides."""
        liar, *others = saying(second, [HARMFUL, HARMLESS, HARMFUL, None, None])
        arrays = {**liar.contribution.arrays}
        arrays["exponent"] = arrays["exponent"] + 20
        long = liar._replace(contribution=replace(liar.contribution, arrays=arrays))
        record = fold(replica, SIMULATION, [long, *others]).entry.record
        assert [name for name, _, _ in record.refused] == [liar.meta.participant]
        assert record.taken_back == 0 != to_take_back([HARMFUL, HARMLESS, HARMFUL], 0.05)


def sent(replica: Replica, data: FederatedData) -> list[Sealed]:
    names = federation.client_names(replica.spec.participants.simulated)
    tasks = federation.round_tasks(replica.spec, SIMULATION, replica.round + 1, names, replica.digest)
    return [contribute(replica, Client(task, data.shard(task.participant))).sealed for task in tasks]


def saying(contributions: Sequence[Sealed], rises: Sequence[str | None]) -> list[Sealed]:
    """The same contributions with other rises."""
    return [
        sealed._replace(contribution=replace(sealed.contribution, meta=sealed.meta.model_copy(update={"rises": text})))
        for sealed, text in zip(contributions, rises, strict=True)
    ]


@pytest.mark.parametrize(
    ("server", "changes", "field", "value"),
    [
        ({"step": "fixed"}, {}, "server.development_by", "participants"),
        ({"optimizer": "adam"}, {}, "server.optimizer", "adam"),
        ({"optimizer": "yogi"}, {}, "server.optimizer", "yogi"),
        ({"momentum": 0.9}, {}, "server.momentum", 0.9),
        ({"average": "tail"}, {}, "server.average", "tail"),
        ({}, {"rounds": 1}, "rounds", 1),
        ({}, {"algorithm": {"name": "fetchsgd"}}, "algorithm.name", "fetchsgd"),
    ],
)
def test_what_cannot_be_taken_back_is_refused_by_name(
    toy_spec: Spec, server: dict[str, Any], changes: dict[str, Any], field: str, value: object
) -> None:
    with refused("spec.invalid", "server.development_by") as caught:
        catalog.resolve(measured(toy_spec, server=server, **changes))
    assert [(error.field, error.value) for error in caught.value.errors] == [(field, value)]


def test_nothing_is_set_aside_at_the_server(toy_spec: Spec) -> None:
    spec = catalog.resolve(measured(toy_spec))
    assert not spec.server.develops
    replica = Replica.load(spec)
    assert list(FederatedData(spec, replica.tokenizer, replica.context).development) == []
