from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ferret_core.datasets.base import Example
from ferret_core.datasets.dolly import Config, Dataset
from tests.ferret_core.datasets.hub_reader import read
from tests.refusals import refused

REVISION = "bdd27f4d94b9c1f951818a7da7fd7aeea5dbff1a"
PATH = "/datasets/databricks/databricks-dolly-15k/resolve/{revision}/databricks-dolly-15k.jsonl"
ROWS = [
    {"instruction": "Who?", "context": "", "response": "I.", "category": "open_qa"},
    {"instruction": "Shorten.", "context": "A long text.", "response": "Text.", "category": "summarization"},
    {"instruction": "Sort.", "context": "b a", "response": "a b", "category": "classification"},
]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_bytes(gzip.compress(as_lines(rows)) if path.suffix == ".gz" else as_lines(rows))
    return str(path)


@pytest.mark.parametrize("name", ["dolly.jsonl", "dolly.jsonl.gz"])
def test_the_papers_task_is_held_out_and_the_others_trained_on(tmp_path: Path, name: str) -> None:
    dataset = Dataset(Config(path=write(tmp_path / name, ROWS)))
    assert dataset.train() == [
        Example("Who?", "", "I.", "open_qa"),
        Example("Sort.", "b a", "a b", "classification"),
    ]
    assert dataset.test() == [Example("Shorten.", "A long text.", "Text.", "summarization")]


def test_another_category_can_be_held_out(tmp_path: Path) -> None:
    dataset = Dataset(Config(path=write(tmp_path / "dolly", ROWS), held_out="open_qa"))
    assert [example.label for example in dataset.test()] == ["open_qa"]
    assert [example.label for example in dataset.train()] == ["summarization", "classification"]


def test_an_unknown_category_is_refused(tmp_path: Path) -> None:
    dataset = Dataset(Config(path=write(tmp_path / "dolly", ROWS), held_out="poetry"))
    with refused("dataset.invalid", "no example has this category; the file has 3 others") as caught:
        dataset.train()
    assert (caught.value.errors[0].field, caught.value.errors[0].value) == ("dataset.held_out", "poetry")


def test_a_file_of_the_held_out_category_alone_leaves_nothing_to_train_on(tmp_path: Path) -> None:
    with refused("dataset.invalid", "none is left to train on"):
        Dataset(Config(path=write(tmp_path / "dolly", ROWS[1:2]))).train()


@pytest.mark.parametrize("field", ["instruction", "response", "category"])
def test_a_missing_field_is_named_with_file_and_line(tmp_path: Path, field: str) -> None:
    path = write(tmp_path / "dolly", [*ROWS, {name: text for name, text in ROWS[0].items() if name != field}])
    with refused("dataset.invalid", f"{path}': line 4: field '{field}' is missing", field="dataset.path"):
        Dataset(Config(path=path)).test()


def test_a_revision_beside_a_file_is_refused() -> None:
    with pytest.raises(ValidationError, match="revision is for the hub"):
        Config(path="a", revision="b")


def test_reads_the_hub_at_a_revision(tmp_path: Path, hub: Any) -> None:
    with hub({PATH.format(revision=REVISION): as_lines(ROWS)}) as endpoint:
        (found,) = read("dolly", endpoint, tmp_path / "home", {"revision": REVISION})
    local = Dataset(Config(path=write(tmp_path / "dolly", ROWS)))
    assert found == json.loads(json.dumps([local.train(), local.test()]))
