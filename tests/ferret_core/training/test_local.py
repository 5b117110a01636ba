from __future__ import annotations

import copy
import math
from itertools import islice
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from transformers import LlamaForCausalLM

from ferret_core.training.config import LocalConfig
from ferret_core.training.local import LocalMetrics, train
from tests.ferret_core.replicas import flat
from tests.ferret_core.training.conftest import SHARD, with_dropout
from tests.refusals import refused


def run(model: LlamaForCausalLM, seed: int = 0, **options: object) -> LocalMetrics:
    config = LocalConfig.model_validate({"learning_rate": 0.05, "steps": 3, "optimizer": "sgd", **options})
    return train(model, SHARD.batches(config.batch_size, 5), config, seed=seed)


def trained(model: LlamaForCausalLM, seed: int = 0, **options: object) -> torch.Tensor:
    moved = copy.deepcopy(model)
    run(moved, seed, **options)
    return flat(moved)


def test_training_learns_and_reports_what_it_did(tiny_model: LlamaForCausalLM) -> None:
    first = run(tiny_model, steps=1, batch_size=6, accumulation=1, optimizer="adam", learning_rate=0.01)
    assert first.train_loss == pytest.approx(math.log(384), rel=0.1)
    assert (first.examples, first.tokens) == (6, sum(len(example.response) for example in SHARD.examples))
    run(tiny_model, steps=30, batch_size=6, accumulation=1, optimizer="adam", learning_rate=0.01)
    assert run(tiny_model, steps=1, batch_size=6, accumulation=1).train_loss < first.train_loss / 2
    assert first.metrics == {"train_loss": first.train_loss, "trained_sequences": 6}


def test_the_loss_is_the_mean_over_the_steps(tiny_model: LlamaForCausalLM) -> None:
    losses = [run(copy.deepcopy(tiny_model), steps=steps).train_loss * steps for steps in (1, 2, 3)]
    config = LocalConfig(optimizer="sgd", learning_rate=0.05, steps=1)
    batches = SHARD.batches(1, 5)
    singly = [train(tiny_model, batches, config).train_loss for _ in range(3)]
    assert losses == pytest.approx([singly[0], sum(singly[:2]), sum(singly)])


def test_the_gradient_is_clipped_to_the_norm(tiny_model: LlamaForCausalLM) -> None:
    moved = trained(tiny_model, steps=1, learning_rate=1.0, clip_norm=0.01) - flat(tiny_model)
    unclipped = trained(tiny_model, steps=1, learning_rate=1.0) - flat(tiny_model)
    assert moved.norm().item() == pytest.approx(0.01, rel=1e-3)
    assert unclipped.norm().item() > 0.1


def test_the_same_seeds_give_the_same_bits(tiny_model: LlamaForCausalLM) -> None:
    model = with_dropout(tiny_model)
    assert torch.equal(trained(model, seed=2**64 - 1), trained(model, seed=2**64 - 1))
    assert not torch.equal(trained(model, seed=1), trained(model, seed=2))
    assert not torch.equal(trained(model), trained(copy.deepcopy(model).apply(without_dropout)))


def without_dropout(module: Any) -> None:
    if hasattr(module, "attention_dropout"):
        module.attention_dropout = 0.0


def test_the_global_generator_is_as_before(tiny_model: LlamaForCausalLM) -> None:
    before = torch.get_rng_state()
    run(with_dropout(tiny_model))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_model_keeps_its_mode_and_no_gradients(tiny_model: LlamaForCausalLM) -> None:
    for mode in (True, False):
        tiny_model.train(mode)
        next(tiny_model.parameters()).grad = torch.full_like(next(tiny_model.parameters()), 1e30)
        run(tiny_model)
        assert tiny_model.training is mode
        assert all(parameter.grad is None for parameter in tiny_model.parameters())


def test_frozen_parameters_stay(tiny_model: Any) -> None:
    frozen = tiny_model.model.embed_tokens.weight.requires_grad_(False)
    before, others = frozen.clone(), tiny_model.model.layers[0].mlp.up_proj.weight.clone()
    run(tiny_model, clip_norm=1.0)
    assert torch.equal(frozen, before)
    assert not torch.equal(tiny_model.model.layers[0].mlp.up_proj.weight, others)


