"""Local training: peak memory and time per step of optimizers, activation checkpointing and steps in backward.

The document holds ``machine``, ``threads`` (torch's) and ``runs``, one per device: ``device``, ``model``,
``parameters``, ``tokens`` per step, and ``ways``. For each of ``WAYS``:

    peak_bytes            of one local update, all memory of the training device in that time
    times_weights         over the bytes of the global model's weights: fp32, and bf16 for pure bf16. A CPU holds the
                          originals and the copy that is trained. Originals are not counted: with a GPU they are in
                          the host's memory
    times_weights_as_is   the same, where the C library may keep freed memory; above it returns it immediately
    seconds_per_step      median over turns of 2 steps, one way after the other
    times_sgd             over the time of ordinary gradient descent: the median over the turns

or ``skipped``, with the reason. ``bounds`` holds, for the first device:

    in_backward_copies   times_weights of steps in backward with checkpoints: less than the 2 that any training with
                         a whole gradient needs
    in_backward_vs_sgd   peak of steps in backward over ordinary gradient descent's, neither with checkpoints
    sgd_vs_plain_peak    peak of gradient descent over that of a plain loop of transformers and torch, with originals
    sgd_vs_plain_time    the same of the time of a step
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple, final

import torch
from torch import nn

from ferret_bench import base
from ferret_bench._projection.llama import THREE_BILLION, TOY, Shape, random_batches, random_llama
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.clock import Action, Turns, in_turns
from ferret_bench.measure.memory import extra_bytes, short_of
from ferret_core.datasets.tokenization.client_data import Batch
from ferret_core.models.parameters import working_copy
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train

SGD = {"optimizer": "sgd", "learning_rate": 1e-6}
NORMALIZED = {"optimizer": "normalized", "learning_rate": 1e-6}
IN_BACKWARD = {"optimizer_in_backward": True}
CHECKPOINTED = {"activation_checkpointing": True}
PURE = {"precision": "pure_bfloat16"}

PLAIN = "a plain loop"
WAYS: Mapping[str, Mapping[str, Any]] = {
    PLAIN: SGD,
    "adam": {"optimizer": "adam"},
    "adam, checkpointed": {"optimizer": "adam", **CHECKPOINTED},
    "adafactor": {"optimizer": "adafactor"},
    "sgd": SGD,
    "sgd, checkpointed": {**SGD, **CHECKPOINTED},
    "sgd in backward": {**SGD, **IN_BACKWARD},
    "sgd in backward, checkpointed": {**SGD, **IN_BACKWARD, **CHECKPOINTED},
    "normalized": NORMALIZED,
    "normalized in backward": {**NORMALIZED, **IN_BACKWARD},
    "normalized in backward, checkpointed": {**NORMALIZED, **IN_BACKWARD, **CHECKPOINTED},
    "normalized in backward, checkpointed, pure bf16": {**NORMALIZED, **IN_BACKWARD, **CHECKPOINTED, **PURE},
}
"""Ways to train all parameters, by name: options of ``LocalConfig``. The first is a loop without Ferret."""
MOST_COPIES = 5
"""Weights, gradients, Adam's two moments, and on the CPU the originals."""

SMALL = Shape("LLaMA-148M", 576, 30, 9, 1536, 49_152, tied=True)
"""A model for a CPU: SmolLM2-135M with as many keys as queries."""

STEPS = 2
"""An optimizer creates its state in the first step, and has it together with the gradients in the second."""
AS_IS: Mapping[str, str] = {}
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
"""Makes the GNU C library return every larger block when it is freed: it begins so, but soon keeps some."""


