"""Runs a part's steps one after the other and stores each at its end. Successful steps are not repeated."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from time import perf_counter
from typing import Any

from ferret_bench.gpu.part import Suite
from ferret_bench.gpu.setup import Setup, described
from ferret_bench.gpu.step import Ended, apart, here
from ferret_cli.files import write
from ferret_cli.output import say

PARTS = ("kernels", "bounds", "federation", "tables", "frontier")
"""In order of importance: a machine may be gone before the last."""
Document = dict[str, Any]


def part(name: str) -> Suite:
    return importlib.import_module(f"ferret_bench.gpu.parts.{name}").Part()


def file_of(name: str, out: Path) -> Path:
    return out / f"{name}.json"


def run(name: str, setup: Setup, out: Path, *, again: bool = False, seconds: float = math.inf) -> Document:
    """Returns the part's document, also in ``out``: ``steps`` by name, and the machine. It takes at most
    ``seconds``.
    """
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
