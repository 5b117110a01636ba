"""Both storages, and what tests do behind their backs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_core.storage import Storage, open_storage
from tests import object_store


class Files:
    """``file://`` in a scratch folder."""

    def __init__(self, folder: Path) -> None:
        self.storage: Storage = open_storage(f"file://{folder}/with space")

    def age(self, location: str, seconds: float = 100) -> None:
        """It was stored so much earlier."""
        then = self.storage.clock() - seconds
        os.utime(self.storage.path(location), (then, then))

    def write(self, location: str, data: bytes) -> None:
        """Other bytes lie there."""
        self.storage.path(location).write_bytes(data)

    def remove(self, location: str) -> None:
        self.storage.path(location).unlink()


class Objects:
    """``s3://`` under a prefix of a bucket of its own."""

    PREFIX = "with space/and more"

    def __init__(self, url: str, options: Any) -> None:
        self.storage: Storage = open_storage(f"{url}/{self.PREFIX}", options)
        self.bucket = url.removeprefix("s3://")
        self.endpoint = options.endpoint

    def age(self, location: str, seconds: float = 100) -> None:
        self._act("age", location, seconds=seconds)

    def write(self, location: str, data: bytes) -> None:
        self._act("rot", location, content=data)

    def remove(self, location: str) -> None:
        self._act("remove", location)

    def _act(self, what: str, location: str, **values: Any) -> None:
        object_store.act(self.endpoint, what, self.bucket, f"{self.PREFIX}/{location}", **values)


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.heavy)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Files | Objects:
    if request.param == "file":
        return Files(tmp_path)
    new: Callable[..., Any] = request.getfixturevalue("bucket")
    return Objects(*new(part_bytes=4096))


@pytest.fixture
def storage(kept: Files | Objects) -> Storage:
    return kept.storage
