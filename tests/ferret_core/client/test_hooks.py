"""A site's own functions: in a round like any other, the same in every road, and refused where they cannot be taken."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core import catalog
from ferret_core.algorithms.base import Client
from ferret_core.client.hooks import Site
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import SIMULATION
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.simulate import simulate
from ferret_core.training.custom_training import CustomTraining, TrainingContext
from tests.algorithms import NAMES
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

FIXED = {"fedkseed", "fedprox", "fedzo", "scaffold"}
"""Their own training is part of what they send."""


def steps(model: Any, examples: Any, context: TrainingContext) -> float:
    """Plain descent by hand."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    losses: list[float] = []
    for step, batch in enumerate(context.batches(), start=1):
        loss = model(**batch).loss
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.data -= context.learning_rate * gradient
        losses.append(loss.item())
        context.on_step(step)
    return sum(losses) / len(losses)


@pytest.fixture
def part(toy_spec: SpecFactory) -> Callable[..., LocalRound]:
    """One participant's part in round 1 with a site's own functions."""

    def make(site: Site, algorithm: str = "fedavg", **options: Any) -> LocalRound:
        spec = toy_spec(algorithm, options=options)
        replica = Replica.load(spec)
        data = FederatedData(spec, replica.tokenizer, replica.context)
        (task, *_) = sampling.round_tasks(spec, SIMULATION, 1, ["client-001"], replica.digest)
        own = CustomTraining(site, data.examples("client-001"), replica.tokenizer)
        digest = replica.digest
        made = contribute(replica, Client(task, data.shard("client-001"), own=own))
        assert replica.digest == digest, "the model is left as it was"
        return made

    return make


def trained_by(function: Any) -> Site:
    site = Site()
    site.train(function)
    return site


def test_the_loop_that_ferret_has_too_gives_what_ferret_gives(toy_spec: SpecFactory) -> None:
    """Plain descent on the same batches: the same model but for the last bits of a sum."""
    local = {"optimizer": "sgd", "learning_rate": 0.5, "steps": 3, "batch_size": 4, "accumulation": 1}
    spec = toy_spec("fedavg", rounds=1, options={"local": local})
    own, ferrets = simulate(spec, site=trained_by(steps)), simulate(spec)
    assert own.rounds[1].metrics["train_loss"] == pytest.approx(ferrets.rounds[1].metrics["train_loss"], rel=1e-4)
    assert own.rounds[1].metrics["eval_loss"] == pytest.approx(ferrets.rounds[1].metrics["eval_loss"], rel=1e-4)
    assert own.rounds[1].metrics["eval_loss"] < own.rounds[0].metrics["eval_loss"]


@pytest.mark.heavy
@pytest.mark.parametrize("algorithm", NAMES)
def test_it_trains_in_every_algorithm_that_takes_it_and_is_refused_in_all_others(
    toy_spec: SpecFactory, algorithm: str
) -> None:
    called: list[int] = []

    def train(model: Any, examples: Any, context: TrainingContext) -> None:
        called.append(context.round)
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        for weight in weights:
            weight.data += 0.01

    local = {"steps": 1, "batch_size": 2, "learning_rate": 1e-4}
    options = {"local": local} if algorithm in FIXED else {}
    spec = toy_spec(algorithm, rounds=1, participants={"simulated": 2}, options=options)
    if algorithm in FIXED:
        with pytest.raises(FerretError, match=f"{algorithm!r}: cannot take .* ferret") as raised:
            simulate(spec, site=trained_by(train))
        assert (raised.value.code, called) == ("training.unsupported", [])
    else:
        result = simulate(spec, site=trained_by(train))
        assert called == [1, 1]
        assert result.digest != result.rounds[0].digest
        assert "train_loss" not in result.rounds[1].metrics


