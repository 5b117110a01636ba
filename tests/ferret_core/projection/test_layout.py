"""The format's layout against a second implementation: one element at a time, in plain Python integers and floats."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from torch import Tensor

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels._base import ReconstructionTerm
from ferret_core.projection.kernels.reference import Kernel
from ferret_core.projection.philox import sign_bits, sign_bits_at

SEED = 0x9E3779B97F4A7C15
CPU = torch.device("cpu")


def normal(size: int, seed: int = 0) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def scalar_philox(c0: int, c1: int, c2: int, c3: int, seed: int) -> list[int]:
    k0, k1 = seed % 2**32, seed // 2**32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 // 2**32 ^ c1 ^ k0, p1 % 2**32, p0 // 2**32 ^ c3 ^ k1, p0 % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [c0, c1, c2, c3]


def scalar_sign(i: int, block: int, seed: int, row: int = 0, tag: int = 3) -> int:
    q, e = i // 4096, i % 4096
    word = scalar_philox(32 * q + e % 32, row, block + tag * 2**24, 1, seed)[e // 1024]
    return -1 if f"{word:032b}"[e // 32 % 32] == "1" else 1


def scalar_bucket(i: int, d: int, K: int, block: int, seed: int) -> int:
    size = 1024
    while size > 1 and size * 8 * K > d:
        size //= 2
    j = i // size
    t = j // K
    rotation = scalar_philox(t // 4, 0, block + 4 * 2**24, 1, seed)[t % 4] * K // 2**32
    return (j + rotation) % K


def fp32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def scalar_normal(i: int, k: int, d: int, block: int, seed: int) -> float:
    x = scalar_philox(i // 4, k, block + 1 * 2**24, 1, seed)[i % 4]
    u = (2 * (x // 256) + 1 - 2**24) / 2**24
    a = fp32(1 / (6 * d))
    inner = fp32(1 - fp32(fp32(1 - fp32(u * u)) * a))
    return fp32(fp32(u * fp32(1 / math.sqrt(d))) * inner)


def scalar_chunks(d: int) -> list[tuple[int, int]]:
    """(first element, length) of every chunk, one after the other."""
    chunks, begin = [], 0
    while begin < d:
        length = 4096
        while begin + length > d:
            length //= 2
        chunks.append((begin, length))
        begin += length
    return chunks


def scalar_place(k: int, d: int, K: int, block: int, seed: int) -> int:
    first, end = k * d // K, (k + 1) * d // K
    x = scalar_philox(k // 4, 0, block + 5 * 2**24, 1, seed)[k % 4]
    return first + x * (end - first) // 2**32


def scalar_transform(x: list[float]) -> list[float]:
    """H_m·x/√m: additions in the order of the format, each rounded to fp32."""
    x, h = list(x), 1
    while h < len(x):
        for i in range(len(x)):
            if i // h % 2 == 0:
                x[i], x[i + h] = fp32(x[i] + x[i + h]), fp32(x[i] - x[i + h])
        h *= 2
    return [fp32(y * fp32(1 / math.sqrt(len(x)))) for y in x]


@pytest.mark.parametrize(("start", "stop"), [(0, 4096), (0, 1), (4000, 12_500), (8191, 8193), (1_000_000, 1_000_100)])
def test_signs(start: int, stop: int) -> None:
    bits = sign_bits(SEED, 77, start, stop, CPU)
    signs = torch.ones(stop - start).view(torch.int32) ^ bits
    expected = [scalar_sign(i, 77, SEED) for i in range(start, stop)]
    assert signs.view(torch.float32).tolist() == expected
    at = sign_bits_at(SEED, 77, torch.arange(start, stop))
    assert torch.where(at == 0, 1, -1).tolist() == expected


# Granules of 1024 (the cap), 256, 16, 2 and 1; with whole and broken last stripes and granules; K = 1 and K = d.
@pytest.mark.parametrize(
    ("d", "K"), [(50_000, 1), (20_001, 9), (10_000, 78), (4096, 256), (777, 100), (50, 50), (1, 1)]
)
def test_signed_buckets(d: int, K: int) -> None:
    rows = torch.arange(0, d, max(1, d // 700))
    block = Block(5, "w", d)
    expected = torch.zeros(len(rows), K)
    for row, i in enumerate(rows.tolist()):
        expected[row, scalar_bucket(i, d, K, 5, SEED)] = scalar_sign(i, 5, SEED)
    assert torch.equal(basis("G").entries(rows, torch.arange(K), block, K, SEED), expected)


@pytest.mark.parametrize("d", [1, 6, 1000, 12_345_678])
def test_truncated_normal(d: int) -> None:
    rows = torch.tensor(sorted(i for i in {0, 1, 3, d // 2, d - 2, d - 1} if 0 <= i < d))
    columns = torch.tensor([0, 2, 70_000])
    drawn = basis("T").entries(rows, columns, Block(2**24 - 1, "w", d), 70_001, SEED)
    expected = [[scalar_normal(i, k, d, 2**24 - 1, SEED) for k in columns.tolist()] for i in rows.tolist()]
    assert drawn.tolist() == expected


@pytest.mark.parametrize("d", [1, 1500, 5000, 2**33 + 5])
def test_dense_signs(d: int) -> None:
    rows = torch.tensor(sorted({0, d // 3, d // 2, d - 1}))
    columns = torch.tensor([0, 2, 70_000, 2**32 - 1])
    drawn = basis("R").entries(rows, columns, Block(7, "w", d), 2**32, SEED)
    expected = [[scalar_sign(i, 7, SEED, row=k, tag=2) for k in columns.tolist()] for i in rows.tolist()]
    assert drawn.tolist() == expected


# One chunk; several with a rest of five; a rest alone, of one element too; K = 1 and K = d; strata of two sizes.
@pytest.mark.parametrize(
    ("d", "K"),
    [(4096, 3), (8192 + 349, 100), (777, 100), (50, 50), (13, 5), (3, 1), (1, 1)],
)
@pytest.mark.heavy
def test_hadamard(d: int, K: int) -> None:
    rows = torch.arange(0, d, max(1, d // 500))
    expected = torch.zeros(len(rows), K)
    for k in range(K):
        p = scalar_place(k, d, K, 5, SEED)
        (begin, m), *_ = [chunk for chunk in scalar_chunks(d) if chunk[0] <= p < sum(chunk)]
        for row, i in enumerate(rows.tolist()):
            if begin <= i < begin + m:
                walsh = (-1) ** ((i - begin) & (p - begin)).bit_count()
                expected[row, k] = scalar_sign(i, 5, SEED) * walsh / math.sqrt(m)
    assert torch.equal(basis("H").entries(rows, torch.arange(K), Block(5, "w", d), K, SEED), expected)


@pytest.mark.parametrize("K", [5, 2**20 + 3, 2**32 - 7])
def test_hadamard_in_a_block_beyond_32_bits(K: int) -> None:
    d = 2**33 + 5
    block, k = Block(5, "w", d), K - K // 3
    p = scalar_place(k, d, K, 5, SEED)
    begin = p - p % 4096
    rows = torch.tensor([begin, begin + 1234, begin + 4095, begin - 1, begin + 4096])
    walsh = [(-1) ** ((i - begin) & (p - begin)).bit_count() * scalar_sign(i, 5, SEED) for i in rows[:3].tolist()]
    drawn = basis("H").entries(rows, torch.tensor([k]), block, K, SEED)
    assert drawn[:, 0].tolist() == [sign / 64 for sign in walsh] + [0, 0]


def test_signed_coordinates_subtract_once_per_term() -> None:
    d, K = 3000, 20
    block = Block(1, "w", d)
    weights = normal(d)
    c, c2 = normal(K, 1) * 1e-3, normal(K, 2) * 1e-3
    expected = [
        fp32(
            fp32(w - scalar_sign(i, 1, 8) * c.tolist()[scalar_bucket(i, d, K, 1, 8)])
            - scalar_sign(i, 1, 9) * c2.tolist()[scalar_bucket(i, d, K, 1, 9)]
        )
        for i, w in enumerate(weights.tolist())
    ]
    Kernel(basis("G")).apply_(weights, block, [ReconstructionTerm(8, c), ReconstructionTerm(9, c2)])
    assert weights.tolist() == expected


def test_truncated_normals_add_up_one_column_after_the_other() -> None:
    d, K = 90, 7
    coefficients = normal(K)
    expected: list[float] = []
    for i in range(d):
        total = 0.0
        for k, c in enumerate(coefficients.tolist()):
            total = fp32(total + fp32(c * scalar_normal(i, k, d, 4, SEED)))
        expected.append(total)
    assert basis("T").reconstruct(coefficients, d, Block(4, "w", d), 0, SEED).tolist() == expected


def test_dense_signs_add_up_one_column_after_the_other() -> None:
    d, K = 90, 7
    coefficients = normal(K)
    expected: list[float] = []
    for i in range(d):
        total = 0.0
        for k, c in enumerate(coefficients.tolist()):
            total = fp32(total + scalar_sign(i, 4, SEED, row=k, tag=2) * c)
        expected.append(total)
    assert basis("R").reconstruct(coefficients, d, Block(4, "w", d), 0, SEED).tolist() == expected


@pytest.mark.parametrize(("d", "K"), [(4096 + 2048 + 5, 3000), (77, 40)])
def test_hadamard_butterflies_add_in_the_order_of_their_distance(d: int, K: int) -> None:
    coefficients, placed = normal(K), [0.0] * d
    for k, c in enumerate(coefficients.tolist()):
        placed[scalar_place(k, d, K, 4, SEED)] = c
    expected: list[float] = []
    for begin, m in scalar_chunks(d):
        expected += scalar_transform(placed[begin : begin + m])
    update = basis("H").reconstruct(coefficients, d, Block(4, "w", d), 0, SEED)
    assert update.tolist() == [scalar_sign(i, 4, SEED) * y for i, y in enumerate(expected)]


def test_the_identity_is_the_coordinates() -> None:
    coefficients = normal(90)
    update = basis("I").reconstruct(coefficients, 90, Block(4, "w", 90), 0, SEED)
    assert torch.equal(update, coefficients)
