"""The fuzzed contributions of `ferret bench fuzz`, some thousands of them, and the million whose run is committed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ferret_bench import fuzz
from ferret_bench.fuzz import Benchmark, mutated
from ferret_core.contribution import unseal

COMMITTED = Path(__file__).parents[2] / "docs/results/hardening/fuzz.json"


@pytest.fixture(scope="module")
def seeds() -> list[fuzz.Seed]:
    return fuzz._seeds(lambda _: None)


@pytest.mark.slow
def test_what_is_fuzzed_is_accepted_as_it_is(seeds: list[fuzz.Seed]) -> None:
    assert len(seeds) == 2 * len(fuzz.ALGORITHMS)
    for seed in seeds:
        assert unseal(seed.blob, seed.spec, seed.task, seed.shapes).blob == seed.blob


@pytest.mark.slow
def test_thousands_are_accepted_or_refused_with_a_typed_error(
    seeds: list[fuzz.Seed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "QUICK", 6000)
    monkeypatch.setattr(fuzz, "SAID", 3000)
    monkeypatch.setattr(fuzz, "_seeds", lambda _: seeds)
    benchmark, said = Benchmark(), list[str]()
    document = json.loads(json.dumps(benchmark.run(said.append, quick=True), allow_nan=False))
    assert document["untyped"] == []
    assert document["accepted"] + sum(document["refused"].values()) == document["contributions"] == 6000
    assert set(document["refused"]) == fuzz.TYPED
    assert said == ["3,000 contributions, 0 untyped", "6,000 contributions, 0 untyped"]
    outcomes, _ = benchmark.tables(document)
    assert dict(outcomes.rows)["accepted"] == document["accepted"]  # pyrefly: ignore[no-matching-overload]


@pytest.mark.slow
def test_the_same_million_comes_again(seeds: list[fuzz.Seed]) -> None:
    first, second = ([mutated(seeds, draw)[1] for _ in range(200)] for draw in (random.Random(1), random.Random(1)))
    assert first == second
    assert len(set(first)) > 150


@pytest.mark.slow
def test_an_exception_that_nobody_typed_is_counted_and_told(
    seeds: list[fuzz.Seed], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("nobody expected it")

    monkeypatch.setattr(fuzz, "unseal", fail)
    found = fuzz._open_all(seeds, 3, float("inf"), lambda _: None)
    assert found.untyped == ["ZeroDivisionError('nobody expected it')"] * 3


def test_the_committed_run_keeps_its_bounds() -> None:
    document = json.loads(COMMITTED.read_text())
    assert document["contributions"] == document["accepted"] + sum(document["refused"].values()) == 1_000_000
    assert all(found["holds"] for found in document["bounds"].values())
    assert document["bounds"].keys() == fuzz.BOUNDS.keys()
