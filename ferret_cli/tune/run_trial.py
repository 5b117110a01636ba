"""One trial from its values to its score: a run for each seed, pruned by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import optuna

from ferret_cli.output import say
from ferret_cli.round_progress import HEADER, RoundLine
from ferret_cli.tune.plan import Plan
from ferret_cli.tune.runner import Runner
from ferret_cli.tune.search_space import Values
from ferret_cli.tune.study import Study
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import quantity

NOT_ITS_VALUES = ("auth.", "broker.", "database.", "dataset.", "host.", "model.", "request.", "server.", "storage.")
"""Errors unrelated to a trial's values: they end the command, and the trial is run again."""
LONGEST_NAME = 80


def perform(plan: Plan, study: Study, run: Runner) -> None:
    """Runs the next trial and records its result; raises errors that are unrelated to its values."""
    number = study.next
    trial, values = study.ask()
    course = _Course(plan, trial)
    say(f"trial {number} of {plan.trials}: {shown(values)}")
    try:
        for seed in plan.settings.seeds_of_trials:
            name = run_name(plan, f"trial {number}, seed {seed}")
            spec = plan.spec(plan.part(values), seed=seed, name=name)
            say(HEADER)
            run(spec, f"tune-{study.key}-{number}-{seed}", course.tell)
            course.end_run()
    except optuna.TrialPruned:
        study.prune(trial, **course.kept)
        say(f"trial {number} is pruned")
    except FerretError as error:
        if error.code.startswith(NOT_ITS_VALUES):
            raise
        study.fail(trial, error, **course.kept)
        say(f"trial {number} failed: {error.detail}")
    else:
        value = fmean(course.scores)
        study.complete(trial, value, **course.kept)
        say(f"trial {number}: {plan.settings.metric} {quantity(plan.settings.metric, value)}")


def run_name(plan: Plan, what: str) -> str:
    """Returns a run's name in lists."""
    return f"{plan.name[:LONGEST_NAME]}, {what}"


def shown(values: Values) -> str:
    return ", ".join(f"{name} = {shown_value(value)}" for name, value in values.items())


def shown_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass
class _Course:
    """Progress of a trial; ``scores`` has the results of finished seeds, ``rounds`` the total number of rounds run."""

    plan: Plan
    trial: optuna.Trial
    scores: list[float] = field(default_factory=list[float])
    rounds: int = 0
    _last: float = math.nan

    @property
    def kept(self) -> dict[str, Any]:
        return {"scores": self.scores, "rounds": self.rounds}

    def tell(self, line: RoundLine) -> None:
        """Shows the round, reports to the pruner, and raises ``optuna.TrialPruned`` if the trial should stop.

        The pruner receives every evaluated round of the first seed, and the mean after each further one.
        """
        say(str(line))
        value = measured(line, self.plan.settings.metric)
        if line.number == 0:
            return
        self.rounds += 1
        if value is None:
            return
        self._last, ended = value, line.number == line.rounds
        if self.scores and not ended:
            return
        self.trial.report(fmean([*self.scores, value]), line.number + len(self.scores))
        over = ended and len(self.scores) + 1 == self.plan.settings.seeds
        if not over and self.trial.should_prune():
            raise optuna.TrialPruned

    def end_run(self) -> None:
        self.scores.append(self._last)


def measured(line: RoundLine, metric: str) -> float | None:
    """Returns the metric after a round, None if it was not evaluated.

    Raises ``request.invalid`` if not even the base model has it, ``training.non_finite`` if it is not finite.
    """
    value = line.metrics.get(metric)
    if value is None and line.number == 0:
        message = (
            "is not measured: Rouge-L needs evaluation.generate_examples, exact match answers that end in a number"
        )
        raise FerretError.of_field("request.invalid", "tune.metric", metric, message)
    if value is not None and not math.isfinite(value):
        raise FerretError("training.non_finite", f"{metric} is {value} after round {line.number}")
    return value
