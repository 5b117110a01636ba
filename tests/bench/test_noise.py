"""The share and D follow from gains and costs; a run is probed where it should be and left as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferret_bench import _noise_page
from ferret_bench._noise_probe import Noisy, Probe, Probes
from ferret_bench.noise import Ratio, measurable, point, probed
from ferret_cli import demo
from ferret_core.aggregation.step_guard import MOST_NOISE
from ferret_core.catalog import ResolvedExperiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate
from tests.refusals import refused


@pytest.fixture
def spec(tmp_path: Path) -> ExperimentSpec:
    return demo.experiment_spec(demo.write_data(tmp_path))


def test_the_dimension_is_where_noise_costs_the_whole_gain() -> None:
    ratio = Ratio(6000, [2.0, 4.0], [0.3, 0.3])
    assert ratio.share == pytest.approx(0.1)
    assert ratio.dimension == pytest.approx(600)


def test_rounds_that_gain_nothing_have_no_share() -> None:
    assert Ratio(6000, [0.1, -0.2], [0.3, 0.3]).document == {"share": None, "dimension": None, "dimension_half": None}


def test_the_interval_is_that_of_a_mean_where_all_gains_are_equal() -> None:
    """Then D is a mean over seeds, for which the jackknife gives the usual interval."""
    found = [8000, 9000, 10_000, 9500]
    ratio = Ratio(1000, [1.0] * 4, [each / 1000 for each in found])
    assert ratio.half == pytest.approx(3.182 * 853.9 / 2, rel=1e-3)
    assert Ratio(1000, [1.0] * 2, [8.0, 9.0]).half is None


def test_ratios_at_the_cap_are_counted_and_not_averaged() -> None:
    probes = [
        Probe(4, 0.1, 0.5, [Noisy(100, 0.1, 2.0, ratio), Noisy(12, 0.8, 5.6, MOST_NOISE)])
        for ratio in (0.2, 0.4, MOST_NOISE)
    ]
    many, few = point(probes, 3)["K"]
    assert (many["noise_ratio"], many["capped"]) == (pytest.approx(0.3), 1)
    assert (few["noise_ratio"], few["capped"]) == (None, 3)
    assert many["dimension"] == pytest.approx(0.2 * 300), "shares need no ratio"


def test_every_fourth_round_is_probed() -> None:
    assert probed(12) == [0, 4, 8]
    assert probed(1) == [0]


def test_a_probe_leaves_the_run_as_it_is_and_costs_fall_with_the_coordinates(spec: ExperimentSpec) -> None:
    tree = measurable(spec).model_dump(mode="json")
    tree["rounds"], tree["participants"]["simulated"], tree["evaluation"]["examples"] = 2, 2, 8
    tree["algorithm"]["local"] |= {"steps": 2, "epochs": None, "precision": "float32"}
    short = ExperimentSpec.model_validate(tree)
    config = ResolvedExperiment.of(short).config
    configs = [config.model_copy(update={"K": K, "bytes_per_round": None}) for K in (60_000, 1000)]
    probes = Probes([0, 1], configs, sequences=16, draws=1, say=print)
    assert simulate(short, measure=probes).digest == simulate(short, measure=lambda replica, data: {}).digest
    first, second = probes.found
    assert (first.round, second.round) == (0, 1)
    many, few = first.noisy
    assert first.gain > 0
    assert few.cost > 2 * many.cost
    assert few.percent > 4 * many.percent


def test_only_ferrets_one_bit_coordinates_have_this_formula(spec: ExperimentSpec) -> None:
    for algorithm in ({"name": "fedavg"}, {"name": "ferret", "coordinates": "float16"}):
        with refused("spec.invalid", field="algorithm.name"):
            measurable(spec.model_copy(update={"algorithm": type(spec.algorithm).model_validate(algorithm)}))
    with refused("spec.invalid", field="server.optimizer"):
        measurable(spec.model_copy(update={"server": type(spec.server)(momentum=0.9)}))


def test_the_page_has_what_the_runs_say_small_models_first(tmp_path: Path) -> None:
    for name, weights, share, half in (("large", 3_148_224, 0.1, 2000.0), ("small", 262_144, 0.02, None)):
        noisy = {"K": 50_000, "noise_percent": 3.0, "share": share, "dimension": share * 150_000, "capped": 1}
        noisy |= {"dimension_half": half, "cost": 0.02, "noise_ratio": 0.2}
        few = noisy | {"K": 6250, "dimension": share * 120_000}
        run = {
            "parameters": weights,
            "participants": 3,
            "seeds": [1, 2],
            "bytes": 8000.0,
            "sequences": 32,
            "draws": 2,
            "experiment": {"algorithm": {"local": {"optimizer": "normalized", "learning_rate": 0.1}}},
            "points": [{"round": 0, "seeds": 2, "rate": 0.1, "gain": 0.2, "K": [noisy, few]}],
            "run": [noisy, few],
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    _noise_page.main([str(tmp_path)])
    page = (tmp_path / "noise.md").read_text()
    small, large, *rounds = (line for line in page.splitlines() if line.startswith("| ["))
    assert small == "| [small](small.json) | 262,144 | normalized 0.1 | 2.0 % | 3,000 | 2,400 | 625 B | 188 B |"
    assert (
        large
        == "| [large](large.json) | 3,148,224 | normalized 0.1 | 10.0 % | 15,000 ± 2,000 | 12,000 | 3.1 kB | 938 B |"
    )
    assert rounds[0] == "| [small](small.json) | 0 | 0.100 | 0.200 | 3.0 | 2.0 % | 3,000 | 1 of 2 |"
    assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")
