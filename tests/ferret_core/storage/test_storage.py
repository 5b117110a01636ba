"""What every storage gives, whatever it is made of."""

from __future__ import annotations

import errno
import shutil
from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.storage import FileKind, Storage, StoredFile, open_storage
from tests.refusals import refused

Kept = Any  # conftest.py


def test_a_blob_is_read_back_by_its_digest(storage: Storage) -> None:
    stored = storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION)
    assert stored.digest == digest_bytes(b"coordinates")
    assert (storage.read(stored.location, stored.digest), storage.size(stored.location)) == (b"coordinates", 11)
    assert storage.put_bytes(b"coordinates", FileKind.CONTRIBUTION) == stored


@pytest.mark.parametrize("size", [11, 9000], ids=["one", "parts"])
def test_a_rotten_blob_is_noticed_and_mended_by_storing_it_again(kept: Kept, size: int) -> None:
    storage, data = kept.storage, bytes(size - 1) + b"x"
    stored = storage.put_bytes(data, FileKind.CONTRIBUTION)
    kept.write(stored.location, bytes(size))
    with refused("storage.corrupt", stored.location) as caught:
        storage.read(stored.location, stored.digest)
    assert digest_bytes(bytes(size)) in caught.value.detail
    storage.put_bytes(data, FileKind.CONTRIBUTION)
    assert storage.read(stored.location, stored.digest) == data


@pytest.mark.parametrize("size", [0, 11, 4096, 9000])
def test_a_blob_in_pieces_is_stored_as_one(storage: Storage, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    pieces = data[: size // 3], memoryview(data)[size // 3 :]
    stored = storage.put_pieces(pieces, FileKind.CONTRIBUTION, digest_bytes(data))
    assert stored == storage.put_bytes(data, FileKind.CONTRIBUTION)
    assert storage.read(stored.location, stored.digest) == data


def test_a_file_is_moved_in_and_found_by_its_digest(storage: Storage) -> None:
    for _ in range(2):
        with storage.scratch(0) as folder:
            (folder / "body").write_bytes(b"coordinates")
            stored = storage.put_file(folder / "body", FileKind.CONTRIBUTION, digest_bytes(b"coordinates"))
        assert storage.read(stored.location, stored.digest) == b"coordinates"
        assert storage.path(stored.location).read_bytes() == b"coordinates"
        assert [file.location for file in storage.list()] == [stored.location]


@pytest.mark.parametrize("size", [11, 3 << 20], ids=["read", "mapped"])
def test_a_view_is_checked_and_stays_whatever_becomes_of_the_file(kept: Kept, size: int) -> None:
    storage, data = kept.storage, bytes(range(11)) + bytes(size - 11)
    stored = storage.put_bytes(data, FileKind.CONTRIBUTION)
    view = storage.view(stored.location, stored.digest)
    kept.remove(stored.location)
    storage.path(stored.location).unlink(missing_ok=True)
    assert view == data
    with refused("storage.missing", "is not in the storage"):
        storage.view(stored.location, stored.digest)
    storage.put_bytes(data, FileKind.CONTRIBUTION)
    kept.write(stored.location, b"x" + data[1:])
    with refused("storage.corrupt", "does not match"):
        storage.view(stored.location, stored.digest)


def test_a_part_is_read_from_anywhere(storage: Storage) -> None:
    data = bytes(number % 251 for number in range(9000))
    stored = storage.put_bytes(data, FileKind.UPDATE)
    with storage.open(stored.location) as file:
        assert (file.read(3), file.seek(8000), file.read(500)) == (data[:3], 8000, data[8000:8500])
        assert (file.seek(10), file.read()) == (10, data[10:])


def test_what_is_not_there_is_named(storage: Storage) -> None:
    for look in (storage.read, storage.view, storage.verify):
        with refused("storage.missing", "updates/ab/abc"):
            look("updates/ab/abc", "abc")
    for ask in (storage.open, storage.size):
        with refused("storage.missing", "updates/ab/abc"):
            ask("updates/ab/abc")


@pytest.mark.parametrize("location", ["../outside", "/etc/passwd", "updates/../../x"])
def test_nothing_outside_the_folder_can_be_reached(storage: Storage, location: str) -> None:
    with refused("storage.missing", "outside"):
        storage.path(location)


def test_a_folder_is_stored_whole_with_its_last_file_last(storage: Storage) -> None:
    with storage.scratch(0) as folder:
        for name in ("config.json", "model.safetensors", "a-manifest.json"):
            (folder / name).write_text(name)
        stored = storage.put_folder(folder, FileKind.CHECKPOINT, last="a-manifest.json")
    assert list(stored) == ["config.json", "model.safetensors", "a-manifest.json"]
    base = f"checkpoints/{stored['a-manifest.json'].digest}"
    assert [file.location for file in stored.values()] == [f"{base}/{name}" for name in stored]
    assert storage.read(stored["config.json"].location, stored["config.json"].digest) == b"config.json"
    with storage.folder({file.location: file.digest for file in stored.values()}) as local:
        assert {path.name: path.read_text() for path in local.iterdir()} == {name: name for name in stored}


@pytest.mark.parametrize("how", ["rotten", "missing"])
def test_a_folder_is_given_whole_and_good_or_not_at_all(kept: Kept, how: str) -> None:
    files = put_model(kept.storage)
    if how == "rotten":
        kept.write(files[0].location, b"W")
    else:
        kept.remove(files[0].location)
    for file in files:  # a copy on this machine would hide it
        if type(kept).__name__ == "Objects":
            kept.storage.path(file.location).unlink()
    with (
        refused({"rotten": "storage.corrupt", "missing": "storage.missing"}[how], files[0].location),
        kept.storage.folder({file.location: file.digest for file in files}),
    ):
        pass


def test_room_for_what_is_to_be_stored_is_checked_before_writing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with refused("storage.full", "set FERRET_"), storage.scratch(1):
        pass
    assert list(storage.list()) == []


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("I/O error: File too large (os error 27)")]
)
def test_a_library_that_finds_no_room_in_a_scratch_folder_is_understood(storage: Storage, error: Exception) -> None:
    def write() -> None:
        with storage.scratch(0) as folder:
            (folder / "half").write_text("written")
            raise error

    with refused("storage.full", "free some space"):
        write()
    assert list(storage.list()) == []


