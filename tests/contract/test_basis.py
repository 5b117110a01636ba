"""What every basis family must do; a new file in ``ferret_core/projection/bases`` is tested here by being there.

The toy of the interface's docstring is tested along, so that the docstring stays true.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ferret_core import discovery
from ferret_core.projection.bases import _base, basis, letters
from ferret_core.projection.bases._base import Basis
from ferret_core.projection.blocks import Block
from ferret_core.protocol.errors import FerretError

D = 2000
BLOCK = Block(3, "w", D)
SEED = 2**64 - 3


def toy() -> Basis:
    _, _, code = (inspect.getdoc(_base) or "").partition("held whole::\n")
    names: dict[str, Any] = {"np": np, "torch": torch, "Moments": _base.Moments}
    exec(textwrap.dedent(code), names)
    return names["Basis"]()


@pytest.fixture(params=[*letters(), "toy"])
def family(request: pytest.FixtureRequest) -> Basis:
    return toy() if request.param == "toy" else basis(request.param)


def vector(size: int, seed: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def reconstruct(family: Basis, block: Block, seed: int, coefficients: Tensor) -> Tensor:
    weights = torch.zeros(block.size)
    family.apply_(weights, block, [(seed, -coefficients)])
    return weights


def entries(family: Basis, block: Block, K: int, seed: int = SEED) -> Tensor:
    return family.entries(torch.arange(block.size), torch.arange(K), block, K, seed)


# Beside the usual case: one coordinate, one per element, and blocks smaller than any tile.
@pytest.mark.parametrize(("d", "K"), [(D, 30), (D, 1), (400, 400), (5, 3), (1, 1)])
def test_project_and_apply_multiply_by_the_same_matrix(family: Basis, d: int, K: int) -> None:
    block = Block(3, "w", d)
    V = entries(family, block, K).double()
    before, after, c = vector(d, 1), vector(d, 2), vector(K, 3)
    delta = (before - after).double()
    assert torch.allclose(reconstruct(family, block, SEED, c).double(), V @ c.double(), atol=1e-4, rtol=1e-4)
    gamma, products = family.project(before, after, block, K, SEED).double(), V.T @ delta
    scale = (gamma @ products) / (products @ products)
    assert float(scale) > 0
    assert torch.allclose(gamma, scale * products, atol=float(1e-4 * gamma.abs().max()))
    # Adjointness, ⟨Vc, Δ⟩ = ⟨c, VᵀΔ⟩, without the entries.
    left = reconstruct(family, block, SEED, c).double() @ delta
    assert float(left) == pytest.approx(float(c.double() @ gamma / scale), rel=1e-3, abs=1e-3)


def test_reconstruction_is_unbiased(family: Basis) -> None:
    block, delta = Block(0, "w", 64), vector(64, 4)
    gammas = [(seed, family.project(delta, torch.zeros(64), block, 32, seed)) for seed in range(300)]
    mean = torch.stack([reconstruct(family, block, seed, gamma) for seed, gamma in gammas]).mean(0)
    assert float((mean - delta).norm() / delta.norm()) < 0.15


def test_moments_are_those_of_the_entries(family: Basis) -> None:
    V = entries(family, BLOCK, 40).double()
    drawn = V[V != 0]
    rho, kappa = family.moments(D)
    assert float(drawn.mean()) == pytest.approx(0, abs=4 * (rho / len(drawn)) ** 0.5)
    assert float((drawn**2).mean()) == pytest.approx(rho, rel=0.02)
    assert float((drawn**4).mean()) == pytest.approx(kappa * rho**2, rel=0.03)


def test_an_entry_does_not_depend_on_what_else_is_asked(family: Basis) -> None:
    V = entries(family, BLOCK, 7)
    rows, columns = torch.tensor([1999, 0, 3, 3]), torch.tensor([6, 2])
    assert torch.equal(family.entries(rows, columns, BLOCK, 7, SEED), V[rows][:, columns])


def test_seed_and_block_id_matter_and_the_name_does_not(family: Basis) -> None:
    V = entries(family, BLOCK, 5)
    assert torch.equal(entries(family, Block(3, "another", D), 5), V)
    assert not torch.equal(entries(family, Block(4, "w", D), 5), V)
    assert not torch.equal(entries(family, BLOCK, 5, seed=SEED - 1), V)
    assert not torch.equal(entries(family, BLOCK, 5, seed=SEED - 2**40), V)


def test_no_coordinates_no_change(family: Basis) -> None:
    gamma = family.project(vector(D, 1), vector(D, 2), BLOCK, 0, SEED)
    assert gamma.shape == (0,)
    assert gamma.dtype == torch.float32
    weights = vector(D, 1)
    family.apply_(weights, BLOCK, [(SEED, gamma)])
    assert torch.equal(weights, vector(D, 1))


def test_no_update_has_coordinates_zero(family: Basis) -> None:
    assert not family.project(vector(D, 1), vector(D, 1), BLOCK, 9, SEED).any()


def test_arguments_are_left_alone(family: Basis) -> None:
    before, after, c = vector(D, 1), vector(D, 2), vector(9, 3)
    family.project(before, after, BLOCK, 9, SEED)
    family.apply_(vector(D, 4), BLOCK, [(SEED, c)])
    assert torch.equal(before, vector(D, 1))
    assert torch.equal(after, vector(D, 2))
    assert torch.equal(c, vector(9, 3))


def test_terms_of_any_length_apply_one_after_the_other(family: Basis) -> None:
    terms = [(1, vector(9, 5)), (2, vector(0, 6)), (1, vector(14, 7))]
    together, apart = vector(D, 1), vector(D, 1)
    family.apply_(together, BLOCK, terms)
    for term in terms:
        family.apply_(apart, BLOCK, [term])
    assert torch.equal(together, apart)


def test_every_file_is_a_documented_family_with_a_letter_of_its_own() -> None:
    package = "ferret_core.projection.bases"
    modules = [importlib.import_module(f"{package}.{name}") for name in discovery.names(package)]
    assert sorted(module.Basis.letter for module in modules) == letters()
    assert all((inspect.getdoc(module) or "").startswith(f"{module.Basis.letter}, ") for module in modules)


def test_an_unknown_letter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FerretError, match=r"basis = 'Z'.*G, T") as caught:
        basis("Z")
    assert caught.value.code == "spec.invalid"
