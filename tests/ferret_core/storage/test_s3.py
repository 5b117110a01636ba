"""A bucket behind a network, and a store that fails, refuses and lies: typed errors, and nothing lost or half there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import FileKind, Storage, _cache, _object_locks, open_storage
from ferret_core.storage._bucket import PERMISSIONS, WRITING, Bucket
from ferret_core.storage._cache import RESERVE_BYTES
from ferret_core.storage._object_locks import ObjectLocks
from ferret_core.system.failpoints import VARIABLE
from tests.ferret_core.storage.conftest import Objects
from tests.ferret_core.storage.faulty import (
    Fault,
    Proxy,
    cut,
    error,
    flipped_answer,
    flipped_request,
    forgetful,
    proxy,
    stall,
    unanswered,
    wrong_tag,
)
from tests.refusals import refused

pytestmark = pytest.mark.heavy
PART = 4096
SMALL, LARGE = bytes(range(200)), bytes(number * 7 % 251 for number in range(5 * PART + 100))
ATTEMPTS = 3


@pytest.fixture
def network(object_store: str) -> Iterator[Proxy]:
    with proxy(object_store) as opened:
        yield opened


@pytest.fixture
def opened(bucket: Any, network: Proxy) -> Callable[..., Storage]:
    """``opened(**options)``: the one bucket through the proxy, as another machine has it with another ``cache``."""
    url, options = bucket(endpoint=network.url, part_bytes=PART, attempts=ATTEMPTS)
    return lambda **given: open_storage(f"{url}/prefix", options._replace(**given))


@pytest.fixture
def storage(opened: Callable[..., Storage]) -> Storage:
    return opened()


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(FerretError) as caught:
        act()
    return caught.value.code


WRITES = ("PutObject", "UploadPart")
PASSING: dict[str, dict[str, tuple[Fault, int]]] = {
    **{
        name: dict.fromkeys((*WRITES, "GetObject", "CompleteMultipartUpload"), (fault, 1))
        for name, fault in [
            ("too fast", error(503, "SlowDown")),
            ("an error", error(500, "InternalError")),
            ("no answer", unanswered),
        ]
    },
    "changed on the way": dict.fromkeys(WRITES, (flipped_request, 1)),
    "a wrong tag": {"PutObject": (wrong_tag, 100), "UploadPart": (wrong_tag, 1)},
}


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_what_fails_a_few_times_is_sent_again(
    storage: Storage, network: Proxy, faults: dict[str, tuple[Fault, int]], data: bytes
) -> None:
    for operation, (fault, times) in faults.items():
        network.inject(operation, fault, times)
    stored = storage.put_bytes(data, FileKind.UPDATE)
    assert storage.read(stored.location, stored.digest) == data
    assert [file.location for file in storage.list()] == [stored.location], "no upload is left"


@pytest.mark.parametrize("fault", [error(503, "SlowDown"), unanswered, stall(1.5)])
def test_what_goes_on_failing_is_an_error_after_a_few_attempts(
    opened: Callable[..., Storage], network: Proxy, fault: Fault
) -> None:
    storage = opened(timeout_seconds=0.5)
    stored = storage.put_bytes(SMALL, FileKind.UPDATE)
    network.heal()
    for operation in ("GetObject", "PutObject"):
        network.inject(operation, fault)
    assert code_of(lambda: storage.read(stored.location, stored.digest)) == "storage.unreachable"
    assert network.count("GetObject") == ATTEMPTS
    assert code_of(lambda: storage.put_bytes(b"another", FileKind.UPDATE)) == "storage.unreachable"
    assert network.count("PutObject") == ATTEMPTS
    network.heal()
    assert storage.read(stored.location, stored.digest) == SMALL


def test_a_store_that_is_not_there_is_unreachable(bucket: Any) -> None:
    url, options = bucket(endpoint="http://127.0.0.1:9", attempts=1)
    with refused("storage.unreachable", "FERRET_S3_ENDPOINT"):
        open_storage(url, options).claim("me")


def test_reading_goes_on_where_the_connection_broke(storage: Storage, network: Proxy) -> None:
    stored = storage.put_bytes(LARGE, FileKind.UPDATE)
    network.heal()
    network.inject("GetObject", cut(7000), times=2)
    assert storage.read(stored.location, stored.digest) == LARGE
    ranges = [request.headers.get("range") for request in network.seen if request.operation == "GetObject"]
    assert ranges == [None, "bytes=7000-", "bytes=14000-"]


def test_reading_ends_where_the_connection_brings_nothing(storage: Storage, network: Proxy) -> None:
    stored = storage.put_bytes(LARGE, FileKind.UPDATE)
    network.heal()
    network.inject("GetObject", cut(7000), times=1)
    network.inject("GetObject", cut(0))
    with refused("storage.unreachable", f"after 7000 of {len(LARGE)} bytes"):
        storage.verify(stored.location, stored.digest)
    assert network.count("GetObject") <= 2 * ATTEMPTS


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_a_store_that_gives_other_bytes_is_found_out(storage: Storage, network: Proxy, data: bytes) -> None:
    stored = storage.put_bytes(data, FileKind.UPDATE)
    other = digest_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    network.inject("GetObject", flipped_answer)
    for look in (storage.read, storage.verify, storage.view):
        with refused("storage.corrupt", stored.location) as caught:
            look(stored.location, stored.digest)
        assert stored.digest in caught.value.detail
        assert other in caught.value.detail
    network.heal()
    assert storage.view(stored.location, stored.digest) == data


def test_a_store_that_keeps_nothing_is_found_out(storage: Storage, network: Proxy) -> None:
    network.inject("CompleteMultipartUpload", forgetful)
    with refused("storage.unreachable", "does not keep"):
        storage.put_bytes(LARGE, FileKind.UPDATE)
    network.heal()
    stored = storage.put_bytes(LARGE, FileKind.UPDATE)
    assert storage.read(stored.location, stored.digest) == LARGE
    assert network.count("UploadPart") == 0, "all of them had arrived"


def test_an_upload_that_broke_off_is_not_seen_and_goes_on_where_it_was(
    opened: Callable[..., Storage], network: Proxy, tmp_path: Path
) -> None:
    first, second = opened(), opened(cache=tmp_path / "another")
    location = f"updates/{digest_bytes(LARGE)[:2]}/{digest_bytes(LARGE)}"
    network.inject("UploadPart", error(503, "SlowDown"), after=4)
    assert code_of(lambda: first.put_bytes(LARGE, FileKind.UPDATE)) == "storage.unreachable"
    assert code_of(lambda: second.size(location)) == "storage.missing"
    (left,) = second.list()
    assert re.fullmatch(rf"\.uploads/{location}#.+", left.location)
    assert left.size in {4 * PART, 3 * PART + 100}, "four parts, the short one among them or not"
    network.heal()
    stored = second.put_bytes(LARGE, FileKind.UPDATE)
    assert network.count("UploadPart") == 2, "of six parts four had arrived"
    assert network.count("CreateMultipartUpload") == 0
    assert second.read(stored.location, stored.digest) == LARGE


def test_what_a_killed_process_has_sent_is_not_sent_again(
    opened: Callable[..., Storage], network: Proxy, tmp_path: Path
) -> None:
    storage, blob = opened(), tmp_path / "blob"
    url = str(storage).rstrip("/")
    blob.write_bytes(LARGE)
    program = f"""
