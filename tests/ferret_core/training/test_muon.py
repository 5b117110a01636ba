"""Muon moves the matrices of hidden layers, AdamW everything else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn, optim

from ferret_core.models.parameters import trainable
from ferret_core.training import optimizers
from ferret_core.training.config import LocalConfig
from ferret_core.training.optimizers import Muon, embeddings


def with_gradients(model: nn.Module) -> dict[str, nn.Parameter]:
    draw = torch.Generator().manual_seed(1)
    for parameter in trainable(model).values():
        parameter.grad = torch.randn(parameter.shape, generator=draw)
    return trainable(model)


def test_hidden_matrices_turn_and_all_else_moves_as_by_adamw(tiny_model: Any) -> None:
    parameters = with_gradients(tiny_model)
    before = {name: weight.detach().clone() for name, weight in parameters.items()}
    config, tokens = LocalConfig(optimizer="muon", learning_rate=0.01), {id(found) for found in embeddings(tiny_model)}
    optimizers.build(config, [*parameters.values()], 0.01, embeddings=embeddings(tiny_model)).step()
    for name, weight in parameters.items():
        step = (before[name] - weight.detach()) / 0.01
        if weight.ndim == 2 and id(weight) not in tokens:
            assert float(step.square().mean().sqrt()) == pytest.approx(0.2, rel=0.35)
            values = torch.linalg.svdvals(step)
            assert float(values.max() / values.median()) < 2, "most singular values are alike"
        else:
            assert step.abs().max() <= 1.001
            torch.testing.assert_close(step, torch.sign(weight.grad), rtol=0, atol=2e-3)


def test_the_last_layer_is_adamws_where_it_is_not_the_embedding() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.hidden, self.head = nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9)

        def get_output_embeddings(self) -> nn.Linear:
            return self.head

    model = Model()
    assert [id(weight) for weight in embeddings(model)] == [id(model.tokens.weight), id(model.head.weight)]


def test_decay_and_momentum_are_those_asked_for() -> None:
    weights = [nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4))]
    plain = nn.Parameter(torch.ones(4, 4))
    together = Muon(weights, lr=0.1, weight_decay=0.5, momentum=0.8)
    alone = optim.Muon([plain], lr=0.1, weight_decay=0.5, momentum=0.8, adjust_lr_fn="match_rms_adamw")
    for seed in range(3):
        gradient = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed))
        weights[0].grad, weights[1].grad, plain.grad = gradient, torch.zeros(4), gradient
        together.step()
        alone.step()
    torch.testing.assert_close(weights[0], plain)
    torch.testing.assert_close(weights[1].detach(), torch.full((4,), 0.95**3))
