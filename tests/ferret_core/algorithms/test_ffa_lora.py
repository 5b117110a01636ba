from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import LlamaForCausalLM

from ferret_core.replica import checkpoint
from tests.ferret_core.replicas import SpecFactory, replica_of


def test_only_the_second_factor_is_tuned_and_sent(toy_spec: SpecFactory) -> None:
    """Width 32, two key-value heads of 8: q is 32 × 32, v is 16 × 32, in each of two layers."""
    replica = replica_of(toy_spec("ffa_lora"))
    assert sorted(replica.shapes.values()) == [(16, 8), (16, 8), (32, 8), (32, 8)]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_checkpoint_has_both_factors(toy_spec: SpecFactory, tmp_path: Path, tiny_model_dir: Path) -> None:
    replica = replica_of(toy_spec("ffa_lora"))
    with torch.no_grad():
        for name, parameter in replica.model.named_parameters():
            if ".lora_B." in name:
                parameter.fill_(0.01)
    checkpoint.write(replica, "exp", tmp_path)
    loaded = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(tiny_model_dir), tmp_path).eval()
    ids = torch.tensor([[0, 17, 40, 5, 99]])
    torch.testing.assert_close(loaded(ids).logits, replica.model(ids).logits)