from pathlib import Path
from ferret_core.storage import FileKind, ObjectStore, open_storage
options = ObjectStore(Path({str(tmp_path / "other")!r}), endpoint={network.url!r}, part_bytes={PART})
open_storage({url!r}, options).put_bytes(Path({str(blob)!r}).read_bytes(), FileKind.UPDATE)
"""
    killed = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, VARIABLE: "bucket.uploaded:1"}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert [file.location.partition("/")[0] for file in storage.list()] == [".uploads"]
    network.heal()
    stored = storage.put_bytes(LARGE, FileKind.UPDATE)
    assert (network.count("UploadPart"), network.count("CompleteMultipartUpload")) == (0, 1)
    assert storage.read(stored.location, stored.digest) == LARGE


def test_two_writers_of_the_same_bytes_end_with_one_file(
    opened: Callable[..., Storage], network: Proxy, tmp_path: Path
) -> None:
    storages = [opened(cache=tmp_path / str(number), part_bytes=PART * (1 + number % 2)) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        stored = set(pool.map(lambda storage: storage.put_bytes(LARGE, FileKind.UPDATE), storages))
    (file,) = stored
    assert storages[0].read(file.location, file.digest) == LARGE


def test_an_unfinished_upload_is_collected_once_nobody_adds_to_it(storage: Storage, network: Proxy) -> None:
    network.inject("CompleteMultipartUpload", error(503, "SlowDown"))
    assert code_of(lambda: storage.put_bytes(LARGE, FileKind.UPDATE)) == "storage.unreachable"
    (left,) = storage.list()
    assert not storage.delete(left.location, storage.clock() - 100)
    assert storage.delete(left.location, storage.clock() + 100)
    assert list(storage.list()) == []


def test_what_was_read_back_is_not_sent_again(storage: Storage, network: Proxy) -> None:
    storage.put_bytes(LARGE, FileKind.UPDATE)
    network.heal()
    storage.put_bytes(LARGE, FileKind.UPDATE)
    assert (network.count("UploadPart"), network.count("CopyObject"), network.count("GetObject")) == (0, 1, 1)


FORBIDDEN = {
    "PutObject": lambda storage: storage.put_bytes(SMALL, FileKind.UPDATE),
    "CreateMultipartUpload": lambda storage: storage.put_bytes(LARGE, FileKind.UPDATE),
    "UploadPart": lambda storage: storage.put_bytes(LARGE, FileKind.UPDATE),
    "CompleteMultipartUpload": lambda storage: storage.put_bytes(LARGE, FileKind.UPDATE),
    "ListMultipartUploads": lambda storage: list(storage.list()),
    "ListObjectsV2": lambda storage: list(storage.list()),
    "GetObject": lambda storage: storage.read("updates/ab/abc", "abc"),
    "HeadObject": lambda storage: storage.size("updates/ab/abc"),
    "HeadBucket": lambda storage: storage.clock(),
    "DeleteObject": lambda storage: storage.delete("updates/ab/abc", 0),
}


@pytest.mark.parametrize("operation", FORBIDDEN)
def test_a_missing_permission_is_named(storage: Storage, network: Proxy, operation: str) -> None:
    network.inject(operation, error(403, "AccessDenied"))
    with refused("storage.refused", rf"{PERMISSIONS.get(operation, WRITING)} is missing"):
        FORBIDDEN[operation](storage)
    parts = -(-len(LARGE) // PART) if operation == "UploadPart" else 1
    assert network.count(operation) <= parts, "no attempt makes it better"


def test_a_rehearsal_does_all_that_a_service_does_and_leaves_nothing(storage: Storage, network: Proxy) -> None:
    storage.rehearse()
    assert {request.operation for request in network.seen} >= PERMISSIONS.keys() - {"HeadObject"}
    network.inject("AbortMultipartUpload", error(403, "AccessDenied"))
    with refused("storage.refused", "s3:AbortMultipartUpload is missing"):
        storage.rehearse()


@pytest.mark.parametrize(
    ("status", "reason", "code", "words"),
    [
        (403, "SignatureDoesNotMatch", "storage.refused", "renew them"),
        (400, "ExpiredToken", "storage.refused", "renew them"),
        (404, "NoSuchBucket", "storage.refused", "no such bucket"),
        (507, "XMinioStorageFull", "storage.full", "quota"),
        (400, "Curious", "storage.refused", "Curious"),
    ],
)
def test_a_refusal_says_what_to_do(
    storage: Storage, network: Proxy, status: int, reason: str, code: str, words: str
) -> None:
    network.inject("PutObject", error(status, reason))
    with refused(code, words):
        storage.put_bytes(SMALL, FileKind.UPDATE)


def test_without_credentials_the_variables_are_named(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url, options = bucket()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with refused("storage.refused", "AWS_ACCESS_KEY_ID"):
        open_storage(url, options).clock()


def test_without_the_library_the_command_that_installs_it_is_said(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    with refused("dependency.missing", "pip install"):
        open_storage(*bucket()).clock()


def test_bytes_that_are_stored_again_while_they_are_collected_are_there_afterwards(
    opened: Callable[..., Storage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector has seen that the file is old; before it deletes, a writer elsewhere stores the same bytes."""
    collector, writer = opened(), opened(cache=tmp_path / "another")
    stored = writer.put_bytes(SMALL, FileKind.UPDATE)
    thread = threading.Thread(target=writer.put_bytes, args=(SMALL, FileKind.UPDATE))
    delete = Bucket.delete

    def write_first(self: Bucket, key: str) -> None:
        if key == stored.location:
            thread.start()
            thread.join(timeout=0.5)
            assert thread.is_alive(), "a writer that did not look for collectors would be done"
        delete(self, key)

    monkeypatch.setattr(Bucket, "delete", write_first)
    assert collector.delete(stored.location, collector.clock() + 10)
    thread.join()
    assert writer.read(stored.location, stored.digest) == SMALL


