"""The format's layout against a second implementation: one element at a time, in plain Python integers and floats."""

from __future__ import annotations

import math
import struct

import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.signs import sign_bits

SEED = 0x9E3779B97F4A7C15
CPU = torch.device("cpu")


def scalar_philox(c0: int, c1: int, c2: int, c3: int, seed: int) -> list[int]:
    k0, k1 = seed % 2**32, seed // 2**32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 // 2**32 ^ c1 ^ k0, p1 % 2**32, p0 // 2**32 ^ c3 ^ k1, p0 % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [c0, c1, c2, c3]


def scalar_sign(i: int, block: int, seed: int) -> int:
    q, e = i // 4096, i % 4096
    word = scalar_philox(32 * q + e % 32, 0, block + 3 * 2**24, 1, seed)[e // 1024]
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


@pytest.mark.parametrize(("start", "stop"), [(0, 4096), (0, 1), (4000, 12_500), (8191, 8193), (1_000_000, 1_000_100)])
def test_signs(start: int, stop: int) -> None:
    bits = sign_bits(SEED, 77, start, stop, CPU)
    signs = torch.ones(stop - start).view(torch.int32) ^ bits
    assert signs.view(torch.float32).tolist() == [scalar_sign(i, 77, SEED) for i in range(start, stop)]


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


def test_reconstruction_subtracts_the_signed_coordinate_once_per_term() -> None:
    d, K = 3000, 20
    block = Block(1, "w", d)
    weights = torch.randn(d, generator=torch.Generator().manual_seed(0))
    coefficients = torch.randn(2, K, generator=torch.Generator().manual_seed(1)) * 1e-3
    expected = [
        fp32(
            fp32(w - scalar_sign(i, 1, 8) * c[scalar_bucket(i, d, K, 1, 8)])
            - scalar_sign(i, 1, 9) * c2[scalar_bucket(i, d, K, 1, 9)]
        )
        for c, c2 in [coefficients.tolist()]
        for i, w in enumerate(weights.tolist())
    ]
    basis("G").apply_(weights, block, [(8, coefficients[0]), (9, coefficients[1])])
    assert weights.tolist() == expected


def test_truncated_normals_add_up_one_column_after_the_other() -> None:
    d, K = 90, 7
    weights = torch.randn(d, generator=torch.Generator().manual_seed(0))
    coefficients = torch.randn(K, generator=torch.Generator().manual_seed(1))
    expected: list[float] = []
    for i, w in enumerate(weights.tolist()):
        total = 0.0
        for k, c in enumerate(coefficients.tolist()):
            total = fp32(total + fp32(c * scalar_normal(i, k, d, 4, SEED)))
        expected.append(fp32(w - total))
    basis("T").apply_(weights, Block(4, "w", d), [(SEED, coefficients)])
    assert weights.tolist() == expected
