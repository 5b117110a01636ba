"""Verification of the ledger's signatures: contributions must be signed by the keys that participants joined with."""

from __future__ import annotations

from ferret_core.ledger.record import LedgerRecord, broken
from ferret_core.protocol.signatures import Signed, is_valid


class SignatureChecker:
    """Participants' keys so far. A name has one key; after its first signature, all its contributions must be
    signed."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def check(self, record: LedgerRecord) -> None:
        """Raises ``ledger.broken`` for an invalid or missing signature in the record."""
        digests = dict(record.contributions) | {name: digest for name, digest, _ in record.refused}
        for name, key, assignment, signature in record.signatures:
            if self._known.setdefault(name, key) != key:
                raise broken(record, f"{name} signed with another key than before")
            signed = Signed(record.experiment, record.round, name, record.base_digest, assignment, digests[name])
            if not is_valid(key, signature, signed):
                raise broken(record, f"the signature of {name} is not valid")
        for name in sorted(digests.keys() & self._known.keys() - {each.participant for each in record.signatures}):
            raise broken(record, f"the contribution of {name} is not signed, and an earlier one was")
