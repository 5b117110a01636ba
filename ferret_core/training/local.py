"""Local training: T steps of an ordinary first-order optimizer on one participant's batches.

The paper's local update ``w ← w − η ∇ℓ(w)``, with any gradient method instead of plain descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

import torch
from torch import nn

from ferret_core.datasets.tokenization.client_data import Batch
from ferret_core.distributed.sharded_tensor import is_sharded
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.system.device import memory_checked
from ferret_core.training import optimizers
from ferret_core.training.activation_checkpointing import checkpointing, supports_checkpointing
from ferret_core.training.config import LocalConfig
from ferret_core.training.loss import count_targets, device_of, loss_by_sequence, response_loss
from ferret_core.training.micro_batches import MicroBatches, micro_batches, randomness
from ferret_core.training.optimizer_in_backward import Moved, StochasticRounding, stepping
from ferret_core.training.sharded_training import ShardedTraining


class LocalMetrics(NamedTuple):
    """Metrics that a participant may report about its training.

    ``train_loss``: mean over the steps of each step's mean loss per response token, in nats; ``examples``: sequences
    and ``tokens``: response tokens trained on, with repetitions.
    """

    train_loss: float
    examples: int
    tokens: int

    @property
    def metrics(self) -> dict[str, float]:
        return {"train_loss": self.train_loss, "trained_sequences": float(self.examples)}


def train(
    model: nn.Module,
    batches: Iterator[Batch],
    config: LocalConfig,
    on_step: Callable[[int], None] | None = None,
    *,
    rate: float | None = None,
    seed: int = 0,
    correct: Callable[[], None] | None = None,
    moved: Moved | None = None,
    examples: int | None = None,
) -> LocalMetrics:
    """Moves ``model``'s weights in place by the steps of ``config``; keeps its mode and frees its gradients.

    The weights are fp32, or bf16 for ``precision = "pure_bfloat16"``.

    ``rate``: the round's learning rate, by default the configuration's. ``on_step``: called after each step with the
    number of steps done; an exception in it ends the training. ``seed`` (64 bits): for dropout and rounding; torch's
    global generators are restored afterwards. ``correct``: may change each step's gradients in place, before they are
    clipped. ``moved``: for ``precision = "pure_bfloat16"``, receives every parameter's fp32 values of every step before
    they are rounded into it. ``examples``: the participant's number of examples, for epochs.

    A step that runs out of memory is repeated with half the sequences per pass, and then with checkpointed activations,
    and so are later ones.

    Raises ``training.non_finite`` before the named step moves the weights. With steps in the backward pass only the
    loss is checked before; gradients are checked when the step is done. Raises ``memory.exhausted`` if not even one
    sequence fits, or if steps in the backward pass cannot be repeated. Raises ``model.invalid`` if activations cannot
    be checkpointed, and ``spec.invalid`` for a correction of gradients that are never whole.
    """
    steps = config.steps_for(examples)
    losses: list[float] = []
    sequences = tokens = 0
    with ExitStack() as stack:
        stack.enter_context(training_mode(model))
        stack.enter_context(seeded(device_of(model), seed))
        checkpoint = partial(stack.enter_context, checkpointing(model))
        if config.activation_checkpointing:
            checkpoint()
        save = checkpoint if not config.activation_checkpointing and supports_checkpointing(model) else None
        move = stack.enter_context(_moving(model, config, rate or config.learning_rate, correct, moved, seed, save))
        for step in range(1, steps + 1):
            group = list(islice(batches, config.accumulation))
            answered = sum(count_targets(batch) for batch in group)
            trained = sum(len(batch.input_ids) for batch in group)
            counted = answered if config.loss == "tokens" else trained
            losses.append(move(group, counted, partial(_check_finite, f"{step} of {steps}", config)))
            sequences += trained
            tokens += answered
            if on_step is not None:
                on_step(step)
    return LocalMetrics(math.fsum(losses) / len(losses), sequences, tokens)


class _Check(Protocol):
    """Raises ``training.non_finite`` unless a step's loss, and its gradient's norm if known, are finite."""

    def __call__(self, loss: float, norm: float | None = None) -> None: ...


class _Move(Protocol):
    """One step on a group of batches; returns its loss, a mean over ``counted`` tokens or sequences."""

    def __call__(self, group: Sequence[Batch], counted: int, check: _Check) -> float: ...


@contextmanager
def _moving(
    model: nn.Module,
    config: LocalConfig,
    rate: float,
    correct: Callable[[], None] | None,
    moved: Moved | None,
    seed: int,
    save: Callable[[], object] | None,
) -> Generator[_Move]:
    if is_sharded(model):
        if correct is not None:
            raise FerretError(
                "spec.invalid",
                "this algorithm corrects whole gradients, which no process of a team holds: train it with one process",
            )
        yield partial(_move_together, ShardedTraining(model, config, rate), model, config)
        return
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not config.optimizer_in_backward:
        fitting = MicroBatches(config.batch_size, save)
        optimizer = optimizers.build(config, parameters, rate)
        yield partial(_move, model, config, optimizer, fitting, correct)
        return
    if correct is not None:
        message = "this algorithm corrects whole gradients, which are never held: set it to false"
        raise FerretError.of_field("spec.invalid", "optimizer_in_backward", True, message)
    d = sum(parameter.numel() for parameter in parameters)
    build = partial(optimizers.build, config, rate=rate, elements=d)
    bits = torch.Generator(device_of(model)).manual_seed(derive_seed("rounding", seed))
    each = {
        weight: StochasticRounding(weight, build, bits, moved) if config.pure else build([weight])
        for weight in parameters
    }
    with stepping(each) as norms:
        yield partial(_move_in_backward, model, config, norms)


def _move(
    model: nn.Module,
    config: LocalConfig,
    optimizer: torch.optim.Optimizer,
    fitting: MicroBatches,
    correct: Callable[[], None] | None,
    group: Sequence[Batch],
    counted: int,
    check: _Check,
) -> float:
    restore = randomness(device_of(model))

    def undo() -> None:
        model.zero_grad()
        restore()

    loss = fitting.fit(lambda size: _backward(model, micro_batches(group, size), counted, config), undo)
    if correct is not None:
        correct()
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or math.inf)
    check(loss, float(norm))
    optimizer.step()
    optimizer.zero_grad()
    return loss


def _move_together(
    together: ShardedTraining,
    model: nn.Module,
    config: LocalConfig,
    group: Sequence[Batch],
    counted: int,
    check: _Check,
) -> float:
    loss, norm = together.gradients(group, counted, lambda batch: batch_nll(model, batch, config))
    check(loss, norm)
    together.step()
    return loss


def _move_in_backward(
    model: nn.Module,
    config: LocalConfig,
    norms: list[torch.Tensor],
    group: Sequence[Batch],
    counted: int,
    check: _Check,
) -> float:
    (batch,) = group
    with memory_checked(f"steps in the backward pass cannot be made in parts, lower batch_size = {config.batch_size}"):
        nll = batch_nll(model, batch, config)
        loss = nll.item() / counted
        check(loss)
        (nll / counted).backward()
    check(loss, float(torch.linalg.vector_norm(torch.stack(norms))))
    norms.clear()
    return loss


def _backward(model: nn.Module, batches: Iterable[Batch], counted: int, config: LocalConfig) -> float:
    """Accumulates the gradient of the mean loss, as for one batch of all sequences."""
    total = 0.0
    for batch in batches:
        nll = batch_nll(model, batch, config)
        (nll / counted).backward()
        total += nll.item()
    return total / counted


def batch_nll(model: nn.Module, batch: Batch, config: LocalConfig) -> torch.Tensor:
    """Returns the sum over the batch of the terms of the step's mean loss."""
    with torch.autocast(device_of(model).type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        return response_loss(model, batch).nll if config.loss == "tokens" else loss_by_sequence(model, batch)


def _check_finite(step: str, config: LocalConfig, loss: float, norm: float | None = None) -> None:
    if math.isfinite(loss) and (norm is None or math.isfinite(norm)):
        return
    found = f"the loss is {loss}" if norm is None else f"the loss is {loss} and its gradient's norm {norm}"
    clip = "" if config.optimizer_in_backward else f"or set clip_norm (now {config.clip_norm}), "
    raise FerretError.of_field(
        "training.non_finite",
        "learning_rate",
        config.learning_rate,
        f"at local step {step} {found}: lower it, {clip}or lower the server's learning rate",
    )


@contextmanager
def training_mode(model: nn.Module) -> Generator[None]:
    """Switches to training mode without old gradients; restores the mode afterwards, and leaves no gradients."""
    mode = model.training
    model.train()
    model.zero_grad()
    try:
        yield
    finally:
        model.zero_grad()
        model.train(mode)


@contextmanager
def seeded(device: torch.device, seed: int) -> Generator[None]:
    """Seeds torch's global generators, the only ones that dropout can use; restores them afterwards."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
