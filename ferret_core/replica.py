"""A replica: a local copy of the global model that follows the ledger, round by round.

Workers, participants and auditors all hold one. It is loaded once and advanced by kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from ferret_core import catalog
from ferret_core.algorithms._base import FederatedAlgorithm, State, Weighted
from ferret_core.cost import numbers_in
from ferret_core.ledger import LedgerEntry, LedgerRecord, broken
from ferret_core.models.digest import frozen_weights_digest, model_digest
from ferret_core.models.load import LoadedModel, context_of, load
from ferret_core.models.parameters import finite, shapes
from ferret_core.protocol.digest import derive_seed, digest_bytes, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.protocol.wire import decode, encode
from ferret_core.sealed import Sealed
from ferret_core.server_optimizer import ServerOptimizer


class Replica:
    """The global model at ``round``, with its digest and the state of the algorithm and of the server's optimizer.

    ``head`` is the hash of that round's record in the ledger, empty for the base model; ``numbers`` is how many numbers
    the update held that led there, 0 for the base model.
    A method that raises may leave the weights half moved: drop the replica and load it again.
    """

    def __init__(self, spec: ExperimentSpec, loaded: LoadedModel) -> None:
        self.spec = spec
        seed = derive_seed(spec.seed, "algorithm")
        self.algorithm: FederatedAlgorithm = catalog.algorithm(spec.algorithm)
        self.model: nn.Module = self.algorithm.prepare(loaded.model, seed)
        self.tokenizer: Any = loaded.tokenizer
        self.context = context_of(self.model)
        self.state: State = self.algorithm.init_state(self.model, seed)
        self.optimizer = ServerOptimizer(spec.server, spec.rounds)
        self.round = 0
        self.head = ""
        self.numbers = 0
        self._frozen = frozen_weights_digest(self.model)
        self.digest = model_digest(self.model, self._frozen)
        self.shapes = shapes(self.model)

    @classmethod
    def load(cls, spec: ExperimentSpec, folder: Path | None = None) -> Replica:
        """The base model of ``spec``, read from ``folder`` where another copy of it lies; ``model.invalid`` if none."""
        return cls(spec, load(ModelSpec(source=str(folder), dtype=spec.model.dtype) if folder else spec.model))

    def advance(self, record: LedgerRecord, update: bytes) -> None:
        """Applies one committed round; ``ledger.broken`` when the result is not the recorded model."""
        if record.round != self.round + 1 or record.base_digest != self.digest:
            raise broken(record, f"it does not start from this model (round {self.round}, {self.digest[:12]}…)")
        if digest_bytes(update) != record.update:
            raise broken(record, "the update's bytes are not those it names")
        self._apply(update)
        if self.digest != record.digest:
            raise broken(record, f"applying it gives {self.digest[:12]}…, recorded is {record.digest[:12]}…")
        self.head = record.hash

    def aggregate(self, contributions: Iterable[Sealed]) -> bytes:
        """The next round's update: the blob that lets every replica follow. ``contributions``: in participant order."""
        weighted = (Weighted(self.optimizer.weight(sealed.meta), sealed.contribution) for sealed in contributions)
        return encode(self.algorithm.aggregate(self.state, weighted), {"round": self.round + 1})

    def fold(self, experiment: str, contributions: Iterable[Sealed]) -> LedgerEntry:
        """Aggregates ``contributions``, given in participant order, and moves to the next round.

        Raises ``training.non_finite`` when the global model is no longer a number.
        """
        base, folded = self.digest, list[tuple[str, str]]()

        def noted() -> Iterable[Sealed]:
            for sealed in contributions:
                folded.append((sealed.meta.participant, sealed.digest))
                yield sealed

        update = self.aggregate(noted())
        self._apply(update)
        if not finite(self.model):
            raise FerretError(
                "training.non_finite",
                f"round {self.round} makes the global model infinite: lower server.learning_rate or the "
                "local learning rate",
            )
        record = LedgerRecord(
            experiment=experiment,
            spec=digest_json(self.spec.model_dump(mode="json")),
            round=self.round,
            base_digest=base,
            digest=self.digest,
            update=digest_bytes(update),
            contributions=tuple(folded),
            previous=self.head,
        )
        self.head = record.hash
        return LedgerEntry(record, self.head, update)

    def _apply(self, update: bytes) -> None:
        result = decode(update)[0]
        self.round += 1
        self.numbers = numbers_in(result)
        self.state = self.optimizer.step(self.algorithm, self.model, self.state, result, self.round)
        self.digest = model_digest(self.model, self._frozen)
