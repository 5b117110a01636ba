from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from ferret_core import catalog, checkpoint
from ferret_core.models.digest import model_digest
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import Replica


@pytest.fixture
def written(toy_spec: Callable[..., ExperimentSpec], tmp_path: Path) -> tuple[Replica, Path]:
    replica = Replica.load(catalog.resolve(toy_spec()))
    checkpoint.write(replica, "exp_test", tmp_path)
    return replica, tmp_path


def test_transformers_loads_it_with_the_same_bits(written: tuple[Replica, Path]) -> None:
    replica, folder = written
    assert model_digest(AutoModelForCausalLM.from_pretrained(folder)) == replica.digest
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("Repeat.").input_ids == replica.tokenizer("Repeat.").input_ids


def test_equal_models_are_equal_files(written: tuple[Replica, Path], tmp_path_factory: pytest.TempPathFactory) -> None:
    replica, folder = written
    again = checkpoint.write(replica, "exp_test", tmp_path_factory.mktemp("again"))
    assert checkpoint.read_manifest(folder) == again


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_changed_or_missing_file_is_named(written: tuple[Replica, Path], name: str) -> None:
    path = written[1] / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(FerretError, match=name) as caught:
        checkpoint.read_manifest(written[1])
    assert caught.value.code == "storage.corrupt"
    path.unlink()
    with pytest.raises(FerretError, match=name) as caught:
        checkpoint.read_manifest(written[1])
    assert caught.value.code == "storage.missing"


def test_a_folder_without_the_manifest_is_no_checkpoint(written: tuple[Replica, Path]) -> None:
    (written[1] / checkpoint.MANIFEST).unlink()
    with pytest.raises(FerretError, match="not a finished checkpoint"):
        checkpoint.read_manifest(written[1])
