from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import FileKind, Storage, StoredFile, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(f"file://{tmp_path}/with space")


def test_a_blob_is_read_back_by_its_digest(storage: Storage) -> None:
    stored = storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    assert stored.digest == digest_bytes(b"coordinates")
    assert (storage.read(stored.location, stored.digest), storage.size(stored.location)) == (b"coordinates", 11)
    assert storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION) == stored


def test_a_rotten_blob_is_noticed_and_mended_by_storing_it_again(storage: Storage) -> None:
    stored = storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    storage.path(stored.location).write_bytes(b"coordinatez")
    with pytest.raises(FerretError) as caught:
        storage.read(stored.location, stored.digest)
    assert caught.value.code == "storage.corrupt"
    storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    assert storage.read(stored.location, stored.digest) == b"coordinates"


def test_a_blob_in_pieces_is_stored_as_one(storage: Storage) -> None:
    stored = storage.put_pieces((b"coor", memoryview(b"dinates")), FileKind.CONTRIBUTION, digest_bytes(b"coordinates"))
    assert stored == storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    assert storage.read(stored.location, stored.digest) == b"coordinates"


def test_a_file_is_moved_in_and_found_by_its_digest(storage: Storage) -> None:
    for _ in range(2):
        with storage.scratch(0) as folder:
            (folder / "body").write_bytes(b"coordinates")
            stored = storage.put_file(folder / "body", FileKind.CONTRIBUTION, digest_bytes(b"coordinates"))
        assert storage.read(stored.location, stored.digest) == b"coordinates"
        assert [file.location for file in storage.list()] == [stored.location]


@pytest.mark.parametrize("size", [11, 3 << 20], ids=["read", "mapped"])
def test_a_view_is_checked_and_stays_whatever_becomes_of_the_file(storage: Storage, size: int) -> None:
    data = bytes(range(11)) + bytes(size - 11)
    stored = storage.put_bytes(data, FileKind.CONTRIBUTION)
    view = storage.view(stored.location, stored.digest)
    storage.path(stored.location).unlink()
    assert view == data
    with pytest.raises(FerretError, match="is not in the storage"):
        storage.view(stored.location, stored.digest)
    storage.put_bytes(data, FileKind.CONTRIBUTION)
    with storage.path(stored.location).open("r+b") as file:
        file.write(b"x")
    with pytest.raises(FerretError, match="does not match"):
        storage.view(stored.location, stored.digest)


def test_what_is_not_there_is_named(storage: Storage) -> None:
    with pytest.raises(FerretError, match="updates/ab/abc") as caught:
        storage.read("updates/ab/abc", "abc")
    assert caught.value.code == "storage.missing"


@pytest.mark.parametrize("location", ["../outside", "/etc/passwd", "updates/../../x"])
def test_nothing_outside_the_folder_can_be_reached(storage: Storage, location: str) -> None:
    with pytest.raises(FerretError, match="outside"):
        storage.path(location)


def test_a_folder_is_stored_whole_with_its_last_file_last(storage: Storage, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "a-manifest.json"):
        (folder / name).write_text(name)
    stored = storage.put_folder(folder, FileKind.CHECKPOINT, last="a-manifest.json")
    assert list(stored) == ["config.json", "model.safetensors", "a-manifest.json"]
    assert {storage.path(file.location).parent for file in stored.values()} == {
        storage.path(f"checkpoints/{stored['a-manifest.json'].digest}")
    }
    assert storage.read(stored["config.json"].location, stored["config.json"].digest) == b"config.json"


@pytest.mark.heavy
def test_a_full_disk_is_a_message_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A real limit of the kernel on file size stands in for a full disk: the write fails in the middle."""
    code = f"""
import resource, signal
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import open_storage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, {resource.getrlimit(resource.RLIMIT_FSIZE)[1]}))
try:
    open_storage("file://{tmp_path}").put_bytes(bytes(100_000), "updates")