def test_another_error_in_a_scratch_folder_stays_what_it_is(storage: Storage) -> None:
    with pytest.raises(ZeroDivisionError), storage.scratch(0):
        raise ZeroDivisionError


@pytest.mark.parametrize("what", ["bytes", "folder"])
def test_every_flipped_bit_and_a_missing_file_are_noticed_without_holding_the_bytes(kept: Kept, what: str) -> None:
    storage = kept.storage
    stored = storage.put_bytes(b"w", FileKind.UPDATE) if what == "bytes" else put_model(storage)[0]
    for bit in range(8):
        kept.write(stored.location, bytes([b"w"[0] ^ 1 << bit]))
        with refused("storage.corrupt"):
            storage.verify(stored.location, stored.digest)
    kept.write(stored.location, b"w")
    storage.verify(stored.location, stored.digest)
    kept.remove(stored.location)
    with refused("storage.missing"):
        storage.verify(stored.location, stored.digest)


def test_everything_is_listed_with_the_time_at_which_it_was_stored(storage: Storage) -> None:
    before = storage.clock()
    files = [storage.put_bytes(b"one", FileKind.UPDATE), storage.put_bytes(bytes(9000), FileKind.MEMORY)]
    assert {file.location: file.size for file in storage.list()} == {file.location: file.size for file in files}
    assert all(before <= file.stored_at <= storage.clock() for file in storage.list())


def test_a_file_is_deleted_if_it_is_as_old_as_that(kept: Kept) -> None:
    storage = kept.storage
    stored = storage.put_bytes(b"old", FileKind.UPDATE)
    kept.age(stored.location)
    assert not storage.delete(stored.location, storage.clock() - 103)
    assert storage.delete(stored.location, storage.clock() - 97)
    assert not storage.delete(stored.location, storage.clock() - 97)
    assert list(storage.list()) == []
    assert storage.put_bytes(b"old", FileKind.UPDATE) == stored


def put_model(storage: Storage) -> list[StoredFile]:
    """Weights and manifest."""
    with storage.scratch(2) as folder:
        (folder / "manifest").write_text("m")
        (folder / "weights").write_text("w")
        return list(storage.put_folder(folder, FileKind.CHECKPOINT, last="manifest").values())


def test_storing_again_what_is_there_makes_it_new(kept: Kept) -> None:
    storage = kept.storage

    def put() -> list[StoredFile]:
        blobs = [storage.put_bytes(data, FileKind.UPDATE) for data in (b"the same", bytes(9000))]
        return [*blobs, *put_model(storage)]

    files = put()
    for file in files:
        kept.age(file.location)
    before = storage.clock() - 50
    assert put() == files
    assert [storage.delete(file.location, before) for file in files] == [False] * 4
    for file in files:
        storage.verify(file.location, file.digest)


def test_one_collects_at_a_time_and_not_too_often(kept: Kept) -> None:
    storage = kept.storage
    with storage.collecting(every=0) as first, storage.collecting(every=0) as second:
        assert (first, second) == (True, False)
    with storage.collecting(every=1000) as soon:
        assert not soon
    kept.age(".collected", 1001)
    with storage.collecting(every=1000) as due:
        assert due
    with storage.collecting(every=1000) as again:
        assert not again


def test_a_collection_that_failed_is_due_at_once(kept: Kept) -> None:
    storage = kept.storage

    def fail() -> None:
        with storage.collecting(every=1000) as due:
            assert due
            raise RuntimeError

    with storage.collecting(every=0):
        pass
    kept.age(".collected", 1001)
    with pytest.raises(RuntimeError):
        fail()
    with storage.collecting(every=1000) as due:
        assert due


def test_nothing_is_collected_while_a_copy_is_made(storage: Storage) -> None:
    with storage.copying(), storage.copying(), storage.collecting(every=0) as turn:
        assert not turn
    with storage.collecting(every=0) as turn:
        assert turn


def test_a_storage_with_the_files_of_another_installation_is_refused(storage: Storage) -> None:
    storage.claim("one")
    storage.claim("one")
    storage.claim("two")  # of which it is as long as there is nothing to lose
    stored = storage.put_bytes(b"of the second", FileKind.UPDATE)
    with refused("storage.taken"):
        storage.claim("one")
    storage.claim("two")
    assert storage.read(stored.location, stored.digest) == b"of the second"
    assert [file.location for file in storage.list()] == [stored.location]


def test_an_unknown_scheme_names_the_ones_there_are() -> None:
    with refused("spec.invalid", "choose from file, s3"):
        open_storage("ftp://somewhere")


@pytest.mark.parametrize("url", ["s3:///only/a/prefix", "s3://key:secret@bucket/prefix"])
def test_what_is_no_bucket_is_refused_without_a_secret(url: str, bucket: Any) -> None:
    with refused("settings.invalid", "s3://bucket/prefix") as caught:
        open_storage(url, bucket()[1])
    assert "secret" not in caught.value.detail
