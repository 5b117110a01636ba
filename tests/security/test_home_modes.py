"""An existing home that others may look into: what Ferret writes there is still its owner's alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ferret_core.system.permissions import restrict_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Open to everybody, as after a copy without modes."""
    home = tmp_path / "home"
    for folder in ("logs", "storage/updates", "broker/redis-server"):
        (home / folder).mkdir(parents=True)
    for name in ("ferret.db", "ferret.db-wal", "admin.token", "server.json", "logs/api.log", "mine.txt"):
        (home / name).write_text("x")
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return home


def open_to_others(home: Path) -> set[str]:
    """What other users can reach and read, write or enter, below a home that they may enter."""
    found = set[str]()
    for folder, folders, files in os.walk(home):
        folders[:] = [name for name in folders if not _closed(Path(folder) / name)]
        found |= {str((Path(folder) / name).relative_to(home)) for name in (*folders, *files) if _open(folder, name)}
    return found


def _closed(path: Path) -> bool:
    return stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0


def _open(folder: str, name: str) -> bool:
    return not _closed(Path(folder) / name)


def test_what_an_earlier_version_left_open_is_closed(home: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from ferret_core.system.permissions import restrict_home; "
        "home = Path(sys.argv[1]); restrict_home(home); (home / 'new').touch(); (home / 'folder').mkdir()"
    )
    subprocess.run([sys.executable, "-c", program, str(home)], check=True)
    assert open_to_others(home) == {"mine.txt"}, "what is not Ferret's keeps its mode"
    assert stat.S_IMODE((home / "logs/api.log").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o755


def test_a_link_is_not_followed(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o755)
    (home / "participants").symlink_to(elsewhere)
    before = os.umask(0o022)
    try:
        restrict_home(home)
    finally:
        os.umask(before)
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755