def test_each_step_is_reported_and_may_end_the_training(tiny_model: LlamaForCausalLM) -> None:
    seen: list[int] = []

    def cancel(step: int) -> None:
        seen.append(step)
        if step == 2:
            raise KeyboardInterrupt

    two_steps = trained(tiny_model, steps=2)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_model, SHARD.batches(1, 5), LocalConfig(optimizer="sgd", learning_rate=0.05), cancel)
    assert seen == [1, 2]
    assert torch.equal(flat(tiny_model), two_steps)
    assert not tiny_model.training
    assert all(parameter.grad is None for parameter in tiny_model.parameters())


def test_a_runaway_names_the_step_and_the_remedy(tiny_model: LlamaForCausalLM) -> None:
    with refused("training.non_finite", "learning_rate = 1e+30", "local step 2 of 3", "clip_norm"):
        run(tiny_model, learning_rate=1e30)


def test_a_broken_weight_stops_before_the_first_step(tiny_model: LlamaForCausalLM) -> None:
    with torch.no_grad():
        tiny_model.model.norm.weight[0] = math.nan
    before = flat(tiny_model)
    with refused("training.non_finite", "at local step 1 of 3 the loss is nan"):
        run(tiny_model)
    assert torch.equal(flat(tiny_model).nan_to_num(), before.nan_to_num())


def test_bfloat16_computes_coarsely_and_keeps_fp32_weights(tiny_model: LlamaForCausalLM) -> None:
    start, fine = flat(tiny_model), trained(tiny_model, learning_rate=1.0) - flat(tiny_model)
    run(tiny_model, learning_rate=1.0, precision="bfloat16")
    coarse = flat(tiny_model) - start
    assert {parameter.dtype for parameter in tiny_model.parameters()} == {torch.float32}
    assert not torch.equal(coarse, fine)
    assert torch.nn.functional.cosine_similarity(coarse, fine, dim=0) > 0.98


@pytest.mark.parametrize(
    ("epochs", "examples", "steps"),
    [(1, 6, 3), (1, 5, 3), (2, 5, 5), (0.5, 6, 2), (0.01, 6, 1), (0.07, 200, 7), (1.5, 1, 1)],
)
def test_epochs_are_passes_over_the_examples(epochs: float, examples: int, steps: int) -> None:
    config = LocalConfig(epochs=epochs, batch_size=2, accumulation=1)
    assert config.steps_for(examples) == steps
    assert config.model_copy(update={"batch_size": 1, "accumulation": 2}).steps_for(examples) == steps
    assert LocalConfig().steps_for(examples) == LocalConfig().steps_for(None) == 10


def test_an_epoch_sees_every_example_once(tiny_model: LlamaForCausalLM) -> None:
    config = LocalConfig(epochs=1, batch_size=3, accumulation=2)
    seen: list[int] = []
    trained = train(tiny_model, SHARD.batches(3, 5), config, seen.append, examples=len(SHARD))
    assert seen == [1]
    assert (trained.examples, trained.tokens) == (6, sum(len(example.response) for example in SHARD.examples))
    with pytest.raises(TypeError, match="say how many it has"):
        train(tiny_model, SHARD.batches(3, 5), config)


def test_epochs_take_the_place_of_steps_in_what_is_stored() -> None:
    config = LocalConfig.model_validate({"epochs": 1})
    assert (config.steps, config.epochs) == (None, 1.0)
    assert LocalConfig.model_validate(config.model_dump()) == config
    assert LocalConfig.model_validate({"steps": 10, "epochs": None}) == LocalConfig()
    for both in ({"steps": 10, "epochs": 1}, {"steps": None}):
        with pytest.raises(ValidationError, match="give one of the two"):
            LocalConfig.model_validate(both)


def test_by_sequences_a_step_is_that_of_the_mean_of_their_own_means(tiny_model: LlamaForCausalLM) -> None:
    """By hand, one sequence at a time; the sequences' answers have 2 to 12 tokens, so that it matters."""
    by_hand = copy.deepcopy(tiny_model)
    optimizer = torch.optim.SGD(by_hand.parameters(), 0.05)
    for batch in islice(SHARD.batches(4, 5), 3):
        optimizer.zero_grad()
        means = [
            by_hand(**{name: values[row : row + 1] for name, values in batch._asdict().items()}).loss
            for row in range(4)
        ]
        torch.stack(means).mean().backward()
        optimizer.step()
    moved = trained(tiny_model, batch_size=2, accumulation=2, loss="sequences")
    torch.testing.assert_close(moved, flat(by_hand), rtol=0, atol=2e-6)
    assert not torch.equal(moved, trained(tiny_model, batch_size=2, accumulation=2))
