"""A machine's speed is measured with the model where that is possible, and leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.aggregation import loss_guard
from ferret_core.algorithms.base import Client
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.experiment import speed, token_lengths
from ferret_core.experiment.estimate import GUARDED, Speed, estimate, evaluated, operations
from ferret_core.experiment.federated_data import deal
from ferret_core.models import architecture
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from tests.ferret_core.replicas import SpecFactory, replica_of

GUESSED = Speed.assumed(1e12)


def measured(spec: ExperimentSpec, guessed: Speed = GUESSED) -> Speed | None:
    experiment, outline = catalog.resolve(spec), architecture.of_folder(spec.model.source)
    lengths = token_lengths.measure(spec)
    assert lengths is not None
    return speed.measure(experiment, outline, lengths, guessed)


def test_training_a_token_takes_longer_than_its_loss_and_every_part_takes_time(toy_spec: SpecFactory) -> None:
    found = measured(toy_spec("ferret", evaluation={"generate_examples": 2, "max_new_tokens": 4}))
    assert found is not None
    assert 0 < found.training < 1e15
    assert 0 < found.forward < 1e15
    assert found.aggregation
    assert found.answer


def test_timed_answers_have_all_their_tokens_and_fit_the_context(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = replica_of(toy_spec("ferret"))
    replica.model.generation_config.eos_token_id = list(range(1, replica.model.config.vocab_size))
    continued = list[tuple[int, int]]()
    generating = replica.model.generate

    def watched(**given: Any) -> Any:
        found = generating(**given)
        continued.append((given["input_ids"].shape[1], found.shape[1]))
        return found

    monkeypatch.setattr(replica.model, "generate", watched)
    shard = ClientData([Encoded([5] * replica.context, [6])] * 3, pad_id=0)
    speed._answer_seconds(replica, shard, 3)
    prompt = replica.context - speed.TOKENS - 1
    assert set(continued) == {(prompt, prompt + 1), (prompt, replica.context)}


def test_a_plan_with_twice_the_speed_takes_half_the_time(toy_spec: SpecFactory) -> None:
    spec = toy_spec("ferret", evaluation={"examples": 10, "generate_examples": 0})
    experiment, outline = catalog.resolve(spec), architecture.of_folder(spec.model.source)
    lengths = token_lengths.measure(spec)
    assert lengths is not None
    slow, fast = (estimate(experiment, outline, None, lengths, Speed(rate, rate, 0.0)) for rate in (1e9, 2e9))
    assert slow.local_seconds == pytest.approx(2 * (fast.local_seconds or 0))
    assert slow.evaluate_seconds == pytest.approx(2 * fast.evaluate_seconds)


def test_an_evaluation_takes_the_examples_that_the_data_have(toy_spec: SpecFactory) -> None:
    spec = toy_spec("ferret", evaluation={"examples": 1_000_000, "generate_examples": 1_000_000})
    lengths = token_lengths.measure(spec)
    assert lengths is not None
    held_out = len(deal(spec).held_out)
    assert evaluated(spec, lengths) == (held_out, held_out)


def test_what_takes_no_local_gradients_or_too_long_is_not_timed(toy_spec: SpecFactory) -> None:
    assert measured(toy_spec("fedkseed")) is None
    assert measured(toy_spec("ferret"), Speed.assumed(1.0)) is None


def test_a_timed_step_accumulates_the_batches_that_a_second_holds(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The optimizer's share of a short step depends on the number of batches."""
    spec = toy_spec("ferret", algorithm={"name": "ferret", "local": {"batch_size": 1, "accumulation": 4}})
    accumulated = list[int]()
    contribute = speed.contribute

    def watched(replica: Replica, client: Client) -> Any:
        accumulated.append(replica.spec.algorithm.options["local"]["accumulation"])
        return contribute(replica, client)

    monkeypatch.setattr(speed, "contribute", watched)
    lengths = token_lengths.measure(spec)
    assert lengths is not None
    batch = 3 * operations(architecture.of_folder(spec.model.source), lengths.mean, lengths.answer)
    for seconds, expected in ((0.01, 4), (0.4, 2), (2.0, 1)):
        accumulated.clear()
        assert measured(spec, Speed.assumed(batch / seconds)) is not None
        assert set(accumulated) == {expected}


def test_the_guard_measures_as_many_sequences_as_the_plan_says() -> None:
    assert GUARDED == loss_guard.SEQUENCES
