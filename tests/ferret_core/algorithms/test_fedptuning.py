from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from ferret_core import catalog
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate

SpecFactory = Callable[..., ExperimentSpec]
OPTIONS = {"virtual_tokens": 7, "hidden_size": 24}


def test_embeddings_and_encoder_are_sent(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedptuning", options=OPTIONS))
    count = sum(parameter.numel() for parameter in trainable(replica.model).values())
    assert count == 7 * 32 + 2 * 32 * 24 + 24**2 + 2 * 24 + 32
    result = simulate(
        toy_spec("fedptuning", options=OPTIONS, rounds=1, evaluation={"examples": 1, "generate_examples": 0})
    )
    assert 0 < result.rounds[1].bytes_up / 3 - 4 * count < 1500


def test_as_published_the_encoder_is_as_wide_as_the_model(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedptuning", options={"virtual_tokens": 7, "hidden_size": "model"}))
    count = sum(parameter.numel() for parameter in trainable(replica.model).values())
    assert count == 7 * 32 + 3 * (32 * 32 + 32)


def test_embeddings_begin_with_variance_one(toy_spec: SpecFactory) -> None:
    (embeddings,) = (
        weight for name, weight in trainable(replica_of(toy_spec("fedptuning")).model).items() if "embed" in name
    )
    assert embeddings.shape == (20, 32)
    assert 0.9 < embeddings.std() < 1.1


def test_a_checkpoint_holds_the_computed_prompt(toy_spec: SpecFactory, tmp_path: Path) -> None:
    replica = replica_of(toy_spec("fedptuning", options=OPTIONS))
    checkpoint.write(replica, "exp", tmp_path)
    (written,) = load_file(tmp_path / "adapter_model.safetensors").values()
    model: Any = replica.model
    with torch.inference_mode():
        assert torch.equal(written, model.get_prompt(1)[0])


def replica_of(spec: ExperimentSpec) -> Replica:
    return Replica.load(catalog.resolve(spec).spec)
