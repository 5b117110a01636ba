from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferret_core import checkpoint
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import RoundResult, simulate

SpecFactory = Callable[..., ExperimentSpec]


def test_it_reports_every_round_as_it_ends_and_writes_the_final_model(toy_spec: SpecFactory, tmp_path: Path) -> None:
    seen: list[RoundResult] = []
    result = simulate(toy_spec(), tmp_path / "out", seen.append)
    assert seen == result.rounds
    assert [one.number for one in seen] == [0, 1, 2, 3]
    assert checkpoint.read_manifest(tmp_path / "out").digest == result.digest == seen[-1].digest
    assert [entry.record.previous for entry in result.ledger] == ["", *(entry.hash for entry in result.ledger[:-1])]


def test_the_seed_fixes_every_bit(toy_spec: SpecFactory) -> None:
    assert simulate(toy_spec()).digest == simulate(toy_spec()).digest
    assert simulate(toy_spec()).digest != simulate(toy_spec(seed=6)).digest


def test_a_contribution_weighs_what_its_coordinates_weigh(toy_spec: SpecFactory) -> None:
    small, large = (simulate(toy_spec(options={"K": K}, rounds=1)).rounds[1].bytes_up for K in (4_000, 12_000))
    assert 2_900 < large - small < 3_300, "three participants, 8,000 bits more each, and the rest alike"


def test_evaluation_is_taken_only_where_it_is_due(toy_spec: SpecFactory) -> None:
    result = simulate(toy_spec(rounds=5, evaluation={"every": 2, "examples": 4, "generate": 0}))
    assert [one.number for one in result.rounds if "eval_loss" in one.metrics] == [0, 2, 4, 5]
    assert not any("rouge_l" in one.metrics for one in result.rounds)


def test_a_loss_that_is_no_number_misses_the_quorum_and_says_why(toy_spec: SpecFactory) -> None:
    with pytest.raises(FerretError, match="learning_rate") as caught:
        simulate(toy_spec(options={"local": {"learning_rate": 1e18, "optimizer": "sgd", "steps": 8}}))
    assert caught.value.code == "quorum.missed"


def test_a_real_participant_cannot_be_simulated(toy_spec: SpecFactory) -> None:
    with pytest.raises(FerretError, match=r"participants\.edge"):
        simulate(toy_spec(participants={"simulated": 2, "edge": 1}))
