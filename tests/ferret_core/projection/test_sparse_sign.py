from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ferret_core.projection import rice_code
from ferret_core.projection.blocks import Block, cut
from ferret_core.projection.quantize import dequantize, quantize
from ferret_core.projection.sparse_sign import LEAST, Sketch, bounds, chosen, energy, sent_of, sketch
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import decode, encode
from tests.refusals import refused

steady = settings(deadline=None)
floats = st.one_of(st.just(0.0), st.floats(-1, 1, width=32), st.floats(-(2.0**100), 2.0**100, width=32))
blocks_of_floats = st.lists(st.lists(floats, min_size=1, max_size=40), min_size=1, max_size=5)


def normal(count: int, seed: int = 1) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def longest(n: int, K: int) -> int:
    """The maximum bits of any n of K positions."""
    r = rice_code.remainder_bits(n, K)
    return n * (r + 2) + (K - n >> r)


def sketched(budget: int, basis: str, blocks: list[Block]) -> Sketch | FerretError:
    try:
        return sketch(budget, basis, blocks, 20)
    except FerretError as error:
        return error


@steady
@given(blocks_of_floats, st.integers(0, 60))
def test_no_byte_too_many_and_the_largest_of_every_block(values: list[list[float]], more: int) -> None:
    gammas = [np.array(block, np.float32) for block in values]
    K = sum(map(len, gammas))
    room = -(-longest(len(gammas), K) // 8) + more
    places = chosen(gammas, room)
    assert rice_code.length(places, K) <= 8 * room
    counts = np.histogram(places, np.cumsum([0, *map(len, gammas)]))[0]
    for gamma, count, start in zip(gammas, counts, np.cumsum([0, *map(len, gammas)]), strict=False):
        sent = places[(start <= places) & (places < start + len(gamma))] - start
        left = np.delete(np.abs(gamma), sent)
        assert count >= 1
        assert not len(left) or left.max() <= np.abs(gamma[sent]).min()


def test_a_row_of_normal_numbers_fills_its_bytes() -> None:
    gammas = [normal(300_000, 1).numpy(), 5 * normal(100_000, 2).numpy()]
    places = chosen(gammas, 6000)
    assert 0 <= 8 * 6000 - rice_code.length(places, 400_000) < 40
    counts = [int((places < 300_000).sum()), int((places >= 300_000).sum())]
    assert counts[0] == pytest.approx(3 * counts[1], abs=3), "blocks send the same share, whatever their scale"


def test_too_little_room_is_refused_by_name() -> None:
    with refused(
        "spec.invalid", "one coordinate of each block takes more than the 1 bytes", field="algorithm.bytes_per_round"
    ):
        chosen([normal(100).numpy()] * 3, 1)


@steady
@given(blocks_of_floats, st.sets(st.integers(0, 4)), st.integers(0, 50))
def test_what_is_sent_passes_the_wire(values: list[list[float]], whole: set[int], more: int) -> None:
    gammas = [torch.tensor(block) for block in values]
    whole = {position for position in whole if position < len(gammas)}
    K = [len(gamma) for gamma in gammas]
    free = [count for position, count in enumerate(K) if position not in whole]
    room = -(-longest(len(free), sum(free)) // 8) + more if free else 0
    received, _ = decode(encode(quantize(gammas, "sparse_sign", 3, whole, room), {}))
    got = dequantize(received, "sparse_sign", K, whole)
    assert [len(gamma) for gamma in got] == K
    for position, (gamma, there) in enumerate(zip(gammas, got, strict=True)):
        sent = there != 0
        if position not in whole:
            assert bool((there[sent] < 0).eq(gamma[sent] < 0).all())
            assert len(set(there[sent].abs().tolist())) <= 1


def test_the_scale_keeps_the_product_and_the_energy_is_that_of_theory() -> None:
    for room in (300, 3000, 30_000):
        gammas = [normal(200_000, room), 0.01 * normal(50_000, room + 1)]
        arrays = quantize(gammas, "sparse_sign", room=room)
        for gamma, got in zip(gammas, dequantize(arrays, "sparse_sign", [200_000, 50_000]), strict=True):
            assert float(got.double() @ gamma.double()) == pytest.approx(float(gamma.double() @ gamma.double()), 1e-3)
            sent = int((got != 0).sum())
            relative = float(got.square().sum() / gamma.square().sum())
            assert relative == pytest.approx(energy(len(gamma), sent), rel=0.2 if sent < 50 else 0.04)


def test_a_scale_beyond_fp32_is_not_sent() -> None:
    with refused("contribution.non_finite", "block 0"):
        quantize([torch.full((1000,), 2.0**126)], "sparse_sign", room=20)


def test_a_block_is_written_out_only_when_it_is_looked_at() -> None:
    arrays = quantize([normal(1 << 20)], "sparse_sign", room=500)
    tracemalloc.start()
    kept = [dequantize(arrays, "sparse_sign", [1 << 20], (), 2.0) for _ in range(50)]
    held, most = tracemalloc.get_traced_memory()
    for gammas in kept:
        assert gammas[0].shape == (1 << 20,)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 2**20
    assert most < 3 * 4 * 2**20, "one row of fp32 at a time, and its product"
    assert torch.equal(kept[0][0], 2 * dequantize(arrays, "sparse_sign", [1 << 20])[0])


@pytest.mark.parametrize(("layers", "width"), [(16, 2048), (32, 4096), (40, 5120)])
@pytest.mark.parametrize("basis", ["G", "H"])
def test_the_default_budget_holds_for_models_of_billions(basis: str, layers: int, width: int) -> None:
    """7 tensors and 2 norms a layer, embeddings and head: LLaMA 1B, 7B, 13B."""
    sizes = {f"{i}.{j}": width**2 if j < 4 else 8 * width**2 // 3 for i in range(layers) for j in range(7)}
    sizes |= {f"{i}.norm{j}": width for i in range(layers) for j in range(2)} | {"embed": 32_000 * width}
    blocks = cut(sizes)
    found = sketch(8192, basis, blocks, 10 * len(blocks) + 8)
    assert found.sent >= LEAST * len(blocks)
    assert sum(bounds(basis, blocks)) > 20 * found.K
    assert found.sent == pytest.approx(0.7 / 2**9 * found.K, rel=0.01)


@steady
@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=8), st.integers(1, 20_000), st.sampled_from(["G", "H"]))
def test_a_sketch_fits_its_bytes_and_its_blocks_or_is_refused(sizes: list[int], budget: int, basis: str) -> None:
    blocks = cut({str(position): size for position, size in enumerate(sizes)}, "tensor", 64)
    found = sketched(budget, basis, blocks)
    if isinstance(found, FerretError):
        assert (found.code, found.errors[0].field) == ("spec.invalid", "algorithm.bytes_per_round")
        assert "smallest possible" in str(found) or "lower it" in str(found)
        return
    apart = sum(block.size for block in blocks if block.whole)
    assert apart <= found.K <= sum(bounds(basis, blocks))
    assert found.sent * 6 <= 8 * max(budget - 20, 0)


def test_how_many_of_each_block_are_sent() -> None:
    assert sent_of([1000, 10, 64, 0], 101, whole=[2]) == [100, 1, 64, 0]


def test_every_error_names_what_would_do() -> None:
    blocks = cut({"a": 40_000, "b": 40_000})
    for basis, budget in (("G", 9000), ("H", 9000), ("G", 12)):
        with pytest.raises(FerretError) as caught:
            sketch(budget, basis, blocks, 10)
        (value,) = re.findall(r"fills at most (\d+) |possible is (\d+) ", str(caught.value))
        fitting = int("".join(value))
        assert sketch(fitting, basis, blocks, 10).K > 0
        with pytest.raises(FerretError):
            sketch(fitting + (-1 if budget == 12 else 2), basis, blocks, 10)
