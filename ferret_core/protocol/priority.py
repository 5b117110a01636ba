"""Priority of an experiment: its share of the workers. It does not change what is trained."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LEAST_PRIORITY, MOST_PRIORITY = 1, 8

Priority = Annotated[
    int,
    Field(
        ge=LEAST_PRIORITY,
        le=MOST_PRIORITY,
        description="Trainings it gets for each one of an experiment with priority 1; queued experiments with higher "
        "priority start first",
    ),
]
