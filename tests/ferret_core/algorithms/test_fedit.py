from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from ferret_core import catalog
from ferret_core.algorithms import fedit
from ferret_core.models.parameters import shapes, trainable
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]


def replica_of(spec: ExperimentSpec) -> Replica:
    return Replica.load(catalog.resolve(spec).spec)


def test_the_update_has_two_factors_for_every_adapted_layer(toy_spec: SpecFactory) -> None:
    """Width 32, two key-value heads of 8: q is 32 × 32, v is 16 × 32, in each of two layers."""
    replica = replica_of(toy_spec("fedit"))
    assert sorted(set(replica.shapes.values())) == [(8, 32), (16, 8), (32, 8)]
    assert sum(a * b for a, b in replica.shapes.values()) == 2 * 8 * ((32 + 32) + (32 + 16))
    result = simulate(toy_spec("fedit", rounds=1, evaluation={"examples": 1, "generate_examples": 0}))
    assert 0 < result.rounds[1].bytes_up / 3 - 4 * 2 * 8 * 112 < 1500, "and little beside them"


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


@pytest.mark.parametrize(
    "options", [{"targets": []}, {"rank": 0}, {"alpha": 0}, {"dropout": 1.0}, {"targets": "q_proj"}]
)
def test_options_out_of_range_are_refused_before_that(toy_spec: SpecFactory, options: dict[str, Any]) -> None:
    with pytest.raises(FerretError) as caught:
        catalog.resolve(toy_spec("fedit", options=options))
    assert [error.field for error in caught.value.errors] == [f"algorithm.{next(iter(options))}"]


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


def test_rate_defaults_to_the_authors_beside_other_local_options() -> None:
    local = fedit.Config.model_validate({"local": {"steps": 3}}).local
    assert (local.optimizer, local.learning_rate, local.steps) == ("adam", 3e-4, 3)


@pytest.mark.heavy
def test_the_catalog_needs_no_peft() -> None:
    program = "import sys; from ferret_core import catalog; catalog.entries('algorithms'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "ferret_core.algorithms.configs.fedit" in done.stdout.split()
    assert "peft" not in done.stdout.split()
