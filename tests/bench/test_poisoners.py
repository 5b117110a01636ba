from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ferret_bench import poisoners
from ferret_core.protocol.spec import ExperimentSpec


@pytest.mark.heavy
def test_every_attack_is_compared_with_the_clean_run(
    monkeypatch: pytest.MonkeyPatch, toy_spec: Callable[..., ExperimentSpec]
) -> None:
    toy = toy_spec().model_dump()
    base = {part: toy[part] for part in ("model", "dataset", "partition")} | {
        "local": toy["algorithm"]["local"] | {"steps": 2}
    }
    monkeypatch.setattr(poisoners, "_datasets", lambda folder: {"toy": base})
    benchmark, said = poisoners.Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    runs = document["runs"]
    assert said == [", ".join(run[part] for part in ("dataset", "algorithm", "attack", "rule")) for run in runs]
    clean = {run["algorithm"]: run for run in runs if run["attack"] == poisoners.CLEAN}
    assert all(run["over_clean"] == 0 for run in clean.values())
    for run in runs:
        assert run["over_clean"] == run["loss"] / clean[run["algorithm"]]["loss"] - 1
        assert (run["failed"], run["first"]) == (None, clean[run["algorithm"]]["first"])
        assert run["clipped"] + run["refused"] > 0 or "× 8192" not in run["attack"]
    table, _ = benchmark.tables(document)
    assert len(table.rows) == len(said) == 20
