"""The step guard: its formulas by quadratics, and rounds that it shortens, replays and leaves alone."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.aggregation.step_guard import MOST_NOISE, loss_limit, noise_ratio
from ferret_core.ledger.record import MOST_HALVINGS, LedgerEntry
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import replay
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused

SPLIT = {"split": "validation", "validation_share": 0.4, "examples": 10, "generate_examples": 0}


def guarded(toy_spec: SpecFactory, *, rate: float = 1.0, rise: float = 0.05, **changes: Any) -> ExperimentSpec:
    """A toy experiment whose server follows each round by ``rate``, as far as the guard lets it."""
    server = {
        "step_guard": True,
        "max_loss_rise": rise,
        "development_examples": 4,
        "learning_rate": rate,
        **changes.pop("server", {}),
    }
    return toy_spec(server=server, evaluation=SPLIT, **changes)


@given(
    start=st.floats(0.5, 10),
    slope=st.floats(0.01, 10),
    ratio=st.floats(0, MOST_NOISE),
    longest=st.sampled_from([1.0, 0.5, 0.125]),
)
def test_the_noise_ratio_is_that_of_the_parabola(start: float, slope: float, ratio: float, longest: float) -> None:
    def loss(step: float) -> float:
        return start - slope * step + slope * (1 + ratio) * step**2 / 2

    found = noise_ratio(loss(0), loss(longest / 2), loss(longest), longest)
    assert found == pytest.approx(ratio, rel=1e-6, abs=1e-6)


@given(before=st.floats(0.1, 10), half=st.floats(0.1, 1e6), whole=st.floats(0.1, 1e6))
def test_any_losses_give_a_number_that_can_be_stored(before: float, half: float, whole: float) -> None:
    assert -1 <= noise_ratio(before, half, whole) <= MOST_NOISE


@pytest.mark.parametrize(
    ("half", "whole", "ratio"),
    [
        (2.0, 1.0, -1),  # the faster the farther: no step is too long
        (3.0, 3.0, MOST_NOISE),  # nothing is gained by any
        (4.0, 6.0, MOST_NOISE),
        (math.inf, math.inf, MOST_NOISE),
        (4.0, math.inf, MOST_NOISE),
        (math.inf, 2.0, MOST_NOISE),
    ],
)
def test_what_no_parabola_fits_is_an_end_of_the_range(half: float, whole: float, ratio: float) -> None:
    assert noise_ratio(3.0, half, whole) == ratio


def test_the_bound_is_a_share_of_the_loss_and_of_a_nat_at_least() -> None:
    assert loss_limit(4.0, 0.05) == pytest.approx(4.2)
    assert loss_limit(0.01, 0.05) == pytest.approx(0.06)
    assert loss_limit(3.0, 0) == 3.0


def test_no_round_raises_the_development_loss_beyond_the_bound(toy_spec: SpecFactory) -> None:
    rise = 0.02
    rounds = simulate(guarded(toy_spec, rate=64.0, rise=rise, rounds=3)).rounds[1:]
    losses = [done.metrics["development_loss"] for done in rounds]
    assert {done.metrics["step_taken"] for done in rounds} != {100.0}
    assert all(after <= loss_limit(before, rise) for before, after in pairwise(losses))


def test_a_round_that_lowers_the_loss_is_taken_whole_and_so_are_all_under_a_wide_bound(toy_spec: SpecFactory) -> None:
    local = {"optimizer": "adam", "learning_rate": 1e-3, "steps": 4, "batch_size": 4}
    rounds = simulate(guarded(toy_spec, rounds=2, options={"K": 512, "local": local})).rounds
    assert [done.metrics["step_taken"] for done in rounds[1:]] == [100.0, 100.0]
    wide = simulate(guarded(toy_spec, rounds=1, rise=1e6, rate=64.0, robust={"max_loss_ratio": 1e6}))
    assert [record.halvings for record in wide.ledger] == [0]


@pytest.mark.parametrize(
    ("server", "dtype"),
    [({}, "bfloat16"), ({"momentum": 0.9}, "float32"), ({"optimizer": "adam", "learning_rate": 10.0}, "float32")],
    ids=["rounded", "momentum", "adam"],
)
def test_who_has_no_development_data_replays_the_same_model(
    toy_spec: SpecFactory, server: dict[str, Any], dtype: str
) -> None:
    base = toy_spec().model.model_dump() | {"dtype": dtype}
    spec = guarded(toy_spec, rate=64.0, rise=0.0, rounds=2, model=base, server=server)
    entries: list[LedgerEntry] = []
    result = simulate(spec, on_update=entries.append)
    assert any(record.halvings for record in result.ledger)
    replica = replica_of(spec)
    assert [record.halvings for record in replay(replica, entries)] == [entry.record.halvings for entry in entries]
    assert replica.digest == result.digest


def test_a_record_with_another_step_leads_to_another_model_and_is_refused(toy_spec: SpecFactory) -> None:
    spec, entries = guarded(toy_spec, rounds=1), list[LedgerEntry]()
    simulate(spec, on_update=entries.append)
    record, _, update = entries[0]
    changed = record.model_copy(update={"halvings": (record.halvings or 0) + 1})
    with refused("ledger.broken", "applying it gives"):
        replica_of(spec).advance(changed, update)


def test_a_step_that_cannot_be_made_short_enough_is_the_least(toy_spec: SpecFactory) -> None:
    spec = guarded(toy_spec, rise=0.0, rounds=1, server={"optimizer": "adam", "learning_rate": 800.0})
    assert simulate(spec).ledger[0].halvings == MOST_HALVINGS


def test_the_guard_takes_the_place_of_the_refusal_of_noise(toy_spec: SpecFactory) -> None:
    drowned: dict[str, Any] = {"options": {"K": 64, "refuse_noisy_rounds": True}, "rounds": 1}
    with refused("noise.too_large"):
        simulate(guarded(toy_spec, server={"step_guard": False}, **drowned))
    assert len(simulate(guarded(toy_spec, **drowned)).rounds) == 2


def test_weight_noise_is_that_of_the_step_taken(toy_spec: SpecFactory) -> None:
    rounds = simulate(guarded(toy_spec, rate=64.0, rise=0.0, rounds=1)).rounds
    whole = simulate(guarded(toy_spec, rate=64.0, rise=1e6, rounds=1, robust={"max_loss_ratio": 1e6})).rounds
    part = rounds[1].metrics["step_taken"] / 100
    assert part < 1
    assert rounds[1].metrics["projection_noise"] == pytest.approx(part * whole[1].metrics["projection_noise"])
