"""Local training: T steps of an ordinary first-order optimizer on one participant's batches.

The paper's equation for the local update ``w ← w − η ∇ℓ(w)`` with any gradient method in place of plain descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import nn

from ferret_core.datasets._base import Batch
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Precision, Strict
from ferret_core.training.loss import count_targets, device_of, response_loss


class LocalConfig(Strict):
    """The local optimizer; steps, batch size and accumulation default to the paper's."""

    optimizer: Literal["sgd", "adam", "adamw"] = Field(default="adam", description="First-order method")
    learning_rate: float = Field(default=1e-4, gt=0, description="Local learning rate η, constant over the steps")
    steps: int = Field(default=10, ge=1, description="Local steps T per round")
    batch_size: int = Field(default=1, ge=1, description="Sequences per forward pass")
    accumulation: int = Field(default=4, ge=1, description="Forward passes per step")
    clip_norm: float | None = Field(default=None, gt=0, description="Largest L2 norm of a step's gradient")
    weight_decay: float = Field(default=0.0, ge=0, description="L2 penalty (sgd, adam), decoupled decay (adamw)")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Heavy-ball momentum, for sgd alone")
    precision: Precision = Field(
        default="float32", description="bfloat16 computes in mixed precision, weights stay fp32"
    )

    @model_validator(mode="after")
    def _momentum_is_for_sgd(self) -> Self:
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum = {self.momentum} needs optimizer = 'sgd', not {self.optimizer!r}")
        return self


class LocalMetrics(NamedTuple):
    """What a participant may say of its training.

    ``train_loss``: mean over the steps of each step's mean loss per response token, in nats; ``examples``: sequences
    and ``tokens``: response tokens trained on, repeats counted.
    """

    train_loss: float
    examples: int
    tokens: int

    @property
    def metrics(self) -> dict[str, float]:
        return {"train_loss": self.train_loss}


def train(
    model: nn.Module,
    batches: Iterator[Batch],
    config: LocalConfig,
    on_step: Callable[[int], None] | None = None,
    *,
    seed: int = 0,
) -> LocalMetrics:
    """Moves ``model``'s fp32 weights in place by ``config.steps`` steps; its mode stays, its gradients are freed.

    ``on_step`` is called with the number of steps done after each; what it raises ends the training. ``seed`` (64
    bits) is dropout's: torch's global generators are put back afterwards. Raises ``training.non_finite``, before the
    weights are moved by the step it names.
    """
    optimizer = _optimizer([parameter for parameter in model.parameters() if parameter.requires_grad], config)
    losses: list[float] = []
    examples = tokens = 0
    with _training(model), _seeded(device_of(model), seed):
        for step in range(1, config.steps + 1):
            group = list(islice(batches, config.accumulation))
            counted = sum(count_targets(batch) for batch in group)
            losses.append(_backward(model, group, counted, config.precision))
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or math.inf)
            _check_finite(step, losses[-1], float(norm), config)
            optimizer.step()
            optimizer.zero_grad()
            examples += sum(len(batch.input_ids) for batch in group)
            tokens += counted
            if on_step is not None:
                on_step(step)
    return LocalMetrics(math.fsum(losses) / len(losses), examples, tokens)


def _backward(model: nn.Module, group: Sequence[Batch], tokens: int, precision: Precision) -> float:
    """Accumulates the gradient of the group's mean loss per token, as one batch of all its sequences would have it."""
    total = 0.0
    for batch in group:
        with torch.autocast(device_of(model).type, torch.bfloat16, enabled=precision == "bfloat16"):
            nll = response_loss(model, batch).nll
        (nll / tokens).backward()
        total += nll.item()
    return total / tokens


def _check_finite(step: int, loss: float, norm: float, config: LocalConfig) -> None:
    if math.isfinite(loss) and math.isfinite(norm):
        return
    raise FerretError.of_field(
        "training.non_finite",
        "learning_rate",
        config.learning_rate,
        f"at local step {step} of {config.steps} the loss is {loss} and its gradient's norm {norm}: "
        f"lower it, or set clip_norm (now {config.clip_norm}), or lower the server's learning rate",
    )


def _optimizer(parameters: list[nn.Parameter], config: LocalConfig) -> torch.optim.Optimizer:
    rate, decay = config.learning_rate, config.weight_decay
    match config.optimizer:
        case "sgd":
            return torch.optim.SGD(parameters, rate, momentum=config.momentum, weight_decay=decay)
        case "adam":
            return torch.optim.Adam(parameters, rate, weight_decay=decay)
        case "adamw":
            return torch.optim.AdamW(parameters, rate, weight_decay=decay)


@contextmanager
def _training(model: nn.Module) -> Generator[None]:
    """Training mode without old gradients; afterwards the mode there was, and no gradients."""
    mode = model.training
    model.train()
    model.zero_grad()
    try:
        yield
    finally:
        model.zero_grad()
        model.train(mode)


@contextmanager
def _seeded(device: torch.device, seed: int) -> Generator[None]:
    """Dropout can only draw from torch's global generators: seeded here, afterwards as they were."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
