"""Costs of a round, counted as in the Ferret paper: Shu et al., ICML 2025, appendix "Calculation of Computational Cost
and Communication Overhead".

Local update is one participant's training including the projection of its update. Global aggregation is averaging,
reconstruction and moving the global model. Overall is their sum. Communication is the number of parameters, or
projected gradients, that one participant sends and receives. Bytes are counted in transit.
docs/researchers/metrics.md lists the names.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ferret_core.protocol.metrics import METRICS
from ferret_core.protocol.wire import Array, Arrays, Contribution

if TYPE_CHECKING:
    import torch

    from ferret_core.algorithms.base import LocalUpdate

PROCESS = Path("/proc/self")
SIGNS = frozenset({"coordinates", "signs"})
"""Arrays with eight packed signs per uint8 entry; other packed bits are places of numbers."""
SENT = "sent"
"""Array with the number of coordinates that ``sparse_sign`` sends."""


class LocalCost(NamedTuple):
    """Costs of one participant's local update.

    ``sequences``: trained sequences, with repetitions. ``peak_memory_bytes``: the process's peak memory during the
    update, including code and mapped files. ``peak_device_bytes``: torch's peak memory on the GPU. None if unknown.
    """

    seconds: float
    sequences: float | None = None
    peak_memory_bytes: int | None = None
    peak_device_bytes: int | None = None

    @classmethod
    def reported(cls, seconds: float, metrics: Mapping[str, float]) -> LocalCost:
        """Creates the costs that a participant reports, without invalid counts."""
        sequences = metrics.get("trained_sequences")
        valid = sequences is not None and METRICS["trained_sequences"].holds(sequences)
        return cls(seconds, sequences if valid else None)


def measured(work: Callable[[], LocalUpdate], device: torch.device) -> tuple[LocalUpdate, LocalCost]:
    """Runs ``work`` on ``device`` and measures its costs."""
    _reset_peaks(device)
    begin = time.perf_counter()
    update = work()
    _wait(device)
    cost = LocalCost.reported(time.perf_counter() - begin, update.metrics)
    return update, cost._replace(peak_memory_bytes=_peak_memory(), peak_device_bytes=_peak_device(device))


def round_cost(local: Sequence[LocalCost], aggregate_seconds: float, up: Sequence[int], down: int) -> dict[str, float]:
    """Returns a round's metrics by name: means over its accepted participants, and the maximum of the peaks.

    ``up``: numbers sent by each participant; ``down``: numbers received by each. Unknown metrics are omitted.
    """
    speeds = [cost.sequences / cost.seconds for cost in local if cost.sequences and cost.seconds]
    figures = {
        "local_seconds": _over(fmean, [cost.seconds for cost in local]),
        "aggregate_seconds": aggregate_seconds,
        "sequences_per_second": _over(fmean, speeds),
        "numbers_sent": _over(fmean, up),
        "numbers_received": float(down),
        "peak_memory_bytes": _over(max, [cost.peak_memory_bytes for cost in local if cost.peak_memory_bytes]),
        "peak_device_bytes": _over(max, [cost.peak_device_bytes for cost in local if cost.peak_device_bytes]),
    }
    return {name: value for name, value in figures.items() if value is not None and math.isfinite(value)}


def numbers_sent(contribution: Contribution) -> int:
    """Counts the numbers that one participant sends, in any precision: a one-bit coordinate is one."""
    if contribution.meta.K is None:
        return _numbers(contribution.arrays)
    return sum(contribution.meta.K)


def numbers_in(result: Arrays) -> int:
    """Counts the numbers in a round's aggregated result, which every participant receives."""
    return int(result["K"].sum()) if "K" in result else _numbers(result)


def _numbers(arrays: Arrays) -> int:
    """Counts values only. Seeds, indices, counts and lengths (integers) locate the values, and are not counted."""
    if SENT in arrays:  # places and signs, and what is sent whole
        return int(arrays[SENT].sum()) + (arrays["whole"].size if "whole" in arrays else 0)
    return sum(_values(name, array) for name, array in arrays.items())


def _values(name: str, array: Array) -> int:
    if array.dtype == np.uint8:
        return 8 * array.size if name in SIGNS else 0
    return array.size if array.dtype.kind == "f" or array.dtype == np.int8 else 0


def _over(mean: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return float(mean(values)) if values else None


def _reset_peaks(device: torch.device) -> None:
    # If this is not allowed, the peak is the process's overall peak: an upper bound.
    with suppress(OSError):
        (PROCESS / "clear_refs").write_text("5")
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _wait(device: torch.device) -> None:
    """Waits until the GPU has finished its work."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


def resident_memory() -> int | None:
    """Returns the process's current memory in bytes, including code and mapped files; None if unknown."""
    return _status("VmRSS")


def _peak_memory() -> int | None:
    return _status("VmHWM")


def _status(name: str) -> int | None:
    """Returns Linux's status value ``name`` of the process, in bytes."""
    try:
        status = (PROCESS / "status").read_text()
    except OSError:
        return None
    found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _peak_device(device: torch.device) -> int | None:
    if device.type != "cuda":
        return None
    import torch

    return torch.cuda.max_memory_allocated(device)
