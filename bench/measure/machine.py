"""What the numbers of a document belong to."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from bench.measure.memory import available_bytes

LIBRARIES = ("torch", "numba", "triton", "transformers")


def machine() -> dict[str, Any]:
    """Processor, cores, threads that torch uses, free memory, GPU, and versions."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_available_gb": available_bytes(torch.device("cpu")) / 1e9,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in LIBRARIES},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return named[1] if named else platform.processor() or platform.machine()


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
