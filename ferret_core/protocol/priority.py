"""How much of the workers an experiment gets beside others: what is trained does not change by it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LEAST_PRIORITY, MOST_PRIORITY = 1, 8

Priority = Annotated[
    int,
    Field(
        ge=LEAST_PRIORITY,
        le=MOST_PRIORITY,
        description="How many trainings it gets for each one of an experiment of priority 1; of queued experiments "
        "those of a higher priority start first",
    ),
]
