"""What the benchmark's documents say follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cosine_similarity

from ferret_bench._projection import bounds, grid
from ferret_bench._projection.bounds import largest
from ferret_bench._projection.implementations import Cell, Contribution, Family, Naive, Vectors, one_block
from ferret_bench._projection.llama import SMALL, TOY, random_llama
from ferret_bench.base import shown
from ferret_bench.gpu.parts import bounds as costs
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.clock import Timings, Turns, in_turns
from ferret_bench.measure.memory import extra_bytes
from ferret_bench.projection import Benchmark
from ferret_core.models.parameters import trainable
from ferret_core.projection.blocks import Block, Piece

pytestmark = pytest.mark.xdist_group("projection")  # what is measured is measured once
CPU = torch.device("cpu")
SIZES = bounds.Sizes(
    t_elements=4096, t_K=4, elements=8192, K=64, few_K=16, many_K=256, contributions=3, memory_elements=2**21
)
KEYS = {
    "t_speedup": ">= 25",
    "g_project_vs_sum": "<= 3",
    "g_apply_vs_add": "<= 2",
    "g_k_flat": "<= 0.2",
    "g_apply10_vs_average": "< 1",
    "projection_share": "<= 0.05",
    "extra_memory_mb": "<= 64",
}

RESULTS = Path(__file__).parents[2] / "docs/results/projection.jsonl"


def silent(line: str) -> None:
    assert line


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    """A few turns of everything, and nothing to compile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FERRET_KERNEL", "reference")
        for module in (bounds, costs):
            patch.setattr(module, "TURNS", Turns(2, 2))
        yield


@pytest.fixture(scope="module")
def bounded() -> dict:
    return bounds.measure(SIZES, [TOY], 60, silent)


@pytest.fixture(scope="module")
def measured() -> dict:
    return grid.measure(grid.Sizes((10_000, 40_000), (10, 50, 20_000), (1, 3), Turns(2, 2)), CPU, 60, silent)


def test_the_naive_way_reconstructs_as_the_basis_t_does():
    d, K, seeds = 400, 100, range(40)
    block, before, after = one_block(d), {"w": torch.randn(d)}, {"w": torch.zeros(d)}
    cosines, lengths = {}, {}
    for way in (Naive(), Family("T")):
        updates = []
        for seed in seeds:
            moved = {"w": torch.zeros(d)}
            way.apply_(moved, [block], [Contribution(seed, way.project(before, after, [block], [K], seed))])
            updates.append(-moved["w"])
        stacked = torch.stack(updates)
        cosines[way.name] = cosine_similarity(stacked, before["w"], dim=1).mean().item()
        lengths[way.name] = (stacked.mean(0) @ before["w"] / before["w"].square().sum()).item()
    expected = math.sqrt(K / (K + d - 0.2))
    assert cosines == pytest.approx({"naive": expected, "T": expected}, abs=0.02)
    assert lengths == pytest.approx({"naive": 1.0, "T": 1.0}, abs=0.1), "unbiased"


def test_the_naive_way_takes_a_block_in_pieces():
    tensors = {"a": torch.randn(3, 4), "b": torch.randn(8)}
    joined = torch.cat([tensors["a"].flatten(), tensors["b"]])
    pieces = Block(0, "block", 20, (Piece("a", 0, 0, 12), Piece("b", 0, 12, 8)))
    zeros = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    (split,) = Naive().project(tensors, zeros, [pieces], [5], 3)
    (whole,) = Naive().project({"w": joined}, {"w": torch.zeros(20)}, [one_block(20)], [5], 3)
    assert torch.allclose(split, whole, atol=1e-5)
    Naive().apply_(zeros, [pieces], [Contribution(3, [split])])
    moved = {"w": torch.zeros(20)}
    Naive().apply_(moved, [one_block(20)], [Contribution(3, [split])])
    assert torch.equal(torch.cat([zeros["a"].flatten(), zeros["b"]]), moved["w"])


@pytest.mark.slow
def test_the_bounds_are_the_seven(bounded):
    assert {key: bound["bound"] for key, bound in bounded["bounds"].items()} == KEYS
    assert list(bounded["ratios"]) == list(bounded["measured"]) == list(KEYS)
    assert {key: bound["value"] for key, bound in bounded["bounds"].items()} == bounded["ratios"]
    assert all(math.isfinite(value) for value in bounded["ratios"].values())
    assert all(value > 0 for key, value in bounded["ratios"].items() if key not in ("g_k_flat", "extra_memory_mb"))
    assert bounded["sizes"] == SIZES._asdict()
    json.dumps(bounded, allow_nan=False)


