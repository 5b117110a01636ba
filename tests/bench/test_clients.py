"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json

import pytest

from ferret_bench._control import databases
from ferret_bench.clients import FRACTION, FULL, QUICK, Benchmark
from ferret_worker.coordinate import OPENED_AT_ONCE

pytestmark = pytest.mark.xdist_group("clients")  # what is measured is measured once


def silent(line: str) -> None:
    assert line


@pytest.fixture(scope="module")
def document(both_databases) -> dict:
    return Benchmark().run(silent, quick=True)


def test_small_sizes_open_a_round_in_the_same_way_as_full_ones() -> None:
    assert OPENED_AT_ONCE < QUICK.clients < FULL.clients


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.redis
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", databases.NAMES)
def test_a_few_of_many_clients_train_in_each_round_and_the_model_is_the_simulations(document, name) -> None:
    measured = document["databases"][name]
    assert document["asked_per_round"] == FRACTION * QUICK.clients
    assert measured["digest_equal"]
    assert measured["open_ms"]["p50"] <= measured["open_ms"]["p99"] <= measured["open_ms"]["max"]
    assert measured["seconds_per_client"] > 0
    assert measured["database_bytes"] > 100_000, "the schema alone"


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.redis
@pytest.mark.timeout(600)
def test_bounds_are_on_the_embedded_service_and_tables_are_for_people(document) -> None:
    assert document["bounds"]["digests_differ"]["value"] == 0
    json.dumps(document, allow_nan=False)
    rounds, memory, bounds = Benchmark().tables(document)
    assert [row[0] for row in rounds.rows] == list(databases.NAMES)
    assert {row[1] for row in memory.rows} > {"ferret_api"}
    assert "small sizes" in bounds.title
