"""What a team does is what one process does, to the bit: two and four processes, over gloo."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ferret_core.replica.sharded.member import projected, simulated
from tests.ferret_core.replicas import SpecFactory

pytestmark = pytest.mark.heavy
SHORT = {
    "rounds": 1,
    "participants": {"simulated": 2},
    "evaluation": {"examples": 4, "generate_examples": 2, "max_new_tokens": 3},
}
SLOW = pytest.mark.slow
LOCAL = {"learning_rate": 1e-2, "steps": 2, "batch_size": 2, "accumulation": 3}


def experiments(toy_spec: SpecFactory, names: list[str]) -> list[dict[str, Any]]:
    all_of_them = {
        "G": ("ferret", {"basis": "G", "K": 200, "local": {**LOCAL, "optimizer": "normalized", "momentum": 0.5}}),
        "T": ("ferret", {"basis": "T", "K": 60, "blocks": "grouped", "local": {**LOCAL, "optimizer": "sgd"}}),
        "H": ("ferret", {"basis": "H", "K": 200, "blocks": 5, "local": {**LOCAL, "optimizer": "adam"}}),
        "R": (
            "ferret",
            {
                "basis": "R",
                "K": 600,
                "seeds": "shared",
                "allocation": "uniform",
                "local": {**LOCAL, "optimizer": "adafactor", "activation_checkpointing": True},
            },
        ),
        "fedavg": ("fedavg", {"local": {**LOCAL, "optimizer": "adamw", "clip_norm": 0.5, "loss": "sequences"}}),
        "bfloat16": ("fedavg", {"local": {**LOCAL, "optimizer": "sgd", "precision": "bfloat16"}}),
        "fedzo": ("fedzo", {"local": {"steps": 1, "batch_size": 2}}),
        "importance": (
            "fedkseed",
            {"sampling": "importance", "K": 16, "local": {"steps": 1, "batch_size": 2}},
        ),
        "fedkseed": ("fedkseed", {"K": 16, "local": {"steps": 2, "batch_size": 2, "accumulation": 2}}),
    }
    return [
        toy_spec(all_of_them[name][0], options=all_of_them[name][1], **SHORT).model_dump(mode="json") for name in names
    ]


@pytest.mark.parametrize(
    ("size", "names"),
    [
        (2, ["G", "fedavg", "fedkseed"]),
        pytest.param(2, ["T", "H", "R", "bfloat16", "fedzo", "importance"], marks=SLOW),
        pytest.param(4, ["G", "T", "fedavg", "fedkseed"], marks=SLOW),
    ],
)
@pytest.mark.slow
def test_a_simulation_gives_the_models_of_one_process(
    in_team: Callable[..., list[Any]], toy_spec: SpecFactory, size: int, names: list[str]
) -> None:
    specs = experiments(toy_spec, names)
    for name, spec, found in zip(names, specs, in_team(size, *(["simulated", spec] for spec in specs)), strict=True):
        alone = simulated(spec)
        assert found["digests"] == alone["digests"], name
        assert found["ledger"] == alone["ledger"], name
        assert found["metrics"] == [pytest.approx(metrics, rel=1e-12) for metrics in alone["metrics"]], name


@SLOW
def test_guards_and_checkpoints_are_those_of_one_process(
    in_team: Callable[..., list[Any]], toy_spec: SpecFactory, tmp_path: Path
) -> None:
    options = {"K": 200, "local": {**LOCAL, "optimizer": "normalized"}}
    more = {**SHORT, "rounds": 2, "evaluation": {"examples": 4, "generate_examples": 0, "validation_share": 0.5}}
    guarded = {"step_guard": True, "development_examples": 4}
    spec = toy_spec(options=options, server=guarded, **more).model_dump(mode="json")
    (found,) = in_team(2, ["simulated", spec, str(tmp_path / "team")])
    expected = simulated(spec, str(tmp_path / "alone"))
    assert found["ledger"] == expected["ledger"]
    assert found["metrics"] == [pytest.approx(metrics, rel=1e-12) for metrics in expected["metrics"]]
    files = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert sorted(path.name for path in (tmp_path / "team").iterdir()) == files
    for name in files:
        assert (tmp_path / "team" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name


@SLOW
def test_dropout_draws_what_it_draws_with_one_process(
    in_team: Callable[..., list[Any]], toy_spec: SpecFactory, tiny_model_dir: Path, tmp_path: Path
) -> None:
    source = tmp_path / "model"
    shutil.copytree(tiny_model_dir, source)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "attention_dropout": 0.5}))
    more = {**SHORT, "model": {"source": str(source)}, "evaluation": {"examples": 4, "generate_examples": 0}}
    spec = toy_spec("fedavg", options={"local": {**LOCAL, "optimizer": "sgd"}}, **more).model_dump(mode="json")
    (found,) = in_team(2, ["simulated", spec])
    assert found["ledger"] == simulated(spec)["ledger"]


@SLOW
@pytest.mark.parametrize("size", [3])
def test_blocks_that_span_shards_have_the_coordinates_of_whole_ones(
    in_team: Callable[..., list[Any]], tiny_model_dir: Path, size: int
) -> None:
    """Three processes: rows do not divide by three, and a norm's 32 weights leave uneven shards."""
    asked = [["projected", str(tiny_model_dir), rule, letter] for rule in (1, 7, "grouped") for letter in "GT"]
    for case, found in zip(asked, in_team(size, *asked), strict=True):
        assert found == projected(*case[1:]), case[2:]
