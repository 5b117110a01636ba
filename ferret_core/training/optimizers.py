"""Optimizers of ``torch.optim`` and our own, by their names in a specification."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torch import nn, optim

from ferret_core.training.config import LocalConfig
from ferret_core.training.muon import Muon
from ferret_core.training.normalized import Normalized
from ferret_core.training.optimizer_options import OPTIMIZERS, WITH_MOMENTUM, decays

OWN: dict[str, type[optim.Optimizer]] = {"muon": Muon, "normalized": Normalized}
CLASSES = {
    name.lower(): found for name, found in vars(optim).items() if name.lower() in OPTIMIZERS and isinstance(found, type)
} | OWN


def build(
    config: LocalConfig,
    parameters: Sequence[nn.Parameter],
    rate: float,
    *,
    elements: int | None = None,
    embeddings: Collection[nn.Parameter] = (),
) -> optim.Optimizer:
    """Builds the configured optimizer over ``parameters``, at the round's ``rate``.

    ``elements``: number of all trained elements, if other optimizers move the rest. ``embeddings``: the matrices with
    one row per token.
    """
    decay = {"weight_decay": config.weight_decay} if decays(config.optimizer) else {}
    momentum = {"momentum": config.momentum} if config.optimizer in WITH_MOMENTUM else {}
    share = {"elements": elements} if config.optimizer == "normalized" else {}
    others = {"others": embeddings} if config.optimizer == "muon" else {}
    arguments: dict[str, Any] = {"lr": rate, **decay, **momentum, **share, **others, **config.options}
    return CLASSES[config.optimizer](parameters, **arguments)
