"""Steps of any optimizer over a sharded model: each parameter is moved whole, by one of the processes.

An optimizer's step on a tensor may depend on all of it: a length, a factorisation, even the bits of a sum. So every
parameter has an owner, which keeps it whole in fp32 during a local update, together with the optimizer's state. For a
step the owner receives the gradient, moves the parameter as a single process would, and sends all processes their rows.
The parameters are distributed so that the processes own about equally many elements: gradient, weights and state of an
N-th of the model each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ferret_core.distributed.process_group import require
from ferret_core.distributed.sharded_tensor import gathered, spread
from ferret_core.training import optimizers
from ferret_core.training.config import LocalConfig
from ferret_core.training.muon import embeddings


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
        tokens = {id(matrix) for matrix in embeddings(model)}
        apart = [own for position, own in self._own.items() if id(self._parameters[position]) in tokens]
        own = list(self._own.values())
        self._optimizer = optimizers.build(config, own, rate, elements=sum(sizes), embeddings=apart) if own else None

    def gather(self) -> float:
        """Moves every gradient to the owner of its parameter, clipped if configured; returns the L2 norm of the whole
        gradient before clipping."""
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
