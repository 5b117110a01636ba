"""Links to files, and copies where a file system has none."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ferret_core.replica.mapped.model_files import link

WITHOUT = [errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS]


@pytest.mark.parametrize("error", WITHOUT)
def test_where_a_file_system_cannot_link_a_file_is_copied(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", refuse)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"weights")
    link(source, target)
    assert target.read_bytes() == b"weights"
    assert target.stat().st_nlink == 1
