from __future__ import annotations

import pytest

from ferret_core.protocol.metrics import METRICS, metric, names_of
from ferret_core.rounds.cost import LocalCost, round_cost


def test_the_value_for_one_label_is_a_value_of_the_metric() -> None:
    assert metric("rouge_l/cooking/soups") == metric("rouge_l") == METRICS["rouge_l"]
    assert metric("an_algorithms_own") is None


@pytest.mark.parametrize(
    ("name", "best"),
    [("eval_loss", 1.0), ("rouge_l", 9.0), ("exact_match", 9.0), ("sequences_per_second", 9.0), ("bytes_down", None)],
)
def test_the_best_value_is_the_better_extreme(name: str, best: float | None) -> None:
    assert METRICS[name].best(1.0, 9.0) == best


def test_all_that_a_round_costs_is_in_the_catalog() -> None:
    cost = round_cost([LocalCost(2.0, 8.0, 1 << 30, 1 << 20)], 0.5, [10], 20)
    assert {*cost, "bytes_up", "bytes_down"} == set(names_of("cost"))
