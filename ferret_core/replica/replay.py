"""The one way along the ledger: catching up, verifying, replaying and repairing all move a replica by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferret_core.ledger.record import LedgerEntry, LedgerRecord, check_link
from ferret_core.ledger.signatures import Keys
from ferret_core.replica.replica import Replica


def follow(replica: Replica, entries: Iterable[LedgerEntry]) -> Iterator[LedgerRecord]:
    """Moves ``replica`` along the ``entries`` behind its round, and yields each record that holds.

    An entry is asked for when the replica stands before it, so that a generator can fetch its update then. Raises
    ``ledger.broken`` at the first whose hash, link, signatures, update or model digest is not what was recorded; the
    replica may then be half moved.
    """
    keys = Keys()
    for record, recorded_hash, update in entries:
        check_link(record, recorded_hash, replica.head)
        keys.check(record)
        replica.advance(record, update)
        yield record
