"""Enforcement of a site's terms: before a download, before and during training, and before sending.

The checks use the specification that the replica follows and the digest that was computed here, not the server's
claims. Facts that only the server knows, such as a round's number of participants, are compared with the ledger
afterwards. A refusal names the requested value and the site's limit. Nothing else of ``site.toml`` goes to the server.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, time, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from ferret_core import compatibility
from ferret_core.catalog import ResolvedExperiment
from ferret_core.contribution import SealedContribution
from ferret_core.ledger.record import LedgerRecord
from ferret_core.models.shapes import Shapes, count
from ferret_core.privacy.accounting import require_accounting
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy, units_of
from ferret_core.protocol.errors import PROBLEMS, FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec, RoundTask
from ferret_core.rounds import sampling
from ferret_core.rounds.cost import resident_memory
from ferret_core.training.privacy import ReleasePolicy
from ferret_sdk.participant import site_terms
from ferret_sdk.participant.exposure import Exposure, largest_share, sequences, whole_blocks
from ferret_sdk.participant.privacy_budget import Budget
from ferret_sdk.participant.record_account import RecordAccount
from ferret_sdk.participant.site_terms import Terms
from ferret_sdk.participant.usage_counter import Usage
from ferret_sdk.service.progress import Progress, Stage, Watcher

if TYPE_CHECKING:
    from torch import nn

    from ferret_core.datasets.base import Example

HOUR = 3600.0
GIGABYTE = 1e9
LONGEST_WAIT = 60.0
"""Seconds between two readings of the clock, which may be set while we wait."""
LOOK_SECONDS = 1.0
"""Seconds between two checks of hours and memory within a step."""
NOTED_EVERY = 60.0
"""Seconds of training that a killed process may leave uncounted."""
REPORTED = frozenset({"contribution", "ledger", "memory", "noise", "secure", "server", "spec", "terms", "training"})
"""Areas of errors that quote only the specification, the server and ``site.toml``."""
LEAST_COPIES = 3
"""Minimum fp32 copies of the trained weights in first-order training: the model's, the previous ones, the gradients."""