def test_bytes_that_a_collector_has_deleted_by_then_are_stored_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector had seen that the file is old; it deletes the new one, and its mark, before the writer looks."""
    looked = list[str]()

    def delete_first(self: ObjectLocks, location: str) -> bool:
        looked.append(location)
        if len(looked) == 1:
            storage._bucket.delete(location)
        return False

    monkeypatch.setattr(ObjectLocks, "was_condemned", delete_first)
    stored = storage.put_bytes(SMALL, FileKind.UPDATE)
    assert storage.read(stored.location, stored.digest) == SMALL
    assert len(looked) == 2


def test_a_mark_of_a_killed_collector_counts_no_more_after_a_while(kept_s3: Any) -> None:
    storage = kept_s3.storage
    storage._bucket.put(".marks/copying/killed", b"")
    with storage.collecting(every=0) as turn:
        assert not turn
    kept_s3.age(".marks/copying/killed", 400)
    with storage.collecting(every=0) as turn:
        assert turn


def test_a_mark_is_renewed_after_a_renewal_that_failed(
    opened: Callable[..., Storage], network: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_object_locks, "RENEWED_SECONDS", 0.05)
    with opened(attempts=1).copying():
        network.inject("PutObject", error(403, "AccessDenied"), times=1)
        before, patience = network.count("PutObject"), time.monotonic() + 60
        while network.count("PutObject") < before + 3:
            assert time.monotonic() < patience
            time.sleep(0.02)


@pytest.fixture
def kept_s3(bucket: Any) -> Any:
    return Objects(*bucket(part_bytes=PART))


def mapped(storage: Storage, byte: int) -> tuple[str, str]:
    """A blob that is large enough to be kept on this machine."""
    data = bytes([byte]) * (2 << 20)
    stored = storage.put_bytes(data, FileKind.CONTRIBUTION)
    assert storage.view(stored.location, stored.digest) == data
    return stored.location, stored.digest


def test_what_was_used_least_recently_goes_from_this_machine_first(bucket: Any) -> None:
    storage = open_storage(*bucket(cache_bytes=5 << 20))
    first, second = mapped(storage, 1), mapped(storage, 2)
    storage.view(*first)
    third = mapped(storage, 3)
    assert [storage.path(location).exists() for location, _ in (first, second, third)] == [True, False, True]
    assert storage.view(*second)[0] == 2, "it is fetched again"


def test_a_copy_that_another_process_drops_meanwhile_does_not_count(tmp_path: Path) -> None:
    for name in ("aa", "bb"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    units = _cache._units(tmp_path)
    gone = {"aa": "bb", "bb": "aa"}[next(units).path.name]
    (tmp_path / "checkpoints" / gone).rmdir()
    assert list(units) == []


def test_copies_make_room_on_a_full_disk(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is larger than the disk, of which 5 MiB are for copies."""
    storage = open_storage(*bucket(cache_bytes=64 << 30))

    def usage(root: Path) -> SimpleNamespace:
        taken = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        return SimpleNamespace(free=RESERVE_BYTES + (5 << 20) - taken)

    monkeypatch.setattr(_cache.shutil, "disk_usage", usage)
    first, second, third = (mapped(storage, byte) for byte in (1, 2, 3))
    assert [storage.path(location).exists() for location, _ in (first, second, third)] == [False, True, True]
    assert code_of(lambda: storage.require_room(6 << 20)) == "storage.full"


