"""``ferret data show`` on a small file with three labels."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from matplotlib import image

from ferret_cli.commands.data import show
from ferret_core.protocol.errors import FerretError


@pytest.fixture
def spec(tmp_path: Path, tiny_model_dir: Path) -> Path:
    """60 examples of three labels, of which 20, one of them long, to train on and the rest held out."""
    rows = [{"instruction": f"Say {i}.", "output": str(i), "label": "abc"[i % 3]} for i in range(60)]
    rows[0]["instruction"] = "Say it. " * 100
    for name, part in (("train.jsonl", rows[:20]), ("test.jsonl", rows[20:])):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    file = tmp_path / "small.toml"
    file.write_text(
        f"""
        name = "small"
        model.source = "{tiny_model_dir}"
        dataset = {{ name = "jsonl", train = "train.jsonl", test = "test.jsonl" }}
        partition = {{ name = "dirichlet", alpha = 0.5 }}
        participants.simulated = 5
        """
    )
    return file


def test_the_document_the_table_and_the_picture_of_one_partition(
    ferret_in_process: Any, spec: Path, tmp_path: Path
) -> None:
    done = ferret_in_process("data", "show", spec, "--out", tmp_path / "pictures", "--tokens", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["dataset"], found["partition"], found["clients"], found["examples"]) == ("jsonl", "dirichlet", 5, 20)
    assert found["labels"] == {"a": 7, "b": 7, "c": 6}
    assert sum(found["held_out_labels"].values()) == 40
    assert found["truncated"] == 1
    assert found["per_client"]["truncated"] == {"min": 0, "median": 0, "max": 1}
    assert found["tokens"] > 20 * 40
    with Path(found["csv"]).open() as lines:
        counted: Counter[str] = Counter()
        for row in csv.DictReader(lines):
            counted[row["label"]] += int(row["examples"])
    assert counted == found["labels"]
    assert image.imread(found["png"]).shape[:2] == (720, 1280)
    assert found["png"] in done.stderr


def test_without_a_folder_nothing_is_written(ferret_in_process: Any, spec: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    done = ferret_in_process("data", "show", spec, "--set", "participants.simulated=4")
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["4", "clients", "least", "median", "most", "all"]
    assert [line.split()[-1] for line in lines] == ["20", "3", "40", "3"]
    assert set(tmp_path.iterdir()) == before


def refused(code: str, spec: Path, *assignments: str, **options: Any) -> FerretError:
    with pytest.raises(FerretError) as caught:
        show(spec, list(assignments), **options)
    assert caught.value.code == code
    return caught.value


def test_a_broken_line_is_named_and_nothing_is_drawn(spec: Path, tmp_path: Path) -> None:
    with (tmp_path / "train.jsonl").open("a") as file:
        file.write('{"instruction": "Say 21.", "outp')
    error = refused("dataset.invalid", spec, out=tmp_path / "pictures")
    assert f"{tmp_path}/train.jsonl': line 21 is not valid JSON" in error.detail
    assert list((tmp_path / "pictures").iterdir()) == []


def test_real_participants_hold_nothing_to_show(spec: Path) -> None:
    error = refused("spec.invalid", spec, "participants.simulated=0", "participants.edge=2")
    assert "real participants bring their own data" in error.detail
