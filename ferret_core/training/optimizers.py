"""The optimizers of ``torch.optim``, by the names that a specification calls them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn, optim

from ferret_core.training.config import LocalConfig
from ferret_core.training.optimizer_options import OPTIMIZERS, decays

CLASSES: dict[str, type[optim.Optimizer]] = {
    name.lower(): found for name, found in vars(optim).items() if name.lower() in OPTIMIZERS and isinstance(found, type)
}


def build(config: LocalConfig, parameters: Iterable[nn.Parameter]) -> optim.Optimizer:
    """The configured optimizer over ``parameters``."""
    decay = {"weight_decay": config.weight_decay} if decays(config.optimizer) else {}
    momentum = {"momentum": config.momentum} if config.optimizer == "sgd" else {}
    arguments: dict[str, Any] = {"lr": config.learning_rate, **decay, **momentum, **config.options}
    return CLASSES[config.optimizer](parameters, **arguments)
