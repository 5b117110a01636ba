"""The lengths that a plan of memory and time is based on."""

from __future__ import annotations

import json
from pathlib import Path

from ferret_core.experiment import token_lengths
from ferret_core.experiment.estimate import EvaluationLengths
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


def test_an_evaluation_has_its_own_lengths_and_its_prompts_are_padded(toy_spec: SpecFactory, tmp_path: Path) -> None:
    training = [{"instruction": "Say it.", "output": "yes"}] * 4
    test = [{"instruction": "Say it. " * times, "output": "no no no"} for times in (1, 4)]
    paths = [tmp_path / name for name in ("train.jsonl", "test.jsonl")]
    for path, rows in zip(paths, (training, test), strict=True):
        path.write_text("\n".join(map(json.dumps, rows)))

    def evaluation(**options: int) -> EvaluationLengths:
        dataset = {"name": "jsonl", "train": str(paths[0]), "test": str(paths[1])}
        lengths = token_lengths.measure(toy_spec(dataset=dataset, evaluation={"generate_examples": 2, **options}))
        assert lengths is not None
        assert lengths.evaluation is not None
        assert lengths.evaluation.mean > lengths.mean
        assert lengths.evaluation.answer > lengths.answer
        return lengths.evaluation

    together, apart = evaluation(batch_size=2), evaluation(batch_size=1)
    assert together.examples == apart.examples == 2
    assert together.prompt > apart.prompt == apart.mean - apart.answer
    assert evaluation(examples=1).examples == 1
