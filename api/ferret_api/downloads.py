"""Rules of downloads: who may have a round of few participants, and audit entries.

The log gets one entry per hour, caller and object, so that ranges, retries and polling do not fill it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from ferret_core.protocol.audit import AuditAction
from ferret_core.protocol.errors import FerretError
from ferret_core.rounds.sampling import client_names
from ferret_db.repositories import audit, experiments, ledger
from ferret_db.tables import Experiment

if TYPE_CHECKING:
    from ferret_api.access import Reader
    from ferret_api.context import Context

PAUSE_SECONDS = 3600.0
"""Minimum time between two entries about one caller and object."""
MOST = 100_000
"""Maximum number of remembered entries. The oldest is forgotten first, and may then be written again."""

Taken = tuple[str, str, str, int | None]
"""Caller, action, experiment and number."""


class Downloads:
    """Record of recently written entries. It is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: OrderedDict[Taken, float] = OrderedDict()

    def is_due(self, taken: Taken) -> bool:
        """Returns True if the log has no entry for ``taken`` from the last hour."""
        now = time.monotonic()
        with self._lock:
            while self._written and now - next(iter(self._written.values())) >= PAUSE_SECONDS:
                self._written.popitem(last=False)
            return taken not in self._written

    def written(self, taken: Taken) -> None:
        """Remembers that the entry for ``taken`` is in the log."""
        with self._lock:
            self._written[taken] = time.monotonic()
            self._written.move_to_end(taken)
            if len(self._written) > MOST:
                self._written.popitem(last=False)


def record_checkpoint(context: Context, reader: Reader, experiment_id: str, round: int) -> None:
    """Records that the reader downloads files of the checkpoint of ``round``."""
    _record(context, "checkpoint.downloaded", (reader.id, experiment_id, round), round=round)


def record_update(context: Context, reader: Reader, experiment_id: str, round: int) -> None:
    """Records the download of a round's update. A participant follows all rounds: all its downloads count as one."""
    _record(
        context, "update.downloaded", (reader.id, experiment_id, None if reader.is_participant else round), round=round
    )


def record_example(context: Context, caller_id: str, experiment_id: str, number: int) -> None:
    """Records that the caller has drawn the held-out example ``number``."""
    _record(context, "example.drawn", (caller_id, experiment_id, number), number=number)


def _record(context: Context, action: AuditAction, what: tuple[str, str, int | None], **detail: int) -> None:
    caller, experiment_id, number = what
    taken = (caller, action, experiment_id, number)
    if context.downloads.is_due(taken):
        with context.database.begin() as s:
            audit.record(s, caller, action, experiment_id, **detail)
        context.downloads.written(taken)


def require_enough_participants(
    s: Session, reader: Reader, experiment: Experiment, round: int, least: int, *, change: bool = False
) -> None:
    """Raises ``round.too_small`` unless the reader may have the model after ``round``, or with ``change`` what the
    round changed: :func:`require_large`. The experiment's participants may have all of it, since they need every update
    to follow the model.
    """
    if not reader.is_participant:
        require_large(s, experiment, round, least, change=change)


def require_large(s: Session, experiment: Experiment, round: int, least: int, *, change: bool = False) -> None:
    """Raises ``round.too_small`` if the model after ``round`` could reveal single contributions.

    In an experiment with real participants, a model is released only if at least ``least`` of them contributed since
    the last released one. What the round changed is released only if they all contributed to this round: the change of
    a smaller one could else be computed from its neighbours. Simulated clients and refused contributions do not count.
    Round 0 is the base model, which holds no contributions.
    """
    if not experiment.edge_participants or round == 0:
        return
    simulated = frozenset(client_names(experiments.spec_of(experiment).participants.simulated))
    begin, together = round, set[str]()
    for number, names in _since_the_last_large(s, experiment.id, round, least, simulated):
        if not together:
            begin = number
        together |= names
        if number < round and len(together) >= least:
            together = set()
    if len(together) >= least and not (change and begin < round):
        return
    rounds = f"round {round} holds" if begin == round else f"rounds {begin} to {round} together hold"
    raise FerretError(
        "round.too_small",
        f"{rounds} the contributions of {len(together)} real participants, and FERRET_MIN_PARTICIPANTS = {least}: "
        "choose a round with more, or ask the operator whether the participants agree to fewer",
    )


def _since_the_last_large(
    s: Session, experiment_id: str, round: int, least: int, simulated: frozenset[str]
) -> list[tuple[int, set[str]]]:
    """Returns the real participants of ``round`` and of the small rounds directly before it, in order."""
    found = [(round, _real(ledger.get(s, experiment_id, round).record, simulated))]
    for entry in ledger.before(s, experiment_id, round):
        names = _real(entry.record, simulated)
        if len(names) >= least:
            break
        found.append((entry.round, names))
    return found[::-1]


def _real(record: dict[str, Any], simulated: frozenset[str]) -> set[str]:
    contributed = {name for name, *_ in record["contributions"]}
    return contributed - {name for name, *_ in record["refused"]} - simulated
