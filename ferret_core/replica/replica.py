"""A replica: a local copy of the global model that follows the ledger, round by round.

Workers, participants and auditors all hold one. It is loaded once and advanced by kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from ferret_core import catalog, compatibility
from ferret_core.algorithms.base import NOTHING, FederatedAlgorithm, SharedCoordinates, State, Weighted
from ferret_core.catalog import ResolvedExperiment
from ferret_core.contribution import SealedContribution
from ferret_core.datasets.tokenization.tokenize import longest, resolve_template
from ferret_core.distributed.process_group import current
from ferret_core.distributed.sharded_tensor import copied, is_shard, local
from ferret_core.ledger.record import LedgerEntry, LedgerRecord, SignatureChecker, broken, check_link
from ferret_core.models import definition
from ferret_core.models.digest import frozen_weights_digest, model_digest
from ferret_core.models.load import LoadedModel, context_of, digest_of, load
from ferret_core.models.parameters import shapes, trainable
from ferret_core.models.save import save
from ferret_core.models.shapes import count
from ferret_core.projection.project import root_mean_squares
from ferret_core.protocol.digest import derive_seed, digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.protocol.wire import decode, encode
from ferret_core.replica.bases import bases_of, with_bases
from ferret_core.replica.sharded import load_sharded
from ferret_core.rounds.cost import numbers_in
from ferret_core.server.optimizer import Moments, ServerOptimizer, Tensors, displacement
from ferret_core.server.robust_mean import robust_mean

Contributions = Iterable[SealedContribution]
"""Contributions of a round, in participant order. They are iterated more than once: a list, or an iterable that
re-reads them."""


class ReplicaState(NamedTuple):
    """A copy of everything that a round changes in a replica."""

    weights: dict[str, torch.Tensor]
    state: State
    moments: Moments
    round: int
    numbers: int
    digest: str


class Replica:
    """The global model at ``round``, with its digest and the state of the algorithm and of the server's optimizer.

    ``head`` is the hash of that round's record in the ledger, empty for the base model. ``signatures`` knows the
    participants' keys in the records so far. ``numbers`` is the number of values in the update of that round, 0 for the
    base model. ``files`` is the digest of the files that define the base model, and of its bases; no round changes it.
    ``spec`` names the template that replaced ``auto``. After a method has raised, the weights may be partly moved:
    discard the replica and load it again.
    """

    def __init__(self, spec: ExperimentSpec, loaded: LoadedModel) -> None:
        self.files = definition.digest(loaded.files)
        _require_digest(spec.model, loaded)
        self.spec = spec = explicit(spec, loaded.tokenizer)
        self.experiment = ResolvedExperiment.of(spec)
        seed = derive_seed(spec.seed, "algorithm")
        self.algorithm: FederatedAlgorithm = catalog.algorithm(self.experiment)
        self.model: nn.Module = self.algorithm.prepare(loaded.model, seed)
        self.tokenizer: Any = loaded.tokenizer
        bases = bases_of(spec, self.algorithm, self.model, loaded.files)
        self.state: State = {**self.algorithm.init_state(self.model, seed), **bases}
        self.optimizer = ServerOptimizer(spec.server, spec.rounds)
        self.round = 0
        self.head = ""
        self.signatures = SignatureChecker()
        self.numbers = 0
        self._frozen = frozen_weights_digest(self.model)
        self.digest = model_digest(self.model, self._frozen, self.files)
        self.shapes = shapes(self.model)
        compatibility.require_maskable(self.experiment, count(self.shapes))

    @cached_property
    def context(self) -> int:
        """Maximum number of tokens in a sequence. It renders a chat template, and must not be used before the digest is
        verified.

        Raises ``spec.invalid`` like :func:`ferret_core.datasets.tokenization.tokenize.longest`.
        """
        return longest(self.spec.prompt, self.tokenizer, context_of(self.model))

    @classmethod
    def load(cls, spec: ExperimentSpec, folder: Path | None = None) -> Replica:
        """Loads the base model of ``spec``, or its copy in ``folder``; an algorithm's bases with it.

        Raises ``model.invalid`` if it does not exist or has another digest than the specification. In a team the model
        is sharded, and every process must call each method of the replica. Raises ``request.invalid`` for a
        specification that a team cannot train.
        """
        source = spec.model if folder is None else ModelSpec(source=str(folder), dtype=spec.model.dtype)
        if (team := current()) is None:
            return cls(spec, with_bases(spec, load(source, anywhere=folder is not None), folder))
        compatibility.require(ResolvedExperiment.of(spec), compatibility.TEAM, "request.invalid")
        return cls(spec, load_sharded(source, team, anywhere=folder is not None))

    def advance(self, record: LedgerRecord, update: bytes) -> None:
        """Applies one committed round; raises ``ledger.broken`` if the result is not the recorded model."""
        if record.round != self.round + 1 or record.base_digest != self.digest:
            raise broken(record, f"it does not start from this model (round {self.round}, {self.digest[:12]}…)")
        if digest_bytes(update) != record.update:
            raise broken(record, "the update's bytes do not match its digest")
        try:
            self.apply(update, record.halvings)
            self.update_digest()
        except torch.OutOfMemoryError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise broken(record, f"its update cannot be applied ({type(error).__name__}: {error})") from error
        if self.digest != record.digest:
            raise broken(record, f"applying it gives {self.digest[:12]}…, recorded is {record.digest[:12]}…")
        self.head = record.hash

    def aggregate(self, contributions: Contributions, factors: Mapping[str, float] = NOTHING) -> bytes:
        """Returns the next round's update: the blob that lets every replica follow.

        ``factors``: the factors of clipped participants, by name.
        """
        robust, state = self.spec.robust, self.state
        examples = [sealed.meta.examples for sealed in contributions]
        if robust.rule in ("median", "trimmed_mean"):
            algorithm = cast(SharedCoordinates, self.algorithm)  # the specification was refused otherwise
            rank = partial(algorithm.coordinates, state)
            mean = robust_mean(robust, lambda: (rank(sealed.contribution) for sealed in contributions), len(examples))
            result = algorithm.centred(next(iter(contributions)).contribution, mean, len(examples))
        else:
            weights = self._weights(examples)
            result = self.algorithm.aggregate(
                state,
                (
                    Weighted(weight, sealed.contribution, factors.get(sealed.meta.participant, 1.0))
                    for weight, sealed in zip(weights, contributions, strict=True)
                ),
            )
        return encode(result, {"round": self.round + 1})

    def displacement(self, contributions: Contributions, factors: Mapping[str, float] = NOTHING) -> Tensors:
        """Returns the change of each weight by these contributions, fp32, at rate 1 and without momentum."""
        result = decode(self.aggregate(contributions, factors))[0]
        return displacement(self.algorithm, self.model, self.state, result)[1]

    def block_weights(self) -> list[float]:
        """Returns the RMS of the weights of each projected block; empty without projection."""
        if (projection := self.experiment.traits.projection) is None:
            return []
        return root_mean_squares(trainable(self.model), projection.cut(self.shapes))

    def shares(self, examples: Sequence[int]) -> list[float]:
        """Returns the weights of contributions with these numbers of ``examples`` in their mean; they sum to 1."""
        weights = self._weights(examples)
        return [weight / sum(weights) for weight in weights]

    def _weights(self, examples: Sequence[int]) -> list[float]:
        """Returns the weights; sums of groups count by their survivors."""
        if self.spec.summed:
            return [count / examples[0] for count in examples]
        return self.optimizer.weights(examples, self.spec.robust.max_example_factor)

    def snapshot(self) -> ReplicaState:
        """Copies all that a round changes, for :meth:`restore`: weights to host memory, shards on their device."""
        weights = {name: _set_aside(weight) for name, weight in trainable(self.model).items()}
        moments = self.optimizer.moments()
        return ReplicaState(weights, self.state, moments, self.round, self.numbers, self.digest)

    def restore(self, state: ReplicaState) -> None:
        """Restores the copied state, bit for bit."""
        self.restore_weights(state.weights)
        self.optimizer.restore(state.moments)
        self.state, self.round = state.state, state.round
        self.numbers, self.digest = state.numbers, state.digest

    @torch.no_grad()
    def restore_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Assigns the weights of a snapshot to the model."""
        for name, weight in trainable(self.model).items():
            local(weight).copy_(local(weights[name]))

    def save(self, folder: Path) -> None:
        """Writes the model and the tokenizer into ``folder``; adapters with the name of their base model."""
        for adapter in getattr(self.model, "peft_config", {}).values():
            adapter.base_model_name_or_path, adapter.revision = self.spec.model.source, self.spec.model.revision
        save(LoadedModel(self.model, self.tokenizer), folder)

    def apply(self, update: bytes, halvings: int = 0) -> None:
        """Applies an update, scaled by 2^-``halvings``; the digest is stale until :meth:`update_digest`."""
        result = decode(update)[0]
        self.round += 1
        self.numbers = numbers_in(result)
        part = 0.5**halvings
        self.state = self.optimizer.step(self.algorithm, self.model, self.state, result, self.round, part)

    def update_digest(self) -> None:
        """Recomputes the digest."""
        self.digest = model_digest(self.model, self._frozen, self.files)


