"""Folding a round: contributions within bounds move the model, and a round that would break it is undone.

every contribution's norms are held against the round's: some are clipped, some refused   (robust/bounds.py)
where the specification asks for it, so is its direction                                  (robust/agreement.py)
the rest moves the model; it counts if the weights are finite and the guard's loss has not exploded
else, with the model back at its base: who is to blame is found by leaving one out at a time, refused,
and the round folded without it; where nobody can be found, or too few are left, nothing has happened
where the step is guarded, it is halved until the loss has not risen too far                      (robust/step.py)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ferret_core.aggregation import projection_noise as noise
from ferret_core.aggregation import step_guard
from ferret_core.aggregation.cosine_filter import agreement, outsiders
from ferret_core.aggregation.loss_guard import Guard, most
from ferret_core.aggregation.projection_noise import Noise
from ferret_core.aggregation.statistics.collector import Observer
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.algorithms.configs._base import FederatedConfig
from ferret_core.algorithms.configs._norms import Norms
from ferret_core.contribution import Sealed
from ferret_core.ledger.record import (
    LEDGER_VERSION,
    MOST_HALVINGS,
    LedgerEntry,
    LedgerRecord,
    Signature,
)
from ferret_core.models.parameters import finite, trainable, weights_norm
from ferret_core.protocol.digest import digest_bytes, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.replica.replica import Contributions, Replica
from ferret_core.server.norm_clipping import MEDIAN_OF, judge
from ferret_core.system.failpoints import failpoint

TRIALS = 16
"""How many models at most are tried in the search for who broke a round."""


def fold(
    replica: Replica,
    experiment: str,
    contributions: Contributions,
    guard: Guard | None = None,
    signatures: Sequence[Signature] = (),
) -> Folded:
    """Moves ``replica`` to the next round by those of the ``contributions`` that do it no harm.

    Raises ``noise.too_large``, before anything is moved, where random directions would add too much noise.
    Raises ``round.exploded`` when fewer than half of them are left, or when the round would break the model and who is
    to blame cannot be told. The replica then stands at its base, and ``refused``, among the error's members, says who
    was to blame as far as that is known, and why. Without a ``guard`` only weights that are not finite undo a round.
    ``signatures`` are those of the contributions, as far as they are signed, and go into the record.
    """
    return _Fold(replica, contributions, guard, signatures).folded(experiment)


class Folded(NamedTuple):
    """A round's entry in the ledger, the noise it brought where its updates were projected, what it was like, and what
    was measured on development sequences, by metric."""

    entry: LedgerEntry
    noise: Noise | None
    statistics: UpdateStatistics
    guarded: dict[str, float]


class _Seen(NamedTuple):
    """What is kept of a contribution between two readings."""

    participant: str
    digest: str
    examples: int
    norms: Norms


class _Trial(NamedTuple):
    """What a set of contributions makes of the model; ``broken`` says why it must not count.

    ``half`` is the loss at half of the step, where that is guarded, and ``halvings`` how often the step was halved.
    """

    update: bytes
    loss: float
    broken: str | None
    half: float = math.nan
    halvings: int = 0


class _Without:
    """The contributions of all but some participants, read anew each time."""

    def __init__(self, contributions: Contributions, left_out: set[str]) -> None:
        self._contributions = contributions
        self._left_out = left_out

    def __iter__(self) -> Iterator[Sealed]:
        return (sealed for sealed in self._contributions if sealed.meta.participant not in self._left_out)


class _Fold:
    """One round's; ``refused`` says why by participant, ``factors`` are those of the clipped."""

    def __init__(
        self, replica: Replica, contributions: Contributions, guard: Guard | None, signatures: Sequence[Signature]
    ) -> None:
        self._replica = replica
        self._signatures = tuple(sorted(signatures))
        self._contributions = contributions
        self._guard = guard
        server = replica.spec.server
        self._halves, self._rise = server.halves, server.rise
        self._guarded: dict[str, float] = {}
        config = replica.experiment.config
        self._observer = Observer(replica)
        self._seen = [self._see(sealed, config) for sealed in contributions]
        judged = judge(replica.spec.robust, [each.norms for each in self._seen], weights_norm(replica.model))
        named = list(zip((each.participant for each in self._seen), judged, strict=True))
        self.refused = {name: each.refused for name, each in named if each.refused is not None}
        self.factors = {name: each.factor for name, each in named if each.factor != 1}
        if replica.spec.robust.rule == "agree":
            self.refused |= self._outsiders()

    def folded(self, experiment: str) -> Folded:
        self._check_majority()
        replica, expected = self._replica, self._noise()
        noise.check(expected, replica.experiment, replica.shapes, f"of round {replica.round + 1} would add")
        entry = self._entry(experiment)
        after, part = trainable(self._replica.model), 0.5**entry.record.halvings
        inside = self._observer.told(self._base.weights, after, self._shares(), entry.update, expected, part)
        return Folded(entry, inside.noise, inside.statistics, self._guarded)

    def _see(self, sealed: Sealed, config: FederatedConfig) -> _Seen:
        self._observer.see(sealed.contribution)
        norms = config.norms(sealed.contribution, self._replica.shapes)
        return _Seen(sealed.meta.participant, sealed.digest, sealed.meta.examples, norms)

    def _noise(self) -> Noise | None:
        """Of those that are kept, as they count."""
        replica, norms = self._replica, [each.norms for each in self._kept()]
        counted = list(self._shares().values())
        return noise.measured(
            replica.experiment, replica.shapes, replica.block_weights(), norms, counted, replica.round + 1
        )

    def _shares(self) -> dict[str, float]:
        """What each of those that are kept counts in the mean, clipped ones less."""
        kept = self._kept()
        shares = self._replica.shares([each.examples for each in kept])
        factors = (self.factors.get(each.participant, 1.0) for each in kept)
        names = (each.participant for each in kept)
        return {name: share * factor for name, share, factor in zip(names, shares, factors, strict=True)}

    def _entry(self, experiment: str) -> LedgerEntry:
        replica, base = self._replica, self._replica.digest
        moved = self._moved()
        replica.settle()
        if self._guard is not None:
            self._guard.remember(replica.digest, moved.loss)
        record = LedgerRecord(
            version=LEDGER_VERSION,
            experiment=experiment,
            spec=digest_json(replica.spec.model_dump(mode="json")),
            round=replica.round,
            base_digest=base,
            digest=replica.digest,
            update=digest_bytes(moved.update),
            contributions=tuple((each.participant, each.digest) for each in self._kept()),
            previous=replica.head,
            clipped=tuple((name, factor) for name, factor in self.factors.items() if name not in self.refused),
            refused=tuple(
                (each.participant, each.digest, self.refused[each.participant])
                for each in self._seen
                if each.participant in self.refused
            ),
            signatures=self._signatures,
            halvings=moved.halvings,
        )
        replica.head = record.hash
        return LedgerEntry(record, replica.head, moved.update)

    def _outsiders(self) -> dict[str, str]:
        """Who points elsewhere than the others, and why that is thought."""
        replica, names = self._replica, [each.participant for each in self._kept()]
        if len(names) < MEDIAN_OF:
            return {}
        kept = _Without(self._contributions, set(self.refused))
        shares = replica.shares([each.examples for each in self._kept()])
        together = replica.displacement(kept, self.factors)
        agreements = [
            agreement(replica.displacement([sealed], self.factors), together, share)
            for share, sealed in zip(shares, kept, strict=True)
        ]
        size = sum(math.prod(shape) for shape in replica.shapes.values())
        return {names[place]: why for place, why in outsiders(replica.spec.robust, agreements, size).items()}

    def _moved(self) -> _Trial:
        """The trial that counts, with the replica moved by it."""
        self._base, self._before, self._limit = self._replica.standing(), math.nan, math.inf
        if self._guard is not None:
            self._before = self._guard.loss_of(self._replica.digest, self._replica.model)
            self._limit = most(self._before, self._replica.spec.robust.explosion)
        trial = self._try(set(), half=self._halves)
        if trial.broken is not None:
            self._replica.restore(self._base)
            for name in self._to_blame():
                self.refused[name] = f"the round breaks the model with it, and not without it: {trial.broken}"
            self._check_majority()
            trial = self._try(set(), half=self._halves)
        if self._halves:
            trial = self._stepped(trial)
        if trial.broken is not None:
            self._replica.restore(self._base)
            raise self._exploded(trial.broken)
        if self._replica.spec.server.develops:
            self._guarded["development_loss"] = trial.loss
        return trial

    def _stepped(self, trial: _Trial) -> _Trial:
        """The trial, or its update at the longest step that raises the loss no further than is let pass; the least step
        if none does."""
        bound, ratio = (
            step_guard.most(self._before, self._rise),
            step_guard.noise_ratio(self._before, trial.half, trial.loss),
        )
        failpoint("aggregate.guarded")
        while trial.update and (trial.broken or trial.loss > bound) and trial.halvings < MOST_HALVINGS:
            self._replica.restore(self._base)
            longer, trial = trial, self._at(trial.update, trial.halvings + 1)
            ratio = step_guard.noise_ratio(self._before, trial.loss, longer.loss, 0.5**longer.halvings)
        self._guarded = {"step": 100 * 0.5**trial.halvings, "noise_ratio": ratio}
        return trial

    def _try(self, more: set[str], half: bool = False) -> _Trial:
        """Moves the replica by all that are not refused, without ``more``; measures it at ``half`` of the step too."""
        kept = _Without(self._contributions, {*self.refused, *more})
        try:
            # What leaves the range of numbers is what is looked for here.
            with np.errstate(over="ignore", invalid="ignore"):
                update = self._replica.aggregate(kept, self.factors)
                loss = self._loss_of_half(update) if half else math.nan
                return self._at(update)._replace(half=loss)
        except FerretError as error:
            if error.code != "contribution.non_finite":
                raise
            return _Trial(b"", math.inf, "the update is not finite")

    def _loss_of_half(self, update: bytes) -> float:
        """The replica is then at its base."""
        loss = self._at(update, halvings=1).loss
        self._replica.restore(self._base)
        return loss

    def _at(self, update: bytes, halvings: int = 0) -> _Trial:
        """Moves the replica by 2^-``halvings`` of the update's step."""
        self._replica.move(update, halvings)
        moved = _Trial(update, math.inf, "the weights are not finite", halvings=halvings)
        if not finite(self._replica.model):
            return moved
        loss = self._guard.loss(self._replica.model) if self._guard is not None else 0.0
        broken = None if loss <= self._limit else f"the held-out loss rises to {loss:.3g}, beyond {self._limit:.3g}"
        return moved._replace(loss=loss, broken=broken)

    def _to_blame(self) -> list[str]:
        """Without whom the round is sound: those whose absence lowers the loss most, the longest updates first."""
        suspects = sorted(self._kept(), key=lambda each: -each.norms.total)
        guilty: list[str] = []
        trials = 0
        while len(suspects) >= 3 and trials < TRIALS:
            losses: list[tuple[float, int]] = []
            for position, suspect in enumerate(suspects[: TRIALS - trials]):
                trial = self._try({*guilty, suspect.participant})
                self._replica.restore(self._base)
                trials += 1
                if trial.broken is None:
                    return [*guilty, suspect.participant]
                losses.append((trial.loss, position))
            guilty.append(suspects.pop(min(losses)[1]).participant)
        return []

    def _kept(self) -> Sequence[_Seen]:
        return [each for each in self._seen if each.participant not in self.refused]

    def _check_majority(self) -> None:
        left, all_ = len(self._kept()), len(self._seen)
        if 2 * left < all_:
            why = next(iter(self.refused.values()))
            raise self._exploded(f"only {left} of {all_} contributions are within bounds; of the first, {why}")

    def _exploded(self, reason: str) -> FerretError:
        replica = self._replica
        return FerretError(
            "round.exploded",
            f"round {replica.round + 1} was undone: {reason}; lower server.learning_rate or the local learning rate if "
            "no participant is to blame",
            members={"refused": self.refused},
        )
