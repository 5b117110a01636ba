"""The dimension follows from the two points by the formula; that the demo's is far below its number of weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferret_bench import _noise_page
from ferret_bench.noise import Points, dimension, half_interval, one_round
from ferret_cli import demo
from tests.refusals import refused


def ratio(K: int, dimension: float, clean: float, participants: int) -> float:
    return clean * (1 + dimension / (K * participants)) - 1


def test_dimension_and_clean_step_are_found_again() -> None:
    few, many = (ratio(K, 9000, 0.7, 3) for K in (500, 4000))
    points = Points((500, 4000), 3, [few, few], [many, many])
    assert dimension(points) == pytest.approx((9000, 0.7))


def test_the_interval_is_that_of_a_mean_where_the_estimate_is_linear() -> None:
    """With clean = 1 for every seed, D is a mean over seeds, for which the jackknife gives the usual interval."""
    found = [8000, 9000, 10_000, 9500]
    few, many = ([ratio(K, each, 1, 3) for each in found] for K in (500, 4000))
    assert half_interval(Points((500, 4000), 3, few, many)) == pytest.approx(3.182 * 853.9 / 2, rel=1e-3)
    assert half_interval(Points((500, 4000), 3, few[:2], many[:2])) is None


def test_only_ferrets_one_bit_coordinates_have_this_formula(tmp_path: Path) -> None:
    spec = demo.experiment_spec(demo.write_data(tmp_path))
    for algorithm in ({"name": "fedavg"}, {"name": "ferret", "coordinates": "float16"}):
        with refused("spec.invalid", "the formula is that of one-bit coordinates"):
            one_round(spec.model_copy(update={"algorithm": type(spec.algorithm).model_validate(algorithm)}))


def test_the_page_has_what_the_runs_say_small_models_first(tmp_path: Path) -> None:
    for name, weights, found, half in (("large", 3_148_224, 16_000, 2000.0), ("small", 262_144, 1000, None)):
        points = [{"noise_ratio": [0.5, 0.6]}, {"noise_ratio": [0.1, 0.2]}]
        run = {"parameters": weights, "dimension": found, "dimension_half": half, "clean": 1.1, "points": points}
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    _noise_page.main([str(tmp_path)])
    page = (tmp_path / "noise.md").read_text()
    small, large = (line for line in page.splitlines() if line.startswith("| ["))
    assert small == "| [small](small.json) | 262,144 | 1,000 | 1/262 | 1.10 | 167 B | 50 B | 5 B |"
    assert large == "| [large](large.json) | 3,148,224 | 16,000 ± 2,000 | 1/197 | 1.10 | 2.7 kB | 800 B | 80 B |"
    assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")
