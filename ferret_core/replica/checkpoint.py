"""Checkpoints in Hugging Face layout: files for ``AutoModelForCausalLM.from_pretrained``, and a manifest.

For an algorithm that tunes adapters, the model is replaced by the files for ``PeftModel.from_pretrained``.

The manifest ``ferret.json`` is written last: a folder without it is not a checkpoint.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from ferret_core.distributed.process_group import ProcessGroup, current
from ferret_core.models.save import SHARD
from ferret_core.protocol.digest import canonical_json, digest_file
from ferret_core.protocol.spec import StrictModel
from ferret_core.replica.replica import Replica
from ferret_core.replica.sharded import whole_state

FORMAT: Literal[1] = 1


MANIFEST = "ferret.json"


class Manifest(StrictModel):
    """A checkpoint's manifest: the model's digest, and the digest of every other file."""

    format: Literal[1]
    experiment: str
    round: int
    digest: str
    files: dict[str, str]


def write(replica: Replica, experiment: str, folder: Path) -> Manifest:
    """Writes the replica's model, tokenizer and manifest into the existing, empty ``folder``.

    For a model with adapters only the adapters are written, in PEFT's layout, with the name of the base model. The
    processes of a team write together into the same folder; all return the first one's manifest.
    """
    if (team := current()) is not None:
        return _write_together(replica, experiment, folder, team)
    replica.save(folder)
    return seal(replica, experiment, folder)


def _write_together(replica: Replica, experiment: str, folder: Path, team: ProcessGroup) -> Manifest:
    with whole_state(replica.model, team, folder.parent) as state:
        if team.is_first:
            model: Any = replica.model
            model.save_pretrained(folder, state_dict=state, max_shard_size=SHARD)
            replica.tokenizer.save_pretrained(folder)
            seal(replica, experiment, folder)
    team.numbers(0)  # the others wait until it is written
    return Manifest.model_validate_json((folder / MANIFEST).read_bytes())


def write_folder(
    replica: Replica, experiment: str, folder: Path, add: Callable[[Path], None] = lambda draft: None
) -> Manifest:
    """Calls :func:`write` and ``add`` on a new or empty ``folder``, which appears only when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        draft = Path(scratch) / "checkpoint"
        draft.mkdir()
        manifest = write(replica, experiment, draft)
        add(draft)
        draft.rename(folder)
    return manifest


def seal(replica: Replica, experiment: str, folder: Path) -> Manifest:
    """Makes the files in ``folder`` a checkpoint of the replica's round by writing the manifest."""
    files = {path.name: digest_file(path) for path in sorted(folder.iterdir()) if path.is_file()}
    manifest = Manifest(format=FORMAT, experiment=experiment, round=replica.round, digest=replica.digest, files=files)
    (folder / MANIFEST).write_bytes(canonical_json(manifest.model_dump(mode="json")) + b"\n")
    return manifest
