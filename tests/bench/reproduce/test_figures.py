"""Every figure, drawn small: its files can be read, and what it measured is what theory says."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator

import pytest
import torch

from ferret_bench.reproduce.reconstruction import Drawn, draw, plots
from ferret_cli.files import writable

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("figures")]  # what is drawn is drawn once


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Drawn]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = writable(tmp_path_factory.mktemp("paper") / "figures", "--out")
    yield {figure.name: figure for figure in draw(folder, plots(quick=True))}
    torch.set_num_threads(threads)


def rows(figure: Drawn, **wanted: str) -> list[dict[str, str]]:
    with figure.csv.open(newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[name] == value for name, value in wanted.items())]


def close_to_theory(row: dict[str, str], quantity: str, power: float) -> bool:
    """Whether a mean lies within 5 standard errors. ‖γ‖² of K coordinates has a relative spread of √(2/K), or rather
    less; ``power`` is that of ‖γ‖² which the quantity goes with."""
    expected, K, seeds = (float(row[name]) for name in (f"{quantity}_theory", "K_coordinates", "seeds"))
    return abs(float(row[f"{quantity}_mean"]) / expected - 1) < 5 * power * math.sqrt(2 / K / seeds)


def test_rho_is_a_third_of_1_over_d_and_the_printed_formula_loses_it(drawn):
    by_d = {int(row["d_elements"]): row for row in rows(drawn["rho"])}
    assert float(by_d[10**9]["inverse_rho_series"]) == pytest.approx(3e9, rel=1e-8)
    assert float(by_d[100]["deviation_float64"]) < 1e-9
    assert float(by_d[10**9]["deviation_float64"]) > 1e-4
    assert float(by_d[10**6]["deviation_float32"]) > 1


@pytest.mark.parametrize("method", ["T", "G", "zeroth order"])
def test_cosine_against_k(drawn, method):
    found = rows(drawn["cosine_k"], method=method)
    assert {int(row["K_coordinates"]) for row in found} == {16, 64, 256}
    assert [row for row in found if row["epsilon"] != "10.0" and not close_to_theory(row, "cosine", 1 / 2)] == []


def test_a_long_step_spoils_the_zeroth_order_method_as_much_as_theory_says(drawn):
    (far,) = rows(drawn["cosine_k"], epsilon="10.0", precision="float64", K_coordinates="256")
    assert float(far["cosine_mean"]) == pytest.approx(float(far["cosine_theory"]), rel=0.35)
    assert float(far["cosine_mean"]) < drawn["cosine_k"].numbers["cosine_T"] / 2


def test_theorem_3_bounds_the_zeroth_order_bias_in_exact_arithmetic(drawn):
    found = rows(drawn["cosine_k"], precision="float64")
    assert found
    assert [row for row in found if float(row["bias_mean"]) > float(row["bias_bound"])] == []


@pytest.mark.parametrize("method", ["T", "G"])
@pytest.mark.parametrize("name", ["cosine_t", "cosine_d", "cosine_l"])
def test_cosine_follows_from_d_and_k_alone(drawn, name, method):
    found = rows(drawn[name], method=method)
    assert len(found) >= 2
    assert [row for row in found if not close_to_theory(row, "cosine", 1 / 2)] == []


def test_the_error_is_that_of_theory_and_far_below_the_papers_bound(drawn):
    for row in rows(drawn["cosine_d"], method="T"):
        assert close_to_theory(row, "error_norm", 1 / 2)
        assert float(row["error_norm_mean"]) < float(row["error_norm_bound"]) / 10


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "sign"])
@pytest.mark.parametrize("family", ["T", "R", "G", "H"])
def test_error_per_byte(drawn, family, kind):
    found = rows(drawn["error_per_byte"], family=family, quantisation=kind)
    assert len(found) == 2
    for row in found:
        assert close_to_theory(row, "cosine", 1 / 2)
        assert close_to_theory(row, "captured_energy", 1)
        assert int(row["size_bytes"]) <= (64 if row is found[0] else 256)


@pytest.mark.parametrize("seeds_are", ["own", "shared"])
def test_error_of_the_mean(drawn, seeds_are):
    found = rows(drawn["seeds"], seeds_are=seeds_are)
    assert len(found) == 6
    assert [row for row in found if not close_to_theory(row, "relative_error", 1)] == []
