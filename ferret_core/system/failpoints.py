"""Failpoints: named places where a process can be killed, so that tests see the state after a crash.

Armed only by the environment: ``FERRET_FAILPOINT=storage.synced:3`` kills the process by SIGKILL when it reaches that
point for the third time. Unarmed, a point costs one lookup in an empty dictionary. The idea is FreeBSD's fail(9).
"""

from __future__ import annotations

import os
import signal

from ferret_core.protocol.errors import FerretError

VARIABLE = "FERRET_FAILPOINT"

NAMES = (
    # a transaction (ferret_db/database.py): written but not committed; committed, with its messages not marked as sent;
    # marked, but not sent; sent
    "database.written",
    "database.committed",
    "database.claimed",
    "database.sent",
    # a file written durably (ferret_core/system/atomic_files.py): an empty draft; all bytes in it; on disk; under its
    # name; in its folder on disk. In the storage (ferret_core/storage/): already there, and so not written; all files
    # of a folder except the last; removed
    "storage.opened",
    "storage.written",
    "storage.synced",
    "storage.renamed",
    "storage.durable",
    "storage.renewed",
    "storage.unsealed",
    "storage.deleted",
    # in a bucket (ferret_core/storage/_multipart.py): all parts of a large object at the store, which is not complete
    "bucket.uploaded",
    # a checkpoint (worker/checkpoints.py): saved without its manifest; with it; in the storage
    "checkpoints.saved",
    "checkpoints.sealed",
    "checkpoints.stored",
    # the tasks (worker/): after each step
    "coordinate.begun",
    "coordinate.prepared",
    "coordinate.started",
    "coordinate.announced",
    "coordinate.filled",
    "coordinate.opened",
    "train.leased",
    "train.trained",
    "train.stored",
    "train.remembered",
    "train.reported",
    "aggregate.begun",
    "aggregate.guarded",
    "aggregate.computed",
    "aggregate.stored",
    "aggregate.written",
    "aggregate.committed",
    "evaluate.begun",
    "evaluate.measured",
    "evaluate.recorded",
    # repair and garbage collection (worker/repair.py, ferret_db/engine/garbage_collection.py)
    "repair.rebuilt",
    "collect.marked",
    # an upload at the API (api/participants/upload.py)
    "upload.stored",
    "upload.accepted",
    # one in parts (api/participants/parts.py, ferret_sdk/participant/uploader.py): a part on disk, and not answered;
    # all of them, and nothing checked; at the site, a part answered
    "parts.grown",
    "parts.arrived",
    "parts.sent",
    # a real participant (ferret_sdk/): a request noted in its log and not sent; trained; old states dropped; its
    # state kept; its contribution on disk; sent
    "sent_log.written",
    "participant.trained",
    "state.dropped",
    "participant.kept",
    "participant.spooled",
    "participant.sent",
    # its part in a secure sum (ferret_sdk/participant/secure_sums.py): its state on disk, and the message not sent
    "secure.stocked",
    "secure.dealt",
    "secure.shares_accepted",
    "secure.masked",
    "secure.agreed",
    "secure.released",
    # backup and restore (ferret_cli/backup/)
    "backup.copied",
    "backup.written",
    "restore.unpacked",
    "restore.moved",
)

_left: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Kills the process here if the point ``name``, one of :data:`NAMES`, is armed and due."""
    if name in _left:
        _count_down(name)


def arm(setting: str) -> None:
    """Arms one point by ``name:n``, or none by an empty text; raises ``settings.invalid`` for anything else."""
    name, _, hit = setting.partition(":")
    if setting and not (name in NAMES and hit.isdigit() and int(hit)):
        message = f"is not a point and hit, as in storage.synced:1; the points are {', '.join(NAMES)}"
        raise FerretError.of_field("settings.invalid", VARIABLE, setting, message)
    _left.clear()
    if setting:
        _left[name] = int(hit)


def _count_down(name: str) -> None:
    _left[name] -= 1
    if _left[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get(VARIABLE, ""))
