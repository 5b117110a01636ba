"""Sums with central noise: the server adds participants' integers, then one draw of noise that protects records.

Two noised sums of the same contributions reveal more than their privacy allows. So a caller stores the first one
durably before it uses it, and never draws again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferret_core.aggregation.group_sum import GroupSum, seal_mean, summation
from ferret_core.contribution import SealedContribution, committed_layout, seal_vector
from ferret_core.privacy.commitment import commit, committed_vector
from ferret_core.privacy.mechanism import RecordMechanism, wrapped
from ferret_core.protocol.spec import RoundTask
from ferret_core.replica.replica import Replica


def seal_committed(replica: Replica, task: RoundTask, sealed: SealedContribution) -> SealedContribution:
    """Returns what a participant sends in place of its ``sealed`` contribution: its integers, behind random bytes."""
    layout = committed_layout(replica.experiment, replica.shapes, task)
    (words,) = summation(replica, _members(replica, task)).integers(replica.state, sealed.contribution, replica.shapes)
    return seal_vector(commit(words, layout), replica.spec, task)


def noised_sum(replica: Replica, task: RoundTask, contributions: Iterable[bytes | memoryview]) -> bytes:
    """Returns the packed sum of the ``contributions`` with noise. Each call draws its own: keep the first result.

    ``task`` is that of any participant. Raises ``contribution.malformed``.
    """
    layout = committed_layout(replica.experiment, replica.shapes, task)
    (total,) = layout.sum([committed_vector(contribution, layout) for contribution in contributions])
    (ring,) = layout.rings
    noise = RecordMechanism.of(replica.spec, _members(replica, task)).noise(ring.count)
    return b"".join(layout.pack([wrapped(total + noise, ring.bits)]))


def noised_mean(replica: Replica, task: RoundTask, attempt: int, noised: bytes, digests: Mapping[str, str]) -> GroupSum:
    """Returns the sum of a round to the ``replica``'s next model, from its :func:`noised_sum` and the contributions'
    ``digests`` by participant."""
    sums = committed_layout(replica.experiment, replica.shapes, task).sum([noised])
    sealed = seal_mean(replica, task, sums, _members(replica, task), len(digests))
    return GroupSum(sealed, tuple(sorted(digests)), digests, None, attempt)


def _members(replica: Replica, task: RoundTask) -> int:
    return replica.spec.participants.sample_size(task.population)
