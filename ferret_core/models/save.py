"""Writes a model and its tokenizer in Hugging Face layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ferret_core.models import definition
from ferret_core.models.load import LoadedModel

SHARD = 1 << 30
"""Maximum bytes of a file of weights, unless one array is longer."""


def save_base(loaded: LoadedModel, folder: Path) -> None:
    """Writes a base model into ``folder``: its weights in their type, and its defining files as they were."""
    model: Any = loaded.model
    model.save_pretrained(folder, max_shard_size=SHARD)
    definition.write(loaded.files, folder)


def save(loaded: LoadedModel, folder: Path) -> None:
    """Writes model and tokenizer into ``folder``, or only the adapters if there are any; a manifest must be added."""
    model: Any = loaded.model
    if hasattr(model, "peft_config"):
        # Otherwise PEFT would query the hub to check that the vocabulary is the base model's, which it is.
        model.save_pretrained(folder, save_embedding_layers=False)
        (folder / "README.md").unlink()  # an unfilled form
    else:
        model.save_pretrained(folder, max_shard_size=SHARD)
    loaded.tokenizer.save_pretrained(folder)
