"""The interface of federated algorithms: one final class ``Algorithm``, and its options in ``configs/<name>.py``.

The methods split a round where it is split in production: participants run ``local_update``; the aggregation worker
folds contributions into a compact result with ``aggregate``; and everyone who follows the ledger (workers,
participants, auditors) replays ``apply_update``. A complete toy::

    class Algorithm:                                    # moves every weight by the mean of the participants' sums
        def __init__(self, config): self.config = config
        def prepare(self, model, seed): return model
        def init_state(self, model, seed): return {}
        def local_update(self, model, state, client):
            return LocalUpdate({"sum": ...}, metrics={})
        def aggregate(self, state, contributions):
            return {"mean": np.mean([sent.arrays["sum"] for _, sent in contributions], axis=0)}
        def apply_update(self, model, state, result, rate): ...; return state
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.models.parameters import working_copy
from ferret_core.models.shapes import Shapes
from ferret_core.privacy.mechanism import RecordPrivacy
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.secure.packing import Entries, Segment
from ferret_core.training.config import LocalConfig, ZerothOrderConfig
from ferret_core.training.custom_training import CustomTraining, CustomTrainingMetrics
from ferret_core.training.local import LocalMetrics, train
from ferret_core.training.optimizer_in_backward import Moved
from ferret_core.training.privacy import ReleasePolicy
from ferret_core.training.zeroth_order import zeroth_order_steps

State = Arrays
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Client(NamedTuple):
    """One participant at work: its task, its data, and its memory after its last committed round.

    ``on_step`` is called with each finished local step and may raise to stop the work. All sent values must be computed
    from the result of :meth:`protected`; ``discretion`` configures that, and the withheld metrics. ``own`` has a site's
    own functions. ``in_backward``: this machine holds no whole gradients, so that each step is taken in the backward
    pass. ``record`` protects single records: the contribution is then made of their noised sum alone.
    """

    task: RoundTask
    shard: ClientData
    memory: Arrays = NOTHING
    on_step: Callable[[int], None] | None = None
    discretion: ReleasePolicy = ReleasePolicy()
    own: CustomTraining | None = None
    record: RecordPrivacy | None = None
    in_backward: bool = False

    def protected(self, vector: Array) -> Array:
        """Returns the fp32 vector (n,) of a contribution in its releasable form: clipped and noised if configured."""
        protect = self.discretion.protect
        return vector if protect is None else protect(vector)

    def train(
        self,
        model: nn.Module,
        config: LocalConfig,
        correct: Callable[[], None] | None = None,
        moved: Moved | None = None,
    ) -> LocalMetrics | CustomTrainingMetrics:
        """Moves ``model`` by first-order steps on the shard, in the order that the task's seed gives, or as the site's
        own function does.

        ``correct`` may change each step's gradients in place. ``moved`` receives each step before it is
        rounded to bf16, if :meth:`rounds_steps` is True.
        """
        if self.own is not None and self.own.site.trains is not None:
            return self.own.train(model, self.own.context(model, self.task, self.shard, config, self.on_step))
        config = config.in_backward() if self.in_backward else config
        batches = self.shard.batches(config.batch_size, self.task.data_seed)
        seed, examples = self.task.data_seed, len(self.shard)
        rate = config.rate(self.task.round, self.task.rounds)
        options: dict[str, Any] = {"correct": correct, "moved": moved, "examples": examples}
        return train(model, batches, config, self.on_step, rate=rate, seed=seed, **options)

    def working_copy(self, model: nn.Module, config: LocalConfig) -> AbstractContextManager[dict[str, torch.Tensor]]:
        """Returns :func:`ferret_core.models.parameters.working_copy`, for :meth:`train` with the same ``config``."""
        return working_copy(model, pure=self.rounds_steps(config))

    def rounds_steps(self, config: LocalConfig) -> bool:
        """True if :meth:`train` rounds its steps to bf16: the update is then the sum of the steps before rounding, and
        not the difference of the weights. A site's own function gets fp32 weights.
        """
        return config.pure and (self.own is None or self.own.site.trains is None)

    def descend(self, model: nn.Module, config: ZerothOrderConfig) -> LocalMetrics:
        """Moves ``model`` by zeroth-order steps along fresh directions, with seeds derived from the task's."""
        seeds = (derive_seed(self.task.seed, "direction", n) for n in range(config.directions))
        batches = self.shard.batches(config.batch_size, self.task.data_seed)
        return zeroth_order_steps(model, batches, config, seeds, self.on_step).trained


