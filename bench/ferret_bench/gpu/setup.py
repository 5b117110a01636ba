"""The input of a step, and the description of its machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ferret_bench.measure.machine import machine
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
