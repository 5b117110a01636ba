"""Restores a backup into a new home: read and checked completely next to it, then moved into place."""

from __future__ import annotations

import errno
import json
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from ferret_cli.backup.manifest import DATABASE, MANIFEST, STORAGE, Digesting, Entry, Manifest
from ferret_cli.stack.home import LOCK_FILE, locked
from ferret_core.durable import flush_folder, make_folder_durably, replacing
from ferret_core.failpoints import failpoint
from ferret_core.protocol.errors import FerretError
from ferret_db import migrate
from ferret_db.settings import ServiceSettings
from ferret_sdk.address import TOKEN_FILE

CHUNK_BYTES = 1 << 20
MANIFEST_BYTES = 256 << 20


def restore(file: Path, home: Path) -> Manifest:
    """Restores ``file`` as the new or empty folder ``home``, all or nothing.

    Raises ``backup.invalid`` for a file that is no whole backup, or one of a later version; ``home.in_use`` and
    ``request.invalid`` for a folder with something in it, ``settings.invalid`` where the service would not use it.
    """
    _require_embedded(home)
    _require_empty(home)
    make_folder_durably(home.parent)
    with tempfile.TemporaryDirectory(prefix=f".{home.name}-restore-", dir=home.parent) as scratch:
        draft = Path(scratch) / "home"
        draft.mkdir(mode=0o700)
        manifest = _unpack(file, draft)
        failpoint("restore.unpacked")
        _move(draft, home)
    failpoint("restore.moved")
    return manifest


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
    """Writes the archive's files into ``folder``; returns the manifest that they all match."""
    found: dict[str, Entry] = {}
    manifest: Manifest | None = None
    try:
        with file.open("rb") as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if manifest is not None:
                    raise _invalid(file, f"{member.name} comes after the manifest")
                if member.name == MANIFEST:
                    manifest = _manifest(archive, member)
                else:
                    _check_name(file, member, found)
                    found[member.name] = _write(archive, member, folder)
    except FileNotFoundError as error:
        raise FerretError.of_field("request.invalid", "FILE", str(file), "does not exist") from error
    except (tarfile.TarError, EOFError, ValueError, ValidationError) as error:
        raise _invalid(file, f"it cannot be read: {error}") from error
    return _complete(file, manifest, found)


def _check_name(file: Path, member: tarfile.TarInfo, found: dict[str, Entry]) -> None:
    """Raises unless the member is a file that a backup holds, once: its name becomes a path."""
    path = PurePosixPath(member.name)
    own = member.name in {DATABASE, TOKEN_FILE} or (path.parts[:1] == (STORAGE,) and len(path.parts) > 1)
    if not own or ".." in path.parts or str(path) != member.name or not member.isreg() or member.name in found:
        raise _invalid(file, f"{member.name!r} does not belong in a backup")


def _manifest(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
    stream = archive.extractfile(member)
    if stream is None or member.size > MANIFEST_BYTES:
        raise ValueError("its manifest is not a file")
    return Manifest.model_validate(json.loads(stream.read()))


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> Entry:
    stream = archive.extractfile(member)
    assert stream is not None, "a regular file has content"
    digesting = Digesting(stream)  # type: ignore[arg-type]
    with replacing(folder / member.name) as file:
        shutil.copyfileobj(digesting, file, CHUNK_BYTES)
    return digesting.entry


def _complete(file: Path, manifest: Manifest | None, found: dict[str, Entry]) -> Manifest:
    if manifest is None:
        raise _invalid(file, f"it ends before its {MANIFEST}: the backup was cut off")
    wrong = sorted(name for name in {*found, *manifest.files} if found.get(name) != manifest.files.get(name))
    if wrong:
        raise _invalid(file, f"{wrong[0]} and {len(wrong) - 1} more do not match the manifest")
    if not migrate.knows(manifest.revision):
        raise _invalid(file, f"its database is at revision {manifest.revision}, made by a later version of Ferret")
    return manifest


def _invalid(file: Path, reason: str) -> FerretError:
    return FerretError("backup.invalid", f"{file}: {reason}")