class LocalUpdate(NamedTuple):
    """Result of a participant's computation: the ``arrays`` it sends and its metrics; ``memory`` stays with it.

    ``basis_fields`` has the metadata that identifies the basis of the coordinates: ``projection``, ``seed``, ``K``. The
    memory (error feedback, control variates) counts only if the contribution does: without a commit of the round, the
    previous memory stays.
    """

    arrays: Arrays
    metrics: dict[str, float]
    memory: Arrays = NOTHING
    basis_fields: Mapping[str, Any] = NOTHING


class Weighted(NamedTuple):
    """A contribution and its weight in the mean, above 0; the weights of a round need not sum to 1.

    ``factor`` scales its update, below 1 if it was clipped; its weight in the denominator stays.
    """

    weight: float
    contribution: Contribution
    factor: float = 1.0

    @property
    def pull(self) -> float:
        """Its weight in the mean's numerator."""
        return self.weight * self.factor


class FederatedAlgorithm(Protocol):
    """The interface of ``ferret_core/algorithms/<name>.py``'s class ``Algorithm``.

    ``State`` is one serialisable value: named numpy arrays. Randomness arrives in seeds, never from a global
    generator.
    """

    def __init__(self, config: Any) -> None: ...

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        """Returns the tuned model: ``model`` unchanged, or with adapters in it and the rest frozen."""
        ...

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the server's state before round 1; ``seed`` (64 bits) is the experiment's."""
        ...

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        """Trains on the client's shard from ``model``, which stays unchanged, bit for bit; returns the update.

        Raises ``training.non_finite`` when the loss is no longer finite.
        """
        ...

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        """Folds contributions, at least one, streamed in participant order, into the round's compact result."""
        ...

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        """Moves ``model`` in place by ``rate`` times the round's update, deterministically; returns the next state."""
        ...


class SharedCoordinates(Protocol):
    """An algorithm whose participants' numbers stand for the same directions, so that they can be ranked one by one.

    Its ``Config`` declares ``traits.comparable``.
    """

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        """Returns the numbers, fp32, by name; their shapes are the same for all participants of a round."""
        ...

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        """Returns the result of ``aggregate`` if all ``count`` participants had sent ``centre``."""
        ...


class StartsFromPublicText(Protocol):
    """An algorithm that takes bases from public text, once; everyone downloads them with the base model.

    Its ``Config`` declares ``traits.public_examples``. The bases become part of the server's state.
    """

    def bases(self, model: nn.Module, public: ClientData, seed: int) -> Arrays:
        """Computes the bases for the base ``model``, which is unchanged; ``seed`` (64 bits) is the experiment's."""
        ...

    def basis_layouts(self, shapes: Shapes) -> Mapping[str, Layout]:
        """Returns the type and shape of each array of the bases."""
        ...


class SummableContributions(Protocol):
    """An algorithm that can sum contributions as integers, under masks.

    :data:`ferret_core.compatibility.RULES` has the options with which an algorithm is one.
    """

    def segments(self, shapes: Shapes) -> Sequence[Segment]:
        """Returns the segments of a participant's integers."""
        ...

    def integers(self, state: State, contribution: Contribution, shapes: Shapes) -> Sequence[Entries]:
        """Returns a participant's integers, for each segment, from its contribution to the round after ``state``."""
        ...

    def mean(self, state: State, sums: Sequence[Array], count: int, shapes: Shapes) -> SummedContributions:
        """Returns the mean of ``count`` participants from the ``sums`` of their integers, which it may overwrite."""
        ...


class SummedContributions(NamedTuple):
    """A group's contribution: the mean of its members, with the fields of ``LocalUpdate``."""

    arrays: Arrays
    metrics: Mapping[str, float]
    basis_fields: Mapping[str, Any]


class DecodableUpdate(Protocol):
    """An algorithm whose participants' updates can be told from what they send, with no noise of random directions.

    Its ``Config`` declares ``traits.decodable``.
    """

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        """Returns fp32 (d,): the contribution's change of the parameters at rate 1, negated, in canonical order."""
        ...


class FullModelMixin:
    """The preparation of algorithms that tune the model as it is."""

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return model
