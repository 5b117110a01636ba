"""``runs.jsonl``: every run that has ended, one per line, never changed."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from ferret_bench.reproduce.reruns.record import Record

FILE = "runs.jsonl"


class Store:
    """The runs in a folder. A truncated line counts as never written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.runs: dict[str, list[Record]] = {}
        for line in self._lines():
            try:
                self._keep(Record.model_validate_json(line))
            except ValidationError:
                continue

    def last(self, key: str) -> Record | None:
        """Returns the latest record of the run with this key."""
        return self.runs[key][-1] if key in self.runs else None

    def attempts(self, key: str) -> int:
        return len(self.runs.get(key, []))

    def add(self, run: Record) -> None:
        """Appends ``run`` durably."""
        with self.path.open("a+b") as file:
            if file.tell() and _last_byte(self.path) != b"\n":
                file.write(b"\n")
            file.write(run.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._keep(run)

    def _keep(self, run: Record) -> None:
        self.runs.setdefault(run.key, []).append(run)

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines() if self.path.exists() else []


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
