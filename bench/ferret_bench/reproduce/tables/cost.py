"""The cost of a round: seconds of the local update and the global aggregation, numbers and bytes that travel (the
paper's tables 4, 5 and 10), on a model of any shape.
"""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import AGGREGATE, BYTES_DOWN, BYTES_UP, LOCAL, OVERALL, PARAMETERS
from ferret_bench.reproduce.reruns.study import AT_THE_END, Study

STUDY = Study(
    title="Cost of a round",
    lead="Computation as the paper counts it, one participant's local update with its projection plus the global "
    "aggregation; communication as the paper counts it, in numbers, and as measured, in bytes per participant. Medians "
    "of the rounds after the first. Steps are of one sequence, as in the paper's own account.",
    rows=("fedzo", "fedkseed", "fedavg", "ferret_paper", "ferret"),
    datasets=("natural_instructions",),
    quantities=(LOCAL, AGGREGATE, OVERALL, PARAMETERS, BYTES_UP, BYTES_DOWN),
    parts={
        "rounds": 3,
        "evaluation": {**AT_THE_END, "examples": 1, "generate": 0},
        "algorithm": {"local": {"batch_size": 1, "accumulation": 1}},
    },
    seeds=1,
)
