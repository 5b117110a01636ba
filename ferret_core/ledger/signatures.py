"""The signatures in the ledger: whose contributions count in a round, by the keys that they joined with."""

from __future__ import annotations

from ferret_core.ledger.record import LedgerRecord, broken
from ferret_core.protocol.signatures import Signed, is_valid


class Keys:
    """The keys by which participants have signed so far. A name has one key, and who has signed once signs always."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def check(self, record: LedgerRecord) -> None:
        """Raises ``ledger.broken`` for a signature in the record that does not hold, or that is missing."""
        digests = dict(record.contributions) | {name: digest for name, digest, _ in record.refused}
        for name, key, assignment, signature in record.signatures:
            if self._known.setdefault(name, key) != key:
                raise broken(record, f"{name} signed with another key than before")
            signed = Signed(record.experiment, record.round, name, record.base_digest, assignment, digests[name])
            if not is_valid(key, signature, signed):
                raise broken(record, f"the signature of {name} does not hold")
        for name in sorted(digests.keys() & self._known.keys() - {each.participant for each in record.signatures}):
            raise broken(record, f"the contribution of {name} is not signed, and an earlier one was")
