"""A local update by all processes of a team: the model is sharded, and the processes share each step's parts.

    for each step, with sequences that pass through the model in parts (micro_batches.py), as with one process:
        the parts are taken in turns: in each, process r has part r of it; excess processes repeat the first part
        the gradients of the turn are added to the step's, in the order of the parts     (OrderedReduceScatter)
        each parameter is moved whole by its owner                                           (OwnerOptimizer)

With n parts a step is up to min(n, number of processes) times faster. Dropout draws from one generator, part after
part: with dropout every process goes through every part.

A floating-point sum depends on its order. A single process adds the gradient of each part to the previous ones, so the
same is done here: every process sends each of the others its chunk of the gradient. The holder of a shard adds the
received chunks in the order of the parts, to the sum of the previous turns. FSDP2 itself would add all chunks together,
in an arbitrary order.

An optimizer's step on a tensor may depend on all of it: a length, a factorisation, even the bits of a sum. So every
parameter has an owner, which keeps it whole in fp32 during a local update, together with the optimizer's state. For a
step the owner receives the gradient, moves the parameter as a single process would, and sends all processes their rows.
The parameters are distributed so that the processes own about equally many elements: gradient, weights and state of an
N-th of the model each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from ferret_core.datasets.tokenization.client_data import Batch
from ferret_core.distributed.process_group import require, typed, waves
from ferret_core.distributed.sharded_tensor import gathered, spread
from ferret_core.protocol.errors import FerretError
from ferret_core.system.device import memory_checked
from ferret_core.training import optimizers
from ferret_core.training.config import LocalConfig
from ferret_core.training.micro_batches import micro_batches

REMEDY = "lower batch_size or set activation_checkpointing: a team does not make its parts smaller by itself"
Loss = Callable[[Batch], Any]
"""A part's contribution to the step's loss, before division: a differentiable scalar."""


class OwnerOptimizer:
    """The optimizer of ``config`` at ``rate`` over the parameters of ``model``. Every method is collective."""

    def __init__(self, model: nn.Module, config: LocalConfig, rate: float) -> None:
        self._clip = config.clip_norm
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        sizes = [parameter.numel() for parameter in self._parameters]
        self._owners = owners(sizes, require().size)
        self._own: dict[int, nn.Parameter] = {}
        for position, parameter in enumerate(self._parameters):
            whole = gathered(parameter, self._owners[position])
            if whole is not None:
                self._own[position] = nn.Parameter(whole.view(parameter.shape))
        own = list(self._own.values())
        self._optimizer = optimizers.build(config, own, rate, elements=sum(sizes)) if own else None

    def gather(self) -> float:
        """Moves gradients to their parameters' owners, clipped if configured; returns the L2 norm before clipping."""
        there: list[int] = []
        for position, parameter in enumerate(self._parameters):
            if parameter.grad is None:
                continue
            there.append(position)
            whole = gathered(parameter.grad, self._owners[position])
            parameter.grad = None
            if whole is not None:
                self._own[position].grad = whole.view(parameter.shape)
        norm = self._norm(there)
        if self._clip is not None:
            self._shorten(norm)
        return float(norm)

    @torch.no_grad()
    def step(self) -> None:
        """Moves the parameters by the gathered gradients, and clears these."""
        if self._optimizer is not None:
            self._optimizer.step()
            self._optimizer.zero_grad()
        for position, parameter in enumerate(self._parameters):
            own = self._own.get(position)
            spread(None if own is None else own.detach().view(-1), parameter, self._owners[position])

    def _norm(self, there: Sequence[int]) -> Tensor:
        """Returns the norm like :func:`torch.nn.utils.clip_grad_norm_`: the norm of the parameters' norms, in their
        order.

        ``there``: the positions of parameters with gradients.
        """
        team = require()
        norms = torch.zeros(len(self._parameters), device=team.device)
        for position, own in self._own.items():
            if own.grad is not None:
                norms[position] = _length(own.grad)
        # One process has each norm, the others have 0: no sum is rounded.
        return torch.linalg.vector_norm(team.summed(norms)[list(there)])

    def _shorten(self, norm: Tensor) -> None:
        """Multiplies the gradients by torch's factor, also if it is 1, so that the bits are equal."""
        assert self._clip is not None
        factor = torch.clamp(self._clip / (norm + 1e-6), max=1.0)
        for own in self._own.values():
            if own.grad is not None:
                own.grad.mul_(factor)


