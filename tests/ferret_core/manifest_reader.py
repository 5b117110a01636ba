"""What a finished checkpoint must be."""

from __future__ import annotations

from pathlib import Path

from ferret_core.protocol.digest import digest_file
from ferret_core.replica.checkpoint import MANIFEST, Manifest


def checked(folder: Path) -> Manifest:
    """The manifest of a checkpoint whose files all match it."""
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    assert manifest.files == {name: digest_file(folder / name) for name in manifest.files}
    return manifest
