from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from ferret_core.algorithms import fedit
from ferret_core.models.parameters import shapes, trainable
from ferret_core.replica import checkpoint
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused


def test_the_update_has_two_factors_for_every_adapted_layer(toy_spec: SpecFactory) -> None:
    """Width 32, two key-value heads of 8: q is 32 × 32, v is 16 × 32, in each of two layers."""
    replica = replica_of(toy_spec("fedit"))
    assert sorted(replica.shapes.values()) == [(8, 32)] * 4 + [(16, 8)] * 2 + [(32, 8)] * 2


def test_at_first_the_model_answers_as_its_base(toy_spec: SpecFactory, tiny_model: Any) -> None:
    ids = torch.tensor([[0, 17, 40, 5, 99]])
    assert torch.equal(replica_of(toy_spec("fedit")).model(ids).logits, tiny_model(ids).logits)


def test_alpha_over_rank_scales_the_adapters(tiny_model: Any) -> None:
    model: Any = fedit.Algorithm(fedit.Config(rank=4, alpha=6, targets=["o_proj"], dropout=0)).prepare(tiny_model, 3)
    layer = model.base_model.model.model.layers[0].self_attn.o_proj
    with torch.no_grad():
        for parameter in trainable(model).values():
            parameter.fill_(0.5)
        inputs = torch.linspace(-1, 2, 32)
        expected = layer.base_layer(inputs) + 6 / 4 * 4 * 0.5 * 0.5 * inputs.sum()
        torch.testing.assert_close(layer(inputs), expected)


@pytest.mark.parametrize("targets", [["query"], ["q_proj", "query"], ["proj"], ["embed_tokens"]])
def test_a_target_that_is_no_linear_layer_is_refused_at_the_start(toy_spec: SpecFactory, targets: list[str]) -> None:
    with refused("spec.invalid", f"{targets[-1]} is not a linear layer") as caught:
        replica_of(toy_spec("fedit", options={"targets": targets}))
    (error,) = caught.value.errors
    assert (error.field, error.value) == ("algorithm.targets", targets)
    for there in ("q_proj", "v_proj", "gate_proj", "lm_head"):
        assert there in error.message


def test_a_target_may_be_the_end_of_a_name(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedit", options={"targets": ["layers.1.mlp.down_proj"]}))
    assert [name.rpartition("layers.")[2] for name in replica.shapes] == [
        "1.mlp.down_proj.lora_A.default.weight",
        "1.mlp.down_proj.lora_B.default.weight",
    ]


def test_equal_adapters_are_equal_files_whatever_the_order_of_targets(toy_spec: SpecFactory, tmp_path: Path) -> None:
    targets = ["v_proj", "up_proj", "q_proj", "o_proj", "k_proj"]
    checkpoint.write(replica_of(toy_spec("fedit", options={"targets": targets})), "exp", tmp_path)
    written = json.loads((tmp_path / "adapter_config.json").read_text())
    assert written["target_modules"] == sorted(targets)


def test_it_takes_the_layers_of_gpt2_too() -> None:
    """They are no ``nn.Linear`` and keep their weights transposed."""
    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    model = fedit.Algorithm(fedit.Config(rank=2, targets=["c_attn"])).prepare(GPT2LMHeadModel(config).eval(), 1)
    assert list(shapes(model).values()) == [(2, 16), (48, 2)]
    model(torch.tensor([[1, 2, 3]])).logits.sum().backward()
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in trainable(model).values())


@pytest.mark.heavy
def test_the_catalog_needs_no_peft() -> None:
    program = "import sys; from ferret_core import catalog; catalog.entries('algorithms'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "ferret_core.algorithms.configs.fedit" in done.stdout.split()
    assert "peft" not in done.stdout.split()
