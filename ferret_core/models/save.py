"""Writes a model and its tokenizer in Hugging Face layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ferret_core.models import definition
from ferret_core.models.load import LoadedModel

MANIFEST = "ferret.json"
"""What a checkpoint says of itself, beside the files that are written here."""
SHARD = 1 << 30
"""Bytes of a file of weights at most, unless one array is longer."""


def save_base(loaded: LoadedModel, folder: Path) -> None:
    """Writes a base model into ``folder``: its weights in their type, and the files that define it byte for byte as
    they were read."""
    model: Any = loaded.model
    model.save_pretrained(folder, max_shard_size=SHARD)
    definition.write(loaded.files, folder)


def save(loaded: LoadedModel, folder: Path) -> None:
    """Writes both into ``folder``, of a model with adapters these alone; without a manifest it is no checkpoint yet."""
    model: Any = loaded.model
    if hasattr(model, "peft_config"):
        # PEFT would ask the hub whether the vocabulary is still the base model's; it is.
        model.save_pretrained(folder, save_embedding_layers=False)
        (folder / "README.md").unlink()  # a form that nobody has filled in
    else:
        model.save_pretrained(folder, max_shard_size=SHARD)
    loaded.tokenizer.save_pretrained(folder)
