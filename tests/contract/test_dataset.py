"""What every dataset must do; a new file in ``ferret_core/datasets`` is tested here with its sample in ``SAMPLES``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import PreTrainedTokenizerFast

from ferret_core import catalog, discovery
from ferret_core.datasets._base import Example, FederatedDataset
from ferret_core.datasets._encoding import shard_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Choice

DATASETS = "ferret_core.datasets"

pytestmark = pytest.mark.parametrize("name", discovery.names(DATASETS))


class Sample(NamedTuple):
    """A small valid dataset: its options, the files its parts are read from, and which option an error is about."""

    options: dict[str, Any]
    train: Path
    test: Path
    blamed: str


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _two_files(folder: Path, rows: list[dict[str, Any]]) -> Sample:
    """Options ``train`` and ``test``: the rows, and their last fifth."""
    train = _write(folder / "train", rows[: -len(rows) // 5])
    test = _write(folder / "test", rows[-len(rows) // 5 :])
    return Sample({"train": str(train), "test": str(test)}, train, test, "dataset.train")


def _gsm8k(folder: Path) -> Sample:
    return _two_files(folder, [{"question": f"{i} + {i}?", "answer": f"#### {2 * i}"} for i in range(20)])


def _jsonl(folder: Path) -> Sample:
    rows = [{"instruction": "Double.", "input": str(i), "output": str(2 * i), "label": "maths"} for i in range(20)]
    return _two_files(folder, rows)


def _dolly(folder: Path) -> Sample:
    categories = ["brainstorming", "closed_qa", "summarization"]
    rows = [
        {"instruction": f"Say {i}.", "context": "", "response": str(i), "category": categories[i % 3]}
        for i in range(20)
    ]
    path = _write(folder / "dolly.jsonl", rows)
    return Sample({"path": str(path)}, path, path, "dataset.path")


def _codealpaca(folder: Path) -> Sample:
    languages = ["C", "C++", "Go", "X86-64 Assembly"]
    rows = [{"instruction": f"Print {i}.", "input": languages[i % 4], "output": f"print({i})"} for i in range(40)]
    path = _write(folder / "rosetta.jsonl", rows)
    return Sample({"path": str(path), "languages": 3}, path, path, "dataset.path")


def _natural_instructions(folder: Path) -> Sample:
    for name, count in (("task1_a", 100), ("task2_b", 50), ("task3_c", 4)):
        instances = [{"id": str(i), "input": f"{name} {i}", "output": [str(i), "none"]} for i in range(count)]
        _write(folder / "tasks" / f"{name}.json", [{"Definition": [f"Do {name}."], "Instances": instances}])
    for split, names in (("train", "task1_a\ntask2_b\n"), ("test", "task3_c\n")):
        (folder / "splits" / "default").mkdir(parents=True, exist_ok=True)
        (folder / "splits" / "default" / f"{split}_tasks.txt").write_text(names)
    tasks = folder / "tasks"
    return Sample({"tasks": str(folder)}, tasks / "task2_b.json", tasks / "task3_c.json", "dataset.tasks")


SAMPLES: dict[str, Callable[[Path], Sample]] = {
    "codealpaca": _codealpaca,
    "dolly": _dolly,
    "gsm8k": _gsm8k,
    "jsonl": _jsonl,
    "natural_instructions": _natural_instructions,
}


@pytest.fixture
def sample(name: str, tmp_path: Path) -> Sample:
    assert name in SAMPLES, f"add a sample of {name!r} to SAMPLES in tests/contract/test_dataset.py"
    return SAMPLES[name](tmp_path)


@pytest.fixture
def options(sample: Sample) -> dict[str, Any]:
    return sample.options


def _dataset(name: str, options: dict[str, Any]) -> FederatedDataset:
    return catalog.dataset(Choice.model_validate({"name": name, **options}))


def test_it_says_what_it_is_and_describes_every_option(name: str) -> None:
    module = discovery.load(DATASETS, name, "dataset.name")
    title = (inspect.getdoc(module) or "").partition("\n")[0]
    assert title.endswith("."), "the first line of the docstring is the entry's title in the catalog"
    undescribed = [field for field, info in module.Config.model_fields.items() if not info.description]
    assert not undescribed


def test_its_config_is_frozen_strict_and_survives_json(name: str, options: dict[str, Any]) -> None:
    module = discovery.load(DATASETS, name, "dataset.name")
    config = module.Config(**options)
    assert module.Config.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValidationError):
        setattr(config, next(iter(options)), "changed")
    with pytest.raises(ValidationError, match="surprise"):
        module.Config(**options, surprise=1)


def test_it_gives_examples_for_training_and_others_for_testing(name: str, options: dict[str, Any]) -> None:
    dataset = _dataset(name, options)
    train, test = dataset.train(), dataset.test()
    assert len(train) > len(test) > 0
    assert all(isinstance(example, Example) and example.instruction for example in train + test)
    assert not set(train) & set(test)


def test_every_process_reads_the_same(name: str, options: dict[str, Any]) -> None:
    first = _dataset(name, options)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    expected = first.train(), first.test()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]
    again = _dataset(name, options)
    assert (again.test(), again.train()) == expected[::-1]


def test_its_examples_can_be_trained_on(
    name: str, options: dict[str, Any], tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    shard = shard_of(_dataset(name, options).train(), tiny_tokenizer, 128)
    batch = next(shard.batches(4, seed=0))
    assert ((batch.labels != -100).sum(dim=1) > 1).all()


def test_a_truncated_line_is_named_by_file_and_number(name: str, sample: Sample) -> None:
    whole = sample.train.read_bytes()
    sample.train.write_bytes(whole[:-9])
    with pytest.raises(FerretError) as caught:
        _dataset(name, sample.options).train()
    assert caught.value.code == "dataset.invalid"
    assert str(sample.train) in caught.value.detail
    assert f"line {len(whole.splitlines())} " in caught.value.detail
    assert caught.value.errors[0].field == sample.blamed


def test_a_missing_file_is_named(name: str, sample: Sample) -> None:
    sample.test.unlink()
    with pytest.raises(FerretError) as caught:
        _dataset(name, sample.options).test()
    assert caught.value.code == "dataset.invalid"
    assert str(sample.test) in caught.value.detail
