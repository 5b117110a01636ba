"""Memory: the available amount, and a call's peak without its arguments and its result."""

from __future__ import annotations

import ctypes
import gc
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ferret_bench.measure.background import sampled

STATUS = Path("/proc/self/status")
MEMORY = Path("/proc/meminfo")
PERIOD = 0.001
ROOM = 0.8
"""The usable share of the available memory."""

Result = Tensor | Sequence[Tensor] | None


def available_bytes(device: torch.device) -> int:
    """Returns the bytes that can be allocated on ``device`` without swapping."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if MEMORY.exists():
        return _kilobytes(MEMORY, "MemAvailable")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def short_of(needed: int, device: torch.device) -> str | None:
    """Returns the reason not to allocate ``needed`` bytes on ``device``, or None if a good part stays free."""
    available = available_bytes(device)
    if needed <= ROOM * available:
        return None
    return f"needs {needed / 1e9:.1f} GB of memory; {ROOM:.0%} of the {available / 1e9:.1f} GB available may be used"


def anonymous_bytes(*pids: int) -> int:
    """Returns the memory of these processes without the pages of files."""
    return sum(_kilobytes(Path(f"/proc/{pid}/status"), "RssAnon") for pid in pids)


def resident_bytes(pid: int) -> int:
    """Returns the process's resident memory, pages of mapped files included."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS")


def extra_bytes(action: Callable[[], Result], device: torch.device) -> int | None:
    """Returns the peak memory during one call, minus the memory before it and its result; None if unknown.

    On the CPU this is the anonymous memory of this process, read every millisecond by a thread, so the call must let
    other threads run. Memory that was freed earlier is first returned to the system: reused memory would not be seen.
    """
    if device.type == "cuda":
        return _extra_on_gpu(action, device)
    if not STATUS.exists():
        return None
    _give_back()
    with sampled(lambda: anonymous_bytes(os.getpid()), PERIOD) as levels:
        result = action()
    return max(0, max(levels) - levels[0] - _size(result))


def _extra_on_gpu(action: Callable[[], Result], device: torch.device) -> int:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    result = action()
    torch.cuda.synchronize(device)
    return max(0, torch.cuda.max_memory_allocated(device) - before - _size(result))


def _give_back() -> None:
    """Collects garbage, and returns freed memory to the system where the C library can."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def _kilobytes(file: Path, field: str) -> int:
    """A line ``field: n kB`` of a file under /proc, in bytes."""
    found = re.search(rf"^{field}:\s+(\d+) kB", file.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def _size(result: Result) -> int:
    if result is None:
        return 0
    return sum(part.nbytes for part in ([result] if isinstance(result, Tensor) else result))
