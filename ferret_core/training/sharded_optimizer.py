"""Steps of any optimizer over a model in shards: each parameter is moved whole, by one of the processes.

What an optimizer does to a tensor may depend on all of it: a length, a factorisation, even the bits of a sum. So every
parameter has an owner, which keeps it whole in fp32 for the length of a local update, with the optimizer's state. For a
step the owner is sent the gradient, moves the parameter as a process alone would, and sends everybody their rows. The
parameters are given out so that the processes own about as many elements: gradient, weights and state of an N-th of the
model each.
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


class WholeSteps:
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
        """Moves every gradient to the owner of its parameter, clipped if that is asked for; returns the L2 norm of all
        of it before that."""
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
        """Moves the parameters by the gradients that were gathered, which are then gone."""
        if self._optimizer is not None:
            self._optimizer.step()
            self._optimizer.zero_grad()
        for position, parameter in enumerate(self._parameters):
            own = self._own.get(position)
            spread(None if own is None else own.detach().view(-1), parameter, self._owners[position])

    def _norm(self, there: Sequence[int]) -> Tensor:
        """As :func:`torch.nn.utils.clip_grad_norm_` takes it: the norm of the parameters' norms, in their order.

        ``there`` are those that have gradients.
        """
        team = require()
        norms = torch.zeros(len(self._parameters), device=team.device)
        for position, own in self._own.items():
            if own.grad is not None:
                norms[position] = _length(own.grad)
        # One process knows each, the others have 0: no sum is rounded.
        return torch.linalg.vector_norm(team.summed(norms)[list(there)])

    def _shorten(self, norm: Tensor) -> None:
        """What torch multiplies gradients by, ones among it, so that no bit differs."""
        assert self._clip is not None
        factor = torch.clamp(self._clip / (norm + 1e-6), max=1.0)
        for own in self._own.values():
            if own.grad is not None:
                own.grad.mul_(factor)


def owners(sizes: Sequence[int], count: int) -> list[int]:
    """The process, of ``count``, that owns each of the parameters with these numbers of elements: the largest first, to
    the process with the fewest elements so far."""
    found, load = [0] * len(sizes), [0] * count
    for position in sorted(range(len(sizes)), key=lambda position: -sizes[position]):
        owner = load.index(min(load))
        found[position] = owner
        load[owner] += sizes[position]
    return found


def _length(gradient: Tensor) -> Tensor:
    """The L2 norm, by the kernel that torch clips by on this device."""
    if gradient.device.type == "cuda":
        return torch._foreach_norm([gradient], 2.0)[0]
    return torch.linalg.vector_norm(gradient, 2.0)
