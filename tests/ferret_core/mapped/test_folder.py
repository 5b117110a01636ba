"""Copies of files, and links where a file system has none."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ferret_core.mapped.folder import copy, link

WITHOUT = [errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS]


@pytest.mark.parametrize("size", [0, 1, 5_000_001])
def test_a_copy_has_the_bytes(size: int, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(size))
    copy(source, target)
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("error", WITHOUT)
def test_a_file_system_that_can_neither_link_nor_copy_within_itself_is_read_and_written(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "copy_file_range", refuse)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"weights")
    link(source, target)
    assert target.read_bytes() == b"weights"
    assert target.stat().st_nlink == 1