except FerretError as error:
    print(error.code, error.detail)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("storage.full no space left for")
    assert list(open_storage(f"file://{tmp_path}").list()) == []


@pytest.mark.parametrize(
    "write", [lambda storage: storage.put_bytes(b"x", FileKind.UPDATE), lambda storage: storage.scratch(1).__enter__()]
)
def test_room_is_checked_before_writing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, write: Callable[[Storage], object]
) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(FerretError, match="FERRET_STORAGE_URL") as caught:
        write(storage)
    assert caught.value.code == "storage.full"
    assert list(storage.list()) == []


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("I/O error: File too large (os error 27)")]
)
def test_a_library_that_finds_no_room_in_a_scratch_folder_is_understood(storage: Storage, error: Exception) -> None:
    def write() -> None:
        with storage.scratch(0) as folder:
            (folder / "half").write_text("written")
            raise error

    with pytest.raises(FerretError, match="free some space") as caught:
        write()
    assert caught.value.code == "storage.full"
    assert list(storage.list()) == []


def test_a_scratch_folder_of_a_killed_writer_can_be_collected(storage: Storage) -> None:
    with storage.scratch(0) as folder:
        (folder / "half").write_text("written")
        (left,) = storage.list()
        age(storage, left.location)
        assert storage.delete(left.location, storage.clock() - 50)


def test_another_error_in_a_scratch_folder_stays_what_it_is(storage: Storage) -> None:
    with pytest.raises(ZeroDivisionError), storage.scratch(0):
        raise ZeroDivisionError


@pytest.mark.parametrize("what", ["bytes", "folder"])
def test_every_flipped_bit_and_a_missing_file_are_noticed_without_holding_the_bytes(
    storage: Storage, tmp_path: Path, what: str
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "manifest").write_bytes(b"all there")
    stored = {
        "bytes": lambda: storage.put_bytes(b"all there", FileKind.UPDATE),
        "folder": lambda: storage.put_folder(tmp_path / "one", FileKind.CHECKPOINT, last="manifest")["manifest"],
    }[what]()
    path = storage.path(stored.location)
    for bit in range(8 * stored.size):
        data = bytearray(b"all there")
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(FerretError) as caught:
            storage.verify(stored.location, stored.digest)
        assert caught.value.code == "storage.corrupt"
    path.write_bytes(b"all there")
    storage.verify(stored.location, stored.digest)
    path.unlink()
    with pytest.raises(FerretError) as caught:
        storage.verify(stored.location, stored.digest)
    assert caught.value.code == "storage.missing"


def _unreadable(storage: Storage, location: str) -> BinaryIO:
    """No file here fails to be read. That of a process's memory does at address 0, with the error of a bad sector."""
    return Path("/proc/self/mem").open("rb")