@pytest.mark.slow
def test_a_ratio_is_that_of_its_two_sides(bounded):
    behind = bounded["measured"]
    share = behind["projection_share"]
    assert bounded["ratios"]["projection_share"] == share["seconds"]["projection"] / share["seconds"]["local_update"]
    assert share["model"] == "LLaMA-toy"
    assert bounded["ratios"]["extra_memory_mb"] == max(behind["extra_memory_mb"]["peak_bytes"].values()) / 1e6
    assert bounded["ratios"]["g_k_flat"] == max(behind["g_k_flat"]["growth"].values())
    average = behind["g_apply10_vs_average"]["vs"]
    assert bounded["ratios"]["g_apply10_vs_average"] == max(average["running sum"], average["one by one"])


def test_every_way_to_average_is_fedavgs():
    weights, updates = torch.randn(600_000), [torch.randn(600_000) for _ in range(3)]
    expected = weights - torch.stack(updates).mean(0)
    for average in bounds._averages(moved := weights.clone(), updates).values():
        moved.copy_(weights)
        average()
        assert torch.allclose(moved, expected, atol=1e-5)


def test_what_memory_does_not_allow_is_said(monkeypatch):
    monkeypatch.setattr("ferret_bench.measure.memory.available_bytes", lambda device: 10**9)
    huge = SIZES._replace(elements=10**9, memory_elements=10**9, t_elements=10**9)
    found = bounds.measure(huge, [TOY], 60, silent)
    assert found["ratios"]["g_apply_vs_add"] is None
    assert found["bounds"]["g_apply_vs_add"]["holds"] is None
    assert "12.0 GB" in found["measured"]["g_apply_vs_add"]["reason"]


@pytest.mark.slow
def test_the_grid_has_every_cell_or_a_reason(measured):
    wanted = {
        (way, operation, d, K, N)
        for d, K in [(10_000, 10), (10_000, 50), (40_000, 10), (40_000, 50), (40_000, 20_000)]
        for way in ("naive", "T", "R", "G", "H")
        for operation, N in [("project", 1), ("apply", 1), ("apply", 3)]
    }
    names = ("way", "operation", "d", "K", "N")
    cells = [tuple(cell[name] for name in names) for cell in measured["cells"] + measured["skipped"]]
    assert sorted(cells) == sorted(wanted)
    assert all("--max-seconds" in cell["reason"] for cell in measured["skipped"])
    assert any(cell["way"] == "naive" and cell["K"] == 20_000 for cell in measured["skipped"])
    assert {cell["way"] for cell in measured["cells"]} >= {"naive", "G"}


@pytest.mark.slow
def test_a_cell_says_what_was_measured(measured):
    assert [copy["d"] for copy in measured["copy"]] == [10_000, 40_000]
    for cell in measured["cells"]:
        entries = cell["d"] * cell["K"] * cell["N"]
        assert cell["seconds"] > 0
        assert cell["ns_per_element"] == pytest.approx(1e9 * cell["seconds"] / cell["d"])
        assert cell["ns_per_entry"] == pytest.approx(1e9 * cell["seconds"] / entries)
        assert cell["gb_per_s"] == pytest.approx(cell["bytes_per_element"] * cell["d"] / cell["seconds"] / 1e9)
        assert cell["times_copy"] > 0
        assert cell["extra_memory_mb"] is None or cell["extra_memory_mb"] >= 0
        assert cell["kernel"] == ("torch.nn.init.trunc_normal_" if cell["way"] == "naive" else "reference")
    naive = [cell for cell in measured["cells"] if cell["way"] == "naive"]
    assert {cell["speedup"] for cell in naive} == {1.0}
    (table,) = Benchmark().tables({"grid": [measured]})
    assert [row[:1] for row in table.rows] == [[cell["way"]] for cell in measured["cells"]]


