"""Python, packages, torch's build, GPU and compiler."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from ferret_cli.requirements_check import INSTALL_SERVER, INSTALL_TRAINING, SERVER_MODULES, missing

OLDEST_PYTHON = (3, 11)
TRAINING = ("torch", "transformers", "safetensors", "peft", "rouge-score")


class Check(NamedTuple):
    """``ok`` is None where something optional is missing; ``fix`` is the command that adds it."""

    name: str
    ok: bool | None
    detail: str
    fix: str | None = None

    @property
    def mark(self) -> str:
        return {True: "ok", False: "failed", None: "–"}[self.ok]


def checks() -> list[Check]:
    """Checks the requirements of training."""
    return [python(), training(), torch_build(), gpu(), compiler()]


def python() -> Check:
    wanted = ".".join(map(str, OLDEST_PYTHON))
    ok = sys.version_info >= OLDEST_PYTHON
    return Check("python", ok, platform.python_version(), None if ok else f"install Python {wanted} or newer")


def training() -> Check:
    """Checks training's requirements from the package metadata, because importing torch takes seconds."""
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


def torch_build() -> Check:
    """Checks torch's target processor, and the triton installed with it."""
    if _version("torch") is None:
        return Check("torch build", None, "unknown without torch", INSTALL_TRAINING)
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    triton = _version("triton")
    return Check("torch build", True, f"{build}, {f'triton {triton}' if triton else 'no triton'}")


def gpu() -> Check:
    names = _gpus()
    if not names:
        return Check("gpu", None, "none that torch can use; training runs on the CPU")
    return Check("gpu", True, ", ".join(names))


def compiler() -> Check:
    """Checks for a C compiler, which only triton needs: numba brings its own, and other packages compile no C."""
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if found or not _gpus():
        return Check("compiler", bool(found) or None, found or "none; only kernels on a GPU need one")
    return Check("compiler", False, "none, and triton needs one on a GPU", "apt-get install gcc libc6-dev python3-dev")


def _gpus() -> list[str]:
    if _version("torch") is None:
        return []
    import torch

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