def test_a_sector_that_cannot_be_read_is_a_rotten_file(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    monkeypatch.setattr(type(storage), "open", _unreadable)
    for look in (storage.read, storage.verify, storage.view):
        with pytest.raises(FerretError, match="cannot be read") as caught:
            look(stored.location, stored.digest)
        assert caught.value.code == "storage.corrupt"


def test_everything_is_listed_with_the_drafts_of_killed_writers(storage: Storage) -> None:
    update, memory = storage.put_bytes(b"one", FileKind.UPDATE), storage.put_bytes(b"two", FileKind.MEMORY)
    storage.path(update.location).with_name(".tmp-abc").write_bytes(b"half")
    listed = {file.location: file.size for file in storage.list()}
    draft = str(Path(update.location).with_name(".tmp-abc"))
    assert listed == {update.location: 3, memory.location: 3, draft: 4}
    assert all(file.stored_at <= storage.clock() for file in storage.list())


def age(storage: Storage, location: str, seconds: float = 100) -> None:
    then = storage.clock() - seconds
    os.utime(storage.path(location), (then, then))


def test_a_file_is_deleted_if_it_is_as_old_as_that(storage: Storage) -> None:
    stored = storage.put_bytes(b"old", FileKind.UPDATE)
    age(storage, stored.location)
    assert not storage.delete(stored.location, storage.clock() - 101)
    assert storage.delete(stored.location, storage.clock() - 99)
    assert not storage.delete(stored.location, storage.clock() - 99)
    assert list(storage.list()) == []
    assert not storage.path(stored.location).parent.exists(), "an empty folder is no use"
    assert storage.put_bytes(b"old", FileKind.UPDATE) == stored


def put_model(storage: Storage) -> list[StoredFile]:
    with storage.scratch(2) as folder:
        (folder / "manifest").write_text("m")
        (folder / "weights").write_text("w")
        return list(storage.put_folder(folder, FileKind.CHECKPOINT, last="manifest").values())


def test_storing_again_what_is_there_makes_it_new(storage: Storage) -> None:
    files = [storage.put_bytes(b"the same", FileKind.UPDATE), *put_model(storage)]
    inodes = [storage.path(file.location).stat().st_ino for file in files]
    for file in files:
        age(storage, file.location)
    before = storage.clock() - 50
    assert [storage.put_bytes(b"the same", FileKind.UPDATE), *put_model(storage)] == files
    assert [storage.delete(file.location, before) for file in files] == [False] * 3
    assert [storage.path(file.location).stat().st_ino for file in files] == inodes, "nothing was written again"


@pytest.mark.parametrize("rotten", [False, True])
def test_bytes_that_are_stored_again_while_they_are_collected_are_there_afterwards(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, rotten: bool
) -> None:
    """The collector has seen that the file is old; before it deletes, a writer stores the same bytes."""
    stored = storage.put_bytes(b"wanted again", FileKind.UPDATE)
    path = storage.path(stored.location)
    if rotten:
        path.write_bytes(b"wanted agaim")
    age(storage, stored.location)
    writer = threading.Thread(target=storage.put_bytes, args=(b"wanted again", FileKind.UPDATE))
    unlink = Path.unlink

    def write_first(found: Path, missing_ok: bool = False) -> None:
        if found == path:
            writer.start()
            writer.join(timeout=0.5)  # a writer that did not wait for the collector would be done
        unlink(found, missing_ok)

    monkeypatch.setattr(Path, "unlink", write_first)
    assert storage.delete(stored.location, storage.clock() - 50)
    writer.join()
    assert storage.read(stored.location, stored.digest) == b"wanted again"


def test_one_collects_at_a_time_and_not_too_often(storage: Storage) -> None:
    with storage.collecting(every=0) as first, storage.collecting(every=0) as second:
        assert (first, second) == (True, False)
    with storage.collecting(every=1000) as soon:
        assert not soon
    marker = storage.path(".collected")
    os.utime(marker, (storage.clock() - 1001,) * 2)
    with storage.collecting(every=1000) as due:
        assert due
    with storage.collecting(every=1000) as again:
        assert not again


def test_a_collection_that_failed_is_due_at_once(storage: Storage) -> None:
    def fail() -> None:
        with storage.collecting(every=1000) as due:
            assert due
            raise RuntimeError

    with storage.collecting(every=0):
        pass
    os.utime(storage.path(".collected"), (storage.clock() - 1001,) * 2)
    with pytest.raises(RuntimeError):
        fail()
    with storage.collecting(every=1000) as due:
        assert due


def test_nothing_is_collected_while_a_copy_is_made(storage: Storage) -> None:
    with storage.copying(), storage.copying(), storage.collecting(every=0) as turn:
        assert not turn
    with storage.collecting(every=0) as turn:
        assert turn


def test_an_unknown_scheme_names_the_ones_there_are() -> None:
    with pytest.raises(FerretError, match="choose one of file"):
        open_storage("ftp://somewhere")
