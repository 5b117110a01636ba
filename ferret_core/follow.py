"""The one way along the ledger: catching up, verifying, replaying and repairing all move a replica by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferret_core.ledger import LedgerEntry, LedgerRecord, broken
from ferret_core.replica import Replica
from ferret_core.signed import Keys


def follow(replica: Replica, entries: Iterable[LedgerEntry]) -> Iterator[LedgerRecord]:
    """Moves ``replica`` along the ``entries`` behind its round, and yields each record that holds.

    An entry is asked for when the replica stands before it, so that a generator can fetch its update then. Raises
    ``ledger.broken`` at the first whose hash, link, signatures, update or model digest is not what was recorded; the
    replica may then be half moved.
    """
    keys = Keys()
    for record, recorded_hash, update in entries:
        if record.hash != recorded_hash:
            raise broken(record, "its content does not match its recorded hash")
        if record.previous != replica.head:
            raise broken(record, "it does not follow the record before it")
        keys.check(record)
        replica.advance(record, update)
        yield record