def owners(sizes: Sequence[int], count: int) -> list[int]:
    """Returns the process, of ``count``, that owns each of the parameters with these numbers of elements.

    The largest parameters are assigned first, each to the process with the fewest elements so far.
    """
    found, load = [0] * len(sizes), [0] * count
    for position in sorted(range(len(sizes)), key=lambda position: -sizes[position]):
        owner = load.index(min(load))
        found[position] = owner
        load[owner] += sizes[position]
    return found


def _length(gradient: Tensor) -> Tensor:
    """Returns the L2 norm, by torch's clipping kernel for this device."""
    if gradient.device.type == "cuda":
        return torch._foreach_norm([gradient], 2.0)[0]
    return torch.linalg.vector_norm(gradient, 2.0)


class ReduceTurn:
    """The number of processes with a separate part in the running turn; these are the first ones."""

    def __init__(self) -> None:
        self.parts = 1


class OrderedReduceScatter:
    """FSDP2's reduce-scatter of one layer: the sum over the turns since :meth:`begin`, each in the order of ranks."""

    def __init__(self, turn: ReduceTurn) -> None:
        self._turn = turn
        self._total: Tensor | None = None

    def begin(self) -> None:
        """Starts a step with an empty sum; the previous sum then belongs only to the gradients."""
        self._total = None

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        team = require()
        received = team.exchanged(input_tensor.view(team.size, -1))
        chunks = received[: self._turn.parts]
        first, rest = (chunks[0], chunks[1:]) if self._total is None else (self._total, chunks)
        output_tensor.copy_(first)
        for chunk in rest:
            output_tensor.add_(chunk)
        # FSDP2 uses the memory that is passed in here for the gradients: the sum is stored once.
        self._total = output_tensor


def add_in_order(model: nn.Module) -> tuple[ReduceTurn, list[OrderedReduceScatter]]:
    """Makes the layers of a sharded model add up their gradients in the order of the parts."""
    from torch.distributed.fsdp import FSDPModule

    turn = ReduceTurn()
    sums: list[OrderedReduceScatter] = []
    for layer in model.modules():
        if isinstance(layer, FSDPModule):
            sums.append(OrderedReduceScatter(turn))
            layer.set_custom_reduce_scatter(sums[-1])  # pyrefly: ignore[bad-argument-type]
    return turn, sums


class ShardedTraining:
    """Steps of a local update. Raises ``spec.invalid`` for options that need whole gradients on one process."""

    def __init__(self, model: nn.Module, config: LocalConfig, rate: float) -> None:
        if config.optimizer_in_backward:
            message = "steps of a model in shards are made after the backward pass: set it to false, or use one process"
            raise FerretError.of_field("spec.invalid", "algorithm.local.optimizer_in_backward", True, message)
        self._model, self._size = model, config.batch_size
        self._turn, self._sums = add_in_order(model)
        self._steps = OwnerOptimizer(model, config, rate)
        self._width = 1 if draws(model) else require().size

    def gradients(self, group: Sequence[Batch], counted: int, loss_of: Loss) -> tuple[float, float]:
        """Computes the gradients of the mean loss of ``group`` over ``counted``, and moves them to their owners.

        Returns the loss, and the L2 norm of its gradients.
        """
        with memory_checked(REMEDY), typed():
            total = self._backward(list(micro_batches(group, self._size)), counted, loss_of)
        for sums in self._sums:
            sums.begin()
        return total / counted, self._steps.gather()

    def step(self) -> None:
        """Moves the model by the gradients."""
        self._steps.step()

    def _backward(self, parts: Sequence[Batch], counted: int, loss_of: Loss) -> float:
        team, total = require(), 0.0
        for wave in waves(len(parts), self._width):
            self._turn.parts = len(wave)
            own = wave[team.rank] if team.rank < len(wave) else wave[0]
            # The next sum already includes this one.
            self._model.zero_grad()
            nll = loss_of(parts[own])
            (nll / counted).backward()
            for loss in team.numbers(nll.item())[: len(wave)]:
                total += loss
        return total


def draws(model: nn.Module) -> bool:
    """True if ``model`` draws random numbers in training, i.e. has dropout."""
    if any(isinstance(layer, nn.Dropout) and layer.p > 0 for layer in model.modules()):
        return True
    config: Any = getattr(model, "config", None)
    options = cast(Mapping[str, object], config.to_dict()) if config is not None else {}
    return any(isinstance(value, float) and value > 0 for name, value in options.items() if "drop" in name)
