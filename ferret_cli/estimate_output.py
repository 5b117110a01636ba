"""A plan in words, and the measured speed of this machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ferret_cli.requirements_check import require_training
from ferret_core import catalog
from ferret_core.experiment.estimate import Estimate, estimate
from ferret_core.models import architecture
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec

TOKENS = 256


def lines(plan: Estimate) -> Iterator[str]:
    """Returns the facts of the plan, one per line."""
    yield f"weights tuned         {plan.d:,}"
    if plan.K is not None:
        yield f"coordinates           {plan.K:,} (one for {plan.d / plan.K:,.0f} weights)"
    yield f"in each of {plan.rounds} rounds  {plan.participants} participants"
    yield f"bytes up              {_size(plan.bytes_up)} each, in a round"
    yield f"bytes down            {_size(plan.bytes_down)} each, in a round"
    yield f"bytes in all          {_size(plan.total_bytes)}"
    if plan.noise is not None:
        worst = int(np.argmax(plan.noise.ratios))
        yield (
            f"noise expected        {plan.noise.total:.1%} of the weights in a round; "
            f"at most {plan.noise.ratios[worst]:.1%}, in {plan.noise.blocks[worst]}"
        )
    yield f"memory, participant   {_size(plan.memory_bytes)}, estimated"
    yield f"training              {_seconds(plan.local_seconds)} each, in a round, estimated"
    yield f"aggregation           {_seconds(plan.aggregate_seconds)} in a round, estimated"


def digest_of(model: ModelSpec) -> str:
    """Loads the base model and returns its digest; raises ``setup.missing`` without the packages for training."""
    require_training()

    from ferret_core.models.load import digest_of, load

    return digest_of(load(model))


def summary(spec: ExperimentSpec) -> list[str]:
    """Returns a short plan with its advice, for a specification with its model in a local folder; else nothing."""
    try:
        plan = estimate(catalog.resolve(spec), architecture.of_folder(spec.model.source), None, TOKENS, 1.0)
    except FerretError:
        return []
    noise = "" if plan.noise is None else f", noise expected {plan.noise.total:.1%} of the weights"
    sent = "" if plan.bytes_up is None else f", {size(plan.bytes_up)} up"
    head = f"{plan.d:,} weights, {plan.participants} participants in a round{sent}{noise}"
    return [head, *(f"advice: {advice}" for advice in plan.advice)]


def _size(count: int | None) -> str:
    return "known once the model is loaded" if count is None else size(count)


def _seconds(value: float | None) -> str:
    if value is None:
        return "depends on the number of examples: give --examples"
    return f"{value:.1f} s" if value < 600 else f"{value / 3600:.1f} h"
