"""Python, packages, broker and GPU."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from ferret_cli.doctor.check import Check
from ferret_cli.setup import INSTALL_SERVER, INSTALL_TRAINING, SERVER_MODULES, missing

OLDEST_PYTHON = (3, 11)
TRAINING = ("torch", "transformers", "safetensors", "peft", "rouge-score")


def python() -> Check:
    wanted = ".".join(map(str, OLDEST_PYTHON))
    ok = sys.version_info >= OLDEST_PYTHON
    return Check("python", ok, platform.python_version(), None if ok else f"install Python {wanted} or newer")


def training() -> Check:
    """What training needs, asked from the package metadata, since importing torch takes seconds."""
    found = {name: _version(name) for name in TRAINING}
    absent = [name for name, number in found.items() if number is None]
    if absent:
        return Check("training packages", False, f"{', '.join(absent)} not installed", INSTALL_TRAINING)
    return Check("training packages", True, ", ".join(f"{name} {number}" for name, number in found.items()))


def server() -> Check:
    if missing(SERVER_MODULES):
        detail = "not installed: only submitting, joining and simulating work here"
        return Check("server packages", None, detail, INSTALL_SERVER)
    return Check("server packages", True, f"ferret-service {_version('ferret-service') or 'from a checkout'}")


def gpu() -> Check:
    if _version("torch") is None:
        return Check("gpu", None, "unknown without torch", INSTALL_TRAINING)
    import torch

    if not torch.cuda.is_available():
        return Check("gpu", None, "none that torch can use; training runs on the CPU")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Check("gpu", True, ", ".join(names))


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
