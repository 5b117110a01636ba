"""Local training: T steps of an ordinary first-order optimizer on one participant's batches.

The paper's equation for the local update ``w ← w − η ∇ℓ(w)`` with any gradient method in place of plain descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self, cast

import torch
from pydantic import Field, ValidationInfo, field_validator, model_validator
from torch import nn

from ferret_core.datasets._base import Batch
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Precision, Strict
from ferret_core.training import optimizers
from ferret_core.training.checkpointing import checkpointing
from ferret_core.training.in_backward import stepping
from ferret_core.training.loss import count_targets, device_of, response_loss
from ferret_core.training.micro_batches import MicroBatches, memory_checked, micro_batches, randomness
from ferret_core.training.optimizers import OptimizerName, Option

OTHERS = ("optimizer", "learning_rate", "weight_decay", "momentum")
"""The fields that an optimizer is made of beside its options."""


class LocalConfig(Strict):
    """The local optimizer; steps, batch size and accumulation default to the paper's."""

    optimizer: OptimizerName = Field(default="adam", description="First-order method: one of torch.optim")
    learning_rate: float = Field(default=1e-4, gt=0, description="Local learning rate η, constant over the steps")
    steps: int | None = Field(default=10, ge=1, description="Local steps T per round")
    epochs: float | None = Field(
        default=None, gt=0, description="Passes over the participant's examples per round, instead of steps"
    )
    batch_size: int = Field(default=1, ge=1, description="Sequences per forward pass")
    accumulation: int = Field(default=4, ge=1, description="Forward passes per step")
    clip_norm: float | None = Field(default=None, gt=0, description="Largest L2 norm of a step's gradient")
    weight_decay: float = Field(
        default=0.0, ge=0, description="L2 penalty, or decoupled decay where that is the optimizer's way (adamw)"
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Heavy-ball momentum, for sgd alone")
    options: dict[str, Option] = Field(
        default={}, description="The optimizer's other arguments by their names in torch.optim: betas, eps, …"
    )
    precision: Precision = Field(
        default="float32", description="bfloat16 computes in mixed precision, weights stay fp32"
    )
    activation_checkpointing: bool = Field(
        default=False, description="Keep the inputs of layers alone, and compute the rest again: less memory, more time"
    )
    in_backward: bool = Field(
        default=False,
        description="Step each parameter in the backward pass and let its gradient go: sgd without momentum, "
        "accumulation = 1, no clip_norm",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Epochs leave no steps to be given, so that a stored specification says what was run."""
        if not isinstance(options, Mapping):
            return options
        given = cast(Mapping[str, Any], options)
        return given if given.get("epochs") is None else {"steps": None, **given}

    @field_validator("options")
    @classmethod
    def _suit_the_optimizer(cls, options: dict[str, Option], info: ValidationInfo) -> dict[str, Option]:
        """Where one of the others is wrong, that is error enough."""
        others = {name: info.data[name] for name in OTHERS if name in info.data}
        if options and len(others) == len(OTHERS):
            optimizers.check(options=options, **others)
        return options

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps = {self.steps} and epochs = {self.epochs}: give one of the two")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum = {self.momentum} needs optimizer = 'sgd', not {self.optimizer!r}")
        if self.weight_decay and not optimizers.decays(self.optimizer):
            raise ValueError(f"weight_decay = {self.weight_decay}: {self.optimizer} knows none, set it to 0")
        if self.in_backward and (wrong := self._needs_whole_gradients()):
            raise ValueError(f"in_backward = True holds no whole gradient: it needs {', '.join(wrong)}")
        return self

    def steps_for(self, examples: int | None) -> int:
        """T for a shard of so many examples, at least 1; the last step of an epoch may begin the next pass.

        Raises ``TypeError`` when epochs are to be counted and nobody says of what.
        """
        if self.epochs is None:
            assert self.steps is not None
            return self.steps
        if examples is None:
            raise TypeError("epochs are passes over a participant's examples: say how many it has")
        # As it is written: the binary fraction nearest to 0.07 makes more than 7 of 100.
        return math.ceil(Fraction(str(self.epochs)) * examples / (self.batch_size * self.accumulation))

    def optimizer_of(self, parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        """This optimizer over ``parameters``."""
        return optimizers.build(
            self.optimizer, parameters, self.learning_rate, self.weight_decay, self.momentum, self.options
        )

    def _needs_whole_gradients(self) -> list[str]:
        """The settings that would do without them, in place of those there are."""
        asked = {
            "optimizer = 'sgd'": self.optimizer != "sgd",
            "momentum = 0": self.momentum > 0,
            "accumulation = 1": self.accumulation > 1,
            "no clip_norm": self.clip_norm is not None,
        }
        return [setting for setting, wrong in asked.items() if wrong]


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
        return {"train_loss": self.train_loss, "sequences": float(self.examples)}


def train(
    model: nn.Module,
    batches: Iterator[Batch],
    config: LocalConfig,
    on_step: Callable[[int], None] | None = None,
    *,
    seed: int = 0,
    correct: Callable[[], None] | None = None,
    examples: int | None = None,
) -> LocalMetrics:
    """Moves ``model``'s fp32 weights in place by the steps of ``config``; its mode stays, its gradients are freed.

    ``on_step`` is called with the number of steps done after each; what it raises ends the training. ``seed`` (64
    bits) is dropout's: torch's global generators are put back afterwards. ``correct`` may change each step's gradients
    in place, before they are clipped. ``examples`` is how many the participant has, of which epochs are counted.

    A step that runs out of memory is made again with half as many sequences at once, and so are those after it.

    Raises ``training.non_finite``, before the weights are moved by the step it names; in the backward pass only a
    loss is looked at in time, and a gradient when the step is made. Raises ``memory.exhausted`` where not even one
    sequence fits, or where steps in the backward pass leave nothing to be made again. Raises ``model.invalid`` where
    activations cannot be checkpointed, and ``spec.invalid`` for a correction of gradients that are never whole.
    """
    steps = config.steps_for(examples)
    losses: list[float] = []
    sequences = tokens = 0
    checkpointed = checkpointing(model) if config.activation_checkpointing else nullcontext()
    with _training(model), _seeded(device_of(model), seed), checkpointed, _moving(model, config, correct) as move:
        for step in range(1, steps + 1):
            group = list(islice(batches, config.accumulation))
            counted = sum(count_targets(batch) for batch in group)
            losses.append(move(group, counted, partial(_check_finite, f"{step} of {steps}", config)))
            sequences += sum(len(batch.input_ids) for batch in group)
            tokens += counted
            if on_step is not None:
                on_step(step)
    return LocalMetrics(math.fsum(losses) / len(losses), sequences, tokens)


class _Check(Protocol):
    """Raises ``training.non_finite`` unless a step's loss, and its gradient's norm where it is known, are numbers."""

    def __call__(self, loss: float, norm: float | None = None) -> None: ...


class _Move(Protocol):
    """One step on a group of batches with so many response tokens; returns their mean loss."""

    def __call__(self, group: Sequence[Batch], tokens: int, check: _Check) -> float: ...


@contextmanager
def _moving(model: nn.Module, config: LocalConfig, correct: Callable[[], None] | None) -> Generator[_Move]:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not config.in_backward:
        fitting = MicroBatches(config.batch_size)
        yield partial(_move, model, config, config.optimizer_of(parameters), fitting, correct)
        return
    if correct is not None:
        message = "this algorithm corrects whole gradients, which are never held: set it to false"
        raise FerretError.of_field("spec.invalid", "in_backward", True, message)
    with stepping({parameter: config.optimizer_of([parameter]) for parameter in parameters}) as norms:
        yield partial(_move_in_backward, model, config, norms)


def _move(
    model: nn.Module,
    config: LocalConfig,
    optimizer: torch.optim.Optimizer,
    fitting: MicroBatches,
    correct: Callable[[], None] | None,
    group: Sequence[Batch],
    tokens: int,
    check: _Check,
) -> float:
    restore = randomness(device_of(model))

    def undo() -> None:
        model.zero_grad()
        restore()

    loss = fitting.fit(lambda size: _backward(model, micro_batches(group, size), tokens, config.precision), undo)
    if correct is not None:
        correct()
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or math.inf)
    check(loss, float(norm))
    optimizer.step()
    optimizer.zero_grad()
    return loss


def _move_in_backward(
    model: nn.Module,
    config: LocalConfig,
    norms: list[torch.Tensor],
    group: Sequence[Batch],
    tokens: int,
    check: _Check,
) -> float:
    (batch,) = group
    with memory_checked(f"steps in the backward pass cannot be made in parts, lower batch_size = {config.batch_size}"):
        nll = _nll(model, batch, config.precision)
        loss = nll.item() / tokens
        check(loss)
        (nll / tokens).backward()
    check(loss, float(torch.linalg.vector_norm(torch.stack(norms))))
    norms.clear()
    return loss


def _backward(model: nn.Module, batches: Iterable[Batch], tokens: int, precision: Precision) -> float:
    """Accumulates the gradient of the mean loss per token, as one batch of all the sequences would have it."""
    total = 0.0
    for batch in batches:
        nll = _nll(model, batch, precision)
        (nll / tokens).backward()
        total += nll.item()
    return total / tokens


def _nll(model: nn.Module, batch: Batch, precision: Precision) -> torch.Tensor:
    with torch.autocast(device_of(model).type, torch.bfloat16, enabled=precision == "bfloat16"):
        return response_loss(model, batch).nll


def _check_finite(step: str, config: LocalConfig, loss: float, norm: float | None = None) -> None:
    if math.isfinite(loss) and (norm is None or math.isfinite(norm)):
        return
    found = f"the loss is {loss}" if norm is None else f"the loss is {loss} and its gradient's norm {norm}"
    clip = "" if config.in_backward else f"or set clip_norm (now {config.clip_norm}), "
    raise FerretError.of_field(
        "training.non_finite",
        "learning_rate",
        config.learning_rate,
        f"at local step {step} {found}: lower it, {clip}or lower the server's learning rate",
    )


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
