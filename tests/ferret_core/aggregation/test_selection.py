from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.aggregation.selection import (
    ContributionSummary,
    Selection,
    cosine_with_others,
    filter_by_cosine,
    filter_by_norm,
    find_outliers,
)
from ferret_core.catalog import ResolvedExperiment
from ferret_core.contribution import SealedContribution
from ferret_core.protocol.spec import RobustSpec
from ferret_core.protocol.wire import Array
from ferret_core.replica.replica import Replica
from tests.ferret_core.replicas import SpecFactory, replica_of, sent_by

SPEC = RobustSpec(rule="cosine_filter")
SIZE = 10_000


def selected(replica: Replica, sent: Sequence[SealedContribution], arrays: Callable[[int, Array], Array]) -> Selection:
    """All of ``sent``, with the ``arrays`` that are made from position and array."""
    changed = [
        each._replace(
            contribution=replace(
                each.contribution,
                arrays={name: arrays(number, array) for name, array in each.contribution.arrays.items()},
            )
        )
        for number, each in enumerate(sent)
    ]
    summaries = [
        ContributionSummary(
            each.meta.participant, "", 1, replica.experiment.config.norms(each.contribution, replica.shapes)
        )
        for each in changed
    ]
    return Selection(1, changed, tuple(summaries))


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


@pytest.mark.parametrize(
    ("algorithm", "options", "directions"),
    [
        ("fedkseed", {"K": 64}, 64),
        ("ferret", {"K": 100, "seeds": "shared", "allocation": "fixed"}, 100),
        ("fed_sb", {"rank": 2, "targets": ["q"]}, 2 * 2**2),
        ("powersgd", {"rank": 1}, 2 * 6 + 5),
    ],
)
def test_updates_in_a_shared_space_have_its_dimensions(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], directions: int
) -> None:
    shapes = {"0.q.weight": (6, 8), "1.q.weight": (6, 8), "norm.weight": (5,)}
    found = ResolvedExperiment.of(toy_spec(algorithm, options=options)).traits.directions
    assert found is not None
    assert found(shapes) == directions


def test_nobody_is_rejected_for_random_slopes_along_few_directions(toy_spec: SpecFactory) -> None:
    options = {"K": 64, "local": {"steps": 20, "batch_size": 1}}
    spec = toy_spec("fedkseed", options=options, participants={"simulated": 7}, robust={"rule": "cosine_filter"})
    replica = replica_of(spec)
    sent = sent_by(replica)
    draws = np.random.default_rng(0)
    for _ in range(8):
        selection = selected(replica, sent, lambda _, array: draws.normal(size=array.size).astype(np.float32))
        assert filter_by_cosine(replica, selection).rejected == {}


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_contribution_that_its_participant_remembers_whole_counts_whole(
    toy_spec: SpecFactory, algorithm: str
) -> None:
    replica = replica_of(toy_spec(algorithm))
    sent, bounded = sent_by(replica), algorithm == "fedavg"
    long = filter_by_norm(replica, selected(replica, sent, lambda number, array: array * (1, 1, 3)[number]))
    longer = filter_by_norm(replica, selected(replica, sent, lambda number, array: array * (1, 1, 10)[number]))
    assert (bool(long.factors), bool(longer.rejected)) == (bounded, bounded)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=40), st.floats(0, 1))
def test_at_most_a_third_are_rejected_and_never_the_better_half(cosines: list[float], agree: float) -> None:
    found = find_outliers(RobustSpec(rule="cosine_filter", min_cosine_share=agree), cosines, SIZE)
    assert len(found) <= len(cosines) / 3
    kept = [value for place, value in enumerate(cosines) if place not in found]
    assert all(cosines[place] <= min(kept) for place in found)