class Enforcement:
    """The ``terms`` of a participant ``name``, the usage of it and its ``home`` so far, and the account of its
    ``records`` if the experiment protects them."""

    def __init__(self, terms: Terms, usage: Usage, name: str, home: Path, records: RecordAccount | None = None) -> None:
        self.terms = terms
        self.budget = None if terms.privacy is None else Budget(home, terms.privacy)
        self.records = records
        self.usage = usage
        self._name = name
        self._clock = Stopwatch(usage)
        self._spec: ExperimentSpec | None = None
        self._base_digest: str | None = None
        self._pinned = False
        """True if the terms name the digest of the base model, and with it allow its chat template."""

    def wait(self, watcher: Watcher) -> None:
        """Returns outside of quiet hours, on a day with hours of training left."""
        while (over := self._resting()) is not None:
            seconds = (over - site_terms.local_now()).total_seconds()
            watcher(Progress(Stage.REST, total=seconds))
            sleep(min(max(seconds, 0.0), LONGEST_WAIT))

    def require_experiment(self, spec: ExperimentSpec, base_digest: str | None) -> None:
        """Raises ``terms.refused``, before any download, unless algorithm, model and chat template are allowed.

        ``base_digest`` is the digest that the downloaded model must then have.
        """
        allow = self.terms.allow
        if allow.algorithms is not None and spec.algorithm.name not in allow.algorithms:
            raise _refused("algorithm.name", spec.algorithm.name, f"this site allows {', '.join(allow.algorithms)}")
        allowed = [
            model
            for model in allow.models or []
            if (model.source, model.revision or spec.model.revision) == (spec.model.source, spec.model.revision)
            and model.digest in {None, base_digest, spec.model.digest}
        ]
        if allow.models is not None and not allowed:
            message = "this site does not allow this model: a table [[allow.models]] in site.toml with its source and "
            raise _refused("model.source", _named(spec.model, base_digest), f"{message}digest would")
        self._base_digest, self._pinned = base_digest, any(model.digest is not None for model in allowed)
        self._require_template(spec)
        if self.terms.secure.require and not spec.secure.masked:
            message = "the server would read each contribution, and this site takes part in secure sums only"
            raise _refused("secure.aggregation", spec.secure.aggregation, message)
        if self.budget is not None:
            if spec.privacy.of_records:
                message = "adds noise for records, and this site adds its own: remove [privacy] from site.toml"
                raise _refused("privacy.unit", spec.privacy.unit, f"{message}, or stay out")
            _require_blind(ResolvedExperiment.of(spec))
        if spec.privacy.of_records:
            require_accounting()
        self._spec = spec

    def require_round(self, task: RoundTask, experiment: ResolvedExperiment, shapes: Shapes, examples: int) -> None:
        """Raises, before an example is used, unless the round complies with the terms.

        The errors are ``terms.refused``, ``terms.round_not_allowed``, ``terms.limit_reached`` and
        ``terms.quiet_hours``. ``experiment`` is the replica's, in which the loaded model has replaced the template
        ``auto``. ``examples`` is the number that the site has.
        """
        self._require_template(experiment.spec)
        self._require_work(experiment, examples)
        self._require_exposure(Exposure.of(experiment, shapes, examples))
        self._require_company(task, experiment.spec)
        self._require_memory(4 * LEAST_COPIES * count(shapes))
        if not experiment.spec.privacy.of_records:  # a vector for their sum has another size, checked later
            self.require_size(experiment.config.size(shapes).arrays)
        if self.budget is not None:
            _require_blind(experiment)
            self.budget.require()
        self.check_step()

    @contextmanager
    def training(self, model: nn.Module) -> Generator[None]:
        """Counts the time of a ``with`` block that uses examples.

        Raises as :meth:`check_step`, also within a step: before the forward pass of each layer of the ``model``.
        """
        looked = monotonic()

        def look(layer: nn.Module, inputs: Any) -> None:
            nonlocal looked
            if monotonic() - looked >= LOOK_SECONDS:
                self.check_step()
                looked = monotonic()

        self._clock.start()
        with ExitStack() as ending:
            ending.callback(self._clock.stop)
            for layer in model.modules():
                ending.callback(layer.register_forward_pre_hook(look).remove)
            yield

    def discretion(self) -> ReleasePolicy:
        """The privacy of one contribution."""
        if self._hides_records:
            return ReleasePolicy(metrics=frozenset(), examples=False)
        return ReleasePolicy() if self.budget is None else self.budget.discretion()

    def record_privacy(self, spec: ExperimentSpec, examples: Sequence[Example], members: int) -> RecordPrivacy:
        """Returns the protection of this site's records in a sum over ``members``.

        Raises ``privacy.unit_missing``, ``privacy.too_few_records``, and ``privacy.spent`` if no release is left.
        """
        mechanism = RecordMechanism.of(spec, members)
        units = units_of([example.unit for example in examples], spec)
        if self.records is not None:
            self.records.require(spec, mechanism)
        return RecordPrivacy(mechanism, units)

    def spend(self, spec: ExperimentSpec, record: RecordPrivacy | None) -> None:
        """Counts a contribution against the budgets before an example is used.

        Raises ``terms.limit_reached`` or ``privacy.spent``.
        """
        if record is not None:
            assert self.records is not None
            self.records.spend(spec, record.mechanism)
        if self.budget is not None:
            self.budget.spend()

    @property
    def _hides_records(self) -> bool:
        return self._spec is not None and self._spec.privacy.of_records

    def require_contribution(
        self, sealed: SealedContribution, experiment: ResolvedExperiment, shapes: Shapes, made: ReleasePolicy
    ) -> None:
        """Raises ``terms.refused`` or ``terms.limit_reached``, after training, unless the contribution complies with
        the terms.

        The checks are its size, its coordinates, and, under a privacy budget, that it was noised once.
        """
        if not self._hides_records:
            self.require_size(sealed.size)
        projection = experiment.traits.projection
        if projection is not None:
            blocks = projection.cut(shapes)
            sent = projection.sent_in(sealed.contribution, blocks)
            if sent:
                lengths = [block.size for block in blocks]
                self._require_share(largest_share(sent, lengths))
                self._refuse_whole_blocks(whole_blocks(sent, lengths))
        if self.budget is not None:
            self.budget.require_noised(made)

    def check_step(self) -> None:
        """Raises, before each local step, ``terms.quiet_hours`` or ``terms.limit_reached``, and ``terms.refused`` for
        its memory."""
        self._clock.note()
        limit = self.terms.limits.hours
        if limit is not None and self.usage.read().seconds + self._clock.unnoted >= limit * HOUR:
            raise FerretError.of_field(
                "terms.limit_reached", "hours", limit, "is what this site gives to training in all"
            )
        if self._resting() is not None:
            raise FerretError(
                "terms.quiet_hours", "quiet hours of this site have begun, or its hours for today are over"
            )
        self._require_memory(resident_memory() or 0)

    def reported(self, error: Exception, *, used_examples: bool) -> FerretError | None:
        """Returns the failure as the server may receive it; None for nothing.

        Its text is that of the error if that quotes only the specification, the terms or the server, and no path. Once
        examples were used it has no text, only the code, or the type of an unforeseen error. Under a privacy budget,
        and where noise protects records, it then has one code for all, and a pause is not reported: the lease expires.
        """
        if not isinstance(error, FerretError):  # the message may quote the site's data
            failure = FerretError("internal", f"{type(error).__name__} at the participant")
        else:
            quoted = not used_examples and error.code.partition(".")[0] in REPORTED and not _names_a_path(error)
            text = error.detail if quoted else error.problem.title
            failure = FerretError(error.code, text)
        if not used_examples or (self.budget is None and not self._hides_records):
            return failure
        if failure.code == "terms.quiet_hours":
            return None
        return FerretError("participant.failed", PROBLEMS["participant.failed"].title)

    def require_sending(self, size: int, *, private: bool, counted: bool = False) -> None:
        """Checks a contribution of ``size`` bytes before it is sent, and counts its bytes unless they are ``counted``.

        Raises ``terms.quiet_hours``, ``terms.refused``, ``terms.limit_reached``, and ``terms.round_not_allowed`` for
        one that was made before the site had a privacy budget.
        """
        if self.budget is not None and not private:
            raise FerretError(
                "terms.round_not_allowed", "this contribution was made without the noise that the site now adds"
            )
        if site_terms.end_of_quiet_hours(self.terms.allow.quiet_hours, site_terms.local_now()) is not None:
            raise FerretError(
                "terms.quiet_hours", "quiet hours of this site have begun: the contribution is sent later"
            )
        self.require_size(size, counted=counted)
        if not counted:
            self.usage.sent(size)

    def follow(self, record: LedgerRecord) -> None:
        """Compares a committed round with the terms. Raises ``terms.refused`` if the server violated them."""
        names = [name for name, _ in record.contributions]
        wanted = self.terms.allow.participants
        if self._spec is None or self._name not in names:
            return
        simulated = set(sampling.client_names(self._spec.participants.simulated))
        real = sum(name not in simulated for name in names)
        if real < wanted:
            message = f"participants are in the round's mean, this site demands {wanted}"
            raise _refused(f"round {record.round}", real, message)

    def _require_template(self, spec: ExperimentSpec) -> None:
        """Refuses a chat template that is not allowed. ``auto`` becomes one, or not, when the model is loaded."""
        if spec.prompt.template == "chat" and not self._pinned:
            message = (
                f"is a program that comes with the model: allow its digest {self._base_digest} in [[allow.models]]"
            )
            raise _refused("prompt.template", "chat", message)

    def _require_work(self, experiment: ResolvedExperiment, examples: int) -> None:
        limits, local = self.terms.limits, experiment.traits.local
        steps = local.steps_for(examples) if local else 0
        if limits.steps is not None and steps > limits.steps:
            raise _refused("algorithm.local.steps", steps, f"this site allows {limits.steps} local steps in a round")
        trained = sequences(experiment, examples)
        if limits.sequences is not None and trained > limits.sequences:
            message = f"this site trains on {limits.sequences} sequences a round: lower steps, batch or accumulation"
            raise _refused("sequences", trained, message)

    def _require_exposure(self, exposure: Exposure) -> None:
        allow = self.terms.allow
        if exposure.examples < allow.examples:
            message = f"this site demands at least {allow.examples} examples for a contribution: ask for more steps"
            raise _refused("examples", exposure.examples, message)
        self._refuse_whole_blocks(exposure.whole_blocks)
        self._require_share(exposure.share)

    def _refuse_whole_blocks(self, whole: int) -> None:
        if whole and not self.terms.allow.whole_blocks:
            message = "this site sends no block whole: ask for 'ferret' with fewer bytes and whole_up_to = 0"
            raise _refused("whole_blocks", whole, message)

    def _require_share(self, share: float) -> None:
        limit = self.terms.limits.share
        if limit is not None and share > limit:
            message = f"this site sends at most {limit:g} coordinates for each weight of a block: ask for fewer bytes"
            raise _refused("share", round(share, 4), message)

    def _require_company(self, task: RoundTask, spec: ExperimentSpec) -> None:
        """Checks the minimum number of real participants that the round can be committed with."""
        wanted = self.terms.allow.participants
        least = sampling.quorum(spec, spec.participants.sample_size(task.population)) - spec.participants.simulated
        if wanted > 1 and least < wanted:
            message = f"is the fewest the round may end with, this site demands {wanted}: raise round.quorum or wait"
            raise FerretError.of_field("terms.round_not_allowed", "participants", max(least, 0), message)

    def _require_memory(self, size: float) -> None:
        limit = self.terms.limits.memory_gb
        if limit is not None and size > limit * GIGABYTE:
            raise _refused("memory", f"{size / GIGABYTE:.2f} GB", f"this site gives {limit:g} GB to training")

    def require_size(self, size: int, *, counted: bool = False) -> None:
        """Raises ``terms.refused`` for a contribution of ``size`` bytes, and ``terms.limit_reached`` unless it is
        ``counted`` already."""
        limits = self.terms.limits
        if limits.bytes_per_round is not None and size > limits.bytes_per_round:
            raise _refused("contribution", f"{size} bytes", f"this site sends at most {limits.bytes_per_round}")
        if not counted and limits.bytes is not None and (after := self.usage.read().bytes + size) > limits.bytes:
            message = f"would be sent in all, this site sends at most {limits.bytes}"
            raise FerretError.of_field("terms.limit_reached", "bytes", after, message)

    def _resting(self) -> datetime | None:
        """Returns when work may continue, or None if it may now."""
        now = site_terms.local_now()
        if (over := site_terms.end_of_quiet_hours(self.terms.allow.quiet_hours, now)) is not None:
            return over
        daily = self.terms.limits.hours_per_day
        if daily is not None and self.usage.today() + self._clock.unnoted >= min(daily, 24) * HOUR:
            return datetime.combine(now.date() + timedelta(days=1), time.min)
        return None


