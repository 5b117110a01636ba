from __future__ import annotations

import importlib
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_sdk.exporters import export_metrics
from ferret_sdk.service.run import Run
from tests.ferret_sdk.exporters.conftest import VALUES

pytestmark = pytest.mark.heavy


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


BLOCK, HEADER, MAGIC = 32_768, 7, 7
FULL, FIRST, LAST = 1, 2, 4


def written(data: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's format, behind the magic number of W&B's files."""
    place, parts = MAGIC, list[bytes]()
    while place + HEADER <= len(data):
        if (left := BLOCK - place % BLOCK) < HEADER:
            place += left
            continue
        size, kind = struct.unpack("<HB", data[place + 4 : place + HEADER])
        place += HEADER + size
        parts = [*([] if kind in {FULL, FIRST} else parts), data[place - size : place]]
        if kind in {FULL, LAST}:
            yield b"".join(parts)


def records(folder: Path) -> list[Any]:
    """What the files say that `wandb sync` uploads. W&B's own process writes them, and may end after the export."""
    Record = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    deadline = time.monotonic() + 30
    while True:
        files = sorted(folder.glob("wandb/offline-run-*/*.wandb"))
        found = [Record.FromString(record) for file in files for record in written(file.read_bytes())]
        if any(record.WhichOneof("record_type") == "exit" for record in found):
            return found
        assert time.monotonic() < deadline, "W&B did not end the run"
        time.sleep(0.05)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records(folder)
        if record.WhichOneof("record_type") == "history"
    ]


@pytest.mark.slow
def test_every_round_is_there_once_though_the_export_was_stopped(run: Run, interrupted: Any, tmp_path: Path) -> None:
    assert interrupted(run, "wandb", tmp_path) == [2, 0]
    found = rows(tmp_path)
    for name, points in VALUES.items():
        assert sorted((row["round"], row[name]) for row in found if name in row) == sorted(points.items())


@pytest.mark.slow
def test_parameters_tags_and_times_are_there(run: Run, tmp_path: Path) -> None:
    export_metrics(run, "wandb", tmp_path, project="mine")
    told = next(record.run for record in records(tmp_path) if record.WhichOneof("record_type") == "run")
    assert (told.run_id, told.display_name, told.project) == (run.id, "renamed", "mine")
    assert list(told.tags) == ["K search"]
    config = {item.key: item.value_json for item in told.config.update}
    assert config["algorithm.local.learning_rate"] == "0.001"
    assert rows(tmp_path)[0]["_timestamp"] == 1767225602
