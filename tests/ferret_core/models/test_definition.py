"""The files that define a model: which there are, and that the model's digest covers them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

from ferret_core.models import definition
from ferret_core.models.digest import tensors
from ferret_core.models.load import digest_of, load
from ferret_core.protocol.spec import ModelSpec
from tests.refusals import refused

NOT_TAKEN = {"prophetnet.tokenizer", "word_shape.json", "word_pronunciation.json", "normalizer.json"}
"""Of models for other tasks, which transformers lists among those for language."""


@pytest.fixture
def folder(tiny_model_dir: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_model_dir, tmp_path / "model")


def digest(folder: Path) -> str:
    return digest_of(load(ModelSpec(source=str(folder))))


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def test_the_digest_is_that_of_a_header_with_the_files_and_of_the_tensors(folder: Path) -> None:
    """Computed again by other means."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix != ".safetensors")
    assert "tokenizer.json" in names
    files = {name: blake3((folder / name).read_bytes()).hexdigest() for name in names}
    found = tensors(load(ModelSpec(source=str(folder))).model)
    listed = [[name, str(tensor.dtype), list(tensor.shape)] for name, tensor in found.items()]
    header = canonical({"version": 1, "tensors": listed, "files": blake3(canonical(files)).hexdigest()})
    content = b"".join(tensor.detach().numpy().tobytes() for tensor in found.values())
    assert digest(folder) == blake3(header + content).hexdigest()


@pytest.mark.parametrize("name", sorted(definition.NAMES))
def test_each_file_counts_and_nothing_else_does(name: str, folder: Path) -> None:
    before = definition.digest(definition.read(folder))
    (folder / "README.md").write_text("# A model")
    (folder / "trainer_state.json").write_text("{}")
    assert definition.digest(definition.read(folder)) == before
    content = (folder / name).read_bytes() if (folder / name).exists() else b""
    (folder / name).write_bytes(content + b" ")
    assert definition.digest(definition.read(folder)) != before


def test_how_the_weights_are_packed_does_not_count(folder: Path) -> None:
    before = digest(folder)
    model: Any = load(ModelSpec(source=str(folder))).model
    model.save_pretrained(folder / "packed", max_shard_size="20KB")
    (folder / "model.safetensors").unlink()
    for path in (folder / "packed").glob("*.safetensors*"):
        path.rename(folder / path.name)
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert digest(folder) == before


def test_every_vocabulary_of_a_language_model_is_covered() -> None:
    """A new version of transformers may read others: then this test says so."""
    names = set[str]()
    for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        tokenizer: Any = tokenizer_class_from_name(TOKENIZER_MAPPING_NAMES.get(kind) or "")
        try:
            names |= set(tokenizer.vocab_files_names.values()) if tokenizer else set()
        except ImportError:  # it needs a library that is not installed
            continue
    assert "tokenizer.json" in names
    assert names - definition.NAMES <= NOT_TAKEN


def test_a_tokenizer_that_names_a_file_elsewhere_is_refused(folder: Path) -> None:
    """As participants refuse it; one that was published with a name that nothing reads is not."""
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "special_tokens_map_file": "/home/them/special_tokens_map.json"}))
    digest(folder)
    path.write_text(json.dumps({**settings, "vocab_file": "/etc/passwd"}))
    with refused("model.invalid", "'vocab_file'") as raised:
        digest(folder)
    assert "passwd" not in raised.value.detail


def test_a_large_file_is_not_read(folder: Path) -> None:
    (folder / "merges.txt").touch()
    os.truncate(folder / "merges.txt", 65 << 20)
    with refused("model.invalid", "merges.txt"):
        digest(folder)
