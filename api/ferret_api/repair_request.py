"""Repair requests for stored files that prove damaged when they are read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ferret_api.context import Context
from ferret_core.protocol.errors import FerretError
from ferret_db.engine.file_integrity import DAMAGE, call_for_repair


@contextmanager
def repairing(context: Context, experiment_id: str) -> Generator[None]:
    """Requests the experiment's repair if the block raises ``storage.corrupt`` or ``storage.missing``; re-raises it."""
    try:
        yield
    except FerretError as error:
        if error.code not in DAMAGE:
            raise
        with context.database.begin() as s:
            call_for_repair(s, experiment_id)
        raise FerretError(error.code, f"{error.detail}; it is being rebuilt: try again in a minute") from error
