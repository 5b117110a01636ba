from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from ferret_core.algorithms.base import LocalUpdate
from ferret_core.protocol.wire import Arrays
from ferret_core.rounds.cost import LocalCost, measured, numbers_in, numbers_sent, round_cost
from tests.ferret_core.replicas import contribution

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("arrays", "K", "numbers"),
    [
        ({"update": np.zeros(70, np.float32)}, None, 70),
        ({"update": np.zeros(70, np.float32), "control": np.zeros(70, np.float32)}, None, 140),
        ({"coordinates": np.zeros(2, np.uint8), "scales": np.zeros(2, np.float16)}, (9, 4), 13),
        ({"coordinates": np.zeros(13, np.float16), "scales": np.zeros(2, np.float16)}, (9, 4), 13),
        (
            {
                "coordinates": np.zeros(9, np.uint8),
                "sent": np.array([6], np.int32),
                "scales": np.zeros(2, np.float16),
                "whole": np.zeros(5, np.int8),
            },
            None,
            11,
        ),
        ({"signs": np.zeros(3, np.uint8)}, None, 24),
        (
            {"high": np.zeros(9, np.uint8), "low": np.zeros((4, 2), np.uint8), "coordinates": np.zeros(5, np.int8)},
            None,
            5,
        ),
    ],
    ids=["fedavg", "scaffold", "one bit", "fp16", "the largest", "signs", "indices are not counted"],
)
def test_what_is_sent_is_counted_in_numbers_whatever_their_precision(
    arrays: Arrays, K: tuple[int, ...] | None, numbers: int
) -> None:
    assert numbers_sent(contribution(arrays, K=K)) == numbers


def test_what_is_received_is_everybodys_coordinates_or_one_mean() -> None:
    seeds, rounding = np.zeros(2, np.uint64), np.zeros(1, np.uint64)
    coordinates = {"coordinates": np.zeros(4, np.uint8), "seeds": seeds, "K": np.array([[9, 4], [6, 7]], np.int32)}
    assert numbers_in({**coordinates, "rounding": rounding}) == 26
    sparse = {name: coordinates[name] for name in ("coordinates", "seeds")} | {"sent": np.array([3, 4], np.int32)}
    assert numbers_in({**sparse, "rounding": rounding, "allocation": np.zeros(4, np.uint8)}) == 7
    assert numbers_in({"update": np.zeros(70, np.float32), "rounding": rounding}) == 70


def test_means_over_participants_and_the_highest_peak() -> None:
    local = [LocalCost(1.0, 40, 500, None), LocalCost(3.0, 30, 900, None), LocalCost(2.0)]
    assert round_cost(local, 0.5, [10, 20, 30], 60) == {
        "local_seconds": 2.0,
        "aggregate_seconds": 0.5,
        "sequences_per_second": 25.0,
        "numbers_sent": 20.0,
        "numbers_received": 60.0,
        "peak_memory_bytes": 900.0,
    }


def test_what_a_participant_makes_up_never_spoils_a_round() -> None:
    """Metrics must be finite; a participant says how long it took and how much it did."""
    found = round_cost([LocalCost(1e-300, 1e300), LocalCost(0.0, 40)], 0.5, [1, 1], 1)
    assert "sequences_per_second" not in found
    assert round_cost([], 0.5, [1], 1).keys() == {"aggregate_seconds", "numbers_sent", "numbers_received"}


@pytest.mark.heavy
def test_a_local_update_is_measured_with_its_own_peak() -> None:
    sent = LocalUpdate({}, {"trained_sequences": 40})

    def working_with(megabytes: int) -> Callable[[], LocalUpdate]:
        def work() -> LocalUpdate:
            np.ones(megabytes * 125_000).sum()
            return sent

        return work

    update, large = measured(working_with(400), CPU)
    small = measured(working_with(1), CPU)[1]
    assert update is sent
    assert large.sequences == 40
    assert large.seconds > 0
    assert large.peak_device_bytes is None
    if Path("/proc/self/clear_refs").exists():
        assert large.peak_memory_bytes is not None
        assert small.peak_memory_bytes is not None
        assert large.peak_memory_bytes - small.peak_memory_bytes > 200e6
