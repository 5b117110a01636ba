"""Requirements of an experiment's contributions, cached for each version of the experiment."""

from __future__ import annotations

from typing import NamedTuple

from ferret_core.algorithms.configs.base import ContributionSize
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes
from ferret_db import tables
from ferret_db.repositories import experiments

REMEMBERED = 256


class ContributionRequirements(NamedTuple):
    """The experiment's specification, its model's parameter shapes, and the maximum size of a contribution."""

    experiment: ResolvedExperiment
    shapes: Shapes
    size: ContributionSize


_known: dict[tuple[str, int], ContributionRequirements] = {}


def of(experiment: tables.Experiment) -> ContributionRequirements:
    """Returns the requirements. The row's session must be open, since specification and shapes load on demand."""
    key = experiment.id, experiment.version
    requirements = _known.get(key)
    if requirements is None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        requirements = _known[key] = _parsed(experiment)
    return requirements


def _parsed(experiment: tables.Experiment) -> ContributionRequirements:
    resolved = ResolvedExperiment.of(experiments.spec_of(experiment))
    # A database may hand an object's members out in any order; the canonical one is by name.
    shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
    return ContributionRequirements(resolved, shapes, resolved.config.size(shapes))
