"""The script that made the committed model: a short run writes the same kind of folder, the same every time."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file

from ferret_core.models.load import load
from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.spec import ModelSpec
from ferret_core.sample import model_path
from ferret_core.sample.train_base import write_base


def test_a_short_run_writes_a_model_like_the_committed_one(tmp_path: Path) -> None:
    write_base(tmp_path, steps=2)
    ours, committed = (load_file(path / "model.safetensors") for path in (tmp_path, model_path()))
    assert {name: tensor.shape for name, tensor in ours.items()} == {
        name: tensor.shape for name, tensor in committed.items()
    }
    vocabularies = [load(ModelSpec(source=str(path))).tokenizer.get_vocab() for path in (tmp_path, model_path())]
    assert vocabularies[0] == vocabularies[1]


def test_the_seed_fixes_the_model(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_base(tmp_path / name, steps=2, seed=seed)
    a, b, c = (digest_file(tmp_path / name / "model.safetensors") for name in "abc")
    assert a == b != c
