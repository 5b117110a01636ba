"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ferret_bench.backlog import QUICK, Benchmark
from ferret_cli.stack import broker


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.timeout(600)
def test_few_and_many_experiments_and_a_wide_round(need: Callable[[bool, str], None]) -> None:
    need(broker.find_program() is not None, "a broker: apt-get install redis-server")
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    (queued,) = document["queued"]
    assert [queued[part]["queued"] for part in ("few", "many")] == [QUICK.few, QUICK.many]
    assert all(queued[part]["per_minute"] > 0 and queued[part]["submit_p99_ms"] > 0 for part in ("few", "many"))
    assert queued["throughput_ratio"] == queued["many"]["per_minute"] / queued["few"]["per_minute"]
    assert document["opening"]["participants"] == QUICK.participants
    assert 0 < document["opening"]["longest_lock_ms"] <= 1000 * document["opening"]["seconds"]
    experiments, wide, _ = benchmark.tables(document)
    assert (len(experiments.rows), len(wide.rows), len(said)) == (2, 1, 3)
