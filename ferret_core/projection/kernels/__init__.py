"""Selection of the kernel: the fastest for the device, unless ``FERRET_KERNEL`` names one.

``cpu`` and ``gpu`` hold one file per family, with the family's name; a family without one uses the reference.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ferret_core.projection.bases.base import Basis
from ferret_core.projection.kernels import reference
from ferret_core.projection.kernels.base import Kernel
from ferret_core.protocol.errors import FerretError

SETTING = "FERRET_KERNEL"
KERNELS = ("auto", "reference", "cpu", "gpu")
NEEDS = {"cpu": "numba", "gpu": "triton"}
DEVICES = {"cpu": "cpu", "gpu": "cuda"}


def kernel(basis: Basis, device: torch.device) -> Kernel:
    """Returns the kernel for ``basis`` on ``device``; raises ``settings.invalid`` if it is unknown or not installed."""
    return named(_chosen(device), basis)


def squared_norm(before: Tensor, after: Tensor) -> Tensor:
    """Returns ‖before − after‖² of two vectors on one device, fp64 () on it too; raises like ``kernel``."""
    chosen = _chosen(after.device)
    norm = reference if chosen == "reference" else importlib.import_module(f"{__name__}.{chosen}.norm")
    return norm.squared_norm(before, after)


@cache
def named(name: str, basis: Basis) -> Kernel:
    """Returns the kernel ``name`` for ``basis``, or the reference if the family has no such kernel."""
    if name == "reference":
        return reference.Kernel(basis)
    module = f"{__name__}.{name}.{type(basis).__module__.rpartition('.')[2]}"
    return importlib.import_module(module).Kernel() if find_spec(module) else reference.Kernel(basis)


def _chosen(device: torch.device) -> str:
    chosen = os.environ.get(SETTING, "auto")
    if chosen not in KERNELS:
        raise _invalid(chosen, f"choose one of {', '.join(KERNELS)}")
    if chosen == "auto":
        best = next((name for name, type in DEVICES.items() if type == device.type), "reference")
        return best if _installed(best) else "reference"
    if not _installed(chosen):
        raise _invalid(chosen, f"needs {NEEDS[chosen]}: install it or choose auto")
    if device.type != DEVICES.get(chosen, device.type) and not _interpreted(chosen):
        raise _invalid(chosen, f"the weights are on {device.type}: choose auto or reference")
    return chosen


def _interpreted(name: str) -> bool:
    """True for Triton's interpreter, which accepts tensors on any device."""
    return name == "gpu" and os.environ.get("TRITON_INTERPRET") == "1"


def _invalid(chosen: str, message: str) -> FerretError:
    return FerretError.of_field("settings.invalid", SETTING, chosen, message)


def _installed(name: str) -> bool:
    return name not in NEEDS or find_spec(NEEDS[name]) is not None
