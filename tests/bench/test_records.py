"""FedAvg's step is the noised sum of directions, and the page compares the runs as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ferret_bench import _records_page
from ferret_bench._leakage import attack, rounds
from ferret_bench.records import DpSgdClient, best, measurable
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.models.load import load
from ferret_core.models.parameters import trainable
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.training.config import LocalConfig
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

BATCH, RATE = 4, 0.5


def step_of(spec: ExperimentSpec, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the step of a client that draws all of its three texts, and the sum of their directions."""
    loaded = load(spec.model)
    [texts] = rounds.deal(spec, loaded, 128, [3], 0)
    replica = Replica(rounds.row_spec(spec, rounds.Row("fedavg"), 1, 1, 1), loaded)
    [task] = sampling.round_tasks(replica.spec, SIMULATION, 1, sampling.client_names(1), replica.digest)
    mechanism = RecordMechanism(1.0, noise, BATCH, members=5, honest=4)
    client = DpSgdClient(task, ClientData(texts, 0), record=RecordPrivacy(mechanism, [[0], [1], [2]]))
    gradients = [attack.gradient(loaded.model, text).vector for text in texts]
    before = attack.flat(trainable(loaded.model))
    client.train(loaded.model, LocalConfig(learning_rate=RATE, steps=1, batch_size=1))
    return before - attack.flat(trainable(loaded.model)), torch.stack([each / each.norm() for each in gradients]).sum(0)


def test_a_step_without_noise_is_the_sum_of_directions_over_the_batch(toy_spec: SpecFactory) -> None:
    step, total = step_of(toy_spec("ferret"), noise=0.0)
    torch.testing.assert_close(step, RATE / BATCH * total, rtol=1e-3, atol=1e-6)


def test_the_honest_sites_noise_adds_up_to_the_multiplier(toy_spec: SpecFactory) -> None:
    step, total = step_of(toy_spec("ferret"), noise=2.0)
    noise = step * BATCH / RATE - total
    assert noise.std().item() * 4**0.5 == pytest.approx(2.0, rel=0.02)


def test_only_protected_examples_are_compared(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "set it to 'example'", field="privacy.unit"):
        measurable(toy_spec("ferret"))


def test_the_best_rate_is_of_the_same_way_and_finite() -> None:
    trials = [
        {"method": "ferret", "rate": 0.1, "loss": 2.0},
        {"method": "ferret", "rate": 0.2, "loss": None},
        {"method": "fedavg", "rate": 0.4, "loss": 1.0},
    ]
    assert best(trials, "ferret") == 0.1


def test_the_page_has_each_ways_gain_with_its_interval(tmp_path: Path) -> None:
    def ran(method: str, seed: int, last: float) -> dict[str, Any]:
        return {"method": method, "seed": seed, "rate": 0.2, "bytes": 12_000.0, "losses": [3.0, last]}

    run = {
        "asked": {"max_seconds": 600.0},
        "experiment": {
            "dataset": {"name": "dolly"},
            "participants": {"simulated": 5},
            "rounds": 1,
            "secure": {"least": 5, "colluders": 1},
            "privacy": {"epsilon": 8.0, "delta": 1e-5, "batch": 50, "records_least": 2000},
            "algorithm": {"K": 32_000},
            "evaluation": {"examples": 256},
        },
        "model": "small",
        "parameters": 1000,
        "noise_multiplier": 0.5,
        "useful": 6808.2,
        "trials": [{"method": "ferret", "rate": rate, "loss": loss} for rate, loss in ((0.1, 2.5), (0.2, None))],
        "runs": [
            ran(method, seed, 2.0 + seed / 10)
            for method in ("ferret", "fedavg", "fedavg_without_noise")
            for seed in (1, 2)
        ],
    }
    (tmp_path / "records.json").write_text(json.dumps(run))
    _records_page.main([str(tmp_path / "records.json")])
    text = (tmp_path / "records.md").read_text()
    assert "| Ferret | 12.0 kB | 0.2 | 3.000 | 2.150 | 0.850 ± 0.635 |" in text
    assert "4 of which are taken to be honest" in " ".join(text.split())
    assert "the best of 0.1 and 0.2 in one run" in " ".join(text.split())
    assert "| Ferret | 0.2 | diverged |" in text
    assert (tmp_path / "records.png").stat().st_size > 10_000
