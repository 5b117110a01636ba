from __future__ import annotations

import pytest
import torch

from ferret_bench.paper.functions import SINES, SQUARES, Function, point
from ferret_bench.paper.zeroth_order import directions, estimate, scalars
from ferret_core.projection.bases import basis

D, K = 500, 40


def drawn(seed: int = 3) -> torch.Tensor:
    return torch.cat(list(directions(D, range(K), seed)))


def test_directions_are_truncated_normal_and_each_has_a_seed_of_its_own():
    V = drawn()
    assert V.shape == (K, D)
    assert float(V.abs().max()) <= D**-0.5
    assert float(V.square().mean()) == pytest.approx(basis("T").moments(D).rho, rel=0.05)
    assert torch.equal(next(directions(D, range(7, 8), 3))[0], V[7])
    assert not torch.equal(drawn(4), V)


def test_the_derivative_of_a_linear_function_is_exact():
    slope = point(D, 1).double()
    linear = Function("⟨a, x⟩", lambda x: x @ slope, lambda x: slope, smoothness=0)
    V = drawn().double()
    assert torch.allclose(scalars(linear, point(D, 2).double(), V, 0.1), V @ slope)


@pytest.mark.parametrize("epsilon", [10.0, 0.1, 0.001])
@pytest.mark.parametrize("F", [SQUARES, SINES])
def test_each_scalar_is_off_by_no_more_than_smoothness_allows(F: Function, epsilon: float):
    x, V = point(D, 5).double(), drawn().double()
    off = scalars(F, x, V, epsilon) - V @ F.gradient(x)
    assert float(off.abs().max()) <= F.smoothness * epsilon / 2


@pytest.mark.parametrize("F", [SQUARES, SINES])
def test_gradients_are_those_of_the_functions(F: Function):
    x = point(D, 6).requires_grad_()
    (gradient,) = torch.autograd.grad(F.value(x), x)
    assert torch.allclose(F.gradient(x.detach()), gradient)


def test_the_estimate_is_the_gradient_times_rho_in_the_mean():
    x = point(50, 7)
    mean = torch.stack([estimate(SQUARES, x, 50, 0.01, seed) for seed in range(100)]).mean(0)
    expected = basis("T").moments(50).rho * SQUARES.gradient(x)
    assert float((mean - expected).norm() / expected.norm()) < 0.2
