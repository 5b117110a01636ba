from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from ferret_core.algorithms import fed_sb
from ferret_core.client.local_round import contribute
from ferret_core.models.parameters import shapes, trainable
from tests.ferret_core.replicas import SpecFactory, clients_of, move, replica_of, weights_of
from tests.refusals import refused


def low_rank(rows: int, columns: int) -> torch.Tensor:
    """Singular values 8, 4, 2 and 1, and noise far below."""
    draw = torch.Generator().manual_seed(1)
    U, _ = torch.linalg.qr(torch.randn(rows, 4, generator=draw))
    V, _ = torch.linalg.qr(torch.randn(columns, 4, generator=draw))
    return U @ torch.diag(torch.tensor([8.0, 4, 2, 1])) @ V.T + 1e-3 * torch.randn(rows, columns, generator=draw)


def test_the_bases_are_the_leading_singular_directions() -> None:
    weight = low_rank(60, 44)
    U, V = map(torch.from_numpy, fed_sb._singular_basis(weight, 3, np.random.default_rng(0)))
    torch.testing.assert_close(U.T @ U, torch.eye(3), rtol=0, atol=1e-6)
    torch.testing.assert_close(V.T @ V, torch.eye(3), rtol=0, atol=1e-6)
    core = U.T @ weight @ V
    assert float(torch.linalg.vector_norm(core)) == pytest.approx((64 + 16 + 4) ** 0.5, rel=1e-3)


def test_the_bases_are_those_of_four_subspace_iterations() -> None:
    """Of a matrix whose singular values fall slowly, where each iteration still turns them."""
    weight = np.random.default_rng(3).normal(size=(60, 44))
    U, V = fed_sb._singular_basis(torch.from_numpy(weight), 3, np.random.default_rng(0))
    right = np.random.default_rng(0).integers(0, 2, (44, 3)) * 2.0 - 1
    for _ in range(4):
        left, _ = np.linalg.qr(weight @ right)
        right, _ = np.linalg.qr(weight.T @ left)
    np.testing.assert_allclose(U @ U.T, left @ left.T, rtol=0, atol=1e-3)
    np.testing.assert_allclose(V @ V.T, right @ right.T, rtol=0, atol=1e-3)


def test_the_bases_do_not_depend_on_the_order_of_sums() -> None:
    """Turned about, the rows are added in another order: V stays, and U turns with them."""
    weight = low_rank(60, 44)
    U, V = fed_sb._singular_basis(weight, 3, np.random.default_rng(0))
    columns = torch.randperm(60, generator=torch.Generator().manual_seed(2))
    other = (weight.double().numpy(), weight[columns].double().numpy())
    whole = [np.rint(numbers * fed_sb.WHOLE / np.abs(numbers).max()) for numbers in other]
    left = np.rint(U * fed_sb.WHOLE)
    np.testing.assert_array_equal(whole[0].T @ left, whole[1].T @ left[columns.numpy()])
    assert V.dtype == np.float32


def test_a_core_beside_a_layer_is_the_product_added_to_its_matrix() -> None:
    """For a linear layer, outputs × inputs, and for GPT-2's, inputs × outputs."""
    for transposed, layer in [(True, torch.nn.Linear(5, 7)), (False, torch.nn.Linear(7, 5))]:
        U, V = torch.randn(7, 2), torch.randn(5, 2)
        core = torch.nn.Parameter(torch.randn(2, 2))
        values, product = torch.randn(3, layer.in_features), U @ core @ V.T
        expected = layer(values) + values @ (product.T if transposed else product)
        added = fed_sb._adding(core, U, V, transposed)(layer, (values,), layer(values))
        torch.testing.assert_close(added, expected)


@pytest.mark.parametrize(("kind", "each"), [("float16", 2 * 9 + 2), ("sign", 9 / 8 + 2)])
def test_a_matrix_takes_the_square_of_the_rank_and_a_scale(toy_spec: SpecFactory, kind: str, each: float) -> None:
    options = {"rank": 3, "coordinates": kind}
    replica = replica_of(toy_spec("fed_sb", options=options))
    size = replica.experiment.config.size(replica.shapes)
    assert 14 * each <= size.arrays <= 14 * each + 6, "seven matrices in each of two layers, and an exponent"


def test_a_round_moves_the_tuned_matrices_within_their_bases_and_nothing_else(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fed_sb", options={"rank": 2, "targets": ["q_proj", "down_proj"]}))
    before = weights_of(replica.model)
    move(replica, contribute(replica, clients_of(replica)[0]).sealed.contribution)
    for name, weight in trainable(replica.model).items():
        moved = (before[name] - weight.detach()).double()
        if name.endswith(("q_proj.weight", "down_proj.weight")):
            assert int(torch.linalg.matrix_rank(moved, rtol=1e-3)) == 2
        else:
            assert not moved.any()


def test_a_budget_takes_the_largest_rank_that_fits(toy_spec: SpecFactory) -> None:
    """14 cores of 7 × 7 in fp16, their scales and an exponent, are 1,404 bytes; of 8 × 8 they would be 1,824."""
    replica = replica_of(toy_spec("fed_sb", options={"bytes_per_round": 1_800}))
    assert replica.experiment.config.size(replica.shapes).arrays == 1_404


def test_a_target_that_there_is_not_is_refused_with_those_there_are(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "q_proj", field="algorithm.targets"):
        replica_of(toy_spec("fed_sb", options={"targets": ["query"]}))


def test_gpt2s_layers_can_be_tuned() -> None:
    model: Any = GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16, n_positions=8, bos_token_id=0, eos_token_id=1)
    ).eval()
    config = fed_sb.Config(rank=2, targets=["c_attn"])
    algorithm = fed_sb.Algorithm(config)
    state = algorithm.init_state(model, 0)
    (matrix,) = config.matrices(shapes(model))
    ids = torch.tensor([[1, 2, 3]])
    core = np.array([0.5, -1, 2, 0.25], np.float32)
    with fed_sb._cores(model, [matrix], state) as cores, torch.no_grad():
        cores[0].copy_(torch.from_numpy(-core).view(2, 2))
        expected = model(ids).logits
    algorithm.apply_update(model, state, {"update": core, "rounding": np.zeros(1, np.uint64)}, 1.0)
    torch.testing.assert_close(model(ids).logits, expected, rtol=1e-4, atol=1e-5)
