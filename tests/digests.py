"""The digest that a ledger has for a model, computed from the model and its base model's folder."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from ferret_core.models import definition
from ferret_core.models.digest import model_digest


def digest_of(model: nn.Module, base: str | Path) -> str:
    """Of ``model``, defined by the files in the folder ``base``."""
    return model_digest(model, files=definition.digest(definition.read(Path(base))))
