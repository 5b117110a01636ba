from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.aggregation.selection import cosine_with_others, find_outliers
from ferret_core.protocol.spec import RobustSpec

SPEC = RobustSpec(rule="cosine_filter")
SIZE = 10_000


def drawn(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {"a": torch.randn(7, 3, generator=generator), "b": torch.randn(5, generator=generator)}


@given(st.integers(0, 2**31), st.floats(0.05, 0.95))
def test_it_is_the_cosine_with_what_the_others_send(seed: int, share: float) -> None:
    own, others = drawn(seed), drawn(seed + 1)
    together = {name: share * own[name] + others[name] for name in own}
    flat = [torch.cat([part.reshape(-1).double() for part in update.values()]) for update in (own, others)]
    expected = torch.nn.functional.cosine_similarity(*flat, dim=0).item()
    assert cosine_with_others(own, together, share) == pytest.approx(expected, abs=1e-5)


def test_who_moves_nothing_agrees_with_nobody_and_a_single_one_has_no_others() -> None:
    nothing = {name: torch.zeros_like(part) for name, part in drawn(0).items()}
    assert cosine_with_others(nothing, drawn(1), 0.5) == cosine_with_others(drawn(1), drawn(1), 1.0) == 0


def test_who_points_elsewhere_is_rejected_with_the_reason() -> None:
    found = find_outliers(SPEC, [0.5, 0.4, -0.3, 0.6, 0.04, 0.5, 0.7], SIZE)
    assert sorted(found) == [2, 4]
    assert "-0.3, less than robust.min_cosine_share = 0.1 times the round's median of 0.5" in found[2]


def test_nobody_is_rejected_where_directions_say_nothing() -> None:
    noise = 1 / math.sqrt(SIZE)
    assert find_outliers(SPEC, [noise, 2 * noise, -noise, 3 * noise], SIZE) == {}


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=40), st.floats(0, 1))
def test_at_most_a_third_are_rejected_and_never_the_better_half(cosines: list[float], agree: float) -> None:
    found = find_outliers(RobustSpec(rule="cosine_filter", min_cosine_share=agree), cosines, SIZE)
    assert len(found) <= len(cosines) / 3
    kept = [value for place, value in enumerate(cosines) if place not in found]
    assert all(cosines[place] <= min(kept) for place in found)
