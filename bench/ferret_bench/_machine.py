"""The machine and the software that a measurement belongs to."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from ferret_core import __version__

LIBRARIES = ("torch", "transformers", "peft", "numpy", "numba", "triton")


def machine() -> dict[str, Any]:
    """Processor, cores, memory in bytes, GPU (None without one), system and versions."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
        "versions": {"ferret": __version__, "python": platform.python_version()}
        | {name: number for name in LIBRARIES if (number := _version(name))},
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
