"""``ferret backup`` and ``ferret restore``: all that there is, or nothing, whatever happens in between."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import stat
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_cli.backup.manifest import MANIFEST
from ferret_cli.backup.restore import _unpack, restore
from ferret_cli.backup.write import snapshot, write
from ferret_cli.stack.home_lock import locked
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ParticipantKind, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.rounds import sampling
from ferret_core.storage import FileKind, open_storage
from ferret_core.system.failpoints import VARIABLE
from ferret_db import migrate, schema_version
from ferret_db.database import Database
from ferret_db.engine import file_integrity, lifecycle, rounds
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import audit, experiment_list, experiments, outbox, stored_files
from ferret_db.repositories import rounds as round_rows
from ferret_db.repositories.audit import AuditFilter
from ferret_db.repositories.experiment_list import ExperimentFilter
from ferret_db.tables import Artifact
from ferret_runtime.settings import ServiceSettings
from tests.refusals import refused
from tests.tiers import slow

Ferret = Callable[..., Any]  # tests/ferret_cli/conftest.py
SPEC = ExperimentSpec.model_validate(
    {
        "name": "kept",
        "model": {"source": "/models/toy"},
        "dataset": {"name": "jsonl", "train": "/data/train.jsonl"},
        "participants": {"simulated": 2},
    }
)


class Embedded:
    """The home of an embedded service, and what lies in it."""

    def __init__(self, home: Path) -> None:
        self.settings = ServiceSettings(home=home)
        self.database = Database(self.settings.database_url)
        self.storage = open_storage(self.settings.storage_url)

    def start_experiment(self, weights: bytes) -> str:
        """The id of a running experiment with a stored base model."""
        stored = self.storage.put_bytes(weights, FileKind.CHECKPOINT)
        file = ArtifactFile("model.safetensors", stored.size, stored.digest, stored.location)
        with self.database.begin() as s:
            experiment_id = lifecycle.submit(s, SPEC)[0].id
            lifecycle.start(s, experiment_id, "ba" * 32, {"a": [2]}, [file])
        return experiment_id

    def experiments(self) -> set[str]:
        with self.database.read() as s:
            return {experiment.id for experiment in experiment_list.list_page(s, ExperimentFilter(), 1000).items}

    def damaged(self) -> list[Any]:
        with self.database.read() as s:
            return file_integrity.damaged(self.storage, stored_files.of_all(s))


@pytest.fixture
def embedded(home: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Embedded]:
    for name in list(os.environ):
        if name.startswith("FERRET_"):
            monkeypatch.delenv(name)
    home.mkdir(mode=0o700)
    shutil.copyfile(migrated, home / "ferret.db")
    (home / "admin.token").write_text("secret\n")
    found = Embedded(home)
    found.start_experiment(b"weights" * 1000)
    yield found
    found.database.dispose()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "monday.tar.gz"


@pytest.fixture
def backup(embedded: Embedded, file: Path) -> Path:
    write(embedded.settings, file)
    return file


def test_what_was_backed_up_is_restored(embedded: Embedded, backup: Path, tmp_path: Path) -> None:
    manifest = restore(backup, tmp_path / "new" / "home")
    restored = Embedded(tmp_path / "new" / "home")
    assert restored.experiments() == embedded.experiments()
    assert restored.damaged() == []
    assert (tmp_path / "new/home/admin.token").read_text() == "secret\n"
    assert manifest.revision == schema_version.HEAD
    schema_version.check(restored.settings.database_url)
    restored.start_experiment(b"it goes on")
    restored.database.dispose()


def test_backup_and_restore_are_in_the_audit_log_of_the_database_that_they_leave(
    embedded: Embedded, backup: Path, tmp_path: Path
) -> None:
    assert audited(embedded) == [("host", "backup.made", "monday.tar.gz")]
    restore(backup, tmp_path / "restored")
    restored = Embedded(tmp_path / "restored")
    assert audited(restored) == [("host", "backup.restored", "monday.tar.gz")]
    restored.database.dispose()


def test_a_backup_that_cannot_be_told_of_is_not_made(
    embedded: Embedded, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise FerretError("storage.full", "the log cannot be written")

    monkeypatch.setattr(audit, "record", fail)
    with refused("storage.full", "cannot be written"):
        write(embedded.settings, file)
    assert list(file.parent.iterdir()) == []


def audited(found: Embedded) -> list[tuple[str, str, str]]:
    with found.database.read() as s:
        return [(row.actor, row.action, row.subject) for row in audit.list_page(s, AuditFilter(), 100).items]


def test_only_its_owner_may_read_it(backup: Path, tmp_path: Path) -> None:
    restore(backup, tmp_path / "restored")
    for path in (backup, tmp_path / "restored", tmp_path / "restored/admin.token", tmp_path / "restored/ferret.db"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_garbage_is_left_out(embedded: Embedded, file: Path) -> None:
    garbage = embedded.storage.put_bytes(b"nobody names me", FileKind.UPDATE)
    manifest = write(embedded.settings, file)
    assert f"storage/{garbage.location}" not in manifest.files
    assert len(manifest.files) == 3


def test_what_the_ledger_rebuilds_is_left_out_and_rebuilt_after_the_restoration(
    embedded: Embedded, file: Path, tmp_path: Path
) -> None:
    stored = embedded.storage.put_bytes(os.urandom(50_000), FileKind.CHECKPOINT)
    (experiment_id,) = embedded.experiments()
    with embedded.database.begin() as s:
        row = {"name": "model.safetensors", "size": stored.size, "digest": stored.digest, "location": stored.location}
        s.add(Artifact(experiment_id=experiment_id, round=1, kind="checkpoint", **row))
    manifest = write(embedded.settings, file)
    assert f"storage/{stored.location}" not in manifest.files
    assert file.stat().st_size < manifest.size / 5, "and the rest is packed"
    restore(file, tmp_path / "restored")
    restored = Embedded(tmp_path / "restored")
    assert [(each.round, each.needed) for each in restored.damaged()] == [(1, False)]
    with restored.database.read() as s:
        assert outbox.waits(s, TaskName.REPAIR, experiment_id, 60)
    restored.database.dispose()


def test_a_backup_of_an_earlier_schema_is_migrated(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated = list[str]()
    *files, (info, text) = members(backup)
    rewrite(backup, [*files, (info, json.dumps(json.loads(text) | {"revision": "0000"}).encode())])
    monkeypatch.setattr(migrate, "knows", lambda revision: revision == "0000")
    monkeypatch.setattr(migrate, "upgrade", migrated.append)
    restore(backup, tmp_path / "restored")
    assert [url.endswith("/home/ferret.db") for url in migrated] == [True]


@pytest.mark.parametrize(
    ("privacy", "state"),
    [
        ({"unit": "example", "mechanism": "central", "epsilon": 8, "batch": 4, "records_least": 8}, "abandoned"),
        ({"unit": "site"}, "open"),
    ],
    ids=["central", "none"],
)
def test_contributions_to_central_noise_are_not_summed_twice(
    embedded: Embedded, file: Path, tmp_path: Path, privacy: dict[str, Any], state: str
) -> None:
    (experiment_id,) = embedded.experiments()
    with embedded.database.begin() as s:
        spec = SPEC.model_validate(SPEC.model_dump() | {"privacy": privacy})
        experiments.change(s, experiment_id, spec=spec.model_dump(mode="json"))
        (task,) = sampling.round_tasks(SPEC, experiment_id, 1, ["client-001"], "ba" * 32)
        rounds.open_round(s, experiment_id, 1, [(task, ParticipantKind.SIMULATED, None)], 60, 0)
    write(embedded.settings, file)
    restore(file, tmp_path / "restored")
    restored = Embedded(tmp_path / "restored")
    with restored.database.read() as s:
        assert [each.state for each in round_rows.in_states(s, experiment_id, *RoundState)] == [state]
    restored.database.dispose()


def test_a_backup_while_others_write_holds_one_moment(embedded: Embedded, file: Path, tmp_path: Path) -> None:
    stopped, before = threading.Event(), embedded.experiments()

    def work() -> None:
        while not stopped.is_set():
            embedded.start_experiment(os.urandom(20_000))

    writer = threading.Thread(target=work)
    writer.start()
    try:
        write(embedded.settings, file)
    finally:
        stopped.set()
        writer.join()
    restore(file, tmp_path / "restored")
    restored = Embedded(tmp_path / "restored")
    assert before <= restored.experiments() <= embedded.experiments()
    assert restored.damaged() == []
    restored.database.dispose()


def test_nothing_is_collected_meanwhile(embedded: Embedded, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[bool] = []

    def watched(url: str, target: Path) -> None:
        with embedded.storage.collecting(every=0) as turn:
            turns.append(turn)
        snapshot(url, target)

    monkeypatch.setattr("ferret_cli.backup.write.snapshot", watched)
    write(embedded.settings, file)
    assert turns == [False]


@pytest.mark.parametrize(("damage", "code"), [("rotten", "storage.corrupt"), ("gone", "storage.missing")])
def test_a_damaged_file_is_no_backup(embedded: Embedded, file: Path, damage: str, code: str) -> None:
    (stored,) = embedded.storage.list()
    path = embedded.storage.path(stored.location)
    if damage == "rotten":
        path.write_bytes(b"x" * stored.size)
    else:
        path.unlink()
    with refused(code):
        write(embedded.settings, file)
    assert list(file.parent.iterdir()) == []


def test_a_backup_is_not_overwritten(embedded: Embedded, backup: Path) -> None:
    before = backup.read_bytes()
    with refused("request.invalid", "choose a new name"):
        write(embedded.settings, backup)
    assert backup.read_bytes() == before


def test_postgresql_has_tools_of_its_own(embedded: Embedded, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_version, "check", lambda url: None)
    settings = ServiceSettings(home=embedded.settings.home, database_url="postgresql://ferret:secret@db/ferret")
    with refused("settings.invalid", "pg_dump") as caught:
        write(settings, file)
    assert "secret" not in caught.value.detail
    assert list(file.parent.iterdir()) == []


def assert_refused(file: Path, home: Path, match: str) -> None:
    with pytest.raises(FerretError, match=match) as caught:
        restore(file, home)
    assert caught.value.code == "backup.invalid"
    assert list(home.parent.iterdir()) == [], "nothing is left, not even beside it"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target" / "home"


def unpacks_to(packed: bytes, content: bytes) -> bool:
    """True for a flipped bit that gzip does not use, such as a code that no symbol has."""
    try:
        return gzip.decompress(packed) == content
    except (OSError, EOFError, zlib.error):
        return False


@pytest.mark.heavy
def test_a_flipped_bit_anywhere_is_noticed(backup: Path, target: Path) -> None:
    whole = backup.read_bytes()
    for at in range(10, len(whole), max(1, len(whole) // 50)):
        data = bytearray(whole)
        data[at] ^= 4
        backup.write_bytes(data)
        if not unpacks_to(bytes(data), gzip.decompress(whole)):
            assert_refused(backup, target, str(backup))


def test_a_backup_that_was_cut_off_is_noticed_wherever(backup: Path, target: Path) -> None:
    whole = backup.read_bytes()
    for end in [0, 5, 100, *range(200, len(whole), max(1, len(whole) // 20)), len(whole) - 1]:
        backup.write_bytes(whole[:end])
        assert_refused(backup, target, str(backup))


def members(file: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(file) as archive:
        return [(item, archive.extractfile(item).read()) for item in archive]


def rewrite(file: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "{tmp}/evil",
        "storage/../../../evil",
        "storage",
        "more.txt",
        "storage//x",
        "./storage/x",
        "ferret.db",
    ],
)
def test_a_file_that_is_no_part_of_a_backup_is_refused(backup: Path, target: Path, tmp_path: Path, name: str) -> None:
    entries = members(backup)
    rewrite(backup, [*entries[:-1], (tarfile.TarInfo(name.format(tmp=tmp_path)), b"evil"), entries[-1]])
    assert_refused(backup, target, "does not belong in a backup")
    assert list(tmp_path.rglob("evil")) == []


def test_a_link_is_refused(backup: Path, target: Path) -> None:
    entries, link = members(backup), tarfile.TarInfo("storage/checkpoints/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    rewrite(backup, [*entries[:-1], (link, b""), entries[-1]])
    assert_refused(backup, target, "does not belong in a backup")


def test_a_file_behind_the_manifest_is_refused(backup: Path, target: Path) -> None:
    rewrite(backup, [*members(backup), (tarfile.TarInfo("storage/late"), b"late")])
    assert_refused(backup, target, "comes after the manifest")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"revision": "9999"}, "at revision 9999"),
        ({"format": 2}, "cannot be read"),
        ({"files": {}}, "do not match the manifest"),
        ({"unknown": 1}, "cannot be read"),
    ],
)
def test_a_manifest_of_something_else_is_refused(
    backup: Path, target: Path, changes: dict[str, Any], match: str
) -> None:
    *files, (info, text) = members(backup)
    assert info.name == MANIFEST
    rewrite(backup, [*files, (info, json.dumps(json.loads(text) | changes).encode())])
    assert_refused(backup, target, match)


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"\0" * 20_000])
def test_another_file_is_no_backup(tmp_path: Path, target: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    assert_refused(tmp_path / "other", target, "other")


def test_a_home_with_something_in_it_is_left_alone(backup: Path, tmp_path: Path) -> None:
    home = tmp_path / "mine"
    home.mkdir()
    restore(backup, home)
    before = sorted(home.rglob("*"))
    with refused("request.invalid", "choose another"):
        restore(backup, home)
    assert sorted(home.rglob("*")) == before


def test_a_home_that_fills_up_meanwhile_is_left_alone(
    backup: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(file: Path, folder: Path) -> Any:
        target.mkdir()
        (target / "mine").write_text("mine")
        return _unpack(file, folder)

    monkeypatch.setattr("ferret_cli.backup.restore._unpack", slowly)
    with refused("request.invalid", "choose another"):
        restore(backup, target)
    assert [path.name for path in target.parent.rglob("*")] == ["home", "mine"]


def test_a_home_in_use_is_named_so(backup: Path, tmp_path: Path) -> None:
    with locked(tmp_path / "used"), refused("home.in_use", str(os.getpid())):
        restore(backup, tmp_path / "used")


@pytest.mark.parametrize("name", ["FERRET_DATABASE_URL", "FERRET_STORAGE_URL"])
def test_a_service_that_keeps_its_state_elsewhere_is_told(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "sqlite:////elsewhere/ferret.db" if "DATABASE" in name else "file:///elsewhere")
    with refused("settings.invalid", name):
        restore(backup, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_no_such_file(tmp_path: Path) -> None:
    with refused("request.invalid", "does not exist"):
        restore(tmp_path / "none.tar", tmp_path / "restored")


@pytest.fixture
def kills(amount: Callable[[int, int], int]) -> range:
    """How often each point is killed in a row."""
    return range(amount(1, 5))


@pytest.mark.parametrize(
    "name",
    ["storage.written", *slow("backup.copied", "backup.written", "storage.synced", "storage.renamed")],
)
def test_a_backup_that_is_killed_is_none_or_whole(
    embedded: Embedded, ferret: Ferret, file: Path, tmp_path: Path, kills: range, name: str
) -> None:
    for _ in kills:
        file.unlink(missing_ok=True)
        killed = ferret("backup", file, **{VARIABLE: f"{name}:1"})
        assert killed.returncode == -signal.SIGKILL
        assert file.exists() == (name == "storage.renamed")
    if not file.exists():
        assert ferret("backup", file, "--json").returncode == 0
    restore(file, tmp_path / "restored")
    restored = Embedded(tmp_path / "restored")
    assert restored.experiments() == embedded.experiments()
    restored.database.dispose()


@pytest.mark.parametrize(
    "name",
    [
        "restore.unpacked",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("storage.durable", "restore.moved")),
    ],
)
@pytest.mark.slow
def test_a_restore_that_is_killed_is_none_or_whole(
    embedded: Embedded, backup: Path, ferret: Ferret, target: Path, kills: range, name: str
) -> None:
    for _ in kills:
        shutil.rmtree(target, ignore_errors=True)
        killed = ferret("restore", backup, "--home", target, **{VARIABLE: f"{name}:1"})
        assert killed.returncode == -signal.SIGKILL
        assert target.exists() == (name == "restore.moved")
    if not target.exists():
        done = ferret("restore", backup, "--home", target, "--json")
        assert json.loads(done.stdout)["files"] == 3
    restored = Embedded(target)
    assert restored.experiments() == embedded.experiments()
    assert restored.damaged() == []
    restored.database.dispose()
