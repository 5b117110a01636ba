"""What every basis family must do; a new file in ``ferret_core/projection/bases`` is tested here by being there.

The toy of the interface's docstring is tested along, so that the docstring stays true.
"""

from __future__ import annotations

import importlib
import inspect
import math
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ferret_core import discovery
from ferret_core.projection.bases import base, basis, letters
from ferret_core.projection.bases.base import Basis
from ferret_core.projection.blocks import Block
from tests.refusals import refused

D = 2000
BLOCK = Block(3, "w", D)
SEED = 2**64 - 3
HUGE = 2**33 + 5


def toy() -> Basis:
    _, _, code = (inspect.getdoc(base) or "").partition("held whole::\n")
    names: dict[str, Any] = {"math": math, "np": np, "torch": torch, "Moments": base.Moments}
    exec(textwrap.dedent(code), names)
    return names["Basis"]()


FAMILIES = [*map(basis, letters()), toy()]


def families(without: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    chosen = [family for family in FAMILIES if family.letter not in without]
    return pytest.mark.parametrize("family", chosen, ids=lambda family: family.letter)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def vector(size: int, seed: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def project(family: Basis, delta: Tensor, block: Block, K: int, *, start: int = 0, seed: int = SEED) -> Tensor:
    gamma = torch.zeros(K)
    family.project_into(gamma, delta, block, start, seed)
    return gamma


def entries(family: Basis, block: Block, K: int, *, seed: int = SEED) -> Tensor:
    return family.entries(torch.arange(block.size), torch.arange(K), block, K, seed)


def count(family: Basis, d: int, K: int) -> int:
    """K, or the only one there is: the identity has as many coordinates as elements."""
    return d if family.letter == "I" else K


# Beside the usual case: one coordinate, one per element, and blocks smaller than any tile.
@families()
@pytest.mark.parametrize(("d", "K"), [(D, 30), (D, 1), (400, 400), (5, 3), (2, 1), (1, 1)])
def test_both_directions_multiply_by_the_same_matrix(family: Basis, d: int, K: int) -> None:
    """V·c, and γ_k = g_k·⟨v_k, Δ⟩ with factors g_k > 0 that no Δ changes."""
    block, K = Block(3, "w", d), count(family, d, K)
    V = entries(family, block, K).double()
    c = vector(K, 3)
    assert torch.allclose(family.reconstruct(c, d, block, 0, SEED).double(), V @ c.double(), atol=1e-4, rtol=1e-4)
    first, other = vector(d, 1), vector(d, 2)
    gamma, gamma_other = (project(family, delta, block, K).double() for delta in (first, other))
    product, product_other = (V.T @ delta.double() for delta in (first, other))
    assert bool((gamma * product > 0).all())
    # Wrong factors would leave a difference as large as the products themselves.
    size = float((gamma.abs() * product_other.abs()).max())
    assert torch.allclose(gamma * product_other, gamma_other * product, atol=1e-5 * size, rtol=1e-4)


@families()
def test_reconstruction_is_unbiased(family: Basis) -> None:
    block, delta = Block(0, "w", 64), vector(64, 4)
    K = count(family, 64, 32)
    gammas = [(seed, project(family, delta, block, K, seed=seed)) for seed in range(300)]
    mean = torch.stack([family.reconstruct(gamma, 64, block, 0, seed) for seed, gamma in gammas]).mean(0)
    assert float((mean - delta).norm() / delta.norm()) < 0.15


@families()
def test_moments_are_those_of_the_entries(family: Basis) -> None:
    K = count(family, D, 40)
    V = torch.cat([entries(family, BLOCK, K, seed=seed) for seed in range(1 if K == D else 12)]).double()
    drawn = V[V != 0]
    rho, kappa = family.moments(D)
    if family.letter != "I":
        assert float(drawn.mean()) == pytest.approx(0, abs=4 * (rho / len(drawn)) ** 0.5)
    assert float((drawn**2).mean()) == pytest.approx(rho, rel=0.02)
    assert float((drawn**4).mean()) == pytest.approx(kappa * rho**2, rel=0.03)


@families()
def test_an_entry_does_not_depend_on_what_else_is_asked(family: Basis) -> None:
    K = count(family, D, 7)
    V = entries(family, BLOCK, K)
    rows, columns = torch.tensor([1999, 0, 3, 3]), torch.tensor([6, 2, K - 1])
    assert torch.equal(family.entries(rows, columns, BLOCK, K, SEED), V[rows][:, columns])


@families(without=("I",))
def test_seed_and_block_id_matter_and_the_name_does_not(family: Basis) -> None:
    V = entries(family, BLOCK, 5)
    assert torch.equal(entries(family, Block(3, "another", D), 5), V)
    assert not torch.equal(entries(family, Block(4, "w", D), 5), V)
    assert not torch.equal(entries(family, BLOCK, 5, seed=SEED - 1), V)
    assert not torch.equal(entries(family, BLOCK, 5, seed=SEED - 2**40), V)


# A block whose last chunk of 4096 is short, and stretches that end within a tile, at its end and beyond it.
@families()
@pytest.mark.parametrize(
    ("start", "length"), [(0, 1), (0, 4096), (0, 5000), (4096, 8192), (8192, 5330), (12288, 777), (12288, 1234)]
)
def test_a_stretch_is_a_slice_of_the_block(family: Basis, start: int, length: int) -> None:
    block = Block(1, "w", 3 * 4096 + 1234)
    K = count(family, block.size, 50)
    c, delta = vector(K, 1), vector(block.size, 2)
    whole = family.reconstruct(c, block.size, block, 0, SEED)
    assert torch.equal(family.reconstruct(c, length, block, start, SEED), whole[start : start + length])
    alone = torch.zeros_like(delta)
    alone[start : start + length] = delta[start : start + length]
    gamma = project(family, delta[start : start + length], block, K, start=start)
    assert torch.allclose(gamma, project(family, alone, block, K), rtol=1e-4, atol=1e-5)


@families()
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_size_any_number_of_coordinates_any_stretch(family: Basis, data: st.DataObject) -> None:
    d = data.draw(st.one_of(st.integers(1, 64), st.integers(1, 9000)), "d")
    K = count(family, d, data.draw(st.integers(1, min(d, 40)), "K"))
    start = 4096 * data.draw(st.integers(0, (d - 1) // 4096), "tile")
    length = data.draw(st.integers(1, d - start), "length")
    block = Block(data.draw(st.integers(0, 2**24 - 1), "block"), "w", d)
    c, delta = vector(K, 1), vector(length, 2)
    V = family.entries(torch.arange(start, start + length), torch.arange(K), block, K, SEED).double()
    update = family.reconstruct(c, length, block, start, SEED)
    assert torch.allclose(update.double(), V @ c.double(), atol=1e-5, rtol=1e-4)
    gamma = project(family, delta, block, K, start=start).double()
    products = V.T @ delta.double()
    assert bool((gamma * products >= -1e-5).all())
    assert torch.equal(gamma != 0, V.any(0))


@families()
def test_more_coordinates_than_a_tile_has_elements(family: Basis) -> None:
    block = Block(1, "w", 4111)
    K = count(family, block.size, 4099)
    c, rows = vector(K, 1), torch.arange(4096, 4111)
    V = family.entries(rows, torch.arange(K), block, K, SEED).double()
    assert torch.allclose(family.reconstruct(c, 15, block, 4096, SEED).double(), V @ c.double(), atol=1e-4)
    gamma, delta = project(family, vector(15, 2), block, K, start=4096).double(), vector(15, 2).double()
    assert bool((gamma * (V.T @ delta) >= -1e-5).all())
    assert torch.equal(gamma != 0, V.any(0))


# The toy holds its columns whole, and the identity would need as many coordinates.
@families(without=("toy", "I"))
@pytest.mark.parametrize("start", [2**32, 2**32 + 3 * 4096, HUGE - 5])
def test_a_block_may_have_more_than_2_to_the_32_elements(family: Basis, start: int) -> None:
    block, K, length = Block(9, "w", HUGE), 1024, min(300, HUGE - start)
    c, delta = vector(K, 1), vector(length, 2)
    V = family.entries(torch.arange(start, start + length), torch.arange(K), block, K, SEED).double()
    update = family.reconstruct(c, length, block, start, SEED).double()
    scale = family.moments(HUGE).rho ** 0.5
    assert torch.allclose(update / scale, V @ c.double() / scale, rtol=1e-4, atol=1e-4)
    gamma = project(family, delta, block, K, start=start)
    assert torch.equal(gamma != 0, V.any(0))


@families()
def test_coordinates_are_added_to_what_is_there_and_no_update_adds_none(family: Basis) -> None:
    K, delta = count(family, D, 9), vector(D, 1)
    gamma = torch.ones(K)
    family.project_into(gamma, torch.zeros(D), BLOCK, 0, SEED)
    assert torch.equal(gamma, torch.ones(K))
    family.project_into(gamma, delta, BLOCK, 0, SEED)
    assert torch.allclose(gamma, 1 + project(family, delta, BLOCK, K), atol=1e-4)


@families()
def test_arguments_are_left_alone(family: Basis) -> None:
    K = count(family, D, 9)
    delta, c = vector(D, 1), vector(K, 3)
    project(family, delta, BLOCK, K)
    family.reconstruct(c, D, BLOCK, 0, SEED)
    assert torch.equal(delta, vector(D, 1))
    assert torch.equal(c, vector(K, 3))


@families()
def test_threads_do_not_change_the_bytes(family: Basis, request: pytest.FixtureRequest) -> None:
    block = Block(0, "w", 50_000 if family.letter != "toy" else D)
    K = count(family, block.size, 3)
    delta, c = vector(block.size, 1), vector(K, 2)
    alone = project(family, delta, block, K), family.reconstruct(c, block.size, block, 0, SEED)
    request.getfixturevalue("two_threads")
    assert torch.equal(project(family, delta, block, K), alone[0])
    assert torch.equal(family.reconstruct(c, block.size, block, 0, SEED), alone[1])


def test_every_file_is_a_documented_family_with_a_letter_of_its_own() -> None:
    package = "ferret_core.projection.bases"
    modules = [importlib.import_module(f"{package}.{name}") for name in discovery.names(package)]
    assert sorted(module.Basis.letter for module in modules) == letters()
    assert all((inspect.getdoc(module) or "").startswith(f"{module.Basis.letter}, ") for module in modules)


def test_an_unknown_letter_is_refused_with_the_known_ones() -> None:
    with refused("spec.invalid", "basis = 'Z'", "G, H, I, R, T"):
        basis("Z")
