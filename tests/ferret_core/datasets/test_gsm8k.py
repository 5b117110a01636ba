"""GSM8K from files, and from a server that speaks the hub's protocol on the loopback interface."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from ferret_core.datasets.base import Example
from ferret_core.datasets.gsm8k import Config, Dataset
from tests.ferret_core.datasets.hub_reader import read
from tests.refusals import refused

REVISION = "0123456789abcdef0123456789abcdef01234567"
TRAIN = [{"question": "2 + 2?", "answer": "<<2+2=4>>4\n#### 4"}, {"question": "1 + 1?", "answer": "2\n#### 2"}]
TEST = [{"question": "3 + 3?", "answer": "6\n#### 6"}]
PATH = "/datasets/openai/gsm8k/resolve/{revision}/main/{split}-00000-of-00001.parquet"


def as_parquet(rows: list[dict[str, str]], path: Path) -> bytes:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path.read_bytes()


def write(path: Path, rows: list[dict[str, str]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_reads_the_official_files(tmp_path: Path) -> None:
    dataset = Dataset(Config(train=write(tmp_path / "train", TRAIN), test=write(tmp_path / "test", TEST)))
    assert dataset.train() == [Example(row["question"], "", row["answer"]) for row in TRAIN]
    assert dataset.test() == [Example("3 + 3?", "", "6\n#### 6")]


def test_another_file_is_refused_with_line_and_field(tmp_path: Path) -> None:
    path = write(tmp_path / "train", [*TRAIN, {"instruction": "a"}])
    with refused("dataset.invalid", "line 3: field 'question'", field="dataset.train"):
        Dataset(Config(train=path, test=path)).train()


@pytest.mark.parametrize("options", [{"train": "a"}, {"test": "a"}, {"train": "a", "test": "b", "revision": "c"}])
def test_half_a_source_or_two_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Config.model_validate(options)


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused("dependency.missing", "pyarrow is not installed: pip install pyarrow"):
        Dataset(Config()).train()


def test_reads_the_hub_at_a_revision_and_keeps_a_copy(tmp_path: Path, hub: Any) -> None:
    files = {
        PATH.format(revision=revision, split=split): as_parquet(rows, tmp_path / "rows")
        for revision in ("main", REVISION)
        for split, rows in (("train", TRAIN), ("test", TEST))
    }
    with hub(files) as endpoint:
        expected = [[[row["question"], "", row["answer"], "", [], [], ""] for row in rows] for rows in (TRAIN, TEST)]
        assert read("gsm8k", endpoint, tmp_path / "home", {}, {"revision": REVISION}) == [expected, expected]
    assert read("gsm8k", endpoint, tmp_path / "home", {"revision": REVISION}) == [expected]


def test_what_the_hub_has_not_or_has_wrong_is_named(tmp_path: Path, hub: Any) -> None:
    train = PATH.format(revision="main", split="train")
    with hub({train: b"no parquet"}) as endpoint:
        broken, missing = read("gsm8k", endpoint, tmp_path / "home", {}, {"revision": "v9"})
    assert broken["code"] == missing["code"] == "dataset.invalid"
    assert broken["errors"][0]["field"] == "dataset.hub"
    assert "is not a complete Parquet file" in broken["detail"]
    assert "cannot be downloaded" in missing["detail"]
    assert "give local files" in missing["detail"]
