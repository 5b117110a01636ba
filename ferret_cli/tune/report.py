"""Output of a study: ``best.toml``, ``trials.csv``, ``trials.png``, a table, one JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import tomli_w

from ferret_cli import plot_style
from ferret_cli.files import Row, to_csv, write
from ferret_cli.tune.plan import Plan
from ferret_cli.tune.plot import draw
from ferret_cli.tune.run_trial import shown_value
from ferret_cli.tune.search_space import dimensions, field_of, short_names
from ferret_cli.tune.trial import Trial, best, ranked, standard_error
from ferret_core.protocol.formatting import quantity
from ferret_core.protocol.spec_file import Tree


def written(plan: Plan, trials: Sequence[Trial], folder: Path) -> dict[str, Path]:
    """Writes the files; ``toml``, the best trial, only if one completed."""
    with plot_style.applied():
        picture = plot_style.png(draw(plan, trials))
    files = {
        "csv": write(folder / "trials.csv", to_csv([_csv_row(plan, trial) for trial in trials]).encode()),
        "png": write(folder / "trials.png", picture),
    }
    if found := best(trials, highest=plan.settings.highest):
        files["toml"] = write(folder / "best.toml", _toml(plan, found, len(trials)).encode())
    return files


def columns(plan: Plan) -> list[str]:
    """Returns the headers of the table."""
    return ["trial", plan.settings.metric, "± s.e.", *short_names(_fields(plan)), "rounds", "state"]


def rows(plan: Plan, trials: Sequence[Trial]) -> Iterable[Sequence[Any]]:
    """Returns the lines of the table, the best trial first; an incomplete trial shows its last value."""
    metric = plan.settings.metric
    for trial in ranked(trials, highest=plan.settings.highest):
        drawn = {field_of(name): value for name, value in trial.values.items()}
        yield (
            trial.number,
            quantity(metric, trial.reached),
            quantity(metric, trial.error),
            *(shown_value(drawn[field]) if field in drawn else None for field in _fields(plan)),
            trial.rounds,
            f"failed: {trial.failure['code']}" if trial.failure else trial.state,
        )


def group(metric: str, scores: Sequence[float]) -> str:
    """Returns mean ± standard error of runs that differ only in their seeds."""
    error = standard_error(scores)
    spread = "" if error is None else f" ± {quantity(metric, error)}"
    return f"{metric} {quantity(metric, fmean(scores))}{spread} over {len(scores)} seed{'s' if len(scores) > 1 else ''}"


def document(
    plan: Plan, trials: Sequence[Trial], files: dict[str, Path], confirmed: tuple[range, Sequence[float]] | None
) -> dict[str, Any]:
    """Returns the study as one JSON document."""
    found = best(trials, highest=plan.settings.highest)
    return {
        "name": plan.name,
        "metric": plan.settings.metric,
        "better": "high" if plan.settings.highest else "low",
        "budget": plan.trials,
        "trials": [
            trial._asdict() | {"value": trial.value, "standard_error": trial.error, "curve": [*trial.curve.items()]}
            for trial in trials
        ],
        "best": found and found.number,
        "confirmed": confirmed and _confirmed(*confirmed),
        "files": {kind: str(path.resolve()) for kind, path in files.items()},
    }


def _fields(plan: Plan) -> list[str]:
    """Returns the fields set by the dimensions, each once: rates that depend on a choice share a column."""
    return list(dict.fromkeys(map(field_of, dimensions(plan.space))))


def _confirmed(seeds: range, scores: Sequence[float]) -> dict[str, Any]:
    return {"seeds": list(seeds), "scores": scores, "value": fmean(scores), "standard_error": standard_error(scores)}


def _csv_row(plan: Plan, trial: Trial) -> Row:
    return {
        "trial": trial.number,
        "state": trial.state,
        plan.settings.metric: trial.value,
        "standard_error": trial.error,
        "seeds": len(trial.scores),
        "rounds": trial.rounds,
        **{name: trial.values.get(name) for name in dimensions(plan.space)},
        "failure": trial.failure["code"] if trial.failure else None,
    }


def _toml(plan: Plan, trial: Trial, count: int) -> str:
    settings = plan.settings
    head = [
        f"# The best of {count} trials by {settings.sampler}, trial {trial.number}:",
        f"# {group(settings.metric, trial.scores)}, from {settings.seeds_of_trials[0]} on.",
    ]
    return "\n".join([*head, tomli_w.dumps(_without_nulls(plan.document(trial.values)))])


def _without_nulls(tree: Tree) -> Tree:
    """Removes nulls: TOML has none; in a specification they mean the default."""
    return {
        name: _without_nulls(cast(Tree, value)) if isinstance(value, dict) else value
        for name, value in tree.items()
        if value is not None
    }
