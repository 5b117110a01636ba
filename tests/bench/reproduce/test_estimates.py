from __future__ import annotations

import pytest
import torch

from ferret_bench.reproduce.estimates import SINES, SQUARES, Function, directions, point, scalars, zeroth_order
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


def is_forward(g: torch.Tensor, V: torch.Tensor, epsilon: float) -> bool:
    """Whether g is what theorem 3 defines, for Σ xᵢ² at ``x``: vᵀ∇F + (ε/2)·vᵀ∇²F v, with ∇²F = 2, and nothing else."""
    return torch.allclose(g, V @ SQUARES.gradient(X) + epsilon * V.square().sum(1), rtol=0, atol=1e-9)


X = point(D, 8).double()


@pytest.mark.parametrize("epsilon", [10.0, 0.1, 0.001])
def test_theorem_3_is_about_forward_differences_and_these_are(epsilon: float):
    """The bound β·ε/2 alone would also hold for a difference to the other side, or to both."""
    V = drawn().double()
    g = scalars(SQUARES, X, V, epsilon)
    backward = (SQUARES.value(X) - SQUARES.value(X - epsilon * V)) / epsilon
    central = (g + backward) / 2
    assert is_forward(g, V, epsilon)
    assert not any(is_forward(wrong, V, epsilon) for wrong in (1.1 * g, 0.9 * g, backward, central, -g))


@pytest.mark.parametrize("epsilon", [10.0, 1.0])
def test_theorem_3_the_estimate_is_off_by_what_the_curvature_gives(epsilon: float):
    """‖V·g/K − V·Vᵀ∇F/K‖ ≤ β·ε/2, and for Σ xᵢ² it is ε·‖Σ ‖v‖²·v‖/K, on the side of x + ε·v."""
    V, x = drawn(), X.float()
    off = zeroth_order(SQUARES, x, K, epsilon, 3) - SQUARES.gradient(x) @ V.T @ V / K
    expected = epsilon * V.square().sum(1) @ V / K
    assert float((off - expected).norm()) < 0.02 * float(expected.norm())
    assert float(off.norm()) <= SQUARES.smoothness * epsilon / 2


@pytest.mark.parametrize("F", [SQUARES, SINES])
def test_gradients_are_those_of_the_functions(F: Function):
    x = point(D, 6).requires_grad_()
    (gradient,) = torch.autograd.grad(F.value(x), x)
    assert torch.allclose(F.gradient(x.detach()), gradient)


def test_the_estimate_is_the_gradient_times_rho_in_the_mean():
    x = point(50, 7)
    mean = torch.stack([zeroth_order(SQUARES, x, 50, 0.01, seed) for seed in range(100)]).mean(0)
    expected = basis("T").moments(50).rho * SQUARES.gradient(x)
    assert float((mean - expected).norm() / expected.norm()) < 0.2
