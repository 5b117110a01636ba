from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferret_core.projection.allocation import (
    BYTE_COUNTS,
    FIXED,
    RULES,
    AllocationRule,
    allocate,
    bytes_of,
    counts_of,
    rounded_down,
    split,
)
from ferret_core.projection.blocks import Block, cut
from ferret_core.projection.variance import truncated_normal_moments
from tests.refusals import refused

rules = st.sampled_from(RULES)
norms = st.one_of(st.just(0.0), st.floats(min_value=1e-38, max_value=1e38), st.floats(min_value=0.5, max_value=2))
blocks = st.lists(st.tuples(norms, st.one_of(st.integers(1, 20), st.integers(1, 10**9))), min_size=1, max_size=30)
steepness = st.one_of(st.just(0.0), st.floats(min_value=1e-30, max_value=1e30))
steep_blocks = st.lists(st.tuples(norms, st.integers(1, 10**9), steepness), min_size=1, max_size=30)
budgets = st.one_of(st.integers(1, 100), st.integers(1, 10**8))

steady = settings(deadline=None)  # a busy machine is no failure


@steady
@given(rules, budgets, steep_blocks, st.booleans())
def test_the_budget_is_spent_exactly_and_within_bounds(
    rule: AllocationRule, K: int, model: list[tuple[float, int, float]], steep: bool
) -> None:
    norms, sizes, curvatures = (list(column) for column in zip(*model, strict=True))
    counts = allocate(rule, K, norms, sizes, curvatures if steep else None)
    assert sum(counts) == min(K, sum(sizes))
    assert all(min(1, K // len(model)) <= count <= size for count, size in zip(counts, sizes, strict=True))


@steady
@given(rules, budgets, blocks, st.sampled_from([2.0**-20, 0.25, 2.0, 2.0**20]))
def test_only_the_ratio_of_norms_counts(
    rule: AllocationRule, K: int, model: list[tuple[float, int]], scale: float
) -> None:
    values, sizes = [norm for norm, _ in model], [size for _, size in model]
    if rule == "theorem":
        scale *= scale  # whose square root is exact, too
    assert allocate(rule, K, [norm * scale for norm in values], sizes) == allocate(rule, K, values, sizes)


@steady
@given(rules, budgets, blocks)
def test_blocks_within_their_bounds_share_in_proportion(
    rule: AllocationRule, K: int, model: list[tuple[float, int]]
) -> None:
    values, sizes = [norm for norm, _ in model], [size for _, size in model]
    weights = [weight(rule, norm, size) for norm, size in model]
    counts = allocate(rule, K, values, sizes)
    inner = [i for i, count in enumerate(counts) if 2 <= count <= sizes[i] - 2 and weights[i] > 0]
    if not inner:
        return
    # One λ explains all: each inner count is λ·weight up to rounding.
    low = max((counts[i] - 1.001) / weights[i] for i in inner)
    high = min((counts[i] + 1.001) / weights[i] for i in inner)
    assert low <= high


def weight(rule: AllocationRule, norm: float, size: int) -> float:
    rho = 1 / (3 * size) - 2 / (45 * size**2) + 2 / (945 * size**3)
    return {
        "norm": norm,
        "theorem": math.sqrt(norm / rho),
        "optimal": norm * math.sqrt(size),
        "curvature": norm * math.sqrt(size),
        "uniform": 1.0,
        "fixed": size,
    }[rule]


@pytest.mark.parametrize(
    ("rule", "K", "norms", "sizes", "curvatures", "counts"),
    [
        ("norm", 100, [4, 1], [10_000, 40_000], None, [80, 20]),
        ("uniform", 101, [4, 1], [10_000, 40_000], None, [51, 50]),
        ("theorem", 100, [4, 1], [10_000, 40_000], None, [50, 50]),
        ("optimal", 99, [4, 1], [10_000, 40_000], None, [66, 33]),
        ("fixed", 100, [4, 1], [10_000, 40_000], None, [20, 80]),
        ("curvature", 99, [4, 1], [10_000, 40_000], None, [66, 33]),
        ("curvature", 100, [4, 1], [10_000, 40_000], [1, 256], [20, 80]),
        ("curvature", 31, [5, 1, 1], [100, 100, 100], [0, 1, 4], [1, 10, 20]),  # a flat block takes from no other
        ("curvature", 30, [5, 1], [100, 200], [0, 0], [10, 20]),
        ("norm", 30, [100, 1, 1], [10, 1000, 1000], None, [10, 10, 10]),  # what a full block cannot take
        ("norm", 30, [100, 1, 0], [10, 12, 1000], None, [10, 12, 8]),
        ("norm", 10, [1e9, 1, 0], [100, 100, 100], None, [8, 1, 1]),  # one for each before proportions count
        ("norm", 2, [1, 5, 4], [10, 10, 10], None, [0, 1, 1]),  # fewer than blocks: to the largest
        ("uniform", 5, [1, 1, 1], [10, 10, 10], None, [2, 2, 1]),  # ties go to the earlier
        *((rule, 30, [0, 0], [100, 200], None, [10, 20]) for rule in ("norm", "theorem", "optimal")),
        ("norm", 1000, [0, 3], [5, 7], None, [5, 7]),
    ],
)
def test_each_rule_on_paper(
    rule: AllocationRule,
    K: int,
    norms: list[float],
    sizes: list[int],
    curvatures: list[float] | None,
    counts: list[int],
) -> None:
    assert allocate(rule, K, norms, sizes, curvatures) == counts


def objective(
    rule: AllocationRule,
    norms: Sequence[float],
    sizes: Sequence[int],
    counts: Sequence[int],
    curvatures: Sequence[float] | None = None,
) -> float:
    """What the rule minimises: proposition 2's Σ ‖Δ_l‖/(ρ_l K_l), or the mean squared error Σ d_l‖Δ_l‖²/K_l; with
    curvatures Σ h_l‖Δ_l‖²/K_l, what the noise adds to a quadratic loss."""
    if rule == "theorem":
        terms = (norm / truncated_normal_moments(size)[0] for norm, size in zip(norms, sizes, strict=True))
    else:
        terms = (factor * norm**2 for norm, factor in zip(norms, curvatures or sizes, strict=True))
    return sum(term / count for term, count in zip(terms, counts, strict=True))


def splits(K: int, sizes: Sequence[int]) -> Iterator[list[int]]:
    """All ways to give K coordinates to blocks, at least one to each and no more than it has elements."""
    if len(sizes) == 1:
        yield from ([K],) if 1 <= K <= sizes[0] else ()
        return
    for first in range(1, min(K, sizes[0]) + 1):
        yield from ([first, *rest] for rest in splits(K - first, sizes[1:]))


MINIMISERS: list[AllocationRule] = ["theorem", "optimal"]
SMALL = [([1.0, 3.0, 0.2], [500, 100, 9000]), ([1.0, 1.0, 40.0], [4000, 10, 30]), ([2.0, 0.5, 5.0], [1, 70, 7000])]


@pytest.mark.parametrize(
    ("rule", "curvatures"),
    [
        ("theorem", None),
        ("optimal", None),
        *(("curvature", steep) for steep in ([1.0, 1.0, 1.0], [9.0, 0.01, 400.0], [0.5, 1e4, 2.0])),
    ],
)
@pytest.mark.parametrize(("norms", "sizes"), SMALL)
def test_proposition_2_no_other_split_is_better(
    rule: AllocationRule, curvatures: list[float] | None, norms: list[float], sizes: list[int]
) -> None:
    """Among all some thousand splits of 60 coordinates; whole numbers cost at most two thousandths."""
    least = min(objective(rule, norms, sizes, counts, curvatures) for counts in splits(60, sizes))
    found = objective(rule, norms, sizes, allocate(rule, 60, norms, sizes, curvatures), curvatures)
    assert found <= 1.002 * least


@pytest.mark.parametrize("rule", MINIMISERS)
def test_proposition_2_every_other_rule_is_worse(rule: AllocationRule) -> None:
    norms, sizes = SMALL[0]
    found = {other: objective(rule, norms, sizes, allocate(other, 80, norms, sizes)) for other in RULES}
    alike = {"optimal", "curvature"}  # where no curvature is known, the same
    others = set(RULES) - (alike if rule in alike else {rule})
    assert all(found[other] > 1.01 * found[rule] for other in others)


@steady
@given(
    st.sampled_from(MINIMISERS),
    st.lists(st.tuples(st.floats(0.1, 10), st.integers(50_000, 10**6)), min_size=2, max_size=12),
    st.integers(0, 2**32),
)
def test_proposition_2_whatever_is_moved_from_block_to_block_costs(
    rule: AllocationRule, model: list[tuple[float, int]], seed: int
) -> None:
    """Random moves of up to a fifth of what each block has, the sum kept; 40,000 coordinates, none at its bound."""
    norms, sizes, draws = [norm for norm, _ in model], [size for _, size in model], Random(seed)
    best = allocate(rule, 40_000, norms, sizes)
    for _ in range(20):
        asked = [count * draws.uniform(0.8, 1.2) for count in best]
        moved = [count * 40_000 / sum(asked) for count in asked]
        distance = sum((a - b) ** 2 / b for a, b in zip(moved, best, strict=True)) / 40_000
        gain = 1 - objective(rule, norms, sizes, best) / objective(rule, norms, sizes, moved)
        assert gain > 0.5 * distance - 1e-3


@steady
@given(budgets, steep_blocks, st.sampled_from([2.0**-40, 0.25, 4.0, 2.0**40]))
def test_the_unit_of_the_curvature_does_not_count(K: int, model: list[tuple[float, int, float]], unit: float) -> None:
    values, sizes, steep = (list(column) for column in zip(*model, strict=True))
    assert allocate("curvature", K, values, sizes, [unit * h for h in steep]) == allocate(
        "curvature", K, values, sizes, steep
    )


@pytest.mark.parametrize("K", [0, -4])
def test_no_budget_is_refused(K: int) -> None:
    with refused("spec.invalid", f"K = {K}"):
        allocate("norm", K, [1.0], [10])


@pytest.mark.parametrize("norm", [math.nan, math.inf])
def test_an_update_that_is_no_number_is_refused_by_block(norm: float) -> None:
    with refused("training.non_finite", "norms[1]"):
        allocate("norm", 10, [1.0, norm], [10, 10])
    with refused("training.non_finite", "weight"):
        split("fixed", 10, [1.0, norm], cut({"bias": 8, "weight": 64}))


@steady
@given(st.sampled_from(FIXED), budgets, blocks, st.randoms(use_true_random=False))
def test_a_fixed_allocation_says_nothing_of_the_update(
    rule: AllocationRule, K: int, model: list[tuple[float, int]], random: Random
) -> None:
    values, sizes = [norm for norm, _ in model], [size for _, size in model]
    others = random.sample(values, len(values))
    assert allocate(rule, K, values, sizes) == allocate(rule, K, others, sizes)


@given(st.sampled_from(RULES), st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 60), st.data())
def test_blocks_sent_whole_come_first(
    rule: AllocationRule, lengths: list[int], whole_up_to: int, data: st.DataObject
) -> None:
    parts = cut({str(i): size for i, size in enumerate(lengths)}, "tensor", whole_up_to)
    whole = sum(part.size for part in parts if part.whole)
    rest = [part.size for part in parts if not part.whole]
    K = data.draw(st.integers(whole + bool(rest), sum(lengths) + 5))
    counts = split(rule, K, [1.0] * len(parts), parts)
    assert all(counts[part.id] == part.size for part in parts if part.whole)
    shared = [counts[part.id] for part in parts if not part.whole]
    assert shared == (allocate(rule, K - whole, [1.0] * len(rest), rest) if rest else [])
    steep = data.draw(st.lists(steepness, min_size=len(parts), max_size=len(parts)))
    counts = split(rule, K, [1.0] * len(parts), parts, steep)
    own = [steep[part.id] for part in parts if not part.whole]
    shared = [counts[part.id] for part in parts if not part.whole]
    assert shared == (allocate(rule, K - whole, [1.0] * len(rest), rest, own) if rest else [])


def test_a_K_that_the_whole_blocks_use_up_is_refused() -> None:
    parts = cut({"norm": 8, "weight": 64}, "tensor", whole_up_to=8)
    assert split("norm", 9, [1.0, 1.0], parts) == [8, 1]
    with refused("spec.invalid", "K = 8", "at least 9"):
        split("norm", 8, [1.0, 1.0], parts)


@steady
@given(st.lists(st.tuples(st.integers(0, 2**34), st.booleans()), max_size=30))
def test_a_byte_names_a_count_at_most_a_ninth_smaller(model: list[tuple[int, bool]]) -> None:
    counts = [K for K, _ in model]
    blocks = [Block(place, "", K, whole=whole) for place, (K, whole) in enumerate(model)]
    found = counts_of(bytes_of(counts, blocks), blocks)
    assert found == rounded_down(counts, blocks)
    for K, named, block in zip(counts, found, blocks, strict=True):
        assert named <= K < 1.125 * named + 1
        assert named == K or not block.whole
    assert rounded_down(found, blocks) == found


def test_the_counts_of_a_byte_are_rounded_roots() -> None:
    assert len(BYTE_COUNTS) == 256
    assert set(BYTE_COUNTS) == {0} | {math.floor(2 ** (e / 8)) for e in range(8 * 34 + 1)}
