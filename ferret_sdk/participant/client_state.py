"""What a participant keeps from one of its rounds to the next: error feedback, control variates.

Each contribution has its own file, and counts once the ledger names it: a round that was not committed, or a crash
between an upload and its answer, leaves the memory that belongs to the model.
"""

from __future__ import annotations

import logging
from pathlib import Path

from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.wire import Arrays, decode, encode
from ferret_core.system.atomic_files import write_durably
from ferret_core.system.failpoints import failpoint

log = logging.getLogger(__name__)


class Memory:
    """The memory of the participant ``name``, in ``folder``, which survives restarts."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._last = ""

    def follow(self, record: LedgerRecord) -> None:
        """Takes note of a committed round: what was kept with a contribution in it counts from now on."""
        self._last = dict(record.contributions).get(self._name, self._last)

    def keep(self, digest: str, arrays: Arrays) -> None:
        """Stores what goes with the contribution ``digest``, before that is sent; drops what cannot count any more."""
        for path in self._folder.glob("*"):  # with the drafts of a process that was killed
            if path.stem != self._last:
                path.unlink()
        failpoint("memory.dropped")
        if arrays:
            write_durably(self._folder / f"{digest}.safetensors", encode(arrays, {}))

    def recall(self) -> Arrays:
        """What was kept with the last contribution that was committed; empty if there is none."""
        path = self._folder / f"{self._last}.safetensors"
        return decode(path.read_bytes())[0] if path.is_file() else {}
