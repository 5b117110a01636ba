"""Files with secrets, as ssh treats keys."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.system.permissions import restrict_secret_file


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
def test_a_secret_that_others_can_read_is_closed_and_told(
    tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key"
    path.touch()
    path.chmod(mode)
    with caplog.at_level(logging.WARNING):
        restrict_secret_file(path)
        restrict_secret_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    (told,) = caplog.messages
    assert str(path) in told
    assert "request a new code" in told


def test_on_a_disk_without_modes_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.touch()
    path.chmod(0o644)
    monkeypatch.setattr(Path, "chmod", lambda self, mode: None)
    with pytest.raises(FerretError) as raised:
        restrict_secret_file(path)
    assert (raised.value.code, str(path) in raised.value.detail) == ("secret.exposed", True)
