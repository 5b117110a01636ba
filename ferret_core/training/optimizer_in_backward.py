"""Steps in the backward pass, and steps on pure bf16 weights, which need it.

bf16 steps are computed in fp32, one parameter at a time, and rounded stochastically:

    w₃₂ ← w;  w₃₂ ← w₃₂ − η · step of its gradient;  w ← one of w₃₂'s two neighbours in bf16, on average w₃₂

bf16 has 8 significant bits: with rounding to nearest, a step below 1/512 of a weight would be lost. With stochastic
rounding it counts on average: Zamirai et al., "Revisiting BFloat16 Training", 2020, https://arxiv.org/abs/2010.06192.
A participant sends the sum of its steps w − w₃₂, each before it is rounded. The rounding of a weight is often much
larger than its step, so the difference of the weights would be mostly rounding.
The bits come from torch's own generator: a participant's draws need not be reproducible elsewhere, and this costs a
sixth of the replicas' rounding (:mod:`ferret_core.projection.stochastic_rounding`).

Stepping in the backward pass: a parameter moves as soon as its gradient is complete, and the gradient is freed.

Lv et al., "Full Parameter Fine-tuning for Large Language Models with Limited Resources", ACL 2024 (LOMO),
https://arxiv.org/abs/2306.09782. Only one parameter's gradient is held at a time, so that training by plain gradient
descent takes the weights, the activations, and little else.

    in the backward pass, from the last layer to the first:
        as soon as ∂ℓ/∂w is complete:   w ← w − η ∂ℓ/∂w;   ∂ℓ/∂w is freed

No later computation needs w: a gradient is complete only when every use of w has been differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ferret_core.protocol.errors import FerretError

LOW_BITS = 16
"""Low bits of an fp32 number that bf16 does not have."""
Moved = Callable[[nn.Parameter, Tensor], None]
"""Receives a bf16 parameter and, in fp32, the values that it is about to be rounded from."""


class StochasticRounding:
    """Steps of ``build``'s optimizer, which must be stateless, on one bf16 parameter.

    A step holds three fp32 tensors of the parameter's size, and one of random bits. ``moved`` sees each step before it
    is rounded.
    """

    def __init__(
        self,
        parameter: nn.Parameter,
        build: Callable[[Sequence[nn.Parameter]], Optimizer],
        bits: torch.Generator,
        moved: Moved | None = None,
    ) -> None:
        """Raises ``model.invalid`` for weights that a library keeps in another type inside a bf16 model."""
        if parameter.dtype != torch.bfloat16:
            message = f"it keeps weights in {parameter.dtype}, which pure_bfloat16 does not train: choose bfloat16"
            raise FerretError.of_field("model.invalid", "algorithm.local.precision", "pure_bfloat16", message)
        self._parameter = parameter
        self._build = build
        self._bits = bits
        self._moved = moved

    @torch.no_grad()
    def step(self) -> None:
        parameter = self._parameter
        assert parameter.grad is not None
        whole = nn.Parameter(parameter.float())
        whole.grad = parameter.grad.float()
        self._build([whole]).step()
        whole.grad = None
        if self._moved is not None:
            self._moved(parameter, whole.detach())
        parameter.copy_(rounded(whole.detach(), self._bits))


def rounded(values: Tensor, bits: torch.Generator) -> Tensor:
    """Rounds fp32 ``values`` in place to bf16 numbers, with the same mean. Infinity and NaN are kept."""
    odd = ~values.isfinite()
    words = values.view(torch.int32)
    chances = torch.randint(1 << LOW_BITS, words.shape, dtype=torch.int32, device=words.device, generator=bits)
    words += chances.masked_fill_(odd, 0)
    words &= -1 << LOW_BITS
    return values


@contextmanager
def stepping(optimizers: Mapping[nn.Parameter, Optimizer | StochasticRounding]) -> Generator[list[torch.Tensor]]:
    """Makes every backward pass in the ``with`` block step each parameter by its own optimizer and free its gradient.

    Yields a list that fills with the norms of the gradients; the reader clears it.
    """
    norms: list[torch.Tensor] = []

    def step(parameter: torch.Tensor) -> None:
        assert isinstance(parameter, nn.Parameter)
        assert parameter.grad is not None
        norms.append(torch.linalg.vector_norm(parameter.grad, dtype=torch.float32))
        optimizers[parameter].step()
        parameter.grad = None

    handles = [parameter.register_post_accumulate_grad_hook(step) for parameter in optimizers]
    try:
        yield norms
    finally:
        for handle in handles:
            handle.remove()
