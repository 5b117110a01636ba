"""A round's record in the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from ferret_core.aggregation.candidate import Candidate
from ferret_core.aggregation.selection import Selection
from ferret_core.ledger.record import LEDGER_VERSION, LedgerEntry, LedgerRecord, Signature
from ferret_core.protocol.digest import digest_bytes, digest_json
from ferret_core.replica.replica import Replica


def record_round(
    replica: Replica,
    experiment: str,
    base_digest: str,
    selection: Selection,
    candidate: Candidate,
    signatures: Sequence[Signature],
) -> LedgerEntry:
    """Returns the entry of the round of ``replica``'s current model, begun at ``base_digest``; it becomes the
    replica's ``head``.
    """
    rejected = selection.rejected
    record = LedgerRecord(
        version=LEDGER_VERSION,
        experiment=experiment,
        spec=digest_json(replica.spec.model_dump(mode="json")),
        round=replica.round,
        base_digest=base_digest,
        digest=replica.digest,
        update=digest_bytes(candidate.update),
        contributions=tuple((each.participant, each.digest) for each in selection.accepted),
        previous=replica.head,
        clipped=tuple((name, factor) for name, factor in selection.factors.items() if name not in rejected),
        refused=tuple(
            (each.participant, each.digest, rejected[each.participant])
            for each in selection.summaries
            if each.participant in rejected
        ),
        signatures=tuple(sorted(signatures)),
        halvings=candidate.halvings,
    )
    replica.head = record.hash
    return LedgerEntry(record, replica.head, candidate.update)
