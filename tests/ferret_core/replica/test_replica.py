"""A replica that follows the ledger in several stretches."""

from __future__ import annotations

from ferret_core import catalog
from ferret_core.ledger.record import LedgerEntry, LedgerRecord, Signature
from ferret_core.protocol.signatures import Signed, new_key, public_key, sign
from ferret_core.replica.replica import Replica, replay
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

ASSIGNMENT = "asg_0123456789abcdef"


def signed(entry: LedgerEntry, previous: str, key: str | None) -> LedgerEntry:
    """The entry after the record with the hash ``previous``, its contributions signed with ``key``."""
    about = entry.record
    signatures = [
        Signature(
            name,
            public_key(key),
            ASSIGNMENT,
            sign(key, Signed(about.experiment, about.round, name, about.base_digest, ASSIGNMENT, digest)),
        )
        for name, digest in about.contributions
        if key is not None
    ]
    record = LedgerRecord.model_validate(
        {**about.model_dump(), "previous": previous, "signatures": tuple(signatures)},
    )
    return LedgerEntry(record, record.hash, entry.update)


def test_a_participants_key_is_remembered_from_one_replay_to_the_next(toy_spec: SpecFactory) -> None:
    entries: list[LedgerEntry] = []
    spec = toy_spec(rounds=3, participants={"simulated": 1})
    simulate(spec, on_update=entries.append)
    key = new_key()
    first = signed(entries[0], "", key)
    second = signed(entries[1], first.hash, key)
    for other, reason in ((new_key(), "another key than before"), (None, "is not signed")):
        replica = Replica.load(catalog.resolve(spec).spec)
        for entry in (first, second):
            assert [record.round for record in replay(replica, [entry])] == [entry.record.round]
        with refused("ledger.broken", reason):
            list(replay(replica, [signed(entries[2], second.hash, other)]))
