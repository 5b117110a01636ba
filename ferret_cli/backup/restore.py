"""Restores a backup into a new home: read and checked completely next to it, then moved into place."""

from __future__ import annotations

import errno
import gzip
import shutil
import tarfile
import tempfile
from pathlib import Path

from ferret_cli.backup.manifest import (
    DATABASE,
    UNREADABLE,
    Digesting,
    Entry,
    Manifest,
    Member,
    invalid,
    require_equal,
    survey,
)
from ferret_cli.stack.home_lock import LOCK_FILE, locked
from ferret_core.protocol.errors import FerretError
from ferret_core.system.atomic_files import atomic_write, flush_folder, make_folder_durably
from ferret_core.system.failpoints import failpoint
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import rounds
from ferret_db.engine.file_integrity import call_for_repair
from ferret_db.repositories import audit, stored_files
from ferret_db.repositories.stored_files import is_rebuildable
from ferret_runtime.settings import ServiceSettings

CHUNK_BYTES = 1 << 20


def restore(file: Path, home: Path) -> Manifest:
    """Restores ``file`` as the new or empty folder ``home``, all or nothing.

    Raises ``backup.invalid`` for an incomplete backup or one of an unknown schema; ``home.in_use`` and
    ``request.invalid`` for a folder that is not empty; ``settings.invalid`` if the service would not use the folder;
    ``storage.full`` before anything is written.
    """
    _require_embedded(home)
    _require_empty(home)
    make_folder_durably(home.parent)
    with tempfile.TemporaryDirectory(prefix=f".{home.name}-restore-", dir=home.parent) as scratch:
        draft = Path(scratch) / "home"
        draft.mkdir(mode=0o700)
        manifest = _unpack(file, draft)
        _record(draft, file, manifest)
        failpoint("restore.unpacked")
        _move(draft, home)
    failpoint("restore.moved")
    return manifest


def _record(draft: Path, file: Path, manifest: Manifest) -> None:
    """Migrates the database, audits the restoration, and has a worker rebuild the checkpoints that the backup left out.

    Abandons rounds that may have been summed with noise after the backup.
    """
    url = f"sqlite:///{draft / DATABASE}"
    migrate.upgrade(url)
    database = Database(url)
    try:
        with database.begin() as s:
            audit.record(s, audit.HOST, "backup.restored", file.name, made=manifest.created_at)
            rounds.abandon_unnoised(s)
            missing = {each.experiment_id for each in stored_files.of_all(s) if is_rebuildable(each)}
            for experiment_id in sorted(missing):
                call_for_repair(s, experiment_id)
    finally:
        database.dispose()


def _require_embedded(home: Path) -> None:
    settings, own = ServiceSettings.read(home=home), ServiceSettings.model_fields
    for name in ("database_url", "storage_url"):
        default = own[name].get_default(call_default_factory=True, validated_data={"home": home})
        if (given := getattr(settings, name)) != default:
            shown = None if own[name].repr is False else given
            reason = "points outside the home folder; unset it to restore"
            raise FerretError.of_field("settings.invalid", f"FERRET_{name}".upper(), shown, reason)


def _require_empty(home: Path) -> None:
    if (home / LOCK_FILE).exists():
        with locked(home):
            pass
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise _not_empty(home)


def _move(draft: Path, home: Path) -> None:
    try:
        draft.rename(home)  # onto an empty folder or a free name; the kernel refuses any other
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        raise _not_empty(home) from error
    flush_folder(home.parent)


def _not_empty(home: Path) -> FerretError:
    return FerretError.of_field("request.invalid", "home", str(home), "is not an empty folder; choose another")


def _unpack(file: Path, folder: Path) -> Manifest:
    manifest = survey(file, folder)
    found: dict[str, Entry] = {}
    try:
        with gzip.open(file) as unpacked, tarfile.open(fileobj=unpacked, mode="r|", tarinfo=Member) as archive:
            for member in archive:
                # The file may have been replaced since the check.
                if (said := manifest.files.get(member.name)) is not None and said.size == member.size:
                    found[member.name] = _write(archive, member, folder)
    except UNREADABLE as error:
        raise invalid(file, f"it cannot be read: {error}") from error
    require_equal(file, found, manifest.files)
    return manifest


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> Entry:
    stream = archive.extractfile(member)
    assert stream is not None, "a regular file has content"
    digesting = Digesting(stream)
    with atomic_write(folder / member.name) as file:
        shutil.copyfileobj(digesting, file, CHUNK_BYTES)
    return digesting.entry
