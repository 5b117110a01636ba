"""A study from where it stands to its budget, and to its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferret_cli.output import emit, say, table
from ferret_cli.tune import report
from ferret_cli.tune.final_evaluation import confirm
from ferret_cli.tune.plan import Plan
from ferret_cli.tune.run_trial import perform
from ferret_cli.tune.runner import Runner
from ferret_cli.tune.study import opened
from ferret_cli.tune.trial import Trial, best
from ferret_core.protocol.errors import FerretError


def search(plan: Plan, folder: Path, run: Runner, seeds: range, *, json: bool) -> None:
    """Runs what is left of the budget, then the best trial with ``seeds``; prints and writes what came of it.

    Whatever ends it earlier leaves the files of the trials so far. Raises ``tune.no_result`` if no trial completed.
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
                scores = confirm(plan, study, found, seeds, run)
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
