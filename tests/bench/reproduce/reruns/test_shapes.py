from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, LlamaForCausalLM

from ferret_bench.reproduce.reruns.shapes import config_of, model_of
from ferret_core.models.architecture import LLAMAS
from ferret_core.models.load import load
from ferret_core.protocol.spec import ModelSpec
from tests.refusals import refused


def test_a_shape_becomes_a_model_that_ferret_loads(tmp_path):
    folder = model_of("64/2", tmp_path)
    loaded = load(ModelSpec(source=str(folder)))
    config = AutoConfig.from_pretrained(folder)
    assert (config.hidden_size, config.num_hidden_layers) == (64, 2)
    assert loaded.tokenizer("one").input_ids
    assert next(loaded.model.parameters()).dtype == torch.float32
    assert {path.name for path in tmp_path.iterdir()} == {folder.name}


def test_the_same_shape_is_made_once(tmp_path):
    folder = model_of("64/1", tmp_path)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert model_of("64/1", tmp_path) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-3b", 3_426_473_600),
        ("llama2-7b", 6_738_415_616),
        ("llama2-13b", 13_015_864_320),
        ("llama3-8b", 8_030_261_248),
    ],
)
def test_the_papers_models_have_their_sizes(name, parameters):
    with torch.device("meta"):
        model = LlamaForCausalLM(config_of(LLAMAS[name]))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize("name", ["llama-4b", "65/2", "0/2", "64/0"])
def test_another_name_is_refused(name, tmp_path):
    with refused("request.invalid", "llama2-7b", "HIDDEN/LAYERS"):
        model_of(name, tmp_path)
