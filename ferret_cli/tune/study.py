"""A plan's trials, stored by Optuna in one SQLite file in the study's folder.

SQLite commits or undoes: whenever the process is killed, the file holds every trial that has ended. An interrupted
trial is dropped and drawn again, with the same values: each trial has its own sampler seed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from ferret_cli.tune.plan import TABLE, Plan
from ferret_cli.tune.search_space import Dimension, Range, Values, grid
from ferret_cli.tune.trial import Trial
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError, FieldError
from ferret_core.protocol.spec_file import Tree
from ferret_sdk.participant.lock import alone

FILE = "study.db"
LOCK = "study.lock"
NAME = "ferret"
REDUCTION = 3
"""Hyperband's η: one trial in η continues, to η times the rounds."""
MAY_CHANGE = f"{TABLE}.trials"
"""The setting that may change in a continued study: the budget."""


@contextmanager
def opened(plan: Plan, folder: Path) -> Generator[Study]:
    """Opens the study in the existing ``folder``; creates it if it is missing.

    Raises ``tune.in_use`` while another process runs it, ``tune.changed`` if it was created with another plan.
    """
    with alone(folder / LOCK, lambda process: _in_use(folder, process)):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        storage = _storage(folder / FILE)
        try:
            yield Study(plan, storage)
        finally:
            storage.engine.dispose()


class Study:
    """The trials that have ended so far, and the next ones."""

    def __init__(self, plan: Plan, storage: RDBStorage) -> None:
        direction = "maximize" if plan.settings.highest else "minimize"
        self._plan = plan
        self._study = optuna.create_study(
            study_name=NAME, storage=storage, direction=direction, pruner=_pruner(plan), load_if_exists=True
        )
        self._require_same()
        for killed in self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            self._study.tell(killed.number, state=TrialState.FAIL)

    @property
    def key(self) -> str:
        """The id that distinguishes this study's runs from all others on a server."""
        return self._study.user_attrs["key"]

    @property
    def trials(self) -> list[Trial]:
        """The trials that have ended, in order; a killed trial is not included."""
        ended = self._study.get_trials(deepcopy=False, states=[TrialState.COMPLETE, TrialState.PRUNED])
        return [_trial(number, found) for number, found in enumerate(ended, 1)]

    @property
    def next(self) -> int:
        """The number of the next trial."""
        return len(self.trials) + 1

    def ask(self) -> tuple[optuna.Trial, Values]:
        """Begins the next trial; the sampler draws the same values on every call."""
        self._study.sampler = _sampler(self._plan, self.next)
        trial = self._study.ask()
        self._plan.draw(lambda name, dimension: _suggested(trial, name, dimension))
        return trial, dict(trial.params)

    def complete(self, trial: optuna.Trial, value: float, **kept: Any) -> None:
        self._keep(trial, kept)
        self._study.tell(trial, value)

    def prune(self, trial: optuna.Trial, **kept: Any) -> None:
        self._keep(trial, kept)
        self._study.tell(trial, state=TrialState.PRUNED)

    def fail(self, trial: optuna.Trial, failure: FerretError, **kept: Any) -> None:
        """Records the failure as pruned for Optuna: its samplers learn from pruned trials and ignore failures, so they
        would otherwise repeat rates that diverge.
        """
        self.prune(trial, failure=failure.summary(), **kept)

    def recall(self, name: str) -> Any:
        """Returns the value stored under this name; None without one."""
        return self._study.user_attrs.get(name)

    def remember(self, name: str, value: Any) -> None:
        self._study.set_user_attr(name, value)

    def _keep(self, trial: optuna.Trial, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            trial.set_user_attr(name, value)

    def _require_same(self) -> None:
        here = _leaves({**self._plan.experiment, TABLE: self._plan.table})
        begun = self._study.user_attrs.get("plan")
        if begun is None:
            self.remember("key", secrets.token_hex(8))
            self.remember("plan", here)
        elif changed := [
            _changed(name, here, begun) for name in {**begun, **here} if here.get(name) != begun.get(name)
        ]:
            raise FerretError.of_fields("tune.changed", changed)


class GridPoint(BaseSampler):
    """A sampler that draws one given point."""

    def __init__(self, point: Values) -> None:
        self._point = point

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._point[param_name]


def _in_use(folder: Path, process: str) -> FerretError:
    return FerretError("tune.in_use", f"ferret tune{process} runs the study in {folder}")


def _storage(path: Path) -> RDBStorage:
    try:
        return RDBStorage(f"sqlite:///{path.resolve()}")
    except Exception as error:
        reason = str(error).partition("\n")[0]
        message = f"is not a study that this version can read ({reason}): choose another folder with --out"
        raise FerretError.of_field("request.invalid", "--out", str(path), message) from error


def _sampler(plan: Plan, number: int) -> BaseSampler:
    settings = plan.settings
    seed = derive_seed("tune", settings.seed, number) % 2**32
    match settings.sampler:
        case "tpe":
            return TPESampler(seed=seed, n_startup_trials=settings.startup_trials)
        case "random":
            return RandomSampler(seed=seed)
        case "grid":
            return GridPoint(next(islice(grid(plan.space), number - 1, None)))


def _pruner(plan: Plan) -> BasePruner:
    warmup, startup = plan.settings.warmup_rounds, plan.settings.startup_trials
    match plan.settings.pruner:
        case "median":
            return MedianPruner(n_startup_trials=startup, n_warmup_steps=warmup)
        case "halving":
            return SuccessiveHalvingPruner(min_resource=warmup, reduction_factor=REDUCTION)
        case "hyperband":
            return HyperbandPruner(warmup, max_resource=max(plan.steps, warmup), reduction_factor=REDUCTION)
        case "none":
            return NopPruner()


def _suggested(trial: optuna.Trial, name: str, dimension: Dimension) -> Any:
    if not isinstance(dimension, Range):
        return trial.suggest_categorical(name, list(dimension.options))
    if dimension.whole:
        return trial.suggest_int(name, round(dimension.low), round(dimension.high), log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)


def _trial(number: int, found: FrozenTrial) -> Trial:
    kept = found.user_attrs
    state = "failed" if "failure" in kept else "complete" if found.state is TrialState.COMPLETE else "pruned"
    curve = dict(sorted(found.intermediate_values.items()))
    return Trial(number, dict(found.params), state, kept["scores"], curve, kept["rounds"], kept.get("failure"))


def _leaves(tree: Tree, path: str = "") -> Tree:
    """Returns the values of the tree by their dotted names, in the form that they have after storing."""
    found: Tree = {}
    for name, value in tree.items():
        below = f"{path}.{name}" if path else name
        found |= _leaves(cast(Tree, value), below) if isinstance(value, dict) and value else {below: value}
    found.pop(MAY_CHANGE, None)
    return json.loads(json.dumps(found))


def _changed(name: str, here: Tree, begun: Tree) -> FieldError:
    was = f"was {begun[name]!r} when the study began" if name in begun else "was not set when the study began"
    return FieldError(field=name, value=here.get(name), message=was)
