"""What an experiment's contributions are checked against, read and parsed once for each version of the experiment."""

from __future__ import annotations

from typing import NamedTuple

from ferret_core import catalog
from ferret_core.algorithms.configs._base import Size
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db import tables
from ferret_db.repositories import experiments

REMEMBERED = 256


class ContributionRequirements(NamedTuple):
    """The experiment's specification, the shapes of its model, and the most bytes of a contribution."""

    spec: ExperimentSpec
    shapes: Shapes
    size: Size


_known: dict[tuple[str, int], ContributionRequirements] = {}


def of(experiment: tables.Experiment) -> ContributionRequirements:
    """Of a row whose session is still open: specification and shapes are read only where they are not known."""
    key = experiment.id, experiment.version
    requirements = _known.get(key)
    if requirements is None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        requirements = _known[key] = _parsed(experiment)
    return requirements


def _parsed(experiment: tables.Experiment) -> ContributionRequirements:
    spec = experiments.spec_of(experiment)
    # A database may hand an object's members out in any order; the canonical one is by name.
    shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
    return ContributionRequirements(spec, shapes, catalog.algorithm_config(spec.algorithm).size(shapes))
