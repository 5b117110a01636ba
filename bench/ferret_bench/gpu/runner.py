"""Runs a part's steps one after the other and stores each at its end. Successful steps are not repeated.

A step runs in this process, or in a separate one with a limit.
"""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ferret_bench.gpu.part import Setup, Step, Suite, described
from ferret_cli.files import write
from ferret_cli.output import say, unforeseen
from ferret_core.protocol.errors import FerretError

Ended = dict[str, Any]
"""``found``, ``seconds`` and ``peak_device_bytes``, or an ``error``."""


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


PARTS = ("kernels", "bounds", "federation", "tables", "frontier")
"""In order of importance: a machine may be gone before the last."""
Document = dict[str, Any]


def part(name: str) -> Suite:
    return importlib.import_module(f"ferret_bench.gpu.parts.{name}").Part()


def file_of(name: str, out: Path) -> Path:
    return out / f"{name}.json"


def run(name: str, setup: Setup, out: Path, *, again: bool = False, seconds: float = math.inf) -> Document:
    """Returns the part's document, also in ``out``: ``steps`` by name, and the machine. Takes at most ``seconds``."""
    chosen, file, machine = part(name), file_of(name, out), described()
    steps = {} if again else _kept(file, setup.miniature, machine["gpu"])
    document = {"part": name, "miniature": setup.miniature, "machine": machine, "steps": steps}
    begin, most = perf_counter(), min(seconds, chosen.seconds)
    for step, work in chosen.steps(setup).items():
        if "found" in steps.get(step, {}):
            continue
        left = most - (perf_counter() - begin)
        if left <= 0:
            say(f"{name}, {step}: no time is left in this part; the same command continues with it")
            continue
        say(f"{name}, {step}")
        # Toy sizes break no GPU, and a process for each would take longer than the step.
        steps[step] = here(work, setup) if setup.miniature else apart(name, step, setup, left)
        say(f"{name}, {step}: {_said(steps[step])}")
        write(file, json.dumps(document, indent=1, allow_nan=False).encode() + b"\n")
    return document


def _kept(file: Path, miniature: bool, gpu: str | None) -> dict[str, Ended]:
    """Returns the steps of an earlier run of the same size on the same kind of GPU."""
    if not file.exists():
        return {}
    before = json.loads(file.read_bytes())
    alike = before["miniature"] == miniature and before["machine"]["gpu"] == gpu
    return before["steps"] if alike else {}


def _said(ended: Ended) -> str:
    if "error" in ended:
        return f"failed: {ended['error']['detail']}"
    return f"{ended['seconds']:.1f} s"
