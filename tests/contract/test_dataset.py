"""What every dataset must do; a new file in ``ferret_core/datasets`` is tested here with its sample in ``SAMPLES``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def _two_files(folder: Path, rows: list[dict[str, str]]) -> dict[str, Any]:
    """Options ``train`` and ``test``: the rows, and their last fifth."""
    for split, part in (("train", rows[: -len(rows) // 5]), ("test", rows[-len(rows) // 5 :])):
        (folder / split).write_text("".join(f"{json.dumps(row)}\n" for row in part), encoding="utf-8")
    return {split: str(folder / split) for split in ("train", "test")}


def _gsm8k(folder: Path) -> dict[str, Any]:
    return _two_files(folder, [{"question": f"{i} + {i}?", "answer": f"#### {2 * i}"} for i in range(20)])


def _jsonl(folder: Path) -> dict[str, Any]:
    rows = [{"instruction": "Double.", "input": str(i), "output": str(2 * i), "label": "maths"} for i in range(20)]
    return _two_files(folder, rows)


SAMPLES: dict[str, Callable[[Path], dict[str, Any]]] = {"gsm8k": _gsm8k, "jsonl": _jsonl}
"""How to write a small valid dataset: returns its options, each file named by one of them."""


@pytest.fixture
def options(name: str, tmp_path: Path) -> dict[str, Any]:
    assert name in SAMPLES, f"add a sample of {name!r} to SAMPLES in tests/contract/test_dataset.py"
    return SAMPLES[name](tmp_path)


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


def test_a_truncated_line_is_named_by_file_and_number(name: str, options: dict[str, Any]) -> None:
    path = Path(options["train"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(FerretError) as caught:
        _dataset(name, options).train()
    assert caught.value.code == "dataset.invalid"
    assert str(path) in caught.value.detail
    assert f"line {len(whole.splitlines())} " in caught.value.detail
    assert caught.value.errors[0].field == "dataset.train"


def test_a_missing_file_is_named(name: str, options: dict[str, Any]) -> None:
    Path(options["test"]).unlink()
    with pytest.raises(FerretError) as caught:
        _dataset(name, options).test()
    assert caught.value.code == "dataset.invalid"
    assert options["test"] in caught.value.detail
