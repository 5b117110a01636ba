"""A model whose weights are pages of its files: the same as one in memory, and only the files' own to change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ferret_core.models.digest import model_digest
from ferret_core.models.in_files import load_in_files
from ferret_core.models.load import load
from ferret_core.models.parameters import trainable
from ferret_core.models.save import save
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Dtype, ModelSpec


@pytest.fixture(params=["float32", "bfloat16"])
def spec(request: pytest.FixtureRequest, tiny_model_dir: Path, tmp_path: Path) -> ModelSpec:
    """Of a folder that has the model in the type that it is to have."""
    dtype: Dtype = request.param
    save(load(ModelSpec(source=str(tiny_model_dir), dtype=dtype)), tmp_path / "model")
    return ModelSpec(source=str(tmp_path / "model"), dtype=dtype)


def test_it_is_the_model_of_memory_and_saves_the_same_files(spec: ModelSpec, tmp_path: Path) -> None:
    found, expected = load_in_files(spec), load(spec)
    assert found is not None
    assert model_digest(found.model) == model_digest(expected.model)
    assert not found.model.training
    assert list(trainable(found.model)) == list(trainable(expected.model))
    save(found, tmp_path / "found")
    save(expected, tmp_path / "expected")
    names = sorted(path.name for path in (tmp_path / "expected").iterdir())
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == names
    for name in names:
        assert (tmp_path / "found" / name).read_bytes() == (tmp_path / "expected" / name).read_bytes(), name


def test_it_speaks_as_the_model_of_memory_does(spec: ModelSpec) -> None:
    found, expected = load_in_files(spec), load(spec)
    assert found is not None
    ids = torch.arange(12).view(2, 6)
    with torch.no_grad():
        assert torch.equal(found.model(input_ids=ids).logits, expected.model(input_ids=ids).logits)


def test_its_weights_are_the_files_pages_and_a_write_leaves_the_files(spec: ModelSpec) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux tells what is mapped")
    found = load_in_files(spec)
    assert found is not None
    file = Path(spec.source) / "model.safetensors"
    lines = [line.split() for line in maps.read_text().splitlines() if str(file) in line]
    ranges = [[int(end, 16) for end in line[0].split("-")] for line in lines]
    weights = trainable(found.model)
    for name, weight in weights.items():
        assert any(begin <= weight.data_ptr() < end for begin, end in ranges), name
    before = file.read_bytes()
    with torch.no_grad():
        weights["model.norm.weight"].fill_(7)
    assert file.read_bytes() == before
    assert (weights["model.norm.weight"] == 7).all()


def _other_type(folder: Path) -> None:
    file = folder / "model.safetensors"
    save_file({name: array.half() for name, array in load_file(file).items()}, file, {"format": "pt"})


def _one_array_more(folder: Path) -> None:
    file = folder / "model.safetensors"
    save_file({**load_file(file), "more": torch.zeros(1)}, file, {"format": "pt"})


def _untied(folder: Path) -> None:
    """The output layer has numbers of its own, which the configuration would tie to the embedding's."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    save_file({**weights, "lm_head.weight": weights["model.embed_tokens.weight"] + 1}, file, {"format": "pt"})


@pytest.mark.parametrize("change", [_other_type, _one_array_more, _untied])
def test_files_that_have_other_arrays_than_the_model_are_for_memory(
    tiny_model_dir: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    folder = shutil.copytree(tiny_model_dir, tmp_path / "model")
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"]
    change(folder)
    assert load_in_files(ModelSpec(source=str(folder))) is None


def test_a_name_on_the_hub_is_for_memory() -> None:
    assert load_in_files(ModelSpec(source="somebody/model")) is None


def test_a_folder_without_a_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FerretError, match=r"config\.json") as refused:
        load_in_files(ModelSpec(source=str(tmp_path)))
    assert refused.value.code == "model.invalid"
