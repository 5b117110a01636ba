"""Writes a backup, also while the service runs: first a snapshot of the database, then its referenced files.

Checkpoints after the base model are left out: the ledger and the updates rebuild them to the bit.
"""

from __future__ import annotations

import gzip
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from sqlalchemy.engine import make_url

from ferret_cli.backup.manifest import DATABASE, FORMAT, MANIFEST, STORAGE, Digesting, Entry, Manifest
from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import Storage
from ferret_core.system.atomic_files import atomic_write, make_folder_durably
from ferret_core.system.failpoints import failpoint
from ferret_db import schema_version
from ferret_db.database import Database
from ferret_db.repositories import audit, stored_files
from ferret_db.repositories.stored_files import is_rebuildable
from ferret_runtime.settings import ServiceSettings
from ferret_sdk.service.server_address import TOKEN_FILE

LEVEL = 1
"""Weights shrink as little at higher levels, which take several times as long."""


def write(settings: ServiceSettings, file: Path) -> Manifest:
    """Backs the embedded service up into the new ``file``, readable only by its owner; all or nothing.

    Files are stored before the rows that name them are committed, and nothing is collected meanwhile, so all files of
    the snapshot exist. Raises ``storage.corrupt`` or ``storage.missing`` otherwise.
    """
    if file.exists():
        raise FerretError.of_field("request.invalid", "FILE", str(file), "exists; choose a new name")
    schema_version.check(settings.database_url)
    storage = settings.open_storage()
    make_folder_durably(file.parent)
    with storage.copying(), tempfile.TemporaryDirectory(prefix=".ferret-backup-", dir=file.parent) as scratch:
        database = Path(scratch) / DATABASE
        snapshot(settings.database_url, database)
        failpoint("backup.copied")
        named = _named(database)
        with atomic_write(file) as stream:
            with (
                gzip.GzipFile(fileobj=stream, mode="wb", filename="", compresslevel=LEVEL) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
            ):
                manifest = _fill(archive, database, settings.home / TOKEN_FILE, storage, named)
            _record(settings.database_url, file, manifest)  # a backup that nobody knows of gets no name
        return manifest


def _record(url: str, file: Path, manifest: Manifest) -> None:
    database = Database(url)
    try:
        with database.begin() as s:
            audit.record(s, audit.HOST, "backup.made", file.name, files=len(manifest.files), bytes=manifest.size)
    finally:
        database.dispose()


def _named(database: Path) -> dict[str, str]:
    """Returns the digest of each stored file that the copied database names and no ledger rebuilds, by location."""
    copy = Database(f"sqlite:///{database}")
    try:
        with copy.read() as s:
            files = stored_files.of_all(s)
            return {file.location: file.digest for file in files if not is_rebuildable(file)}
    finally:
        copy.dispose()


def _fill(archive: tarfile.TarFile, database: Path, token: Path, storage: Storage, named: dict[str, str]) -> Manifest:
    files: dict[str, Entry] = {}
    for path in (database, token):
        if path.exists():
            with path.open("rb") as stream:
                files[path.name] = _add(archive, path.name, stream, path.stat().st_size)
    for location, digest in sorted(named.items()):
        name = f"{STORAGE}/{location}"
        with storage.open(location) as stream:
            files[name] = _add(archive, name, stream, storage.size(location))
        if files[name].digest != digest:
            message = f"{location} does not match its digest: run `ferret storage verify --repair`, then back up again"
            raise FerretError("storage.corrupt", message)
    now = datetime.now(UTC).isoformat()
    manifest = Manifest(format=FORMAT, created_at=now, revision=schema_version.HEAD, files=files)
    text = canonical_json(manifest.model_dump(mode="json"))
    _add(archive, MANIFEST, BytesIO(text), len(text))
    failpoint("backup.written")
    return manifest


def _add(archive: tarfile.TarFile, name: str, stream: BinaryIO, size: int) -> Entry:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    digesting = Digesting(stream)
    archive.addfile(info, digesting)
    return digesting.entry


def snapshot(url: str, target: Path) -> None:
    """Copies the committed contents of the SQLite database at ``url`` to the file ``target``.

    One step of SQLite's backup API (https://www.sqlite.org/backup.html) copies all pages as of one moment, while
    writers continue. Raises ``settings.invalid`` for PostgreSQL, which has its own tools.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        reason = "is not a SQLite database: back up PostgreSQL with pg_dump, and copy the storage too"
        raise FerretError.of_field("settings.invalid", "FERRET_DATABASE_URL", parsed.render_as_string(), reason)
    with (
        closing(sqlite3.connect(f"{Path(str(parsed.database)).as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
