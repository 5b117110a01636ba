"""A plan in words, and the measured speed of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from ferret_cli.output import say
from ferret_cli.requirements_check import require_training
from ferret_core import catalog
from ferret_core.aggregation.projection_noise import expected_share, participants_of
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.estimate import Estimate, Speed, SumPlan, TokenLengths, assumed_speed, estimate
from ferret_core.experiment.precision import resolve_precision
from ferret_core.models import architecture
from ferret_core.models.architecture import Architecture
from ferret_core.privacy.mechanism import calibrated
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec

TOKENS = 256
NOT_ESTIMATED = "not estimated for this algorithm"


def lines(plan: Estimate) -> Iterator[str]:
    """Returns the facts of the plan, one per line."""
    yield f"weights tuned         {plan.d:,}"
    if plan.K is not None and plan.sent is not None:
        whole = plan.sent == plan.K
        yield f"coordinates           {plan.sent:,} " + (
            f"(one for {plan.d / plan.K:,.0f} weights)" if whole else f"(the largest of {plan.K:,})"
        )
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
        share = expected_share(plan.noise)
        part = f"some {share:.0%} of" if share < 1 else "more than"
        yield f"noise's cost          {part} what a round gains, if this model is like the measured ones"
        yield f"noise accumulated     {plan.accumulated_noise:.1%} of the weights after {plan.rounds} rounds"
    if (sums := plan.sums) is not None:
        keys, stay = size(sums.key_bytes), f"{sums.survivors} of {sums.members} participants must stay"
        yield f"secure sum            {sums.bits} bits for a number, {keys} of keys and shares; {stay}"
        yield f"price of the sum      {_price(plan, sums)}"
    if (privacy := plan.privacy) is not None:
        reached = "" if privacy.epsilon is None else f"ε = {privacy.epsilon:.3g} at δ = {privacy.delta:g}, "
        yield f"records protected     {reached}noise z = {privacy.noise_multiplier:g}, unit {privacy.unit}"
        yield (
            f"useful coordinates    K* = {privacy.useful:,.0f}: noise {privacy.relative_noise:.2g} times that of dense "
            "updates with this ε"
        )
    if plan.cut_share is not None:
        yield f"examples cut          {plan.cut_share:.1%} are longer than the limit"
    yield f"memory, participant   {_training_memory(plan)}"
    yield f"memory, evaluation    {_size(plan.evaluate_memory_bytes)}, estimated"
    yield f"memory, aggregation   {_size(plan.aggregate_memory_bytes)}, estimated"
    yield f"disk, server          {_size(plan.disk_bytes)} at the end, with {plan.checkpoints} models"
    yield f"training              {_training_time(plan)}"
    if plan.projection_seconds is not None:
        yield f"projection            {_seconds(plan.projection_seconds)} each, in a round, estimated"
    yield f"evaluation            {_seconds(plan.evaluate_seconds)} at most, estimated"
    yield f"aggregation           {_seconds(plan.aggregate_seconds)} in a round, estimated"


def _price(plan: Estimate, sums: SumPlan) -> str:
    """Returns bytes and noise of a secure sum relative to the same experiment without one."""
    sent = f"{(plan.bytes_up or 0) / sums.plain_bytes:.2g} times the {size(sums.plain_bytes)} without a sum"
    if sums.least_noise is None or sums.most_noise is None:
        return sent
    noise = f"{sums.least_noise:.2g} to {sums.most_noise:.2g} times the noise's energy"
    return f"{sent}, {noise}: more if updates agree more"


def on_this_machine(experiment: ResolvedExperiment) -> ResolvedExperiment:
    """Returns the experiment with the precision of this machine, or of fp32 without the packages for training, and with
    the noise that protects records; raises as :func:`ferret_core.privacy.mechanism.calibrated`."""
    spec = experiment.spec
    experiment = experiment._replace(spec=calibrated(spec, participants_of(spec)))
    with suppress(ImportError):
        from ferret_core.system.device import chosen_device, fast_bfloat16

        return resolve_precision(experiment, fast_bfloat16(chosen_device()))
    return resolve_precision(experiment, bfloat16=False)


def lengths_of(experiment: ResolvedExperiment, outline: Architecture, tokens: float | None) -> TokenLengths:
    """Returns the lengths to plan with: around ``tokens`` if given, else the data's, else around ``TOKENS``.

    Data are measured where they, the model's tokenizer and the packages for training are here. Raises
    ``dataset.invalid`` for unreadable data in files that are here.
    """
    if tokens is None:
        with suppress(ImportError):
            from ferret_core.experiment import token_lengths

            try:
                if (found := token_lengths.measure(experiment.spec)) is not None:
                    return found
            except FerretError as error:
                if error.code == "dataset.invalid" and _data_are_here(experiment.spec):
                    raise
                say(f"lengths of {TOKENS} tokens are assumed: {error.detail}")
    return TokenLengths.assumed(tokens or TOKENS, experiment, outline)


def _data_are_here(spec: ExperimentSpec) -> bool:
    files = [Path(path).expanduser() for field, path in catalog.paths(spec) if field != "model.source"]
    return bool(files) and all(file.exists() for file in files)


def speed_of(experiment: ResolvedExperiment, outline: Architecture, lengths: TokenLengths) -> Speed:
    """Returns this machine's speed: measured with the model if it, the data and the packages for training are here,
    else guessed.
    """
    guessed = assumed_speed()
    with suppress(ImportError):
        from ferret_core.experiment import speed

        try:
            return speed.measure(experiment, outline, lengths, guessed) or guessed
        except FerretError as error:
            say(f"the speed is guessed: {error.detail}")
    return guessed


def advice_lines(plan: Estimate) -> list[str]:
    """Returns the advice, one item per line; items of a numbered list are indented."""
    return [f"{'        ' if advice[0].isdigit() else 'advice: '}{advice}" for advice in plan.advice]


def digest_of(model: ModelSpec) -> str:
    """Loads the base model and returns its digest; raises ``dependency.missing`` without the packages for training."""
    require_training()

    from ferret_core.models.load import digest_of, load

    return digest_of(load(model))


def summary(spec: ExperimentSpec) -> list[str]:
    """Returns a short plan with its advice, for a specification with its model in a local folder; else nothing."""
    try:
        experiment, outline = catalog.resolve(spec), architecture.of_folder(spec.model.source)
        plan = estimate(
            experiment, outline, None, TokenLengths.assumed(TOKENS, experiment, outline), Speed.assumed(1.0)
        )
    except FerretError:
        return []
    noise = "" if plan.noise is None else f", noise expected {plan.noise.total:.1%} of the weights"
    sent = "" if plan.bytes_up is None else f", {size(plan.bytes_up)} up"
    head = f"{plan.d:,} weights, {plan.participants} participants in a round{sent}{noise}"
    return [head, *advice_lines(plan)]


def _training_memory(plan: Estimate) -> str:
    if plan.memory_bytes is None or plan.least_memory_bytes is None:
        return NOT_ESTIMATED
    return f"{size(plan.memory_bytes)}, at least {size(plan.least_memory_bytes)}, estimated"


def _training_time(plan: Estimate) -> str:
    if plan.memory_bytes is None:
        return NOT_ESTIMATED
    if plan.local_seconds is None:
        return "depends on the number of examples: give --examples"
    return f"{_seconds(plan.local_seconds)} each, in a round, estimated"


def _size(count: int | None) -> str:
    return "known once the model is loaded" if count is None else size(count)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 600 else f"{value / 3600:.1f} h"
