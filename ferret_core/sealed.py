"""The sealed contribution: stamped with its task, encoded, checked and hashed once, and from then on one value.

Simulation, worker and edge seal what they computed; the API opens what it receives by the same check. Whoever holds a
:class:`Sealed` need not look inside again to store, spool, send, accept or fold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ferret_core import catalog
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import REPORTED, Contribution, ContributionMeta, malformed

if TYPE_CHECKING:
    from ferret_core.algorithms._base import Client, LocalUpdate


class Sealed(NamedTuple):
    """A contribution as it is stored and sent: its bytes, their BLAKE3 digest, and what they say."""

    blob: bytes
    digest: str
    contribution: Contribution

    @property
    def meta(self) -> ContributionMeta:
        return self.contribution.meta


def seal(update: LocalUpdate, client: Client, spec: ExperimentSpec, shapes: Shapes) -> Sealed:
    """What ``client`` sends for its task; raises as :func:`unseal`, e.g. ``contribution.non_finite`` for a NaN.

    To the update's metrics it adds ``truncated``, how many of the client's examples were too long for the model. What
    the client is discreet about is left out.
    """
    task, discretion = client.task, client.discretion
    meta = ContributionMeta(
        experiment=task.experiment,
        round=task.round,
        participant=task.participant,
        algorithm=spec.algorithm.name,
        base_digest=task.base_digest,
        examples=discretion.counted(len(client.shard)),
        metrics=discretion.reported({**update.metrics, "truncated": float(client.shard.truncated)}),
        **update.columns,
    )
    return unseal(Contribution(meta, update.arrays).encode(), spec, task, shapes)


def unseal(blob: bytes, spec: ExperimentSpec, task: RoundTask, shapes: Shapes) -> Sealed:
    """The contribution in ``blob``, if it is one that the algorithm's participants send for ``task``.

    Raises ``contribution.malformed`` and ``contribution.non_finite``. Whether it starts from the round's own model is
    the round engine's question: a participant that does not can catch up and try again.
    """
    config = catalog.algorithm_config(spec.algorithm)
    contribution = Contribution.decode(blob, config.size(shapes).header)
    _check_identity(contribution.meta, task, spec)
    config.check(contribution, task, shapes)
    return Sealed(blob, digest_bytes(blob), contribution)


def stored(blob: bytes, digest: str) -> Sealed:
    """A contribution that was checked when it was accepted, read back by its ``digest``."""
    return Sealed(blob, digest, Contribution.decode(blob))


def _check_identity(meta: ContributionMeta, task: RoundTask, spec: ExperimentSpec) -> None:
    expected: dict[str, Any] = {
        "experiment": task.experiment,
        "round": task.round,
        "participant": task.participant,
        "algorithm": spec.algorithm.name,
    }
    for field, value in expected.items():
        if getattr(meta, field) != value:
            raise malformed(f"metadata.{field}", getattr(meta, field), f"the assignment says {value!r}")
    for name in sorted(set(meta.metrics) - REPORTED):
        raise malformed(f"metadata.metrics.{name}", meta.metrics[name], f"report no others than {sorted(REPORTED)}")
    if meta.seed not in {None, task.seed, task.round_seed}:
        raise malformed("metadata.seed", meta.seed, "is none of the assignment's seeds")