def test_what_it_is_told_is_what_the_experiment_asks_for(part: Callable[..., LocalRound]) -> None:
    seen: list[tuple[Any, TrainingContext]] = []
    local = {
        "learning_rate": 0.5,
        "schedule": "linear",
        "epochs": 1.0,
        "batch_size": 3,
        "accumulation": 2,
        "steps": None,
    }

    def look(model: Any, examples: Any, context: TrainingContext) -> None:
        batches = list(context.batches())
        assert [tuple(batch) for batch in batches] == [("input_ids", "attention_mask", "labels")] * context.steps
        assert {len(batch["input_ids"]) for batch in batches} == {6}
        assert sum(len(batch["input_ids"]) for batch in context.every_example()) == len(examples)
        assert type(context.optimizer(model)).__name__ == "Adam"
        assert (model.training, context.learning_rate) == (True, 0.5)
        seen.append((examples, context))

    part(trained_by(look), local=local)
    ((examples, context),) = seen
    assert (context.round, context.rounds, context.participant) == (1, 3, "client-001")
    assert context.steps == -(-len(examples) // 6)
    assert {example.instruction for example in examples} == {"Repeat."}
    assert context.tokenizer.decode(context.shard.examples[0].response).startswith(examples[0].output)


def test_all_that_it_draws_follows_from_the_task(part: Callable[..., LocalRound]) -> None:
    drawn: list[tuple[float, ...]] = []

    def draw(model: Any, examples: Any, context: TrainingContext) -> None:
        drawn.append((random.random(), float(np.random.random()), float(torch.rand(()))))

    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    part(trained_by(draw))
    part(trained_by(draw))
    assert drawn[0] == drawn[1]
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before


def test_its_own_loss_is_reported_and_is_of_the_model_before_it_is_trained(part: Callable[..., LocalRound]) -> None:
    site = trained_by(lambda model, examples, context: [weight.data.zero_() for weight in model.parameters()] and None)
    modes: list[tuple[bool, bool]] = []

    @site.evaluate
    def evaluate(model: Any, examples: Any, context: TrainingContext) -> float:
        modes.append((model.training, torch.is_grad_enabled()))
        return 1.0 + float(next(model.parameters()).any())

    assert part(site).sealed.meta.metrics["participant_eval_loss"] == 2.0
    assert modes == [(False, False)]


def test_a_site_may_only_evaluate_whatever_the_algorithm(toy_spec: SpecFactory) -> None:
    site = Site()
    site.evaluate(lambda model, examples, context: 3.0)
    spec = toy_spec("scaffold", rounds=1)
    result = simulate(spec, site=site)
    assert (result.rounds[1].metrics["participant_eval_loss"], result.digest) == (3.0, simulate(spec).digest)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda model, examples, context: setattr(model, "lm_head", torch.nn.Linear(2, 2)), "another tensor"),
        (lambda model, examples, context: setattr(model, "extra", torch.nn.Parameter(torch.zeros(1))), "adds none"),
        (lambda model, examples, context: {"loss": 1.0}, "returns a loss as a number"),
    ],
)
def test_a_function_that_does_something_else_is_told(
    part: Callable[..., LocalRound], function: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        part(trained_by(function))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_or_loss_that_is_no_number_is_not_sent(part: Callable[..., LocalRound], value: float) -> None:
    def spoil(model: Any, examples: Any, context: TrainingContext) -> None:
        next(model.parameters()).data.fill_(value)

    for site in (trained_by(spoil), trained_by(lambda model, examples, context: value)):
        with refused("training.non_finite", "lower"):
            part(site)


def test_what_was_frozen_is_tuned_again_and_frozen_weights_stay_frozen(part: Callable[..., LocalRound]) -> None:
    def freeze(model: Any, examples: Any, context: TrainingContext) -> None:
        first, *others = [weight for weight in model.parameters() if weight.requires_grad]
        first.requires_grad_(False)
        for weight in others:
            weight.data += 0.1

    assert part(trained_by(freeze)).sealed.contribution.arrays["update"].any()

    def thaw(model: Any, examples: Any, context: TrainingContext) -> None:
        for weight in model.parameters():
            weight.requires_grad_(True)

    with pytest.raises(TypeError, match="that the experiment tunes"):
        part(trained_by(thaw), "fedit")


def test_a_site_has_one_function_of_each_kind(toy_spec: SpecFactory) -> None:
    site = trained_by(steps)
    with pytest.raises(TypeError, match="one function to train"):
        site.train(steps)
    with pytest.raises(TypeError, match="takes a function"):
        site.evaluate(3)  # pyrefly: ignore[bad-specialization]
    with refused("training.unsupported", "cannot take"):
        site.require(catalog.resolve(toy_spec("fedzo")))
