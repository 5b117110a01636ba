"""Model folders made to harm: each is ``model.invalid``, in little memory, and nothing in them is run."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from ferret_core.models.load import load
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec
from ferret_core.system import untrusted_files
from tests.refusals import refused

Spoil = Callable[[Path], object]

SECRET = "hunter2"
MOST_KIB = 700 * 1024
"""How much the process may grow; the largest hostile folder asks for 10¹⁸ bytes."""
CODE = "from pathlib import Path\nPath({marker!r}).touch()\nclass Config: pass\nclass Model: pass\n"
AUTO = {
    "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model", "AutoTokenizer": ["evil.T", None]}
}


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def config(**values: Any) -> Spoil:
    return lambda folder: merge(folder / "config.json", values)


def merge(path: Path, values: dict[str, Any]) -> None:
    there = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**there, **values}))


def text(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content)


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        arrays = safetensors.torch.load_file(path)
        change(arrays)
        safetensors.torch.save_file(arrays, path, metadata={"format": "pt"})

    return spoil


def header(change: Callable[[dict[str, Any]], object], length: int | None = None) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        raw = path.read_bytes()
        (size,) = struct.unpack("<Q", raw[:8])
        said = json.loads(raw[8 : 8 + size])
        change(said)
        new = json.dumps(said).encode()
        path.write_bytes(struct.pack("<Q", len(new) if length is None else length) + new + raw[8 + size :])

    return spoil


def first(said: dict[str, Any]) -> dict[str, Any]:
    return next(array for name, array in said.items() if name != "__metadata__")


def replaced(name: str, make: Callable[[Path], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return spoil


def both(*spoils: Spoil) -> Spoil:
    return lambda folder: [spoil(folder) for spoil in spoils]


def giant(name: str, size: int) -> Spoil:
    """A sparse file: it takes no disk."""
    return replaced(name, lambda path: (path.touch(), os.truncate(path, size)))


def many(folder: Path) -> None:
    for number in range(10_001):
        (folder / f"{number}.txt").touch()


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(folder.parent / "marker")))


def coded(folder: Path) -> None:
    (folder / "evil.py").write_text(CODE.format(marker=str(folder.parent / "marker")))


def foreign_tokenizer(folder: Path) -> None:
    merge(folder / "tokenizer_config.json", {"tokenizer_class": "evil", **AUTO})


def deep_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 10**6) + b"[" * 10**6)


def overlapping(said: dict[str, Any]) -> None:
    for name, array in said.items():
        if name != "__metadata__":
            array["data_offsets"] = [0, 4]


def vocabulary(folder: Path) -> None:
    said = json.loads((folder / "tokenizer.json").read_text())
    said["model"]["vocab"]["the"] = 2**31
    (folder / "tokenizer.json").write_text(json.dumps(said))


HOSTILE: dict[str, Spoil] = {
    "config-gone": lambda folder: (folder / "config.json").unlink(),
    "config-is-text": text("config.json", SECRET),
    "config-is-a-list": text("config.json", f'["{SECRET}"]'),
    "config-is-deep": text("config.json", "[" * 100_000),
    "config-is-nested": text("config.json", '{"a":' * 100 + "1" + "}" * 100),
    "config-is-large": text("config.json", '{"a": "' + "x" * 17 * 2**20 + '"}'),
    "config-is-a-folder": replaced("config.json", Path.mkdir),
    "config-is-a-device": replaced("config.json", lambda path: path.symlink_to("/dev/zero")),
    "config-has-a-million-lists": text("config.json", '{"a": [' + "[]," * 10**6 + "1]}"),
    "tokenizer-has-20-million-lists": text("tokenizer.json", '{"a": [' + "[]," * 20 * 10**6 + "1]}"),
    "config-says-nothing": text("config.json", "{}"),
    "config-says-text": config(hidden_size=SECRET),
    "number-is-nan": text("config.json", '{"model_type": "llama", "hidden_size": NaN}'),
    "number-has-400-digits": text("config.json", '{"model_type": "llama", "hidden_size": 1' + "0" * 400 + "}"),
    "number-is-negative": config(intermediate_size=-1),
    "hidden-size-10**9": config(hidden_size=10**9),
    "layers-10**9": config(num_hidden_layers=10**9),
    "vocabulary-10**12": config(vocab_size=10**12),
    "positions-10**15": config(max_position_embeddings=10**15),
    "intermediate-10**9": config(intermediate_size=10**9),
    "heads-0": config(num_attention_heads=0),
    "experts-10**9": config(model_type="mixtral", num_local_experts=10**9),
    "activation-unknown": config(hidden_act=SECRET),
    "kind-unknown": config(model_type=SECRET),
    "kind-with-code": both(coded, config(model_type="evil", **AUTO)),
    "tokenizer-with-code": both(coded, foreign_tokenizer),
    "attention-from-elsewhere": config(_attn_implementation="evil/kernels"),
    "quantised": config(quantization_config={"quant_method": "gptq", "bits": 4}),
    "weights-gone": lambda folder: (folder / "model.safetensors").unlink(),
    "weights-pickled": pickled,
    "weights-are-text": text("model.safetensors", SECRET * 10),
    "weights-empty": text("model.safetensors", ""),
    "weights-are-a-pipe": replaced("model.safetensors", os.mkfifo),
    "weights-cut": lambda folder: os.truncate(folder / "model.safetensors", 20_000),
    "weight-gone": weights(lambda arrays: arrays.pop("model.norm.weight")),
    "weight-of-another-shape": weights(lambda arrays: arrays.update({"model.norm.weight": torch.zeros(33)})),
    "weights-are-whole-numbers": weights(lambda arrays: arrays.update({n: a.long() for n, a in arrays.items()})),
    "header-2**60-long": header(lambda said: None, 2**60),
    "header-100-MB-long": header(lambda said: None, 10**8),
    "header-is-deep": deep_header,
    "header-beyond-the-file": header(lambda said: first(said).update(data_offsets=[0, 10**12])),
    "header-of-10**18-numbers": header(lambda said: first(said).update(shape=[10**9, 10**9])),
    "header-overlapping": header(overlapping),
    "header-of-another-type": header(lambda said: first(said).update(dtype="F1024")),
    "header-of-nothing": header(lambda said: said.clear()),
    "shard-gone": text("model.safetensors.index.json", '{"weight_map": {"a": "model-00001-of-00002.safetensors"}}'),
    "shard-outside": text("model.safetensors.index.json", '{"weight_map": {"a": "../../secret.safetensors"}}'),
    "shard-a-number": text("model.safetensors.index.json", '{"weight_map": {"a": 1}}'),
    "tokenizer-gone": lambda folder: [(folder / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json")],
    "tokenizer-is-text": text("tokenizer.json", SECRET),
    "tokenizer-is-deep": text("tokenizer.json", "[" * 100_000),
    "tokenizer-is-another": text("tokenizer.json", json.dumps({"model": {"type": SECRET, "vocab": SECRET}})),
    "tokenizer-is-giant": giant("tokenizer.json", 10 * untrusted_files.GIB),
    "token-2**31": vocabulary,
    "adapter": text("adapter_config.json", '{"base_model_name_or_path": "/", "peft_type": "LORA"}'),
    "files-10**4": many,
}


@pytest.fixture
def folder(tiny_model_dir: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_model_dir, tmp_path / "model")


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_folder_is_refused_by_type_in_little_memory_and_never_run(kind: str, folder: Path) -> None:
    HOSTILE[kind](folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FerretError) as caught:
        load(ModelSpec(source=str(folder)))
    assert caught.value.code == "model.invalid"
    assert caught.value.errors[0].field == "model.source"
    assert SECRET not in json.dumps(caught.value.to_json())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KIB
    assert not (folder.parent / "marker").exists()


def test_code_beside_a_known_kind_of_model_is_left_alone(folder: Path) -> None:
    both(coded, config(**AUTO))(folder)
    load(ModelSpec(source=str(folder)))
    assert not (folder.parent / "marker").exists()


def test_links_lead_nowhere_outside_the_roots(folder: Path, tmp_path: Path) -> None:
    (folder / "config.json").rename(tmp_path / "config.json")
    (folder / "config.json").symlink_to(tmp_path / "config.json")
    load(ModelSpec(source=str(folder)))
    with (
        untrusted_files.allowed_roots(untrusted_files.Readable((folder,))),
        refused("model.invalid", untrusted_files.SETTING),
    ):
        load(ModelSpec(source=str(folder)))


def test_a_folder_outside_the_roots_is_refused_whether_it_exists_or_not(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    answers = set[str]()
    with untrusted_files.allowed_roots(untrusted_files.Readable((tmp_path / "root",))):
        for path in (folder, tmp_path / "none", tmp_path / "root" / ".." / "model"):
            with refused("model.invalid", untrusted_files.SETTING) as caught:
                load(ModelSpec(source=str(path)))
            answers.add(caught.value.detail.replace(str(path), "PATH"))
        load(ModelSpec(source=str(folder)), anywhere=True)
    assert len(answers) == 1
