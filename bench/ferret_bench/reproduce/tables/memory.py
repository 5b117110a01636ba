"""Peak memory of a round (the paper's table 6)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import PEAK_DEVICE, PEAK_MEMORY
from ferret_bench.reproduce.reruns.study import AT_THE_END, Study

STUDY = Study(
    title="Peak memory",
    lead="The most memory that a participant's training takes at once, on the GPU where there is one and on the host.",
    rows=("fedavg", "fedkseed", "ferret_paper", "ferret"),
    datasets=("natural_instructions",),
    quantities=(PEAK_DEVICE, PEAK_MEMORY),
    parts={"rounds": 2, "evaluation": {**AT_THE_END, "examples": 1, "generate": 0}},
    seeds=1,
)
