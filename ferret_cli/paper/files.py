"""Files that are whole or not there."""

from __future__ import annotations

from pathlib import Path

from ferret_core.protocol.errors import FerretError


def writable(folder: Path, field: str) -> Path:
    """The folder, made if it is not there, before any work is done; ``request.invalid`` if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be used as a folder ({error.strerror}); choose another"
        raise FerretError.of_field("request.invalid", field, str(folder), reason) from error
    return folder


def write(path: Path, content: bytes) -> Path:
    """Writes beside ``path`` and renames: whoever interrupts leaves the file of before, or none."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(content)
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
