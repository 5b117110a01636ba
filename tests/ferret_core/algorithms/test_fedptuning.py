from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ferret_core.models.parameters import trainable
from ferret_core.replica import checkpoint
from tests.ferret_core.replicas import SpecFactory, replica_of

OPTIONS = {"virtual_tokens": 7, "hidden_size": 24}


@pytest.mark.parametrize(
    ("hidden", "encoder"), [(24, 2 * 32 * 24 + 24**2 + 2 * 24 + 32), ("model", 3 * (32 * 32 + 32))]
)
def test_embeddings_and_encoder_are_sent(toy_spec: SpecFactory, hidden: int | str, encoder: int) -> None:
    """As published, the encoder is as wide as the model."""
    replica = replica_of(toy_spec("fedptuning", options=OPTIONS | {"hidden_size": hidden}))
    assert sum(parameter.numel() for parameter in trainable(replica.model).values()) == 7 * 32 + encoder


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
