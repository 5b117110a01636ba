"""What a federated algorithm is: one file, one frozen ``Config``, one final class ``Algorithm``.

The four methods split a round where it is split in production: participants run ``local_update``; the
aggregation worker folds contributions into a compact result with ``aggregate``; and everyone who follows the
ledger (workers, participants, auditors) replays ``apply_update``. A complete toy::

    class Algorithm:                                    # moves every weight by the mean of the participants' sums
        def __init__(self, config): self.config = config
        def init_state(self, model): return {}
        def local_update(self, model, shard, task, on_step=None):
            return contribution(task, "toy", {"sum": ...}, examples=1, metrics={})
        def check(self, contribution, task, sizes): ...
        def aggregate(self, state, contributions):
            return {"mean": np.mean([one.arrays["sum"] for one in contributions], axis=0)}
        def apply_update(self, model, state, result): ...; return state
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import BaseModel
from torch import nn

from ferret_core.datasets._base import Shard
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Arrays, Contribution, ContributionMeta

State = Arrays


class FederatedAlgorithm(Protocol):
    """The interface of ``ferret_core/algorithms/<name>.py``'s class ``Algorithm``.

    ``sizes`` are the element counts of the model's trainable parameters in canonical order
    (:func:`ferret_core.models.parameters.sizes`). ``State`` is one serialisable value: named numpy arrays.
    Randomness arrives in the task, never from a global generator.
    """

    def __init__(self, config: Any) -> None: ...

    def init_state(self, model: nn.Module) -> State:
        """The server's state before round 1."""
        ...

    def local_update(
        self, model: nn.Module, shard: Shard, task: RoundTask, on_step: Callable[[int], None] | None = None
    ) -> Contribution:
        """Trains on ``shard`` from ``model`` and describes the update; leaves ``model`` as it was, bit for bit.

        ``on_step`` is called with each finished local step and may raise to stop the work. Raises
        ``training.non_finite`` when the loss stops being a number.
        """
        ...

    def check(self, contribution: Contribution, task: RoundTask, sizes: Mapping[str, int]) -> None:
        """Raises ``contribution.malformed`` unless the contribution is one that this algorithm sends for ``task``."""
        ...

    def aggregate(self, state: State, contributions: Iterable[Contribution]) -> Arrays:
        """Folds contributions, at least one, streamed in participant order, into the round's compact result."""
        ...

    def apply_update(self, model: nn.Module, state: State, result: Arrays) -> State:
        """Moves ``model`` in place, deterministically, and returns the next state."""
        ...


class AlgorithmModule(Protocol):
    """An algorithm's file: ``Config`` (frozen pydantic) and ``Algorithm``."""

    Config: type[BaseModel]
    Algorithm: type[FederatedAlgorithm]


def contribution(
    task: RoundTask,
    algorithm: str,
    arrays: Arrays,
    *,
    examples: int,
    metrics: dict[str, float],
    projection: int | None = None,
    seed: int | None = None,
    share: int = 0,
    K: Sequence[int] | None = None,
) -> Contribution:
    """The contribution for ``task``: the task's identity beside the algorithm's arrays."""
    meta = ContributionMeta(
        experiment=task.experiment,
        round=task.round,
        participant=task.participant,
        algorithm=algorithm,
        base_digest=task.base_digest,
        examples=examples,
        projection=projection,
        seed=seed,
        share=share,
        K=None if K is None else tuple(K),
        metrics=metrics,
    )
    return Contribution(meta, arrays)
