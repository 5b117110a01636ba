"""Adapters of the ``peft`` library: the common part of algorithms that tune adapters and freeze the model itself.

Adapters stay in fp32 whatever the model's type, as PEFT keeps them: they are small, and their updates lose nothing to
rounding.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import AveragedUpdates, dense_update
from ferret_core.algorithms.base import Client, LocalUpdate, State
from ferret_core.algorithms.configs.fedit import Config
from ferret_core.models.load import context_of
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.protocol.errors import FerretError

TASK = "CAUSAL_LM"


class AveragedAdapters(AveragedUpdates):
    """FedAvg over the adapters' parameters; a subclass puts the adapters into the model."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.train(model, self.config.local)
            update = client.protected(dense_update(before, model))
        return LocalUpdate({"update": update}, trained.metrics)


def with_low_rank(model: nn.Module, options: Config, seed: int) -> nn.Module:
    """Adds B A to the weights of the options' ``targets``; raises ``spec.invalid``, which lists the model's layers.

    Initially B = 0, so that nothing changes, and A is uniform in ±1/√fan_in.
    """
    layers = _linear_layers(model)
    for target in options.targets:
        if not _chosen(layers, target):
            there = ", ".join(sorted({name.rpartition(".")[2] for name in layers}))
            message = f"{target} is not a linear layer of {type(model).__name__}; choose from {there}"
            raise FerretError.of_field("spec.invalid", "algorithm.targets", options.targets, message)
    chosen = [layer for name in options.targets for layer in _chosen(layers, name)]
    transposed = any(not isinstance(layer, nn.Linear) for layer in chosen)
    config = _peft().LoraConfig(
        task_type=TASK,
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules=options.targets,
        fan_in_fan_out=transposed,
    )
    adapted = _adapt(model, config, seed)
    # PEFT makes a set of them, and would write it in a different order in each process.
    config.target_modules = sorted(options.targets)
    return adapted


def with_soft_prompt(model: nn.Module, virtual_tokens: int, seed: int) -> nn.Module:
    """Returns ``model`` with ``virtual_tokens`` trained embeddings before every sequence, initially uniform in ±½."""
    _check_room(model, virtual_tokens)
    config = _peft().PromptTuningConfig(task_type=TASK, num_virtual_tokens=virtual_tokens)
    return _adapt(model, config, seed, embedding=0.5)


def with_prompt_encoder(model: nn.Module, virtual_tokens: int, hidden_size: int | None, seed: int) -> nn.Module:
    """Returns ``model`` with a soft prompt that a three-layer perceptron computes from embeddings of variance 1.

    Without a ``hidden_size`` the perceptron is as wide as the model.
    """
    _check_room(model, virtual_tokens)
    config = _peft().PromptEncoderConfig(
        task_type=TASK, num_virtual_tokens=virtual_tokens, encoder_hidden_size=hidden_size
    )
    return _adapt(model, config, seed, embedding=math.sqrt(3))


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        message = f"{error.name} is not installed: pip install {error.name}, or choose another algorithm"
        raise FerretError("dependency.missing", message) from error
    return peft


def _adapt(model: nn.Module, config: Any, seed: int, *, embedding: float = 0.0) -> nn.Module:
    """Freezes ``model`` and adds the adapters of ``config``; their initial weights are derived from ``seed``."""
    with torch.random.fork_rng([]), warnings.catch_warnings():
        # PEFT 0.21 calls transformers 5 by a name that version 6 removes; the result is correct.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        adapted: nn.Module = _peft().get_peft_model(model, config).eval()
    _fill(adapted, seed, embedding)
    return adapted


@torch.no_grad()
def _fill(model: nn.Module, seed: int, embedding: float) -> None:
    """Fills all weights that PEFT did not set to 0 with uniform numbers.

    They are in ± ``embedding`` in embeddings and in ±1/√fan_in in linear layers. torch's own generator rounds
    differently with other vector units, and every replica must start with the same bits.
    """
    generator = np.random.PCG64(seed)
    for name, parameter in trainable(model).items():
        if not parameter.any():
            continue
        layer = model.get_submodule(name.rpartition(".")[0])
        bound = 1 / math.sqrt(layer.in_features) if isinstance(layer, nn.Linear) else embedding
        unit = (generator.random_raw(parameter.numel()) >> 40) * 2.0**-23 - 1
        parameter.copy_(torch.from_numpy((unit * bound).astype(np.float32)).view_as(parameter))


def _linear_layers(model: nn.Module) -> dict[str, nn.Module]:
    from transformers.pytorch_utils import Conv1D

    return {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear | Conv1D)}


def _chosen(layers: dict[str, nn.Module], target: str) -> list[nn.Module]:
    """Returns the layers that PEFT matches with ``target``: by their whole name, or by its last part."""
    return [layer for name, layer in layers.items() if f".{name}".endswith(f".{target}")]


def _check_room(model: nn.Module, virtual_tokens: int) -> None:
    context = context_of(model)
    if virtual_tokens > context - 2:
        message = f"the model's context is {context} tokens: use fewer, and leave room for prompt and response"
        raise FerretError.of_field("spec.invalid", "algorithm.virtual_tokens", virtual_tokens, message)
