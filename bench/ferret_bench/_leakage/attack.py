"""Two tests on an update rebuilt from a contribution or a sum, with the model and public texts alone.

A candidate text x scores the cosine of the rebuilt update and w,

    w_l = √d_l / ‖ḡ_l‖ · (g_l(x) − ḡ_l)

with g(x) the gradient of its loss, ḡ the mean gradient of the public texts, and l the parameters. A rebuilt update is
the true one plus noise of the projection, whose part along w has 1/√d of its length: the number of coordinates decides,
not the share of the weights.

A token t scores −⟨Δ_t, ĥ⟩: the row of the last layer for t moves towards the hidden states before t. ĥ is the mean
hidden state before a label of the public texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ferret_core.datasets.tokenization.client_data import IGNORED, Batch, ClientData, Encoded
from ferret_core.models.parameters import trainable
from ferret_core.training.loss import response_loss

DIRECTIONS = 128 << 20
"""Bytes of candidates' directions in memory."""


class Gradient(NamedTuple):
    """Gradient of a text's mean loss per response token, fp32 (d,) in canonical order, and that loss."""

    vector: Tensor
    loss: float


class Knowledge(NamedTuple):
    """The attacker's view of the public texts: ``mean`` fp32 (d,) is ḡ, ``scale`` fp32 (d,) is √d_l / ‖ḡ_l‖,
    ``label`` fp32 (hidden,) is ĥ, ``frequency`` int64 (vocabulary,) the number of texts with the token in the answer.
    """

    mean: Tensor
    scale: Tensor
    label: Tensor
    frequency: Tensor

    def direction(self, gradient: Tensor) -> Tensor:
        """Returns w, of length 1."""
        direction = (gradient - self.mean).mul_(self.scale)
        return direction.div_(torch.linalg.vector_norm(direction).clamp_min(torch.finfo(torch.float32).tiny))


def flat(tensors: Mapping[str, Tensor]) -> Tensor:
    """Returns the tensors as one fp32 vector (d,), in their order."""
    return torch.cat([tensor.detach().reshape(-1).float() for tensor in tensors.values()])


def gradient(model: nn.Module, text: Encoded) -> Gradient:
    parameters = trainable(model)
    loss = response_loss(model, _batch(text))
    mean = loss.nll / loss.tokens
    found = torch.autograd.grad(mean, list(parameters.values()))
    return Gradient(flat(dict(zip(parameters, found, strict=True))), mean.item())


@torch.no_grad()
def mean_loss(model: nn.Module, text: Encoded) -> float:
    """Returns the mean loss of the text's response tokens, in nats."""
    loss = response_loss(model, _batch(text))
    return loss.nll.item() / loss.tokens


def learn(model: nn.Module, public: Sequence[Encoded]) -> Knowledge:
    """Returns all that the attack needs to know of the public texts."""
    mean = torch.zeros(sum(parameter.numel() for parameter in trainable(model).values()))
    states = list[Tensor]()
    for text in public:
        mean += gradient(model, text).vector / len(public)
        states.append(_hidden(model, text))
    return Knowledge(mean, _scale(model, mean), torch.cat(states).mean(dim=0), occurrences(public, vocabulary(model)))


def text_scores(
    model: nn.Module, known: Knowledge, updates: Tensor, candidates: Sequence[Encoded]
) -> tuple[Tensor, Tensor]:
    """Returns ⟨update, w⟩ for ``updates`` fp32 (n, d), fp32 (n, candidates), and the losses of the candidates.

    The length of an update is the same for all candidates, so it needs no division.
    """
    scores, losses = list[Tensor](), list[float]()
    together = max(1, DIRECTIONS // known.mean.nbytes)
    for begin in range(0, len(candidates), together):
        found = [gradient(model, text) for text in candidates[begin : begin + together]]
        scores.append(updates @ torch.stack([known.direction(each.vector) for each in found]).T)
        losses += [each.loss for each in found]
    return torch.cat(scores, dim=1), torch.tensor(losses)


def token_scores(model: nn.Module, known: Knowledge, update: Tensor) -> Tensor:
    """Returns the score of every token for an update fp32 (d,), fp32 (vocabulary,)."""
    head, begin = _head(model), 0
    for parameter in trainable(model).values():
        if parameter is head:
            return -update[begin : begin + head.numel()].view(head.shape) @ known.label
        begin += parameter.numel()
    raise AssertionError("the last layer is trained")


def vocabulary(model: nn.Module) -> int:
    return _head(model).shape[0]


def occurrences(texts: Iterable[Encoded], vocabulary: int) -> Tensor:
    """Returns the number of texts with each token in their answer, int64 (vocabulary,)."""
    found = torch.zeros(vocabulary, dtype=torch.int64)
    for text in texts:
        found[sorted(set(text.response))] += 1
    return found


def _scale(model: nn.Module, mean: Tensor) -> Tensor:
    sizes = [parameter.numel() for parameter in trainable(model).values()]
    norms = [torch.linalg.vector_norm(part).item() for part in mean.split(sizes)]
    parts = [math.sqrt(size) / norm if norm else 0.0 for size, norm in zip(sizes, norms, strict=True)]
    return torch.repeat_interleave(torch.tensor(parts), torch.tensor(sizes))


@torch.no_grad()
def _hidden(model: Any, text: Encoded) -> Tensor:
    """Returns the last layer's inputs before each token of the answer, fp32 (tokens, hidden)."""
    seen, batch = list[Tensor](), _batch(text)
    handle = model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, use_cache=False)
    finally:
        handle.remove()
    return seen[0][:, :-1][batch.labels[:, 1:] != IGNORED].float()


def _head(model: Any) -> Tensor:
    return model.get_output_embeddings().weight


def _batch(text: Encoded) -> Batch:
    return next(ClientData([text], 0).ordered(1))
