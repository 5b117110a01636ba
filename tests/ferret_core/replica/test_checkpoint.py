from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from tests.digests import digest_of
from tests.ferret_core import manifest_reader
from tests.ferret_core.replicas import SpecFactory, replica_of


@pytest.fixture
def written(toy_spec: SpecFactory, tmp_path: Path) -> tuple[Replica, Path]:
    replica = replica_of(toy_spec())
    checkpoint.write(replica, "exp_0000000000007e57", tmp_path)
    return replica, tmp_path


def test_transformers_loads_it_with_the_same_bits(written: tuple[Replica, Path]) -> None:
    replica, folder = written
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert digest_of(model, replica.spec.model.source) == replica.digest
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("Repeat.").input_ids == replica.tokenizer("Repeat.").input_ids


def test_equal_models_are_equal_files(written: tuple[Replica, Path], tmp_path_factory: pytest.TempPathFactory) -> None:
    replica, folder = written
    again = checkpoint.write(replica, "exp_0000000000007e57", tmp_path_factory.mktemp("again"))
    assert manifest_reader.checked(folder) == again
