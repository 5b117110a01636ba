"""Traversal of the ledger: catching up, verifying, replaying and repairing all move a replica with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferret_core.ledger.record import LedgerEntry, LedgerRecord, check_link
from ferret_core.ledger.signatures import SignatureChecker
from ferret_core.replica.replica import Replica


def replay(replica: Replica, entries: Iterable[LedgerEntry]) -> Iterator[LedgerRecord]:
    """Moves ``replica`` along the ``entries`` after its round, and yields each valid record.

    An entry is read only when the replica has reached the previous one, so that a generator can fetch its update then.
    Raises ``ledger.broken`` at the first entry with a hash, link, signature, update or model digest other than
    recorded; the replica may then be partly moved.
    """
    keys = SignatureChecker()
    for record, recorded_hash, update in entries:
        check_link(record, recorded_hash, replica.head)
        keys.check(record)
        replica.advance(record, update)
        yield record
