from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from ferret_core.storage import FileKind, Storage
from tests.ferret_core.storage.conftest import Files
from tests.refusals import refused


@pytest.fixture
def kept(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_storing_again_what_is_there_writes_nothing(storage: Storage) -> None:
    path = storage.path(storage.put_bytes(b"the same", FileKind.UPDATE).location)
    before = path.stat().st_ino
    storage.put_bytes(b"the same", FileKind.UPDATE)
    assert path.stat().st_ino == before


def test_a_folder_that_has_become_empty_goes(kept: Files, storage: Storage) -> None:
    stored = storage.put_bytes(b"old", FileKind.UPDATE)
    kept.age(stored.location)
    assert storage.delete(stored.location, storage.clock() - 50)
    assert not storage.path(stored.location).parent.exists(), "an empty folder is no use"


def test_room_is_checked_before_writing(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with refused("storage.full", "FERRET_STORAGE_URL"):
        storage.put_bytes(b"x", FileKind.UPDATE)
    assert list(storage.list()) == []


def test_a_scratch_folder_of_a_killed_writer_can_be_collected(kept: Files, storage: Storage) -> None:
    with storage.scratch(0) as folder:
        (folder / "half").write_text("written")
        (left,) = storage.list()
        kept.age(left.location)
        assert storage.delete(left.location, storage.clock() - 50)


def _unreadable(storage: Storage, location: str) -> BinaryIO:
    """No file here fails to be read. That of a process's memory does at address 0, with the error of a bad sector."""
    return Path("/proc/self/mem").open("rb")


def test_a_sector_that_cannot_be_read_is_a_rotten_file(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    monkeypatch.setattr(type(storage), "open", _unreadable)
    for look in (storage.read, storage.verify, storage.view):
        with refused("storage.corrupt", "cannot be read"):
            look(stored.location, stored.digest)


def test_everything_is_listed_with_the_drafts_of_killed_writers(storage: Storage) -> None:
    update, memory = storage.put_bytes(b"one", FileKind.UPDATE), storage.put_bytes(b"two", FileKind.MEMORY)
    storage.path(update.location).with_name(".tmp-abc").write_bytes(b"half")
    listed = {file.location: file.size for file in storage.list()}
    draft = str(Path(update.location).with_name(".tmp-abc"))
    assert listed == {update.location: 3, memory.location: 3, draft: 4}
    assert all(file.stored_at <= storage.clock() for file in storage.list())


@pytest.mark.parametrize("rotten", [False, True])
@pytest.mark.heavy
def test_bytes_that_are_stored_again_while_they_are_collected_are_there_afterwards(
    kept: Files, storage: Storage, monkeypatch: pytest.MonkeyPatch, rotten: bool
) -> None:
    """The collector has seen that the file is old; before it deletes, a writer stores the same bytes."""
    stored = storage.put_bytes(b"wanted again", FileKind.UPDATE)
    path = storage.path(stored.location)
    if rotten:
        path.write_bytes(b"wanted agaim")
    kept.age(stored.location)
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