class Arguments(NamedTuple):
    """``options`` are the ``LocalConfig``'s, ``plain`` uses a loop without Ferret instead.

    Every step trains on one sequence of ``tokens`` tokens.
    """

    shape: Shape
    options: Mapping[str, Any]
    tokens: int
    device: str
    threads: int
    plain: bool = False

    @property
    def config(self) -> LocalConfig:
        return LocalConfig.model_validate({"steps": STEPS, "accumulation": 1, **self.options})

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the global model."""
        return torch.bfloat16 if self.config.pure else torch.float32

    @property
    def weight_bytes(self) -> int:
        return self.dtype.itemsize * self.shape.elements


def in_a_fresh_process(arguments: Arguments, environment: Mapping[str, str]) -> int | None:
    """Returns ``peak_bytes`` with these variables set.

    In a shared process, one way's freed heap would be room for the next.
    """
    command = [sys.executable, "-m", __name__, json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **environment})
    return json.loads(done.stdout)


def peak_bytes(arguments: Arguments) -> int | None:
    """Returns the peak memory of the training device during one local update, with the model; None if unknown."""
    device = torch.device(arguments.device)
    # The first step of a process imports and allocates things unrelated to the model.
    _update(arguments, TOY, random_llama(TOY, device, arguments.dtype))
    model = random_llama(arguments.shape, device, arguments.dtype)
    extra = extra_bytes(lambda: _update(arguments, arguments.shape, model), device)
    return None if extra is None else arguments.weight_bytes + extra


def _update(arguments: Arguments, shape: Shape, model: nn.Module) -> None:
    batches = random_batches(shape, 1, arguments.tokens)
    if arguments.plain:
        _train_plainly(model, batches, arguments.config)
        return
    with working_copy(model, arguments.config.pure):
        train(model, batches, arguments.config)


def _train_plainly(model: Any, batches: Iterator[Batch], config: LocalConfig) -> None:
    """Gradient descent as the documentation of transformers has it, with the loss of the model itself."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), config.learning_rate)
    for batch in islice(batches, config.steps):
        optimizer.zero_grad()
        model(**{name: tensor.to(model.device) for name, tensor in batch._asdict().items()}).loss.backward()
        optimizer.step()
    optimizer.zero_grad()


Ways = dict[str, dict[str, Any]]

