from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import LlamaForCausalLM

from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.sample import model_path
from ferret_core.simulate import simulate

SpecFactory = Callable[..., ExperimentSpec]


def test_only_the_second_factor_is_tuned_and_sent(toy_spec: SpecFactory) -> None:
    """Width 32, two key-value heads of 8: q is 32 × 32, v is 16 × 32, in each of two layers."""
    replica = Replica.load(catalog.resolve(toy_spec("ffa_lora")).spec)
    assert sorted(replica.shapes.values()) == [(16, 8), (16, 8), (32, 8), (32, 8)]
    result = simulate(toy_spec("ffa_lora", rounds=1, evaluation={"examples": 1, "generate_examples": 0}))
    assert 0 < result.rounds[1].bytes_up / 3 - 4 * 2 * 8 * 48 < 1500, "and little beside them"


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_checkpoint_has_both_factors(toy_spec: SpecFactory, tmp_path: Path, tiny_model_dir: Path) -> None:
    replica = Replica.load(catalog.resolve(toy_spec("ffa_lora")).spec)
    with torch.no_grad():
        for name, parameter in replica.model.named_parameters():
            if ".lora_B." in name:
                parameter.fill_(0.01)
    checkpoint.write(replica, "exp", tmp_path)
    loaded = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(tiny_model_dir), tmp_path).eval()
    ids = torch.tensor([[0, 17, 40, 5, 99]])
    torch.testing.assert_close(loaded(ids).logits, replica.model(ids).logits)


@pytest.mark.slow
def test_it_learns_on_the_demo_model(toy_spec: SpecFactory) -> None:
    options = {"local": {"learning_rate": 3e-2, "steps": 4}}
    model, evaluation = {"source": str(model_path())}, {"every": 2, "examples": 6, "generate_examples": 0}
    spec = toy_spec("ffa_lora", options=options, rounds=2, model=model, evaluation=evaluation)
    base, *_, last = simulate(spec).rounds
    assert last.metrics["eval_loss"] < base.metrics["eval_loss"] - 0.2
