"""The lengths that a plan of memory and time is based on."""

from __future__ import annotations

import json
from pathlib import Path

from ferret_core.experiment import token_lengths
from tests.ferret_core.replicas import SpecFactory


def test_the_longest_example_is_found_outside_the_sample(toy_spec: SpecFactory, tmp_path: Path) -> None:
    rows = [{"instruction": "Say it.", "output": "yes"}] * 1200
    rows[601] = {"instruction": "Say it.", "output": "no " * 30}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    spec = toy_spec(dataset={"name": "jsonl", "train": str(path), "test": str(path)})
    lengths = token_lengths.measure(spec)
    shard = token_lengths.sample(spec)
    assert lengths is not None
    assert shard is not None
    assert lengths.longest > lengths.mean + 25
    assert lengths.mean == shard.longest, "the sample has only short ones"
