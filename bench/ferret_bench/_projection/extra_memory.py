"""Extra memory of G over one large block, in a separate process.

Run as ``python -m ferret_bench._projection.extra_memory D K THREADS``.

Prints one JSON object with the peaks of projecting and of applying, in bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys

import torch

from ferret_bench._projection.cell import Cell, Vectors
from ferret_bench._projection.implementations import Family
from ferret_bench.measure.memory import extra_bytes

OPERATIONS = ("project", "apply")
WARM_UP = 1 << 16


def in_a_fresh_process(elements: int, K: int) -> dict[str, int] | None:
    """Returns the peaks by operation, or None if the system does not report them."""
    command = [sys.executable, "-m", __name__, str(elements), str(K), str(torch.get_num_threads())]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return None if None in found.values() else found


def peaks(elements: int, K: int) -> dict[str, int | None]:
    """Returns the peaks without the existing vectors and coefficients and the result. Code is compiled beforehand."""
    device, family = torch.device("cpu"), Family("G")
    small, large = Vectors.random(WARM_UP, device), Vectors.random(elements, device)
    found: dict[str, int | None] = {}
    for operation in OPERATIONS:
        small.action(Cell(family, operation, WARM_UP, min(K, WARM_UP), 1))()
        action = large.action(Cell(family, operation, elements, K, 1))
        found[operation] = extra_bytes(action, device)
    return found


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    print(json.dumps(peaks(int(sys.argv[1]), int(sys.argv[2]))))
