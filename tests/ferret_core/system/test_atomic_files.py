from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ferret_core.system.atomic_files import (
    atomic_write,
    create_durably,
    disk_full_as_error,
    rename_durably,
    write_durably,
)
from tests.refusals import refused


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_takes_the_place_of_another_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "file"
    for content in (b"old", b"new"):
        write_durably(target, content)
        assert files(tmp_path) == {"a/b/file": content}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_writer_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    write_durably(tmp_path / "file", b"old")

    def fail() -> None:
        with atomic_write(tmp_path / "file") as file:
            file.write(b"ne")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert files(tmp_path) == {"file": b"old"}


@pytest.mark.heavy
@pytest.mark.parametrize("write", ["write_durably", "create_durably"])
def test_a_full_disk_is_a_message_and_leaves_nothing_half_written(tmp_path: Path, write: str) -> None:
    """A real limit of the kernel on file size stands in for a full disk: the write fails in the middle."""
    code = f"""
import resource, signal
from pathlib import Path
from ferret_core.system import atomic_files
from ferret_core.protocol.errors import FerretError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, {resource.getrlimit(resource.RLIMIT_FSIZE)[1]}))
try:
    atomic_files.{write}(Path({str(tmp_path / "file")!r}), bytes(100_000))
except FerretError as error:
    print(error.code, error.detail)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == f"storage.full no space left for {tmp_path / 'file'}: free some space and try again\n"
    assert files(tmp_path) == {}


def test_of_several_writers_of_a_new_file_the_first_wins(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: create_durably(target, b"%d" % number * 1000), range(64)))
    (content,) = files(tmp_path).values()
    assert content in {b"%d" % number * 1000 for number in range(64)}
    create_durably(target, b"too late")
    assert files(tmp_path) == {"new/file": content}


def test_bytes_are_on_disk_before_their_name_is_and_the_name_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_durably(tmp_path / "file", b"old")
    flushed: list[tuple[str, bytes]] = []

    def look(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        flushed.append((kind, (tmp_path / "file").read_bytes()))

    monkeypatch.setattr(os, "fsync", look)
    write_durably(tmp_path / "file", b"new")
    assert flushed == [("file", b"old"), ("folder", b"new")]


def test_folders_that_the_system_cannot_flush_are_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows opens no folder."""
    opened = os.open

    def open_no_folder(path: str | os.PathLike[str], *arguments: int) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", open_no_folder)
    with pytest.raises(PermissionError):
        write_durably(tmp_path / "file", b"on another system")
    monkeypatch.setattr(sys, "platform", "win32")
    write_durably(tmp_path / "deep" / "file", b"here")
    assert files(tmp_path / "deep") == {"file": b"here"}


def test_a_finished_part_is_renamed_into_a_folder_that_is_made_for_it(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"whole")
    rename_durably(tmp_path / "part", tmp_path / "deep" / "file")
    assert files(tmp_path) == {"deep/file": b"whole"}


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(number, os.strerror(number)) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
        RuntimeError("I/O error: File too large (os error 27)"),
    ],
)
def test_every_way_to_say_that_a_disk_is_full_is_understood(error: Exception) -> None:
    with (
        refused("storage.full", "no space left for a picture: free"),
        disk_full_as_error("a picture"),
    ):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), RuntimeError("error 28"), KeyError("28")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, disk_full_as_error("a picture"):
        raise error
    assert caught.value is error
