"""One step of a part: in this process, or in a separate one with a limit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ferret_bench.gpu.part import Step
from ferret_bench.gpu.setup import Setup
from ferret_cli.output import unforeseen
from ferret_core.protocol.errors import FerretError

Ended = dict[str, Any]
"""``found``, ``seconds`` and ``peak_device_bytes``, or an ``error``."""
Runner = Callable[[str, str, Setup, float], Ended]


def here(step: Step, setup: Setup) -> Ended:
    """Runs the step; an exception is its result."""
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    begin = perf_counter()
    try:
        found = step(setup)
        json.dumps(found, allow_nan=False)
    except Exception as error:
        raised = error if isinstance(error, FerretError) else unforeseen(error)
        return {"error": raised.to_json(), "seconds": perf_counter() - begin}
    peak = torch.cuda.max_memory_allocated() if gpu else None
    return {"found": found, "seconds": perf_counter() - begin, "peak_device_bytes": peak}


def apart(part: str, name: str, setup: Setup, seconds: float) -> Ended:
    """Runs the step of this name in a separate process, which is ended after ``seconds``."""
    result = setup.scratch / "step.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ferret_bench.gpu", part, "--step", name, "--result", str(result)]
    begin = perf_counter()
    try:
        code = subprocess.run([*command, *_options(setup)], timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return _failed(f"it took longer than the {seconds:.0f} s that were left", begin)
    if result.exists():
        return json.loads(result.read_bytes())
    return _failed(f"its process ended with {code}; -9 is a system without memory", begin)


def _options(setup: Setup) -> list[str]:
    data = [] if setup.data is None else ["--data", str(setup.data)]
    return [*data, "--scratch", str(setup.scratch), *(["--miniature"] if setup.miniature else [])]


def _failed(detail: str, begin: float) -> Ended:
    return {"error": FerretError("internal", detail).to_json(), "seconds": perf_counter() - begin}


def keep(ended: Ended, file: Path) -> None:
    """Writes the result for the parent process."""
    file.write_text(json.dumps(ended, allow_nan=False))
