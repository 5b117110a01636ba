"""The best trial run again as it will be reported: on the test split, with seeds that no trial had."""

from __future__ import annotations

from ferret_cli.output import say
from ferret_cli.progress import HEADER, RoundLine
from ferret_cli.tune.plan import Plan
from ferret_cli.tune.run_trial import measured, run_name
from ferret_cli.tune.runner import Runner
from ferret_cli.tune.study import Study
from ferret_cli.tune.trial import Trial
from ferret_core.protocol.errors import FerretError


def seeds(plan: Plan, count: int) -> range:
    """The experiment's own seed and those after it; ``request.invalid`` if they reach those of the trials."""
    wanted, tuned = range(plan.seed, plan.seed + count), plan.settings.seeds_of_trials
    if overlap := sorted({*wanted} & {*tuned}):
        message = f"reaches seed {overlap[0]}, which the trials ran with: ask for fewer, or set another seed"
        raise FerretError.of_field("request.invalid", "--confirm", count, message)
    return wanted


def confirm(plan: Plan, study: Study, best: Trial, wanted: range, run: Runner) -> list[float]:
    """The metric after the last round for each of the ``wanted`` seeds; one that was measured before is not run."""
    return [_score(plan, study, best, seed, run) for seed in wanted]


def _score(plan: Plan, study: Study, best: Trial, seed: int, run: Runner) -> float:
    key = f"confirm-{study.key}-{best.number}-{seed}"
    if (known := study.recall(key)) is not None:
        return known
    last: list[float] = []

    def tell(line: RoundLine) -> None:
        say(str(line))
        if (value := measured(line, plan.settings.metric)) is not None:
            last[:] = [value]

    say(f"trial {best.number} on the test split, seed {seed}\n{HEADER}")
    run(plan.final(best.values, seed=seed, name=run_name(plan, f"tuned, seed {seed}")), key, tell)
    study.remember(key, last[0])
    return last[0]
