from __future__ import annotations

import csv
import io

import pytest

from ferret_cli.files import to_csv, writable, write
from tests.refusals import refused


def test_a_file_is_replaced_whole(tmp_path):
    write(tmp_path / "a.csv", b"before")
    assert write(tmp_path / "a.csv", b"after").read_bytes() == b"after"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_what_cannot_be_put_in_place_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(OSError):
        write(tmp_path / "a.csv", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "taken").touch()
    with refused("request.invalid", "--out"):
        writable(tmp_path / "taken", "--out")


def test_numbers_keep_all_their_digits(tmp_path):
    (row,) = csv.DictReader(io.StringIO(to_csv([{"name": "a, b", "third_mean": 1 / 3, "third_std": None}])))
    assert row == {"name": "a, b", "third_mean": "0.3333333333333333", "third_std": ""}
    assert float(row["third_mean"]) == 1 / 3


def test_no_rows_are_an_empty_file():
    assert to_csv([]) == ""
