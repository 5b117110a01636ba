from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(f"file://{tmp_path}/with space")


def test_a_blob_is_read_back_by_its_digest(storage: Storage) -> None:
    stored = storage.put_bytes(b"coordinates", "contributions")
    assert stored.digest == digest_bytes(b"coordinates")
    assert (storage.read(stored.location, stored.digest), storage.size(stored.location)) == (b"coordinates", 11)
    assert storage.put_bytes(b"coordinates", "contributions") == stored


def test_a_rotten_blob_is_noticed_and_mended_by_storing_it_again(storage: Storage) -> None:
    stored = storage.put_bytes(b"coordinates", "contributions")
    storage.path(stored.location).write_bytes(b"coordinatez")
    with pytest.raises(FerretError) as caught:
        storage.read(stored.location, stored.digest)
    assert caught.value.code == "storage.corrupt"
    storage.put_bytes(b"coordinates", "contributions")
    assert storage.read(stored.location, stored.digest) == b"coordinates"


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
    stored = storage.put_folder(folder, "checkpoints", last="a-manifest.json")
    assert list(stored) == ["config.json", "model.safetensors", "a-manifest.json"]
    assert {storage.path(file.location).parent for file in stored.values()} == {
        storage.path(f"checkpoints/{stored['a-manifest.json'].digest}")
    }
    assert storage.read(stored["config.json"].location, stored["config.json"].digest) == b"config.json"


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
    assert run.stdout.startswith("storage.full no room left for")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_room_is_checked_before_writing(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(FerretError, match="FERRET_STORAGE_URL") as caught:
        storage.put_bytes(b"x", "updates")
    assert caught.value.code == "storage.full"


def test_an_unknown_scheme_names_the_ones_there_are() -> None:
    with pytest.raises(FerretError, match="choose one of file"):
        open_storage("ftp://somewhere")
