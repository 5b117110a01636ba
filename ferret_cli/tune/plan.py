"""A file with ``[tune]``: the experiment, the search space, and the specification of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ferret_cli import spec_input
from ferret_cli.tune.search_space import Draw, Range, Values, corners, dimensions, drawn, parsed, size
from ferret_cli.tune.settings import MOST_TRIALS, USUAL_TRIALS, Settings
from ferret_core import catalog
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol.errors import FerretError, FieldError, field_errors
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.spec_file import Tree

TABLE = "tune"
OF_TRIALS: Tree = {"evaluation": {"split": "validation"}, "checkpoint": {"every": MAX_ROUNDS}}
"""Defaults of trials: the test split stays unseen, and models are not kept."""
FIXED = {"name": "names the experiment", "evaluation": "sets the measurement of trials, which must be the same for all"}


@dataclass(frozen=True)
class Plan:
    """A plan. ``experiment`` is the file without ``[tune]``, ``table`` the original ``[tune]`` table, ``space`` its
    dimensions.

    ``rounds`` is the maximum number for a run, ``seed`` the experiment's own seed.
    """

    experiment: Tree
    table: Tree
    settings: Settings
    space: Tree
    rounds: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        return str(self.experiment["name"])

    @property
    def trials(self) -> int:
        """The budget."""
        return size(self.space) if self.settings.sampler == "grid" else self.settings.trials or USUAL_TRIALS

    @property
    def steps(self) -> int:
        """The number of reports to the pruner of a trial that is not pruned."""
        return self.rounds + self.settings.seeds - 1

    def spec(self, part: Tree, **fixed: Any) -> ExperimentSpec:
        """Returns the specification with ``fixed`` values; raises ``spec.invalid`` if they exclude each other."""
        tree = deepcopy(OF_TRIALS)
        spec_input.merge(tree, self.experiment)
        return catalog.resolve(ExperimentSpec.read(revise(tree, part).document | fixed, "the trial")).spec

    def draw(self, draw: Draw) -> Tree:
        """Returns the part of a specification with each dimension set by ``draw``."""
        return drawn(self.space, draw)

    def part(self, values: Values) -> Tree:
        """Returns the part of a specification with these values."""
        return self.draw(lambda name, _: values[name])

    def final(self, values: Values, **fixed: Any) -> ExperimentSpec:
        """Returns the specification of a reported run, with these values and ``fixed`` ones."""
        return catalog.resolve(ExperimentSpec.read(self.document(values) | fixed, "the best trial")).spec

    def document(self, values: Values) -> Tree:
        """Returns the experiment with these values, evaluated on the test split."""
        tree = revise(self.experiment, self.part(values)).document
        evaluation = {name: value for name, value in tree.pop("evaluation", {}).items() if name != "split"}
        return tree | ({"evaluation": evaluation} if evaluation else {})


def read(
    file: Path, assignments: Sequence[str] = (), unset: Sequence[str] = (), *, absolute_paths: bool = True
) -> Plan:
    """Reads the plan in ``file``, changed as in :func:`ferret_cli.spec_input.document`.

    Raises ``spec.invalid`` about invalid settings, empty ranges, and values in the space that the specification
    refuses.
    """
    tree = spec_input.document(file, assignments, unset, absolute_paths=absolute_paths)
    table = tree.pop(TABLE, None)
    if not isinstance(table, dict):
        message = f"has no values to tune: add [{TABLE}] with algorithm.local.learning_rate = {{ log = [1e-5, 1e-2] }}"
        raise FerretError.of_field("spec.invalid", "FILE", str(file), message)
    plan = _plan(tree, cast(Tree, table))
    specs = [_valid(plan, part) for part in corners(plan.space)]
    plan = replace(plan, rounds=max(spec.rounds for spec in specs), seed=specs[0].seed)
    _require_grid(plan)
    _require_own_seeds(plan)
    return plan


def _plan(experiment: Tree, table: Tree) -> Plan:
    dimensioned = {name: value for name, value in table.items() if _is_of_specification(name, value)}
    settings = _settings({name: value for name, value in table.items() if name not in dimensioned})
    for name, why in FIXED.items():
        if name in dimensioned:
            raise FerretError.of_field("spec.invalid", f"{TABLE}.{name}", dimensioned[name], f"{why}: take it out")
    plan = Plan(experiment, table, settings, parsed(dimensioned, TABLE))
    if not dimensions(plan.space):
        message = "has no dimension: add one, such as algorithm.local.learning_rate = { log = [1e-5, 1e-2] }"
        raise FerretError.of_field("spec.invalid", TABLE, table, message)
    return plan


def _is_of_specification(name: str, value: Any) -> bool:
    return name not in Settings.model_fields and (isinstance(value, dict) or name in ExperimentSpec.model_fields)


def _settings(given: Tree) -> Settings:
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise FerretError.of_fields("spec.invalid", field_errors(error, [TABLE], Settings)) from error


def _require_grid(plan: Plan) -> None:
    """Checks that a grid has points for every dimension and no budget; other samplers take no points."""
    is_grid = plan.settings.sampler == "grid"
    for name, dimension in dimensions(plan.space).items():
        if isinstance(dimension, Range) and is_grid and not dimension.grid():
            message = "sampler = 'grid' needs the number of points: add points = 4"
            raise FerretError.of_field("spec.invalid", f"{TABLE}.{name}", [dimension.low, dimension.high], message)
        if isinstance(dimension, Range) and not is_grid and dimension.points is not None:
            message = "is for sampler = 'grid' alone: take it out"
            raise FerretError.of_field("spec.invalid", f"{TABLE}.{name}.points", dimension.points, message)
    if is_grid and plan.settings.trials is not None:
        message = "sampler = 'grid' tries all its points: take it out"
        raise FerretError.of_field("spec.invalid", f"{TABLE}.trials", plan.settings.trials, message)
    if is_grid and plan.trials > MOST_TRIALS:
        message = f"makes {plan.trials} trials, more than {MOST_TRIALS}: give fewer points, or use sampler = 'tpe'"
        raise FerretError.of_field("spec.invalid", f"{TABLE}.sampler", "grid", message)


def _require_own_seeds(plan: Plan) -> None:
    """Checks that tuning and reported runs use different seeds."""
    seeds = plan.settings.seeds_of_trials
    if plan.seed in seeds:
        taken = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
        message = f"the trials run with {taken}: choose another for the run that is reported"
        raise FerretError.of_field("spec.invalid", "seed", plan.seed, message)


def _valid(plan: Plan, part: Tree) -> ExperimentSpec:
    try:
        spec = plan.spec(part)
    except FerretError as error:
        told = [_in_table(wrong, part) for wrong in error.errors]
        raise FerretError.of_fields("spec.invalid", told) from error
    if edge := spec.participants.edge:
        message = "every trial would wait for real participants: use 0, and simulated clients"
        raise FerretError.of_field("spec.invalid", "participants.edge", edge, message)
    return spec


def _in_table(wrong: FieldError, part: Tree) -> FieldError:
    """Returns the error under its field's name in ``[tune]``, if the value came from there."""
    inside: Any = part
    for name in wrong.field.split("."):
        if not isinstance(inside, dict):
            break
        if name not in inside:
            return wrong
        inside = cast(Tree, inside)[name]
    return wrong.model_copy(update={"field": f"{TABLE}.{wrong.field}"})
