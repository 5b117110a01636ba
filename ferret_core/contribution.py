"""The sealed contribution: stamped with its task, encoded, checked and hashed once, and immutable from then on.

The simulation, the worker and the edge seal their updates. The API opens received ones with the same check. After that,
a :class:`SealedContribution` is stored, spooled, sent, accepted and aggregated without another look inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes
from ferret_core.privacy.mechanism import RecordMechanism
from ferret_core.protocol.buffers import Pieces, size_of
from ferret_core.protocol.digest import digest_bytes, digest_pieces
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import (
    FORMAT_VERSION,
    REPORTED,
    Contribution,
    ContributionMeta,
    malformed,
    require_finite,
)
from ferret_core.secure.packing import Layout

if TYPE_CHECKING:
    from ferret_core.algorithms.base import Client, LocalUpdate


class SealedContribution(NamedTuple):
    """A contribution as stored and sent: its bytes in pieces, their BLAKE3 digest, and the decoded content."""

    pieces: Pieces
    digest: str
    contribution: Contribution

    @property
    def size(self) -> int:
        """Size in bytes."""
        return size_of(self.pieces)

    @property
    def blob(self) -> bytes:
        """A copy of the bytes in one piece."""
        return b"".join(self.pieces)

    @property
    def meta(self) -> ContributionMeta:
        return self.contribution.meta


def seal(update: LocalUpdate, client: Client, experiment: ResolvedExperiment, shapes: Shapes) -> SealedContribution:
    """Seals the ``client``'s update for its task; raises as :func:`open_contribution`, e.g. ``contribution.non_finite``
    for a NaN.

    Adds ``truncated_examples`` to the update's metrics, the number of the client's examples that were too long for the
    model. Leaves out withheld metrics.
    """
    task, discretion = client.task, client.discretion
    meta = ContributionMeta(
        format=FORMAT_VERSION,
        experiment=task.experiment,
        round=task.round,
        participant=task.participant,
        algorithm=experiment.spec.algorithm.name,
        base_digest=task.base_digest,
        examples=discretion.counted(len(client.shard)),
        metrics=discretion.reported({**update.metrics, "truncated_examples": float(client.shard.truncated)}),
        **update.basis_fields,
    )
    contribution = Contribution(meta, update.arrays)
    for name, array in update.arrays.items():
        require_finite(name, array)
    _check(contribution, experiment, task, shapes)
    pieces = contribution.pieces()
    return SealedContribution(pieces, digest_pieces(pieces), contribution)


def open_contribution(
    blob: bytes | memoryview, experiment: ResolvedExperiment, task: RoundTask, shapes: Shapes, digest: str | None = None
) -> SealedContribution:
    """Decodes and checks a contribution of the algorithm's participants for ``task``.

    ``digest`` is the blob's digest, computed here by default. Raises ``contribution.malformed`` and
    ``contribution.non_finite``. The round engine, not this function, checks that it starts from the round's model: a
    participant with an outdated model can catch up and try again.
    """
    contribution = Contribution.decode(blob, experiment.config.size(shapes).header)
    _check(contribution, experiment, task, shapes)
    return SealedContribution((blob,), digest or digest_bytes(blob), contribution)


def seal_vector(pieces: Pieces, spec: ExperimentSpec, task: RoundTask, digest: str | None = None) -> SealedContribution:
    """Seals a vector for a sum, which has no metadata: the contribution states the task, and counts for one example.

    ``digest`` is the vector's digest, computed here by default.
    """
    meta = ContributionMeta(
        format=FORMAT_VERSION,
        experiment=task.experiment,
        round=task.round,
        participant=task.participant,
        algorithm=spec.algorithm.name,
        base_digest=task.base_digest,
        examples=1,
    )
    return SealedContribution(pieces, digest or digest_pieces(pieces), Contribution(meta, {}))


def committed_layout(experiment: ResolvedExperiment, shapes: Shapes, task: RoundTask) -> Layout:
    """Returns the layout of the integers in a contribution for ``task``, with central noise."""
    projection = experiment.traits.projection
    assert projection is not None
    members = experiment.spec.participants.sample_size(task.population)
    return RecordMechanism.of(experiment.spec, members).layout(projection.total(projection.cut(shapes)))


def decode_stored(blob: bytes | memoryview, digest: str) -> SealedContribution:
    """Creates a contribution that was checked when it was accepted, read back by its ``digest``."""
    return SealedContribution((blob,), digest, Contribution.decode(blob))


def _check(contribution: Contribution, experiment: ResolvedExperiment, task: RoundTask, shapes: Shapes) -> None:
    _check_identity(contribution.meta, task, experiment.spec)
    experiment.config.check(contribution, task, shapes)


def _check_identity(meta: ContributionMeta, task: RoundTask, spec: ExperimentSpec) -> None:
    expected: dict[str, Any] = {
        "experiment": task.experiment,
        "round": task.round,
        "participant": task.participant,
        "algorithm": spec.algorithm.name,
    }
    for field, value in expected.items():
        if getattr(meta, field) != value:
            raise malformed(f"metadata.{field}", getattr(meta, field), f"the assignment has {value!r}")
    for name in sorted(set(meta.metrics) - REPORTED):
        raise malformed(f"metadata.metrics.{name}", meta.metrics[name], f"report no others than {sorted(REPORTED)}")
    if meta.seed not in {None, task.seed, task.round_seed}:
        raise malformed("metadata.seed", meta.seed, "is not one of the assignment's seeds")
