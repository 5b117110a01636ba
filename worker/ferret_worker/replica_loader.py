"""Where an experiment's weights lie on a worker: in memory, or in files that are mapped."""

from __future__ import annotations

import logging
from pathlib import Path

from ferret_core import compatibility
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.safetensors_map import SUFFIX
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.mapped.replica import MappedReplica
from ferret_core.replica.replica import Replica
from ferret_worker.settings import WorkerSettings

logger = logging.getLogger(__name__)

COPIES = 3
"""What aggregation in memory takes: the model, the one to go back to, and the numbers in fp32 of its largest parameter,
with what else a worker has."""


def load(settings: WorkerSettings, spec: ExperimentSpec, folder: Path, on_cpu: bool) -> Replica:
    """A replica at round 0 from the base model's ``folder``, in files if they are to be there."""
    size = sum(path.stat().st_size for path in folder.glob(f"*{SUFFIX}"))
    if on_cpu and in_files(settings, spec, size):
        return MappedReplica(spec, folder, settings.home / "mapped", settings.aggregation_processes)
    return Replica.load(spec, folder)


def in_files(settings: WorkerSettings, spec: ExperimentSpec, size: int) -> bool:
    """Whether ``FERRET_WEIGHTS`` asks for files for ``size`` bytes of weights, and nothing is in the way."""
    if settings.weights == "memory" or (settings.weights == "auto" and COPIES * size <= settings.memory_limit):
        return False
    in_the_way = compatibility.problems(ResolvedExperiment.of(spec), compatibility.FILES)
    for problem in in_the_way:
        logger.info("the weights of %s stay in memory: %s", spec.name, problem)
    return not in_the_way