class Stopwatch:
    """Measures training time with the monotonic clock and saves it to ``usage`` periodically."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._since: float | None = None

    @property
    def unnoted(self) -> float:
        """Seconds that are not in ``usage`` yet."""
        return 0.0 if self._since is None else monotonic() - self._since

    def start(self) -> None:
        self._since = monotonic()

    def note(self) -> None:
        if self.unnoted >= NOTED_EVERY:
            self.stop()
            self.start()

    def stop(self) -> None:
        if self._since is not None:
            self._usage.trained(self.unnoted)
            self._since = None


def _names_a_path(error: FerretError) -> bool:
    """True if the error is about a file or folder of this machine."""
    return error.code == "terms.invalid" or any(field.field == "path" for field in error.errors)


def _named(model: ModelSpec, digest: str | None) -> str:
    revision = f"@{model.revision}" if model.revision else ""
    return f"{model.source}{revision} (digest {digest})"


def _require_blind(experiment: ResolvedExperiment) -> None:
    """Raises ``terms.refused`` for what a privacy budget cannot be kept with."""
    compatibility.require(experiment, compatibility.PRIVACY_BUDGET, "terms.refused")


def _refused(field: str, value: object, message: str) -> FerretError:
    return FerretError.of_field("terms.refused", field, value, message)
