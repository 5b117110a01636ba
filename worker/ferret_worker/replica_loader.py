"""Placement of an experiment's weights on a worker: in memory, or in mapped files."""

from __future__ import annotations

import logging
from pathlib import Path

from ferret_core import compatibility
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.estimate import aggregation_bytes, weight_bytes
from ferret_core.models.safetensors_map import SUFFIX
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.mapped.replica import MappedReplica
from ferret_core.replica.replica import Replica
from ferret_worker.settings import WorkerSettings

logger = logging.getLogger(__name__)


def load(settings: WorkerSettings, spec: ExperimentSpec, folder: Path, on_cpu: bool) -> Replica:
    """Loads a replica at round 0 from the base model's ``folder``, in files if :func:`in_files` selects them."""
    size = sum(path.stat().st_size for path in folder.glob(f"*{SUFFIX}"))
    if on_cpu and in_files(settings, spec, size):
        return MappedReplica(spec, folder, settings.home / "mapped", settings.aggregation_processes)
    return Replica.load(spec, folder)


def in_files(settings: WorkerSettings, spec: ExperimentSpec, size: int) -> bool:
    """Returns True if ``FERRET_WEIGHTS_IN`` selects files for ``size`` bytes of weights, and they are possible."""
    experiment = ResolvedExperiment.of(spec)
    needed = aggregation_bytes(experiment, size // weight_bytes(spec))
    if settings.weights_in == "memory" or (settings.weights_in == "auto" and needed <= settings.memory_limit):
        return False
    in_the_way = compatibility.problems(experiment, compatibility.FILES)
    for problem in in_the_way:
        logger.info("the weights of %s stay in memory: %s", spec.name, problem)
    return not in_the_way
