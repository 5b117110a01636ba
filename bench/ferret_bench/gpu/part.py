"""The interface of a part: a file in ``parts`` with one final class ``Part``; and the input of its steps."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from ferret_bench._machine import machine
from ferret_bench.base import Table
from ferret_core.sample import tasks
from ferret_core.system.device import chosen_device

TRAIN, TEST, EDGE = 400, 64, 8
GSM8K = ("gsm8k_train.jsonl", "gsm8k_test.jsonl")


class Setup(NamedTuple):
    """A step's input.

    ``miniature``: every size is a toy's, and a CPU suffices. ``data``: a folder with the official files, if any.
    ``scratch``: a folder for models, of up to tens of gigabytes.
    """

    miniature: bool
    data: Path | None
    scratch: Path

    @property
    def device(self) -> torch.device:
        return chosen_device()

    @property
    def official(self) -> Path | None:
        """The folder of the official files, if GSM8K is among them."""
        if self.data is None or self.miniature:
            return None
        found = [any((self.data / f"{name}{ending}").exists() for ending in ("", ".gz")) for name in GSM8K]
        return self.data if all(found) else None

    def toy_data(self) -> Path:
        """A folder with the demo's tasks as ``train.jsonl`` and ``test.jsonl``."""
        folder = self.scratch / "tasks"
        if not (folder / "test.jsonl").exists():
            folder.mkdir(parents=True, exist_ok=True)
            tasks.write(folder, train=TRAIN, test=TEST, edge=EDGE)
        return folder


def described() -> dict[str, Any]:
    """Returns the machine as in every benchmark, and the GPU's driver and memory."""
    here = machine()
    if here["gpu"] is None:
        return {**here, "driver": None, "gpu_memory_bytes": None}
    memory = torch.cuda.get_device_properties(0).total_memory
    return {**here, "driver": _driver(), "gpu_memory_bytes": memory}


def _driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        return None


Found = dict[str, Any]
Step = Callable[[Setup], Found]
Done = Mapping[str, Found]
"""Results of steps by name, without failed and skipped ones."""


class Suite(Protocol):
    """A part. ``title`` and ``lead`` are printed on the page. ``seconds`` is the time limit of all steps together."""

    title: str
    lead: str
    seconds: float

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        """Returns the steps by name, in order. A step's result is JSON."""
        ...

    def tables(self, done: Done) -> Sequence[Table]:
        """Returns the results as tables for people."""
        ...
