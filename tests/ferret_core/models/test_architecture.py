"""An outline says of a model what loading it would."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from ferret_core.models import architecture
from ferret_core.models.parameters import shapes, trainable
from tests.refusals import refused


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("tied", [True, False])
def test_a_folders_outline_is_that_of_the_loaded_model(
    tiny_model: LlamaForCausalLM, tmp_path: Path, dtype: torch.dtype, tied: bool
) -> None:
    config = LlamaConfig.from_dict({**tiny_model.config.to_dict(), "tie_word_embeddings": tied, "vocab_size": 9001})
    torch.manual_seed(1)
    model = LlamaForCausalLM(config).to(dtype)
    model.save_pretrained(tmp_path)
    found = architecture.of_folder(str(tmp_path))
    assert sorted(found.shapes.values()) == sorted(shapes(model).values())
    assert (found.sizes.hidden, found.sizes.layers) == (config.hidden_size, config.num_hidden_layers)
    for name, weight in trainable(model).items():
        told = found.rms[name if name in found.rms else "model.embed_tokens.weight"]
        assert told == pytest.approx(float(weight.detach().double().square().mean().sqrt()), rel=0.02)


@pytest.mark.parametrize("name", architecture.LLAMAS)
def test_a_shapes_outline_is_that_of_its_model(name: str) -> None:
    sizes = architecture.LLAMAS[name]
    config = LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.mlp,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        tie_word_embeddings=False,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    assert dict(architecture.of_llama(name).shapes) == shapes(model)


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        (GPT2Config(n_embd=48, n_layer=3, n_head=4, vocab_size=99), (48, 3, 192, 4, 4, 99, 0)),
        (GPT2Config(n_embd=48, n_layer=3, n_head=4, vocab_size=99, n_inner=100), (48, 3, 100, 4, 4, 99, 0)),
    ],
)
def test_sizes_are_read_by_gpt2s_names(config: GPT2Config, sizes: tuple[int, ...]) -> None:
    assert architecture.LayerSizes.of_config(config.to_dict()) == sizes


def test_a_heads_own_width_counts() -> None:
    config = Qwen3Config(
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=100,
        num_hidden_layers=1,
    )
    with torch.device("meta"):
        layer = Qwen3ForCausalLM(config).model.layers[0]
    matrices = sum(weight.numel() for weight in layer.parameters() if weight.ndim == 2)
    sizes = architecture.LayerSizes.of_config(config.to_dict())
    assert (sizes.key_value, sizes.layer_weights) == (layer.self_attn.k_proj.out_features, matrices)


def test_what_has_no_outline_is_told(tmp_path: Path) -> None:
    with refused("request.invalid", "choose one of llama-1b"):
        architecture.of_llama("llama-9t")
    with refused("model.invalid", "--shape"):
        architecture.of_folder("org/model-on-the-hub")
    with refused("model.invalid", "config.json"):
        architecture.of_folder(str(tmp_path))