def explicit(spec: ExperimentSpec, tokenizer: Any) -> ExperimentSpec:
    """Returns the specification with the template that its model's tokenizer resolves ``auto`` to."""
    template = resolve_template(spec.prompt.template, tokenizer)
    if template == spec.prompt.template:
        return spec
    return spec.model_copy(update={"prompt": spec.prompt.model_copy(update={"template": template})})


def _require_digest(spec: ModelSpec, loaded: LoadedModel) -> None:
    """Raises ``model.invalid`` if the specification names a digest and the model has another one."""
    if spec.digest is None or (found := digest_of(loaded)) == spec.digest:
        return
    message = f"the model has the digest {found}: replace it by the right one, or set this digest"
    raise FerretError.of_field("model.invalid", "model.digest", spec.digest, message)


def _set_aside(weight: torch.Tensor) -> torch.Tensor:
    return copied(weight) if is_shard(weight) else weight.detach().to("cpu", copy=True)


def replay(replica: Replica, entries: Iterable[LedgerEntry]) -> Iterator[LedgerRecord]:
    """Moves ``replica`` along the ``entries`` after its round, and yields each valid record.

    An entry is read only when the replica has reached the previous one, so that a generator can fetch its update then.
    Raises ``ledger.broken`` at the first entry with a hash, link, signature, update or model digest other than
    recorded; the replica may then be partly moved.
    """
    for record, recorded_hash, update in entries:
        check_link(record, recorded_hash, replica.head)
        replica.signatures.check(record)
        replica.advance(record, update)
        yield record