def test_what_does_not_fit_is_skipped_with_the_reason(monkeypatch):
    monkeypatch.setattr("ferret_bench.measure.memory.available_bytes", lambda device: 10**9)
    found = grid.measure(grid.Sizes((10**9,), (1000,), (1,)), CPU, 20, silent)
    assert found["cells"] == []
    assert {cell["reason"].split(";")[0] for cell in found["skipped"]} == {"needs 12.0 GB of memory"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_tables_of_cost_add_up(dtype):
    found = costs.costs(TOY, CPU, dtype, silent)
    rows = {row["method"]: row for row in found["methods"]}
    work = found["work_seconds"]
    assert list(rows) == ["FedZO", "FedKSeed", "FedAvg", "Ferret, naive", "Ferret, T", "Ferret, G"]
    assert all(seconds > 0 for seconds in work.values())
    assert rows["FedAvg"]["local_update_s"] == 10 * work["step"]
    assert rows["FedKSeed"]["aggregation_s"] == 4096 * work["direction"]
    assert rows["FedZO"]["local_update_s"] == 200 * (2 * work["forward"] + 3 * work["direction"])
    assert rows["Ferret, G"]["overall_s"] == 10 * work["step"] + work["norms"] + work["G project"] + work["G apply all"]
    assert set(found["bounds"]) == set(found["ratios"])
    _, table = costs.Part().tables({TOY.name: found})
    assert [row[:2] for row in table.rows] == [[TOY.name, method] for method in rows]


def test_a_model_without_room_is_left_out(monkeypatch):
    monkeypatch.setattr("ferret_bench.measure.memory.available_bytes", lambda device: 10**5)
    assert "needs" in costs.costs(TOY, CPU, torch.float32, silent)["skipped"]


@pytest.mark.parametrize("shape", [TOY, TOY._replace(tied=False)])
def test_a_shape_knows_its_size(shape):
    assert sum(parameter.numel() for parameter in trainable(random_llama(shape, CPU)).values()) == shape.elements


def test_the_largest_model_is_chosen_that_fits_and_trains_in_time(monkeypatch):
    monkeypatch.setattr("ferret_bench._projection.bounds._operations_per_second", lambda: 1e11)
    monkeypatch.setattr("ferret_bench.measure.memory.available_bytes", lambda device: 20 * 10**9)
    assert largest(SMALL, 10_000).name == "LLaMA-340M"
    assert largest(SMALL, 100).name == "LLaMA-110M"
    assert largest(SMALL, 0).name == "LLaMA-toy"


def test_sides_take_turns_after_a_warm_up():
    seen = []
    timings = in_turns({side: lambda side=side: seen.append(side) for side in "ab"}, CPU, Turns(3, 3))
    assert seen == ["a", "b"] * 4
    assert timings.to_json()["repetitions"] == 3


def test_a_ratio_is_the_median_of_paired_times():
    timings = Timings({"a": [1.0, 20.0, 3.0], "b": [1.0, 10.0, 1.0]})
    assert timings.ratio("a", "b") == 2
    assert timings.median("a") == 3


def test_extra_memory_is_the_peak_without_the_result():
    half = 12 << 20

    def action() -> torch.Tensor:
        scratch = torch.ones(2 * half)
        time.sleep(0.05)  # on a busy machine the watching thread gets its turn late
        return scratch[:half] + scratch[half:]

    # Both arrays are over 32 MiB: malloc takes smaller ones from memory that is resident already.
    found = extra_bytes(action, CPU)
    assert found is None or found == pytest.approx(2 * half * 4, rel=0.1)


def test_a_bound_holds_or_not():
    limits = {"more": Bound(">=", 25), "less": Bound("<", 1), "unknown": Bound("<=", 3)}
    found = against(limits, {"more": 25.0, "less": 1.0, "unknown": None})
    assert [bound["holds"] for bound in found.values()] == [True, False, None]


def test_bytes_of_a_cell_are_those_that_move():
    assert Cell(Family("G"), "apply", 100, 10, 7).bytes_per_element == 8
    assert Cell(Naive(), "apply", 100, 10, 2).bytes_per_element == 20 * 4 * 4


def test_vectors_differ_everywhere():
    vectors = Vectors.random(1000, CPU)
    assert (vectors.before != vectors.after).all()


@pytest.mark.slow
def test_a_table_for_people(bounded):
    (bound,) = Benchmark().tables({"asked": {"quick": True}, **bounded})
    assert [row[0] for row in bound.rows] == list(KEYS)
    assert "small sizes" in bound.title


def test_the_page_of_results_has_the_ratios_of_the_committed_runs():
    page = RESULTS.with_suffix(".md").read_text()
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    held = {key: sum(run["bounds"][key]["holds"] for run in runs) for key in KEYS}
    assert [[key, bound, *values] for key, _, bound, *values in rows] == [
        [f"`{key}`", bound, *(shown(run["ratios"][key]) for run in runs), f"{held[key]} of {len(runs)}"]
        for key, bound in KEYS.items()
    ]
