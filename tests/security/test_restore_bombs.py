"""``ferret restore`` of archives that were made to fill the disk, to be read for ever, or to write elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from ferret_cli.backup.manifest import MANIFEST, RESERVE_BYTES
from ferret_cli.backup.restore import restore
from ferret_core.protocol.errors import FerretError
from ferret_db import schema_version
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("no_settings")

BOMB_BYTES = 2 << 30
NAME = "storage/updates/00/bomb"


def manifest(files: dict[str, tuple[int, str]]) -> bytes:
    entries = {name: {"size": size, "digest": digest} for name, (size, digest) in files.items()}
    made = {"format": 1, "created_at": "2026-11-22T00:00:00Z", "revision": schema_version.HEAD, "files": entries}
    return json.dumps(made).encode()


def archive(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], said: bytes) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        for info, data in [*members, (tarfile.TarInfo(MANIFEST), said)]:
            if info.size == 0:
                info.size = len(data)
            file.addfile(info, io.BytesIO(data.ljust(info.size, b"\0")) if info.size < 1 << 20 else None)
    return path


def packed(path: Path) -> Path:
    """Packs the file as a backup is packed."""
    target = path.with_suffix(".gz")
    with path.open("rb") as file, gzip.open(target, "wb", compresslevel=1) as out:
        shutil.copyfileobj(file, out)
    return target


def sparse_gnu(path: Path) -> Path:
    """Old GNU format: 2 GiB of which one block is stored."""
    info = tarfile.TarInfo(NAME)
    info.size = 512
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as file:
        header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        header[156:157] = tarfile.GNUTYPE_SPARSE
        header[386:410] = b"%011o\0%011o\0" % (BOMB_BYTES - 512, 512)
        header[483:495] = b"%011o\0" % BOMB_BYTES
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        file.fileobj.write(bytes(header) + b"x" * 512)
        file.offset += 1024
        said = manifest({NAME: (BOMB_BYTES, "00")})
        last = tarfile.TarInfo(MANIFEST)
        last.size = len(said)
        file.addfile(last, io.BytesIO(said))
    return path


def sparse_pax(path: Path) -> Path:
    """PAX format 1.0: the map stands before the data."""
    info = tarfile.TarInfo(NAME)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(BOMB_BYTES)}
    info.pax_headers["GNU.sparse.name"] = NAME
    data = f"1\n{BOMB_BYTES - 512}\n512\n".encode().ljust(512, b"\0") + b"x" * 512
    return archive(path, [(info, data)], manifest({NAME: (BOMB_BYTES, "00")}))


def declared(path: Path) -> Path:
    """A header that says 2 GiB, and nothing behind it."""
    info = tarfile.TarInfo(NAME)
    info.size = BOMB_BYTES
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT))
    return path


def long_header(path: Path) -> Path:
    """A header of 200 MB, which a reader takes into memory."""
    info = tarfile.TarInfo("./PaxHeaders/bomb")
    info.type, info.size = tarfile.XHDTYPE, 200 << 20
    with path.open("wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.truncate(info.size + 10240)
    return path


def special(kind: bytes) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        info = tarfile.TarInfo(NAME)
        info.type, info.linkname = kind, "/etc/passwd"
        return archive(path, [(info, b"")], manifest({NAME: (0, blake3().hexdigest())}))

    return make


BOMBS = {
    "sparse, GNU": sparse_gnu,
    "sparse, PAX": sparse_pax,
    "declared only": declared,
    "long header": long_header,
    "symbolic link": special(tarfile.SYMTYPE),
    "hard link": special(tarfile.LNKTYPE),
    "FIFO": special(tarfile.FIFOTYPE),
    "device": special(tarfile.CHRTYPE),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_anything_is_written(tmp_path: Path, bomb: str) -> None:
    file = packed(BOMBS[bomb](tmp_path / "bomb.tar"))
    target = tmp_path / "target"
    target.mkdir()
    before = resource.getrusage(resource.RUSAGE_SELF)
    with pytest.raises(FerretError) as caught:
        restore(file, target / "home")
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert caught.value.code == "backup.invalid"
    assert list(target.iterdir()) == []
    assert (after.ru_oublock - before.ru_oublock) * 512 < 1 << 20
    assert (after.ru_maxrss - before.ru_maxrss) * 1024 < 64 << 20


def test_more_than_the_disk_has_room_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes can unpack to more than the disk has room for."""
    info = tarfile.TarInfo(NAME)
    info.size = 8 << 20
    file = tmp_path / "zeros.tar"
    said = manifest({NAME: (info.size, "00")})
    last = tarfile.TarInfo(MANIFEST)
    last.size = len(said)
    with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
        archive.addfile(last, io.BytesIO(said))
    usage = shutil.disk_usage(tmp_path)._replace(free=(4 << 20) + RESERVE_BYTES)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    target = tmp_path / "target"
    target.mkdir()
    with refused("storage.full", "MiB are needed"):
        restore(packed(file), target / "home")
    assert list(target.iterdir()) == []


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tar")
    command = [sys.executable, "-m", "ferret_cli", "restore", str(tmp_path / "pipe.tar"), "--home", str(tmp_path / "h")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "is not a regular file" in done.stderr
