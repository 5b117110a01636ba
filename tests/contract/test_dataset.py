"""What every dataset must do; a new file in ``ferret_core/datasets`` is tested here with its ``dataset_sample``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import PreTrainedTokenizerFast

from ferret_core import catalog, discovery
from ferret_core.datasets._validation_split import without_validation
from ferret_core.datasets.base import Example, FederatedDataset
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.protocol.spec import PluginChoice
from tests.refusals import refused

DATASETS = "ferret_core.datasets"
Sample = Any  # tests/conftest.py

pytestmark = pytest.mark.parametrize("name", discovery.names(DATASETS))


@pytest.fixture
def sample(name: str, dataset_sample: Callable[[str, Path], Sample], tmp_path: Path) -> Sample:
    return dataset_sample(name, tmp_path)


@pytest.fixture
def options(sample: Sample) -> dict[str, Any]:
    return sample.options


def _dataset(name: str, options: dict[str, Any]) -> FederatedDataset:
    return catalog.dataset(PluginChoice.model_validate({"name": name, **options}))


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


def test_its_validation_split_is_neither_trained_on_nor_tested(name: str, options: dict[str, Any]) -> None:
    dataset = _dataset(name, options)
    train, validation = without_validation(dataset, 0.1)
    assert train
    assert validation
    assert sorted(train + validation) == sorted(dataset.train())
    assert not set(validation) & {*train, *dataset.test()}
    assert without_validation(_dataset(name, options), 0.1) == (train, validation)


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
    with refused("dataset.invalid") as caught:
        _dataset(name, sample.options).train()
    assert str(sample.train) in caught.value.detail
    assert f"line {len(whole.splitlines())} " in caught.value.detail
    assert caught.value.errors[0].field == sample.blamed


def test_a_missing_file_is_named(name: str, sample: Sample) -> None:
    sample.test.unlink()
    with refused("dataset.invalid") as caught:
        _dataset(name, sample.options).test()
    assert str(sample.test) in caught.value.detail
