"""What every kernel must do: compute what the reference does, for every family; weights to the bit of those on the CPU.

A machine without a GPU runs the GPU's kernels in Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch
import triton.language as tl
from _pytest.mark import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

from ferret_core.projection.bases import basis, letters
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels import base, named
from ferret_core.projection.kernels.base import Batched, ProjectionInput, ReconstructionTerm, UpdateInput

KERNELS = ["cpu", "gpu"]
TILE = 4096
HUGE = 2**33 + 77
SEED = 2**64 - 3
ROUNDING = 2**63 + 11
DENSE = "TR"  # d·K entries: few columns, or the interpreter takes minutes
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SIZES = [1, 5, TILE - 1, TILE + 1, 10_007]


def slow_unless(usual: bool, *values: object) -> ParameterSet:
    """A case that runs in every tier where it is a usual one, and otherwise in ``make test-all``."""
    return pytest.param(*values, marks=[] if usual else [pytest.mark.slow])


IN_FULL = [slow_unless(dtype == torch.float32, dtype) for dtype in DTYPES]
"""A grid that the half types share with fp32."""
SPECIAL = [0.0, -0.0, 1.0, -65504.0, 65504.0, 7e4, 1e-8, -6e-8, 3e-5, 1e-40, 3.3e38, float("inf"), -float("inf")]


class Case(NamedTuple):
    """A kernel of one family, where its vectors lie, and the reference to compare it with."""

    letter: str
    kernel: base.Kernel
    reference: base.Kernel
    device: torch.device

    def terms(self, d: int, counts: Sequence[int]) -> list[ReconstructionTerm]:
        """Terms with K coefficients for every K of ``counts``; of the identity, with d or none."""
        numbers = [d if K and self.letter == "I" else K for K in counts]
        return [ReconstructionTerm(SEED - 2**60 * i, vector(K, 100 + i).to(self.device)) for i, K in enumerate(numbers)]

    def counts(self, d: int) -> list[int]:
        """Numbers of coordinates to try in a block of d elements, unequal ones for one round."""
        return sorted({0, 1, *((min(d, 5),) if self.letter in DENSE else (d // 300, d // 7, d))})


def case_of(name: str, letter: str) -> Case:
    on_gpu = name == "gpu" and torch.cuda.is_available()
    if name == "gpu" and not on_gpu and not isinstance(tl.philox, InterpretedFunction):
        pytest.fail("TRITON_INTERPRET must be 1 before triton is imported: tests/conftest.py sees to it")
    family, device = basis(letter), torch.device("cuda" if on_gpu else "cpu")
    return Case(letter, named(name, family), named("reference", family), device)


# The processes of pytest-xdist would each compile the same: a family's tests stay together.
TOGETHER = [pytest.param(letter, marks=pytest.mark.xdist_group(f"kernel {letter}")) for letter in letters()]


@pytest.fixture(params=TOGETHER)
def letter(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=KERNELS)
def case(letter: str, request: pytest.FixtureRequest) -> Case:
    return case_of(request.param, letter)


def vector(size: int, seed: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def bits(weights: Tensor) -> Tensor:
    """The memory as integers, every NaN as the same."""
    return torch.where(weights.isnan(), torch.nan, weights).view({4: torch.int32, 2: torch.int16}[weights.itemsize])


def assert_applied_alike(
    case: Case, before: Tensor, block: Block, terms: Sequence[ReconstructionTerm], start: int = 0
) -> None:
    found, expected = before.to(case.device, copy=True), before.clone()
    case.kernel.apply_(found, block, terms, start=start, rounding=ROUNDING)
    on_cpu = [term._replace(coefficients=term.coefficients.cpu()) for term in terms]
    case.reference.apply_(expected, block, on_cpu, start=start, rounding=ROUNDING)
    assert torch.equal(bits(found.cpu()), bits(expected))


@pytest.mark.parametrize(
    ("size", "dtype"),
    [slow_unless(dtype == torch.float32 or size == TILE + 1, size, dtype) for size in SIZES for dtype in DTYPES],
    ids=str,
)
def test_weights_are_the_references_to_the_bit(case: Case, dtype: torch.dtype, size: int) -> None:
    terms = case.terms(size, case.counts(size))
    assert_applied_alike(case, vector(size, 1).to(dtype), Block(9, "w", size), terms)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize(
    ("start", "count"),
    [slow_unless(start == 4095, start, count) for start, count in [(3, 4093), (4095, 2), (4097, 5910)]],
)
def test_a_piece_may_start_anywhere_in_its_block(case: Case, dtype: torch.dtype, start: int, count: int) -> None:
    terms = case.terms(10_007, [3, 700] if case.letter not in DENSE else [3])
    assert_applied_alike(case, vector(count, 2).to(dtype), Block(9, "w", 10_007), terms, start)


@pytest.mark.parametrize(
    ("start", "dtype"),
    [(2**31 - 9, torch.float32), (2**32 - 5, torch.bfloat16), (2**33 - 4000, torch.float16)],
    ids=str,
)
def test_elements_beyond_32_bits(case: Case, dtype: torch.dtype, start: int) -> None:
    if case.letter == "I":  # would need as many coefficients as the block has elements
        return
    terms = case.terms(HUGE, [7] if case.letter in DENSE else [9, 1 << 19])
    assert_applied_alike(case, vector(HUGE - 2**33 + 4000, 3).to(dtype), Block(2**24 - 1, "w", HUGE), terms, start)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_at_the_edge_of_a_type(case: Case, dtype: torch.dtype) -> None:
    weights = torch.tensor([*SPECIAL, float("nan")]).to(dtype).repeat(3)
    terms = case.terms(len(weights), case.counts(len(weights)))
    small = [term._replace(coefficients=term.coefficients * 2.0**-26) for term in terms]
    assert_applied_alike(case, weights, Block(0, "w", len(weights)), small)


def test_without_terms_or_coefficients_weights_keep_their_bits(case: Case) -> None:
    weights = torch.tensor(SPECIAL).to(torch.float16).to(case.device)
    kept, block = weights.clone(), Block(0, "w", len(weights))
    case.kernel.apply_(weights, block, [])
    case.kernel.apply_(weights, block, case.terms(len(weights), [0, 0]))
    case.kernel.apply_(weights[:0], block, case.terms(len(weights), [4]), start=5)
    assert torch.equal(bits(weights), bits(kept))


@pytest.mark.parametrize(
    ("start", "count"),
    [slow_unless(start > 0, start, count) for start, count in [(0, 10_007), (3, 4094), (5000, 5005)]],
)
def test_coordinates_are_the_references_but_for_the_order_of_sums(case: Case, start: int, count: int) -> None:
    block, K = (
        Block(4, "w", 10_007),
        [10_007] if case.letter == "I" else [1, 17, *([] if case.letter in DENSE else [3000])],
    )
    for dtype in (torch.float32, torch.bfloat16):
        before, after = vector(count, 4).to(case.device), vector(count, 5).to(dtype).to(case.device)
        for k in K:
            found = case.kernel.project(before, after, block, k, SEED, start=start)
            expected = case.reference.project(before, after, block, k, SEED, start=start)
            assert found.dtype == torch.float32
            assert found.shape == (k,)
            assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.mark.parametrize("dtype", IN_FULL, ids=str)
def test_coordinates_of_whole_tiles(case: Case, dtype: torch.dtype) -> None:
    """Which a GPU reads 16 bytes at a time, and so adds up in another order than other vectors."""
    d = 4 * TILE
    block, before, after = Block(4, "w", d), vector(d, 4).to(dtype), vector(d, 5).to(dtype)
    for K in [d] if case.letter == "I" else [2] if case.letter in DENSE else [2, 16, 64, 256, 1000]:
        found = case.kernel.project(before.to(case.device), after.to(case.device), block, K, SEED)
        expected = case.reference.project(before, after, block, K, SEED)
        assert (found.cpu() - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.mark.parametrize("dtype", IN_FULL, ids=str)
def test_many_blocks_at_once_are_as_one_after_the_other(case: Case, dtype: torch.dtype) -> None:
    if not isinstance(case.kernel, Batched):
        return
    sizes = [(20_000, 64), (5, 2), (2 * TILE, 16), (3200, 1024), (2 * TILE + 16, 700)]
    blocks = [Block(number, "w", size) for number, (size, _) in enumerate(sizes)]
    before, after = ([vector(d, n + d).to(dtype).to(case.device) for d, _ in sizes] for n in (0, 1))
    vectors = list(zip(before, after, blocks, sizes, strict=True))
    pairs = [ProjectionInput(begin, end, block, K) for begin, end, block, (_, K) in vectors]
    pairs.append(ProjectionInput(before[0][5000:], after[0][5000:], blocks[0], 64, 5000))
    for gamma, pair in zip(case.kernel.project_all(pairs, SEED), pairs, strict=True):
        alone = case.kernel.project(*pair[:4], SEED, start=pair.start)
        assert torch.equal(gamma, alone)
    terms = [case.terms(size, [K, 3 if size > 5 else 0]) for size, K in sizes]
    moves = [
        UpdateInput(end.clone(), block, of_block) for (_, end, block, _), of_block in zip(vectors, terms, strict=True)
    ]
    case.kernel.apply_all_([*moves, UpdateInput(after[0].clone(), blocks[0], [])], ROUNDING)
    for move, (_, end, block, _) in zip(moves, vectors, strict=True):
        case.kernel.apply_(end, block, move.terms, rounding=ROUNDING)
        assert torch.equal(bits(move.weights), bits(end))


@pytest.mark.parametrize("start", [0, 5000])
def test_coordinates_are_the_same_bits_in_every_run(case: Case, start: int) -> None:
    block, before, after = Block(4, "w", 10_007), vector(5000, 4).to(case.device), vector(5000, 5).to(case.device)
    K = 10_007 if case.letter == "I" else 9
    runs = [case.kernel.project(before, after, block, K, SEED, start=start) for _ in range(2)]
    assert torch.equal(*runs)


def test_coordinates_of_elements_beyond_32_bits(case: Case) -> None:
    if case.letter == "I":
        return
    block, start, K = Block(4, "w", HUGE), 2**33 - 4000, 7 if case.letter in DENSE else 2000
    delta = vector(HUGE - start, 6).to(case.device)
    found = case.kernel.project(delta, torch.zeros_like(delta), block, K, SEED, start=start)
    expected = case.reference.project(delta, torch.zeros_like(delta), block, K, SEED, start=start)
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_nothing_has_no_coordinates(case: Case) -> None:
    nothing = torch.empty(0, device=case.device)
    assert torch.equal(case.kernel.project(nothing, nothing, Block(0, "w", 9), 9, SEED, start=5).cpu(), torch.zeros(9))


@pytest.mark.parametrize("size", [1, 6, TILE + 260])
def test_unit_coefficients_uncover_every_entry(case: Case, size: int) -> None:
    block = Block(8, "w", size)
    K = size if case.letter == "I" or size < 7 else 3
    for k in range(min(K, 4)):
        weights, unit = torch.zeros(size, device=case.device), torch.zeros(K, device=case.device)
        unit[k] = 1
        case.kernel.apply_(weights, block, [ReconstructionTerm(SEED, unit)])
        expected = basis(case.letter).entries(torch.arange(size), torch.tensor([k]), block, K, SEED)
        assert torch.equal(-weights.cpu(), expected[:, 0])


def test_arguments_are_left_alone(case: Case) -> None:
    block = Block(1, "w", 5000)
    before, after = vector(5000, 7).to(case.device), vector(5000, 8).to(case.device)
    terms = case.terms(5000, [3, 5])
    arguments = [before, after, *(term.coefficients for term in terms)]
    copies = [argument.clone() for argument in arguments]
    case.kernel.project(before, after, block, 5000 if case.letter == "I" else 5, SEED)
    case.kernel.apply_(torch.zeros(5000, device=case.device), block, terms)
    assert all(torch.equal(argument, copy) for argument, copy in zip(arguments, copies, strict=True))


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_piece_of_any_block_under_any_terms(name: str, data: st.DataObject) -> None:
    letter = data.draw(st.sampled_from(letters()), "basis")
    case = case_of(name, letter)
    d = data.draw(st.one_of(st.integers(1, 70), st.integers(1, 13_000)), "d")
    start = data.draw(st.integers(0, d - 1), "start")
    count = data.draw(st.integers(0, d - start), "count")
    most = min(d, 5) if letter in DENSE else d
    terms = case.terms(d, data.draw(st.lists(st.integers(0, most), max_size=3), "K"))
    dtype = data.draw(st.sampled_from(DTYPES), "dtype")
    assert_applied_alike(case, vector(count, 9).to(dtype), Block(5, "w", d), terms, start)


def test_the_number_of_threads_changes_no_bit(letter: str) -> None:
    size = 1_300_001
    kernel, block = named("cpu", basis(letter)), Block(6, "w", size)
    K = size if letter == "I" else 3 if letter in DENSE else 20_000
    before, after, coefficients = vector(size, 10), vector(size, 11), vector(K, 12)
    results: list[tuple[Tensor, Tensor]] = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        weights = after.to(torch.bfloat16)
        kernel.apply_(
            weights,
            block,
            [ReconstructionTerm(SEED, coefficients), ReconstructionTerm(5, coefficients)],
            rounding=ROUNDING,
        )
        results.append((kernel.project(before, after, block, K, SEED), bits(weights)))
    torch.set_num_threads(1)
    assert all(torch.equal(item, two) for item, two in zip(*results, strict=True))
