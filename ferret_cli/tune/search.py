"""A study's run from its current state to its budget, its best trial once more on the test split, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferret_cli.output import emit, say, table
from ferret_cli.round_progress import HEADER, RoundLine
from ferret_cli.tune import report
from ferret_cli.tune.plan import Plan
from ferret_cli.tune.run_trial import measured, perform, run_name
from ferret_cli.tune.runner import Runner
from ferret_cli.tune.study import Study, opened
from ferret_cli.tune.trial import Trial, best
from ferret_core.protocol.errors import FerretError


def search(plan: Plan, folder: Path, run: Runner, seeds: range, *, json: bool) -> None:
    """Runs the rest of the budget, then the best trial with ``seeds``; prints and writes the results.

    After an early end, the files have the trials so far. Raises ``tune.no_result`` if no trial completed.
    """
    with opened(plan, folder) as study:
        if done := len(study.trials):
            say(f"{done} trials have ended already, of a budget of {plan.trials}: {folder}")
        scores: Sequence[float] = []
        try:
            while study.next <= plan.trials:
                perform(plan, study, run)
            found = best(study.trials, highest=plan.settings.highest)
            if found and seeds:
                scores = [_score(plan, study, found, seed, run) for seed in seeds]
        except BaseException:
            if study.trials:
                report.written(plan, study.trials, folder)
            say(f"{len(study.trials)} of {plan.trials} trials have ended; the same command goes on from there")
            raise
        trials = study.trials
    files = report.written(plan, trials, folder)
    if not json:
        table(report.columns(plan), report.rows(plan, trials))
    if found is None:
        raise _no_result(trials)
    if json:
        emit(report.document(plan, trials, files, (seeds, scores) if scores else None))
    elif scores:
        print(f"trial {found.number} on the test split: {report.group(plan.settings.metric, scores)}")
    say(f"the best trial: {files['toml']}; run it: ferret submit {files['toml']}")


def _no_result(trials: Sequence[Trial]) -> FerretError:
    failures = [trial.failure for trial in trials if trial.failure]
    why = f"; the last that failed: {failures[-1]['detail']}" if failures else ""
    return FerretError("tune.no_result", f"none of {len(trials)} trials completed{why}")


def confirmation_seeds(plan: Plan, count: int) -> range:
    """Returns the experiment's own seed and the following; raises ``request.invalid`` if they reach the trials'."""
    wanted, tuned = range(plan.seed, plan.seed + count), plan.settings.seeds_of_trials
    if overlap := sorted({*wanted} & {*tuned}):
        message = f"reaches seed {overlap[0]}, which the trials ran with: ask for fewer, or set another seed"
        raise FerretError.of_field("request.invalid", "--confirm", count, message)
    return wanted


def _score(plan: Plan, study: Study, best: Trial, seed: int, run: Runner) -> float:
    """Returns the last round's metric; a seed measured before is not run again."""
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
