"""The precision of local training: ``auto`` becomes one of the others once, from the hardware that trains.

The result is a part of the specification, so that all workers, reruns and participants compute alike. Hardware
that is slow at the chosen precision computes the same.
"""

from __future__ import annotations

from ferret_core.catalog import ResolvedExperiment


def resolve_precision(experiment: ResolvedExperiment, bfloat16: bool) -> ResolvedExperiment:
    """Returns the experiment with ``precision = "auto"`` replaced: by bfloat16 if the hardware that trains is quick at
    it (``bfloat16``), else by float32.

    With real participants it is float32: their hardware is unknown, and without instructions for bf16 it would take
    several times as long.
    """
    local = experiment.traits.first_order
    if local is None or local.precision != "auto":
        return experiment
    chosen = "bfloat16" if bfloat16 and not experiment.spec.participants.edge else "float32"
    local_options = {**experiment.spec.algorithm.options["local"], "precision": chosen}
    algorithm = experiment.spec.algorithm.model_copy(update={"local": local_options})
    return ResolvedExperiment.of(experiment.spec.model_copy(update={"algorithm": algorithm}))
