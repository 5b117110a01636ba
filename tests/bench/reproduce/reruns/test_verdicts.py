"""The sentences say what the intervals allow, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS
from ferret_bench.reproduce.reruns.records import Store
from ferret_bench.reproduce.reruns.results import collect
from ferret_bench.reproduce.reruns.studies import Variant
from ferret_bench.reproduce.reruns.tables import verdicts


@pytest.fixture
def sentences(toy_grid, study, ended, tmp_path):
    """``sentences([0.9, 0.9, 0.9])``: Ferret's losses over FedAvg's, by seed."""

    def said(shares, **changes):
        studied = replace(study, reference="fedavg", seeds=len(shares), **changes)
        found, store = toy_grid(studied=studied), Store(tmp_path)
        for cell in found.cells:
            share = shares[cell.seed - 1] if cell.row.family == "ferret" else 1.0
            store.add(ended(cell, [5.0, 2.0 * cell.seed * share]))
        return list(verdicts(collect(found, store), found.columns[0], EVAL_LOSS, "fedavg"))

    return said


def test_lower_in_every_seed(sentences):
    assert sentences([0.9, 0.9, 0.9]) == [
        "Against FedAvg lower: Ferret (-10.0 ± 0.0 %).",
        "Ferret, of the rivals that send no less, ends lower than FedAvg (-10.0 ± 0.0 %).",
    ]


def test_higher_in_every_seed(sentences):
    assert sentences([1.1, 1.1, 1.1])[0] == "Against FedAvg higher: Ferret (+10.0 ± 0.0 %)."


def test_nobody_can_tell(sentences):
    beside, over = sentences([0.9, 1.1, 1.0])
    assert beside.startswith("Against FedAvg undecided: Ferret (+0.0 ±")
    assert "undecided against FedAvg" in over
    assert "lower" not in beside + over


def test_one_seed_says_nothing(sentences):
    assert sentences([0.5]) == []


def test_rows_with_options_of_their_own(sentences):
    small = Variant("64 kB", {"algorithm": {"bytes_per_round": 64_000}})
    beside, over = sentences([0.9, 0.9], variants={"ferret": {"64000": small}})
    assert beside == "Against FedAvg lower: Ferret, 64 kB (-10.0 ± 0.0 %)."
    assert over.startswith("Ferret, 64 kB, of the rivals")