def test_a_model_in_use_stays_on_this_machine(bucket: Any) -> None:
    storage = open_storage(*bucket(cache_bytes=0))
    with storage.scratch(0) as folder:
        (folder / "weights").write_bytes(bytes(PART))
        (folder / "manifest").write_bytes(b"m")
        stored = storage.put_folder(folder, FileKind.CHECKPOINT, last="manifest").values()
    files = {file.location: file.digest for file in stored}
    with storage.folder(files) as held:
        mapped(storage, 1)
        assert sorted(path.name for path in held.iterdir()) == ["manifest", "weights"]
    mapped(storage, 2)
    assert not held.exists()
    with storage.folder(files) as again:
        assert (again / "weights").read_bytes() == bytes(PART)


@pytest.mark.slow
def test_a_damaged_copy_on_this_machine_is_fetched_again(opened: Callable[..., Storage], network: Proxy) -> None:
    storage = opened()
    location, digest = mapped(storage, 1)
    storage.path(location).write_bytes(b"damaged")
    assert storage.view(location, digest)[0] == 1


def test_a_copy_goes_on_where_a_killed_process_was(opened: Callable[..., Storage], network: Proxy) -> None:
    storage = opened()
    data = bytes(number % 251 for number in range(2 << 20))
    stored = storage.put_bytes(data, FileKind.CONTRIBUTION)
    draft = storage.path(f".drafts/fetched/{stored.digest}")
    draft.parent.mkdir(parents=True)
    for left, ranges in ((data[:5000], ["bytes=5000-"]), (b"rotten" * 100, ["bytes=600-", None])):
        draft.write_bytes(left)
        network.heal()
        assert storage.view(stored.location, stored.digest) == data
        asked = [request.headers.get("range") for request in network.seen if request.operation == "GetObject"]
        assert asked == ranges
        storage.path(stored.location).unlink()


@pytest.mark.slow
def test_of_many_that_want_a_copy_one_fetches_it(opened: Callable[..., Storage], network: Proxy) -> None:
    storage = opened()
    stored = storage.put_bytes(bytes(2 << 20), FileKind.CONTRIBUTION)
    network.heal()
    with ThreadPoolExecutor(4) as pool:
        views = list(pool.map(lambda _: storage.view(stored.location, stored.digest), range(4)))
    assert all(view == bytes(2 << 20) for view in views)
    assert network.count("GetObject") == 1
