from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferret_core.projection.allocation import coordinates_within, cost
from ferret_core.projection.blocks import cut
from ferret_core.projection.coordinate_encoding import PRECISIONS, Precision
from tests.refusals import refused

models = st.lists(st.integers(1, 5000), min_size=1, max_size=10).map(
    lambda sizes: {f"layer.{i}": size for i, size in enumerate(sizes)}
)


@given(st.sampled_from(PRECISIONS), models, st.integers(0, 50), st.integers(1, 30_000))
def test_the_budget_is_used_up_and_never_exceeded(
    kind: Precision, sizes: dict[str, int], small: int, budget: int
) -> None:
    blocks = cut(sizes, "tensor", small)
    least = sum(block.size for block in blocks if block.whole) + any(not block.whole for block in blocks)
    if cost(least, kind, blocks) > budget:
        with refused(
            "spec.invalid", f"the smallest possible is {cost(least, kind, blocks)} ", field="algorithm.bytes_per_round"
        ):
            coordinates_within(budget, kind, blocks)
        return
    K = coordinates_within(budget, kind, blocks)
    assert least <= K <= sum(sizes.values())
    assert cost(K, kind, blocks) <= budget
    assert sum(sizes.values()) == K or cost(K + 1, kind, blocks) > budget


def test_eight_kilobytes_on_paper() -> None:
    """A 3B model of 237 tensors, one bit each: 237 scales, their exponent, and 237 numbers K_l of five digits."""
    blocks = cut({f"weight.{i}": 10_000_000 for i in range(237)})
    K = coordinates_within(8192, "sign", blocks)
    assert K == 8 * (8192 - 2 * 237 - 4 - 6 * 237)
