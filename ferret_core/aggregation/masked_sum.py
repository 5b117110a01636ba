"""Sums under masks: made in one process, repeated from their transcripts, and verified."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ferret_core import catalog
from ferret_core.aggregation.group_sum import GroupSum, seal_mean, summation, task_of
from ferret_core.contribution import SealedContribution
from ferret_core.ledger.record import MOST_GROUPS, GroupRecord, LedgerRecord, broken
from ferret_core.protocol.digest import digest_bytes, digest_json, digest_pieces
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica.replica import Replica
from ferret_core.secure.in_process import Members
from ferret_core.secure.packing import Vector
from ferret_core.secure.roster import Origin, Roster, invalid
from ferret_core.secure.transcript import Transcript

MaskedVectors = Mapping[str, bytes | memoryview]
"""Masked vectors by participant; long ones can be memory-mapped."""


def sum_in_process(
    replica: Replica,
    members: Members,
    task: RoundTask,
    attempt: int,
    names: Collection[str],
    contributions: Mapping[str, SealedContribution],
    group: int = 1,
) -> GroupSum:
    """Sums the ``contributions`` of one group to an attempt at the ``replica``'s next round; members in ``names``
    without one drop out. ``task`` is that of any member.

    Raises as :meth:`ferret_core.secure.in_process.Members.sum`.
    """
    algorithm, shapes = summation(replica, len(names)), replica.shapes
    origin = origin_of(replica, task, attempt)
    vectors = {
        name: algorithm.integers(replica.state, sealed.contribution, shapes) for name, sealed in contributions.items()
    }
    found = members.sum(origin, algorithm.segments(shapes), names, vectors, group)
    return _summed(replica, task, found.transcript, found.sums, found.digests)._replace(bytes_up=found.bytes_up)


def sum_of(replica: Replica, experiment: str, transcript: Transcript, masked: MaskedVectors) -> GroupSum:
    """Repeats a sum to the ``replica``'s next round from its transcript and the survivors' masked vectors.

    Raises as :meth:`ferret_core.secure.transcript.Transcript.sum`.
    """
    roster = transcript.roster
    task = task_of(replica, experiment, roster.origin.attempt, roster.names[0])
    digests = {name: digest_pieces((masked[name],)) for name in transcript.survivors}
    return _summed(replica, task, transcript, transcript.sum(masked), digests)


def _summed(
    replica: Replica, task: RoundTask, transcript: Transcript, sums: Vector, digests: Mapping[str, str]
) -> GroupSum:
    roster = transcript.roster
    sealed = seal_mean(replica, task, sums, len(roster.members), len(transcript.survivors), roster.group)
    releases = roster.origin.attempt if replica.spec.privacy.of_records else None
    return GroupSum(sealed, roster.names, digests, transcript, releases)


def verify_sums(
    replica: Replica, record: LedgerRecord, transcripts: Sequence[Transcript], masked: MaskedVectors
) -> None:
    """Repeats the sums in the ``record`` of the ``replica``'s next round, from their transcripts and the survivors'
    masked vectors.

    Raises ``ledger.broken`` unless keys, signatures, masked vectors, sums and update are the recorded ones, bit for
    bit.
    """
    try:
        if len(transcripts) != len(record.groups):
            raise broken(record, f"{len(transcripts)} transcripts belong to {len(record.groups)} groups")
        found = [
            _verified(replica, record, group, transcript, masked)
            for group, transcript in zip(record.groups, transcripts, strict=True)
        ]
        counted = [one.sealed for one, group in zip(found, record.groups, strict=True) if group.refused is None]
        if digest_bytes(replica.aggregate(counted, record.factors)) != record.update:
            raise broken(record, "the sums give another update")
    except FerretError as error:
        raise broken(record, f"its secure sums are not the recorded ones: {error.detail}") from error


def _verified(
    replica: Replica, record: LedgerRecord, group: GroupRecord, transcript: Transcript, masked: MaskedVectors
) -> GroupSum:
    roster = transcript.roster
    task = task_of(replica, record.experiment, roster.origin.attempt, roster.names[0])
    require_roster(replica, roster, origin_of(replica, task, roster.origin.attempt))
    transcript.verify()
    found = sum_of(replica, record.experiment, transcript, masked)
    if found.record(group.clipped, group.refused) != group:
        raise broken(record, f"members, survivors, transcript or sum of {group.name} differ")
    identities = {each.participant: each.public_key for each in record.signatures}
    digests = dict(record.contributions) | {name: digest for name, digest, _ in record.refused}
    for name, digest in found.digests.items():
        if digests[name] != digest:
            raise broken(record, f"the masked vector of {name} has another digest")
        if name in identities and roster.member(name).identity != identities[name]:
            raise broken(record, f"{name} has another identity in the roster than in the record")
    return found


def require_roster(replica: Replica, roster: Roster, origin: Origin) -> None:
    """Raises ``secure.roster_invalid`` unless the roster is for the sum with this ``origin`` to the ``replica``'s next
    round, as its specification requires it."""
    secure = replica.spec.secure
    groups = range(1, 2 if not secure.group else MOST_GROUPS + 1)
    segments = summation(replica, len(roster.members)).segments(replica.shapes)
    expected: dict[str, tuple[object, object]] = {
        "origin": (roster.origin.model_dump(), origin.model_dump()),
        "group": (roster.group in groups, True),
        "least": (roster.least, secure.least),
        "colluders": (roster.colluders, secure.colluders),
        "segments": (roster.segments, tuple(segments)),
    }
    for field, (shown, own) in expected.items():
        if shown != own:
            raise invalid(field, str(shown), f"the experiment has {own}")
    roster.verify()


def origin_of(replica: Replica, task: RoundTask, attempt: int) -> Origin:
    """Returns the round and model of a sum as everyone who follows the ledger knows them."""
    return Origin(
        experiment=task.experiment,
        round=task.round,
        attempt=attempt,
        spec=spec_digest(replica.spec),
        base_digest=task.base_digest,
        previous=replica.head,
        round_seed=task.round_seed,
    )


def spec_digest(spec: ExperimentSpec) -> str:
    """Returns the digest of a resolved specification as its participants see it, without the server's paths.

    It leaves out ``rounds``: an experiment can be extended during a sum.
    """
    return digest_json(catalog.without_places(spec).model_dump(mode="json", exclude={"rounds"}))
