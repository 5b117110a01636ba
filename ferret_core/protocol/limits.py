"""Upper bounds of what a specification may ask for, so that no number in it can ask for work without end.

They are far beyond any real experiment: models of 10¹² parameters, 100,000 participants, a round of a year. What is
within them may still not fit into a machine's memory; that is found when it is tried, and ends that experiment alone.
``tests/security/test_specification_bounds.py`` fails for a field that has no bound.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_ROUNDS = 1_000_000
MAX_ELEMENTS = 2**40
"""Of a model, or of what stands for it."""
MAX_BYTES = 2**40
MAX_PART_BYTES = 64 << 20
"""Of an upload, which a site holds in memory while it sends them."""
MAX_EXAMPLES = 10**9
LEAST_DEVELOPMENT = 4
MAX_DEVELOPMENT = 1024
"""Sequences that a round is measured on before it counts: fewer say nothing, more take longer than the round."""
MAX_SEQUENCES = 65_536
"""That go through a model at once, or are gathered for one step."""
MAX_STEPS = 1_000_000
MAX_EPOCHS = 10_000.0
MAX_WIDTH = 65_536
"""Ranks, lengths and widths of what an algorithm adds to a model."""
MAX_SECONDS = 366 * 24 * 3600.0
MAX_LEASE_SECONDS = 31 * 24 * 3600.0
MAX_REAL = 1e30
"""Rates, weights and distances: what is far larger is beyond fp32, whose products would be infinite at once."""
MAX_LABELS = 1_000_000

Label = Annotated[str, Field(max_length=256)]
"""The name of a field, a label or a layer."""
Source = Annotated[str, Field(min_length=1, max_length=4096)]
Path = Annotated[str, Field(min_length=1, max_length=4096, json_schema_extra={"format": "path"})]
HubName = Annotated[str, Field(min_length=1, max_length=256)]
Revision = Annotated[str, Field(min_length=1, max_length=256)]