TOKENS = {"cpu": 256, "cuda": 1024}
"""Tokens per step: activations are about as large compared with the weights on both devices."""
BOUNDED = (PLAIN, "sgd", "sgd in backward", "sgd in backward, checkpointed")
BOUNDS = {
    "in_backward_copies": Bound("<", 2),
    "in_backward_vs_sgd": Bound("<", 1),
    "sgd_vs_plain_peak": Bound("<=", 1.1),
    "sgd_vs_plain_time": Bound("<=", 1.1),
}
COLUMNS = ("way", "times_weights", "times_weights_as_is", "peak_bytes", "seconds_per_step", "times_sgd")
MEMORY_SHARE = 0.6
"""The part of ``max_seconds`` that the measurements of memory may take, most of it to start processes."""


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench training``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        names = BOUNDED if asked.bounds else tuple(WAYS)
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        runs = [_run(device, names, asked.quick, asked.max_seconds / len(devices), say) for device in devices]
        return {
            "threads": torch.get_num_threads(),
            "runs": runs,
            "bounds": against(BOUNDS, _ratios(runs[0]["ways"])),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        return [_ways(run) for run in document["runs"]] + [bound.table(document)]


def _run(device: str, names: Sequence[str], quick: bool, max_seconds: float, say: Say) -> dict[str, Any]:
    shape = TOY if quick else THREE_BILLION if device == "cuda" else SMALL
    tokens = 16 if quick else TOKENS[device]
    threads = torch.get_num_threads()
    asked = {name: Arguments(shape, WAYS[name], tokens, device, threads, name == PLAIN) for name in names}
    say(f"{shape.name}, {shape.elements:,} parameters, {tokens} tokens per step, on {device}")
    found = _memory(asked, quick, MEMORY_SHARE * max_seconds, say)
    left = {name: arguments for name, arguments in asked.items() if "skipped" not in found[name]}
    say("timing the steps in turns")
    turns = Turns(2, 2) if quick else Turns(3, 7, (1 - MEMORY_SHARE) * max_seconds)
    for name, times in _times(left, turns).items():
        found[name] |= times
    described = {"device": device, "model": shape.name, "parameters": shape.elements, "tokens": tokens}
    return {**described, "ways": found}


def _memory(asked: Mapping[str, Arguments], quick: bool, max_seconds: float, say: Say) -> Ways:
    """Measures the memory. Small sizes are measured in this process: they only show that everything works."""
    found: Ways = {}
    begin, longest = perf_counter(), 0.0
    for name, arguments in asked.items():
        started = perf_counter()
        if started - begin + longest > max_seconds:
            found[name] = {"skipped": "no time is left: raise --max-seconds"}
        elif reason := short_of(MOST_COPIES * arguments.weight_bytes, torch.device(arguments.device)):
            found[name] = {"skipped": reason}
        elif quick:
            peak = peak_bytes(arguments)
            found[name] = _copies(arguments, peak, peak)
        else:
            peaks = (in_a_fresh_process(arguments, environment) for environment in (GIVEN_BACK, AS_IS))
            found[name] = _copies(arguments, *peaks)
        longest = max(longest, perf_counter() - started)
        say(f"{name}: {found[name]}")
    return found


def _copies(arguments: Arguments, peak: int | None, as_is: int | None) -> dict[str, Any]:
    originals = arguments.weight_bytes if arguments.device == "cpu" and not arguments.plain else 0

    def copies(held: int | None) -> float | None:
        return None if held is None else (held - originals) / arguments.weight_bytes

    return {"peak_bytes": peak, "times_weights": copies(peak), "times_weights_as_is": copies(as_is)}


def _times(asked: Mapping[str, Arguments], turns: Turns) -> Ways:
    """Measures the times. All ways of a type train one model. Without ordinary gradient descent nothing is timed."""
    if "sgd" not in asked:
        return {}
    shape, _, tokens, device, *_ = asked["sgd"]
    batches = random_batches(shape, 1, tokens)
    types = {arguments.dtype for arguments in asked.values()}
    models = {dtype: random_llama(shape, torch.device(device), dtype) for dtype in types}

    def steps(arguments: Arguments) -> Action:
        run = _train_plainly if arguments.plain else train
        return lambda: run(models[arguments.dtype], batches, arguments.config)

    timings = in_turns({name: steps(arguments) for name, arguments in asked.items()}, torch.device(device), turns)
    return {
        name: {"seconds_per_step": timings.median(name) / STEPS, "times_sgd": timings.ratio(name, "sgd")}
        for name in asked
    }


def _ratios(ways: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Returns the ratios, None if one side was skipped or could not be measured."""
    plain, sgd, optimizer_in_backward, checkpointed = (ways[name] for name in BOUNDED)
    return {
        "in_backward_copies": checkpointed.get("times_weights"),
        "in_backward_vs_sgd": _ratio(optimizer_in_backward, sgd, "peak_bytes"),
        "sgd_vs_plain_peak": _ratio(sgd, plain, "peak_bytes"),
        "sgd_vs_plain_time": _ratio(sgd, plain, "seconds_per_step"),
    }


def _ratio(way: Mapping[str, Any], other: Mapping[str, Any], name: str) -> float | None:
    both = way.get(name), other.get(name)
    return None if None in both else way[name] / other[name]


def _ways(run: Mapping[str, Any]) -> Table:
    title = f"{run['model']}, {run['parameters']:,} parameters, {run['tokens']} tokens per step, on {run['device']}"
    rows = [
        [_name(name, way), *(shown(way.get(column)) for column in COLUMNS[1:])] for name, way in run["ways"].items()
    ]
    return Table(title, COLUMNS, rows)


def _name(name: str, way: Mapping[str, Any]) -> str:
    return f"{name}: {way['skipped']}" if "skipped" in way else name


if __name__ == "__main__":
    shape, *others = json.loads(sys.argv[1])
    given = Arguments(Shape(*shape), *others)
    torch.set_num_threads(given.threads)
    print(json.dumps(peak_bytes(given)))
